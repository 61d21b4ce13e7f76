"""``python -m verif.campaigns.mutate``: does a block's standard testbench notice when one gate of the emitted Verilog is wrong?

Yosys makes the mutants: a pin of a gate or register inverted, stuck, or mixed with another bit. All are in one
simulation, and an input selects one. A survivor is equivalent if ABC proves that it answers as the right circuit does,
see :mod:`verif.campaigns.mutant_proof`; others are played once more, with another seed and more beats.
"""

import argparse
import re
import sys
import tempfile
from pathlib import Path

from hw.cli.arguments import check_least, reporting_errors
from hw.emit.package import write_files
from hw.lib.errors import UsageError
from hw.registry import ASSEMBLIES, UNITS, make_block
from verif.bench import simulator
from verif.bench.harness import DEFAULT_COUNT, emit, read_result, run_job
from verif.campaigns import report as verification_report
from verif.campaigns.mutant_proof import MutantGraph
from verif.formal.netlist import run_yosys

__all__ = ["Mutants", "is_equivalent", "run_mutants"]

LEAST_KILLED = 0.97

SIM = "verilator"
COUNT = {
    "token_selector": 2700,
    "dot_product_unit": 2700,
    "softmax_unit": 1800,
    "dot_product_array": 3600,
    "layer_norm_unit": 2700,
    "vector_unit": 1800,
}
MORE = 4
"""How many times the beats a mutant gets that was neither noticed nor proved equivalent at first."""

ACCEPTED = {
    "dot_product_array": {
        "sampled_unit_4_fp16_16_8_8: const0 at gate at dot_product_array.v:454.Y[0]": "activity.waits_for_query, which test_sampled_array.py and the core's counters check"
    },
    "token_selector": {
        "difference_exceeds_registered: const1 at gate at token_selector.v:548[5].A[0]": "a carry from below must end at this bit while the difference is at the threshold"
    },
    "vector_unit": {
        "round_pack_fp16_25_10: const0 at gate at vector_unit.v:4879.A[8]": "exponents of totals are from -128 to 127, so that the sign alone decides",
        "gelu_fp16: inv at gate at vector_unit.v:1791.A[61]": "of all 65,536 words none has another result",
        "log_shifter_51_6_left_small_steps_first: const1 at gate at vector_unit.v:5068": "a bit that only sums of thousands of terms do not shift out",
        "fused_product_fp16_wide: const0 at gate at vector_unit.v:3858[7:0].B[5]": "only the lower part of an FP32 word has such an exponent, and it is 0 where the upper part is",
    },
}
"""``{block: {beginning of a mutant's description: why the testbench need not see it}}`` for survivors looked at."""


class Mutants:
    """The mutants of a block: ``verilog`` with the input mutsel, and what each number stands for (0: nothing)."""

    def __init__(self, block, number, seed, folder):
        self.block, self.top, self.folder = block, block.base_name, folder
        self.width = number.bit_length()
        files = emit(block, self.top)
        write_files(folder, files)
        run_yosys(
            folder,
            [
                f"read_verilog {' '.join(files)}",
                f"hierarchy -check -top {self.top}",
                "proc",
                "opt_expr",
                "splitcells",
                "opt_clean",  # bits that nothing uses are not worth a mutant
                f"mutate -list {number} -seed {seed} -ctrl mutsel {self.width} 1 -o mutants.ys",
                "script mutants.ys",
                "write_rtlil mutated.il",
                "write_verilog -noattr mutated.v",
            ],
        )
        self.verilog = (folder / "mutated.v").read_text()
        self._graph = None
        self.descriptions = [_describe(line) for line in (folder / "mutants.ys").read_text().splitlines()]

    @property
    def numbers(self):
        return range(1, len(self.descriptions) + 1)

    @property
    def graph(self):
        if self._graph is None:
            self._graph = MutantGraph(self.folder, self.top)
        return self._graph


def _describe(line):
    """A mutant in words, from the Yosys command that makes it."""
    words = dict(re.findall(r"-(mode|module|cell|port|portbit|ctrlbit|wire|wirebit) (\S+)", line))
    cell = re.sub(r"\$\S*[/$](\w+\.v):(\d+)\$\d+", r"gate at \1:\2", words["cell"])
    wire = f", {words['wire']}[{words['wirebit']}]" if "wire" in words else ""
    return f"{words['module']}: {words['mode']} at {cell}.{words['port']}[{words['portbit']}]{wire}"


