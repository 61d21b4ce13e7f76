"""Command line: a head of a real diffusion transformer on the core's emitted Verilog, with figures and a picture."""

import argparse
import sys
from pathlib import Path

import numpy as np

from golden.core.core import Core
from golden.spec.counters import COUNTERS
from hw.cli.arguments import reporting_errors
from hw.lib.errors import UsageError
from hw.registry import PRESETS, make_block
from verif.bench import datasets, simulator
from verif.core.demo.program import head_of, make_phases
from verif.core.demo.report import errors, table
from verif.core.session import run_program


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="python -m verif.core.demo", description=__doc__)
    parser.add_argument("--config", default="edge", metavar="|".join(PRESETS), help="preset of the core (default edge)")
    parser.add_argument("--head", type=int, default=0, help="number of the head, of those stored at two adjacent steps")
    parser.add_argument("--theta", type=int, default=1, help="number of the threshold (default 1: 2**-9)")
    parser.add_argument("--step", type=int, default=20, help="step of the latents for the token mask (default 20)")
    parser.add_argument(
        "--tau", type=int, default=1, help="number of the threshold for the token mask (default 1: 2**-6)"
    )
    parser.add_argument(
        "--sim", metavar="|".join(simulator.SIMULATORS), help="simulator (default: SIM, else Verilator)"
    )
    parser.add_argument("-o", "--output", default="build/demo", metavar="DIR", help="where report and picture go")
    options = parser.parse_args(arguments)
    try:
        data = datasets.workload()
    except (OSError, ValueError) as error:
        raise UsageError(str(error)) from None
    head = _head(data, options)
    try:
        block = make_block("core", options.config)
    except ValueError as error:
        raise UsageError(str(error)) from None
    sizes = block.parameters
    n, d = head.first.shape[1:]
    if n > sizes.max_tokens or d > sizes.max_head_dim:
        raise UsageError(f"--config must be a core for {n} tokens and heads of {d}, not {options.config!r}")
    phases = make_phases(sizes, head)
    print(f"golden model: {len(phases.program.commands)} commands", flush=True)
    golden = phases.program.results(Core(sizes).execute(phases.program.commands, phases.program.load_beats))
    print("Verilog: building the simulation takes some minutes the first time, then it runs", flush=True)
    try:
        session = run_program(block, phases.program, sim=options.sim)
    except simulator.SimulatorError as error:
        raise UsageError(str(error)) from None
    found = phases.program.split(session.values, session.last)
    numbers = {stored.command: number for number, stored in enumerate(phases.program.stored)}
    results = {name: found[numbers[stored.command]] for name, stored in phases.results.items()}
    results |= {(name, "counters"): found[numbers[stored.command]] for name, stored in phases.counters.items()}
    wrong = [
        name
        for name, stored in phases.results.items()
        if not np.array_equal(results[name], golden[numbers[stored.command]])
    ]
    text = _report(head, sizes, phases, results, wrong)
    print(text)
    folder = Path(options.output)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "report.md").write_text(text)
        _draw(folder / "head.png", head, sizes, phases, results, session, numbers)
    except OSError as error:
        raise UsageError(f"cannot write to the output folder {str(folder)!r}: {error.strerror}") from None
    print(f"{folder / 'report.md'}, {folder / 'head.png'}")
    return 1 if wrong else 0


def _head(data, options):
    pairs = len(data["A_qkv"]) // 2
    if not 0 <= options.head < pairs:
        raise UsageError(f"--head must be from 0 to {pairs - 1}, not {options.head}")
    if not 0 <= options.theta < len(data["A_theta"]):
        raise UsageError(f"--theta must be from 0 to {len(data['A_theta']) - 1}, not {options.theta}")
    if not 0 <= options.step < len(data["A_z"]) - 1:
        raise UsageError(f"--step must be from 0 to {len(data['A_z']) - 2}, not {options.step}")
    if not 0 <= options.tau < len(data["A_tau"]):
        raise UsageError(f"--tau must be from 0 to {len(data['A_tau']) - 1}, not {options.tau}")
    return head_of(data, options.head, options.theta, options.step, options.tau)


def _report(head, sizes, phases, results, wrong):
    found, pruning = errors(head, phases, results)
    n, d = head.first.shape[1:]
    lines = [
        f"One attention head, {n} tokens of {d} elements, on {sizes.n_banks} dot-product units of {sizes.n_lanes} "
        f"lanes and {sizes.n_banks} engines of {sizes.simd_lanes} lanes; theta = {head.theta:g}.",
        "Clocks are those of the commands between loads and stores, which are kept apart here; the next column "
        "adds a clock for each beat loaded and stored.",
        "",
        table(sizes, phases, results, found),
        "",
        "error: the largest one against float64 on the same FP16 inputs, relative to the largest element of the row.",
        *(f"Pruning itself changes {name} by {value:.1e} in the same measure." for name, value in pruning.items()),
        f"Tokens that changed: {len(results['tokens'])} of {n}.",
        "Bits: all results are those of the golden model."
        if not wrong
        else f"Bits DIFFER from the golden model in: {', '.join(wrong)}.",
    ]
    return "\n".join(lines) + "\n"


def _draw(path, head, sizes, phases, results, session, numbers):
    try:
        from verif.core.demo.picture import draw  # the only user of matplotlib, which `make demo` installs
    except ImportError as error:
        raise UsageError(f"the picture needs {error.name}: install it, or use make demo, which does") from None
    shown = {}
    counts = {
        name: dict(zip(COUNTERS, map(int, results[name, "counters"]), strict=True))
        for name in ("step t+1, dense", "step t+1, masked")
    }
    dense = counts["step t+1, dense"]["cycles"]
    for name, count in counts.items():
        number = numbers[phases.counters[name].command]
        first, end = session.ends[number - 1] + 1, session.ends[number] + 1
        busy = np.flatnonzero(session.busy[first:end, :4].any(axis=1))
        cycles, transfers = count["cycles"], phases.transfers[name]
        shown[name] = {
            "span": (first + busy[0], first + busy[-1] + 1),
            "transfers": transfers,
            "busy": (
                f"{count['array_beats'] / (sizes.n_banks * cycles):.0%} of the beats used",
                f"{count['softmax_busy'] / cycles:.0%} busy",
                f"{count['spmm_terms'] / (sizes.n_banks * cycles):.0%} of the engines' issues used",
            ),
            "note": f"{cycles:,} clocks, {dense / cycles:.2f} times as fast; with loads and stores "
            f"{cycles + transfers:,}, {(dense + phases.transfers['step t+1, dense']) / (cycles + transfers):.2f} times",
        }
    n, d = head.first.shape[1:]
    title = f"Attention head, {n} tokens of {d} elements, on {sizes.n_banks} units of {sizes.n_lanes} lanes"
    draw(path, title, sizes, results["mask"].astype(bool), session, shown)


if __name__ == "__main__":
    sys.exit(reporting_errors(main))
