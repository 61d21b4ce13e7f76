"""``python -m verif.campaigns.coverage``: lines and toggles of the Verilog that a block's standard testbench reaches.

Verilator counts them at preset tiny. A toggle is a bit that rises, and one more that it falls; instances of a module
count together. Left out are bits that no input can move, because Yosys finds them constant where the block is
flattened, and those of ``EXCLUDED``, with the reason. The testbench itself fails if a corner case that it must meet is
not hit.
"""

import argparse
import json
import re
import sys
import tempfile
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path

from tqdm import tqdm

from hw.cli.arguments import check_least, reporting_errors
from hw.emit.package import write_files
from hw.lib.errors import UsageError
from hw.registry import UNITS, make_block
from verif.bench import simulator
from verif.bench.batch import bench_class
from verif.bench.harness import emit, run_bench
from verif.campaigns import report as verification_report
from verif.formal.netlist import run_yosys

__all__ = ["Coverage", "measure"]

LEAST_LINES, LEAST_TOGGLES = 0.98, 0.95
COUNT = 900
COUNTS = {"core": 4000}  # commands of random programs
SHOWN = 40
EXCLUDED = {}
"""``{module.signal[bit], as a regular expression: reason}`` for toggles that the testbench need not reach."""


@dataclass
class Coverage:
    """Lines and toggles, reached and in total; what was not reached; hits of the corner cases that must be met."""

    lines: tuple[int, int] = (0, 0)
    toggles: tuple[int, int] = (0, 0)
    constant: int = 0
    excluded: dict[str, int] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)
    bins: dict[str, int] = field(default_factory=dict)
    failed: int = 0

    @property
    def is_enough(self):
        return not self.failed and _share(self.lines) >= LEAST_LINES and _share(self.toggles) >= LEAST_TOGGLES


def _share(counts):
    return counts[0] / counts[1] if counts[1] else 1.0


def measure(unit, count=None, seed=1):
    """The :class:`Coverage` of a block, by so many beats of stimulus or as many as it takes."""
    block, count = make_block(unit, "tiny"), count or COUNTS.get(unit, COUNT)
    with tempfile.TemporaryDirectory(prefix="coverage-") as folder:
        folder = Path(folder)
        result = run_bench(block, seed=seed, sim="verilator", count=count, keep=folder, coverage=True)
        lines, toggles = _read(folder / "coverage.dat")
        required = bench_class(unit)(block, seed).required_bins
        found = Coverage(bins={name: result.bins.get(name, 0) for name in required}, failed=result.failed)
        missed = {key: places for key, (hits, places) in toggles.items() if not hits}
        constant = _constant_bits(emit(block, block.base_name), block.base_name, folder) if missed else set()
    excluded = Counter()
    for (module, bit, edge), places in missed.items():
        signal = re.match(r"\w+", bit)[0]
        if all(f"{place}{'.' if place else ''}{bit}" in constant for place in places):
            found.constant += 1
            continue
        reason = next((text for form, text in EXCLUDED.items() if re.fullmatch(form, f"{module}.{bit}")), None)
        if reason:
            excluded[f"{module}.{signal}: {reason}"] += 1
        else:
            found.missing.append(f"{module}.{bit}:{edge}")
    not_reached = [f"{module} line {line}" for (module, line), hits in lines.items() if not hits]
    counted = len(toggles) - found.constant - excluded.total()
    found.toggles = (counted - len(found.missing), counted)
    found.lines = (len(lines) - len(not_reached), len(lines))
    found.missing += not_reached
    found.excluded = dict(excluded)
    return found


def _read(path):
    """Lines ``{(module, line): hits}`` and toggles ``{(module, bit, edge): (hits, instances below the top)}``."""
    lines, toggles = Counter(), defaultdict(lambda: [0, []])
    for text in path.read_text().splitlines():
        match = re.fullmatch(r"C '(.*)' (\d+)", text)
        if not match:
            continue
        values = dict(part.split("\2", 1) for part in match[1].split("\1") if part)
        values = {key: text.replace("___05F", "__") for key, text in values.items()}  # two underscores
        module, hits = values["page"].split("/", 1)[1], int(match[2])
        if values["t"] == "toggle":
            bit, edge = values["o"].rsplit(":", 1) if ":" in values["o"] else (values["o"], "both")
            entry = toggles[module, bit, edge]
            entry[0] += hits
            entry[1].append(values["h"].partition(".")[2])
        else:
            lines[module, values["l"]] += hits
    return lines, toggles


def _constant_bits(files, top, folder):
    """``instance.signal[bit]`` of the bits that are constant whatever the inputs are."""
    write_files(folder, files)
    run_yosys(
        folder,
        [
            f"read_verilog {' '.join(files)}",
            f"hierarchy -check -top {top}",
            "proc",
            "flatten",
            "opt -full",
            "opt_clean",
            "write_json flat.json",
        ],
    )
    constant = set()
    for name, net in json.loads((folder / "flat.json").read_text())["modules"][top]["netnames"].items():
        for index, bit in enumerate(net["bits"]):
            if isinstance(bit, str):
                constant.add(f"{name}[{index}]")
                if len(net["bits"]) == 1:
                    constant.add(name)
    return constant


def main(arguments=None):
    purpose = __doc__.split("\n")[0].split(": ", 1)[1]
    parser = argparse.ArgumentParser(prog="python -m verif.campaigns.coverage", description=purpose)
    parser.add_argument("units", nargs="*", metavar="UNIT", help="blocks (default: all but the core)")
    parser.add_argument(
        "-n", "--count", type=int, help=f"beats of stimulus, about (default {COUNT}; core: {COUNTS['core']} commands)"
    )
    parser.add_argument("--report", action="store_true", help=f"renew these blocks in {verification_report.PAGE}")
    options = parser.parse_args(arguments)
    check_least(options, count=1)
    measured = {}
    try:
        for unit in tqdm(options.units or UNITS, desc="coverage", unit="block", disable=None):
            measured[unit] = found = measure(unit, options.count)
            print(
                f"{unit}: lines {found.lines[0]} of {found.lines[1]} ({_share(found.lines):.1%}), "
                f"toggles {found.toggles[0]} of {found.toggles[1]} ({_share(found.toggles):.1%}), "
                f"constant {found.constant}, excluded {sum(found.excluded.values())}, bins {len(found.bins)}",
                flush=True,
            )
            for name in found.missing[:SHOWN]:
                print(f"  not reached: {name}")
            if len(found.missing) > SHOWN:
                print(f"  and {len(found.missing) - SHOWN} more")
    except (simulator.SimulatorError, ValueError) as error:
        raise UsageError(str(error)) from None
    if options.report:
        verification_report.renew("coverage", {unit: _row(found) for unit, found in measured.items()})
    return 0 if all(found.is_enough for found in measured.values()) else 1


def _row(found):
    return {
        "lines": found.lines,
        "toggles": found.toggles,
        "constant": found.constant,
        "excluded": found.excluded,
        "bins": found.bins,
    }


if __name__ == "__main__":
    sys.exit(reporting_errors(main))
