"""``python -m verif.campaigns.mutate``: does a block's standard testbench detect one wrong gate in its Verilog?

Yosys makes the mutants: a pin of a gate or register inverted, stuck, or mixed with another bit. All are in one
simulation, and an input selects one. A survivor is equivalent if ABC proves that it answers as the right circuit does,
see :mod:`verif.campaigns.mutant_proof`; others run once more, with another seed and more beats.
"""

import argparse
import re
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from hw.cli.arguments import check_least, reporting_errors
from hw.emit.package import write_files
from hw.lib.errors import UsageError
from hw.registry import UNITS, make_block
from verif.bench import simulator
from verif.bench.harness import DEFAULT_COUNT, emit, read_result, run_job
from verif.campaigns import report as verification_report
from verif.campaigns.gate_names import gate_names
from verif.campaigns.mutant_proof import MutantGraph
from verif.formal.netlist import run_yosys

__all__ = ["Mutants", "is_equivalent", "run_mutants", "unmatched"]

LEAST_KILLED = 0.97

COUNT = {
    "token_selector": 2700,
    "dot_product_unit": 2700,
    "softmax_unit": 1800,
    "dot_product_array": 3600,
    "layer_norm_unit": 2700,
    "vector_unit": 1800,
    "quantizer_unit": 1800,
    "mixed_precision_array": 1800,
}
MORE = 4
"""How many times the beats a mutant gets that was neither noticed nor proved equivalent at first."""


class Accepted(NamedTuple):
    """A survivor that was looked at: which mutants it stands for, with ``*`` for any text, and why they may live."""

    block: str
    module: str
    change: str
    reason: str

    def covers(self, block, description):
        module, _, change = description.partition(": ")
        return block == self.block and _is_like(module, self.module) and _is_like(change, self.change)

    def may_cover(self, module, gate):
        """Whether a gate is one of those that the entry is about, whatever is done to which pin of it."""
        pattern = re.sub(r"^\w+ at (.*)\.[^.]*$", r"\1", self.change)
        return _is_like(module, self.module) and _is_like(gate, pattern)


def _is_like(text, pattern):
    return re.fullmatch(".*".join(map(re.escape, pattern.split("*"))), text) is not None


ACCEPTED = [
    Accepted(
        "dot_product_array",
        "dpu_slice_*",
        "const0 at and to activity_waits_for_query.Y*",
        "activity.waits_for_query, which the tests of the array's schedule and the core's counters check",
    ),
    Accepted(
        "token_selector",
        "difference_exceeds_*",
        "const1 at and to generate_8_and[5].A[0]",
        "a carry from below must end at this bit while the difference is at the threshold",
    ),
    Accepted(
        "vector_unit",
        "round_pack_*",
        "const0 at ge to overflow.A[8]",
        "exponents of totals are from -128 to 127, so that the sign alone decides",
    ),
    Accepted(
        "vector_unit",
        "gelu_*",
        "inv at shr to even_intercepts_column_1[0].A[61]",
        "of all 65,536 words none has another result",
    ),
    Accepted(
        "vector_unit",
        "log_shifter_*_left_*",
        "const1 at mux to row_1[11].Y[0]",
        "a bit that only sums of thousands of terms do not shift out",
    ),
    Accepted(
        "vector_unit",
        "fused_product_*_wide*",
        "const0 at mux to product[*].B[5]",
        "only the lower part of an FP32 word has such an exponent, and it is 0 where the upper part is",
    ),
]


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
                "opt_clean",  # bits that nothing uses are no place for a mutant
                "write_json gates.json",
                f"mutate -list {number} -seed {seed} -ctrl mutsel {self.width} 1 -o mutants.ys",
                "script mutants.ys",
                "write_rtlil mutated.il",
                "write_verilog -noattr mutated.v",
            ],
        )
        self.verilog = (folder / "mutated.v").read_text()
        self._graph = None
        self.gates = gate_names(folder / "gates.json")
        self.descriptions = [self._describe(line) for line in (folder / "mutants.ys").read_text().splitlines()]

    def _describe(self, line):
        """A mutant in words, from the Yosys command that makes it."""
        words = dict(re.findall(r"-(mode|module|cell|port|portbit) (\S+)", line))
        gate = self.gates[words["module"], words["cell"].removeprefix("\\")]
        return f"{words['module']}: {words['mode']} at {gate}.{words['port']}[{words['portbit']}]"

    @property
    def numbers(self):
        return range(1, len(self.descriptions) + 1)

    @property
    def graph(self):
        if self._graph is None:
            self._graph = MutantGraph(self.folder, self.top)
        return self._graph


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
                    sim=simulator.choose(default="verilator"),
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


def unmatched(block, gates, accepted=None):
    """The entries of a block, of :data:`ACCEPTED`, of which the block has no gate any more."""
    entries = [entry for entry in (ACCEPTED if accepted is None else accepted) if entry.block == block]
    return [entry for entry in entries if not any(entry.may_cover(module, name) for (module, _), name in gates.items())]


def is_equivalent(mutants, number, timeout=60):
    """Whether a mutant is proved to answer as the right circuit does; False if it is seen not to, None if unknown."""
    return mutants.graph.steps_alike(number, timeout) or mutants.graph.answers_alike(number, timeout)


# The command line ----------------------------------------------------------------------------------------------------


def campaign(unit, number, count, seed, timeout):
    """Make, run and classify the mutants of a block; returns the row of the report."""

    def tell(text):
        print(f"{unit}: {text}", file=sys.stderr, flush=True)

    with tempfile.TemporaryDirectory(prefix="mutate-") as folder:
        mutants = Mutants(make_block(unit, "tiny"), number, seed, Path(folder))
        for entry in unmatched(unit, mutants.gates):
            tell(f"no gate is like the accepted survivor {entry.module}: {entry.change}")
        verdicts = run_mutants(mutants, count, seed)
        alive = _unnoticed(verdicts)
        tell(f"{len(alive)} of {len(verdicts)} mutants are not noticed; are they equivalent?")
        equivalent = {mutant for mutant in alive if mutants.graph.steps_alike(mutant, timeout)}
        open_ones = [mutant for mutant in alive if mutant not in equivalent]
        tell(f"{len(equivalent)} are, {len(open_ones)} run once more")
        if open_ones:
            verdicts |= run_mutants(mutants, MORE * count, seed + 1, open_ones)
        open_ones = _unnoticed({mutant: verdicts[mutant] for mutant in open_ones})
        tell(f"{len(open_ones)} are not noticed either; are they equivalent?")
        proved = {mutant: mutants.graph.answers_alike(mutant, timeout) for mutant in open_ones}
    left = []
    for mutant in open_ones:
        if proved[mutant] is not True:
            text = mutants.descriptions[mutant - 1]
            told = "differs" if proved[mutant] is False else "unknown whether it differs"
            reason = next((entry.reason for entry in ACCEPTED if entry.covers(unit, text)), "")
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
    for unit in options.units or UNITS:
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