def run_mutants(mutants, count, seed, numbers=None):
    """``{number: what the testbench said, or None}``; the right circuit comes first and last, and must pass."""
    verdicts = {}
    left = [0, *(mutants.numbers if numbers is None else numbers)]
    while left:
        with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
            job = {
                "unit": mutants.top,
                "parameters": mutants.block.parameters.to_dict(),
                "seed": seed,
                "count": count,
                "mutants": [*left, 0],
            }
            try:
                found = run_job(
                    mutants.block,
                    "verif.campaigns.mutant_runs:run_each",
                    job,
                    sim=SIM,
                    keep=folder,
                    long=True,
                    edit=lambda files: {f"{mutants.top}.v": mutants.verilog},
                )
            except simulator.SimulatorError:
                if not Path(folder, "result.json").exists():
                    raise
                found = read_result(Path(folder), mutants.top)
        if found.get("0"):
            raise ValueError(f"the right {mutants.top} fails its testbench: {found['0']}")
        verdicts |= {int(number): text for number, text in found.items()}
        left = [number for number in left if number not in verdicts]
    del verdicts[0]
    return verdicts


def is_equivalent(mutants, number, timeout=60):
    """Whether a mutant is proved to answer as the right circuit does; False if it is seen not to, None if unknown."""
    return mutants.graph.steps_alike(number, timeout) or mutants.graph.answers_alike(number, timeout)


# The command line ----------------------------------------------------------------------------------------------------


def campaign(unit, number, count, seed, timeout):
    """Make, run and judge the mutants of a block; returns the row of the report."""

    def tell(text):
        print(f"{unit}: {text}", file=sys.stderr, flush=True)

    with tempfile.TemporaryDirectory(prefix="mutate-") as folder:
        mutants = Mutants(make_block(unit, "tiny"), number, seed, Path(folder))
        verdicts = run_mutants(mutants, count, seed)
        alive = _unnoticed(verdicts)
        tell(f"{len(alive)} of {len(verdicts)} mutants are not noticed; are they equivalent?")
        equivalent = {mutant for mutant in alive if mutants.graph.steps_alike(mutant, timeout)}
        open_ones = [mutant for mutant in alive if mutant not in equivalent]
        tell(f"{len(equivalent)} are, {len(open_ones)} are played once more")
        if open_ones:
            verdicts |= run_mutants(mutants, MORE * count, seed + 1, open_ones)
        open_ones = _unnoticed({mutant: verdicts[mutant] for mutant in open_ones})
        tell(f"{len(open_ones)} are not noticed either; are they equivalent?")
        judged = {mutant: mutants.graph.answers_alike(mutant, timeout) for mutant in open_ones}
    left = []
    for mutant in open_ones:
        if judged[mutant] is not True:
            text = mutants.descriptions[mutant - 1]
            told = "differs" if judged[mutant] is False else "unknown whether it differs"
            reason = next((why for start, why in ACCEPTED.get(unit, {}).items() if text.startswith(start)), "")
            left.append(f"{text}: {told}" + (f"; {reason}" if reason else ""))
    killed = len(verdicts) - len(_unnoticed(verdicts))
    return {
        "mutants": len(verdicts),
        "killed": killed,
        "survivors": len(left),
        "seed": seed,
        "equivalent": len(verdicts) - killed - len(left),
        "left": left,
        "count": count,
    }


def _unnoticed(verdicts):
    return [mutant for mutant, text in verdicts.items() if text is None]


def main(arguments=None):
    purpose = __doc__.split("\n")[0].split(": ", 1)[1]
    parser = argparse.ArgumentParser(prog="python -m verif.campaigns.mutate", description=purpose)
    parser.add_argument("units", nargs="*", metavar="UNIT", help="blocks (default: all but the core)")
    parser.add_argument("--mutants", type=int, default=200, help="mutants a block (default 200)")
    parser.add_argument(
        "-n",
        "--count",
        type=int,
        help=f"beats of stimulus, about (default {DEFAULT_COUNT}, more where one result takes many)",
    )
    parser.add_argument("--seed", type=int, default=1, help="seed of mutants and stimulus (default 1)")
    parser.add_argument("--timeout", type=int, default=60, help="seconds for a proof of equivalence (default 60)")
    parser.add_argument("--report", action="store_true", help=f"renew these blocks in {verification_report.PAGE}")
    options = parser.parse_args(arguments)
    check_least(options, mutants=1, count=1, seed=0, timeout=1)
    is_enough = True
    for unit in options.units or UNITS + ASSEMBLIES:
        try:
            count = options.count or COUNT.get(unit, DEFAULT_COUNT)
            row = campaign(unit, options.mutants, count, options.seed, options.timeout)
        except (simulator.SimulatorError, ValueError) as error:
            raise UsageError(str(error)) from None
        share = row["killed"] / max(1, row["mutants"] - row["equivalent"])
        print(
            f"{unit}: {row['mutants']} mutants, {row['killed']} killed, {row['equivalent']} equivalent, "
            f"{row['survivors']} survivors: {share:.1%} killed",
            flush=True,
        )
        for text in row["left"]:
            print(f"  {text}", flush=True)
        is_enough &= share >= LEAST_KILLED
        if options.report:
            verification_report.renew("mutation", {unit: row})
    return 0 if is_enough else 1


if __name__ == "__main__":
    sys.exit(reporting_errors(main))
