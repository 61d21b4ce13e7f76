"""Command line: a feed-forward layer of a diffusion transformer, step after step, on the core's Verilog."""

import argparse
import sys

import numpy as np

from golden.arith.elementwise import from_fp32
from golden.arith.functions import gelu
from golden.differential.layer import error_account
from golden.differential.program import FeedForward
from golden.differential.statistics import Statistics
from golden.spec.formats import FP16
from golden.spec.mixed_precision_core import Unit
from golden.units.mixed_precision_core import MixedPrecisionCore
from hw.cli.arguments import reporting_errors
from hw.lib.errors import UsageError
from hw.registry import PRESETS, make_block, preset
from verif.bench import simulator
from verif.units.mixed_precision_core.dit_model import DiffusionTransformer, read_safetensors
from verif.units.mixed_precision_core.recorded_layer import Layer, from_model, recorded
from verif.units.mixed_precision_core.session import run_programs

__all__ = ["Account", "block_for", "compare", "main"]


class Account:
    """What a run gives, step by step."""

    def __init__(self):
        self.errors, self.statistics, self.different, self.clocks = [], [], 0, []

    @property
    def total(self):
        """Statistics of all steps but the first, which begins from zero."""
        return sum(self.statistics[1:], Statistics())


def block_for(config, layer, n_tiles):
    """The core of a preset with memories for a layer of ``n_tiles`` tiles of tokens."""
    p = make_block("mixed_precision_core", config).parameters
    n_in, n_hidden = layer.weights[0].shape
    n_out = layer.weights[1].shape[1]
    pieces = -(-n_in // p.n_channels) + -(-n_hidden // p.n_channels)
    columns = -(-n_hidden // p.n_columns), -(-n_out // p.n_columns)
    depth = n_tiles * (-(-n_in // p.n_output_lanes) * p.n_output_lanes + columns[0] * p.n_columns)
    needed = {
        "n_buffers": n_tiles * pieces,
        "n_tiles": n_tiles * sum(columns),
        "activation_depth": depth,
        "reference_depth": n_tiles * (n_in + n_hidden),
    }
    sizes = preset(config)["mixed_precision_core"]
    return make_block("mixed_precision_core", config, {name: max(sizes[name], value) for name, value in needed.items()})


def compare(block, layer, unit, threshold=1.5, sim=None, n_tiles=1, with_verilog=True):
    """Run a layer's steps on the Verilog and on the models: an :class:`Account`."""
    p = block.parameters
    options = {"n_rows": p.n_rows, "n_channels": p.n_channels, "n_levels": p.n_levels, "first_passes": 1}
    first, second = layer.layers(unit, threshold=threshold, **options)
    host, core = FeedForward(p, first, second, n_tiles), MixedPrecisionCore(**p.to_dict())
    programs, expected, account = [host.begin()], [], Account()
    core.execute(programs[0].commands, programs[0].beats)
    for step, values in enumerate(layer.inputs):
        program = host.step(values.view(np.uint16))
        programs.append(program)
        run = core.execute(program.commands, program.beats)
        expected.append([beat for beat, _ in run.stored])
        words = second.step(gelu(from_fp32(first.step(values.view(np.uint16)), FP16)))
        if not (host.outputs(expected[-1]) == words).all():
            raise AssertionError("the models of core and layers differ")
        account.errors.append(error_account(words, layer.exact(step))[0])
        account.statistics.append(_columns(first, p) + _columns(second, p))
    if with_verilog:
        session = run_programs(block, programs, sim=sim)
        pairs = zip(session.stored[1:], expected, strict=True)
        account.different = sum(a != b for found, wanted in pairs for a, b in zip(found, wanted, strict=True))
        account.clocks = np.diff([0, *session.ends]).tolist()
        account.busy = session.busy
    return account


def _columns(layer, p):
    """A layer's statistics, clocks counted for all tiles of columns."""
    last, n = layer.last, -(-layer.weights.shape[1] // p.n_columns)
    return Statistics(last.vectors * n, last.by_slices * n, last.groups * n, last.shifts * n, last.errors * n)


def _layer(options, n_tokens):
    """The layer that was asked for, cut to so many tokens."""
    try:
        if options.model is None:
            layer = recorded()
        else:
            model = DiffusionTransformer(read_safetensors(options.model))
            with np.load(options.reference) as reference:
                noise, label = reference["z0"][0], reference["classes"][0]
                timesteps = reference["timesteps"][: options.steps]
            layer = from_model(model, noise, label, timesteps, options.block)
    except (OSError, ValueError, KeyError) as error:
        raise UsageError(f"the model cannot be read: {error}") from None
    available = layer.inputs.shape[1]
    if n_tokens > available:
        raise UsageError(f"--tiles must be at most {available * options.tiles // n_tokens} for {available} tokens")
    if not 1 <= options.steps <= len(layer.inputs):
        raise UsageError(f"--steps must be from 1 to {len(layer.inputs)}, not {options.steps}")
    return Layer(np.ascontiguousarray(layer.inputs[: options.steps, :n_tokens]), layer.weights, layer.biases)


def main(arguments=None):
    name = "python -m verif.units.mixed_precision_core.feed_forward"
    parser = argparse.ArgumentParser(prog=name, description=__doc__)
    parser.add_argument("--config", default="edge", metavar="|".join(PRESETS), help="preset (default edge)")
    parser.add_argument("--tiles", type=int, default=2, help="tiles of tokens (default 2)")
    parser.add_argument("--steps", type=int, default=10, help="successive steps (default 10)")
    parser.add_argument("--unit", type=float, default=1 / 32, help="finest scale in units of the RMS (default 1/32)")
    parser.add_argument("--threshold", type=float, default=1.5, help="2 bits up to so many units (default 1.5)")
    parser.add_argument("--model", metavar="FILE", help="dit_small.safetensors (default: a recorded layer)")
    parser.add_argument("--reference", metavar="FILE", help="dit_small_reference.npz, with --model: noise and steps")
    parser.add_argument("--block", type=int, default=2, choices=range(5), help="block of the model (default 2)")
    parser.add_argument(
        "--sim", metavar="|".join(simulator.SIMULATORS), help="simulator (default: SIM, else Verilator)"
    )
    parser.add_argument("--model-only", action="store_true", help="without the Verilog: errors and bits")
    options = parser.parse_args(arguments)
    if options.config not in PRESETS:
        raise UsageError(f"--config must be one of {', '.join(PRESETS)}, not {options.config!r}")
    if options.tiles < 1 or not 0 < options.unit < 1:
        raise UsageError("--tiles must be at least 1, and --unit more than 0 and less than 1")
    if (options.model is None) != (options.reference is None):
        raise UsageError("--model and --reference must be given together")
    n_rows = preset(options.config)["mixed_precision_core"]["n_rows"]
    layer = _layer(options, options.tiles * n_rows)
    try:
        block = block_for(options.config, layer, options.tiles)
        account = compare(
            block, layer, options.unit, options.threshold, options.sim, options.tiles, not options.model_only
        )
    except (ValueError, simulator.SimulatorError) as error:
        raise UsageError(str(error)) from None
    print(report(account, block, options.tiles))
    return int(bool(account.different))


def report(account, block, n_tiles):
    """Lines of text."""
    lines = [f"{block.parameters.n_rows * n_tiles} tokens in tiles of {block.parameters.n_rows}"]
    for step, (error, found) in enumerate(zip(account.errors, account.statistics, strict=True)):
        line = f"step {step}: {found.bits:.2f} bits, error {100 * error:.2f} %, array {found.clocks} clocks"
        line += f" (8 bits: {found.int8_clocks}), lanes used {100 * found.utilisation:.1f} %"
        if account.clocks:
            line += f", {account.clocks[step]} clocks in all"
        lines.append(line)
    total = account.total
    if total.vectors:
        error, share = 100 * np.mean(account.errors[1:]), total.clocks / total.int8_clocks
        lines.append(
            f"steps after the first: {total.bits:.2f} bits, error {error:.2f} %, "
            f"lanes used {100 * total.utilisation:.1f} %, {share:.3f} of the clocks of 8 bits"
        )
    if account.clocks:
        shares = zip(Unit, account.busy.mean(axis=0), strict=True)
        lines.append("at work: " + ", ".join(f"{unit.name.lower()} {100 * share:.0f} %" for unit, share in shares))
        lines.append(f"beats that differ from the model: {account.different}")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(reporting_errors(main))
