"""``python -m verif.campaigns.gates``: a block's netlist, with models of the library's cells, under its testbench.

Memories are those of the RTL. For the smaller blocks ABC also proves that the netlist of recipe A, which has no clock
gates, answers as the RTL does, for inputs of any kind.
"""

import argparse
import re
import sys
import tempfile
from pathlib import Path

from hw.cli.arguments import check_least, reporting_errors
from hw.emit.package import write_files
from hw.emit.verilog import split_modules
from hw.lib.errors import UsageError
from hw.registry import PRESETS, UNITS, make_block
from hw.synthesis import flow
from verif.bench import simulator
from verif.bench.harness import emit, run_bench
from verif.campaigns import report as verification_report
from verif.campaigns.cell_models import cell_models
from verif.formal import equivalence

__all__ = ["Netlist", "is_equivalent"]

PROVED = {
    "hash_bank_mapper": PRESETS["tiny"]["hash_bank_mapper"],
    "bitonic_sorter": PRESETS["tiny"]["bitonic_sorter"],
    "data_aligner": PRESETS["tiny"]["data_aligner"],
    "token_selector": {"width": 2, "height": 2, "channels": 1, "patch": 1, "n_values": 1},
    "dot_product_unit": {"n_lanes": 1, "format": "int8"},
    "dot_product_array": {"n_units": 2, "n_lanes": 1, "n_slots": 1, "max_beats": 1, "run_ahead": 0},
    "vector_unit": {"n_engines": 1, "n_lanes": 1, "bank_depth": 1},
    "softmax_unit": {"n_banks": 1, "n_slots": 1},
    "layer_norm_unit": {"n_lanes": 1, "n_slots": 1},
}
"""Sizes whose netlist is compared with the RTL."""


class Netlist:
    """The netlist of a block: ``verilog`` is complete, with cells and memories; ``cells`` counts.

    ``report`` and ``mapped``, without cells and memories, are those of the synthesis, which ``options`` go to.
    """

    def __init__(self, block, library_file, recipe, folder, **options):
        self.block, self.top, self.folder = block, block.base_name, folder
        self.rtl = emit(block, self.top)
        write_files(folder / "rtl", self.rtl)
        sources = [folder / "rtl" / name for name in self.rtl]
        options = {"liberty": library_file, "recipe": recipe, **options}
        self.report, self.mapped = flow.synthesise_netlist(sources, self.top, **options)
        rtl = {name: text for source in self.rtl.values() for name, text in split_modules(source).items()}
        roles = {name: module["attributes"].get("role") for name, module in self.mapped.modules.items()}
        memories = {name: rtl[name] for name, role in roles.items() if role == "memory"}
        modules = split_modules(self.mapped.verilog())
        self.cells = self.report["figures"]["cells"]
        kinds = self.report["figures"]["cells_by_type"]
        self.verilog = "\n\n".join([*(modules | memories).values(), cell_models(self.mapped.library, kinds)])


def is_equivalent(netlist, timeout=300):
    """Whether the netlist answers as the RTL does, see :func:`verif.formal.equivalence.answer_alike`."""
    text = re.sub(r"^  initial state = .*\n", "", netlist.verilog, flags=re.M)
    (netlist.folder / "gates.v").write_text(re.sub(rf"\bmodule {netlist.top}\b", "module gates", text))
    reads = ["read_verilog gates.v", f"read_verilog -overwrite {' '.join(f'rtl/{name}' for name in netlist.rtl)}"]
    clocks = equivalence.clocking("\n".join(netlist.rtl.values()), netlist.top)
    circuits = ((netlist.top, {}), ("gates", {}))
    return equivalence.answer_alike(netlist.folder, netlist.block, reads, circuits, clocks, timeout)


def check(unit, library_file, options):
    """Run the testbench of a block on its gates; returns the row of the report."""
    block = make_block(unit, "tiny")
    with tempfile.TemporaryDirectory(prefix="gates-") as folder:
        netlist = Netlist(block, library_file, "area", Path(folder, "area"))
        result = run_bench(
            block,
            seed=options.seed,
            sim=simulator.choose(options.sim, default="verilator"),
            count=options.count,
            edit=lambda files: {f"{unit}.v": netlist.verilog},
        )
        proved = "not tried"
        if unit in PROVED:
            smaller = make_block(unit, None, PROVED[unit])
            holds = is_equivalent(Netlist(smaller, library_file, "A", Path(folder, "A")), options.timeout)
            proved = {True: "proved", False: "DIFFERS", None: f"unknown after {options.timeout} s"}[holds]
            if smaller.key != block.key:
                proved += f" ({', '.join(f'{name}={value}' for name, value in PROVED[unit].items())})"
    return {"cells": netlist.cells, "checked": result.checked, "failed": result.failed, "equivalence": proved}


def main(arguments=None):
    parser = argparse.ArgumentParser(
        prog="python -m verif.campaigns.gates", description=__doc__.split("\n")[0].split(": ", 1)[1]
    )
    parser.add_argument("units", nargs="*", metavar="UNIT", help="blocks (default: all but the core)")
    parser.add_argument("--liberty", metavar="FILE", help="standard-cell library, .lib or .lib.gz")
    parser.add_argument("--sim", metavar="|".join(simulator.SIMULATORS), help="default: SIM, else Verilator")
    parser.add_argument("-n", "--count", type=int, default=90, help="beats of stimulus, about (default 90)")
    parser.add_argument("--seed", type=int, default=1, help="seed of the stimulus (default 1)")
    parser.add_argument("--timeout", type=int, default=300, help="seconds for a proof of equivalence (default 300)")
    parser.add_argument("--report", action="store_true", help=f"renew these blocks in {verification_report.PAGE}")
    options = parser.parse_args(arguments)
    check_least(options, count=1, seed=0, timeout=1)
    if not options.liberty:
        print("gates: skipped, for it needs a cell library: --liberty FILE, or make gates LIBERTY=FILE")
        return 0
    is_right = True
    for unit in options.units or UNITS:
        try:
            row = check(unit, options.liberty, options)
        except (simulator.SimulatorError, ValueError) as error:
            raise UsageError(str(error)) from None
        print(
            f"{unit}: {row['cells']:,} cells, {row['checked']} checked, {row['failed']} failed, "
            f"equivalence {row['equivalence']}",
            flush=True,
        )
        is_right &= row["checked"] > 0 and not row["failed"] and not row["equivalence"].startswith("DIFFERS")
        if options.report:
            verification_report.renew("gates", {unit: row})
    return 0 if is_right else 1


if __name__ == "__main__":
    sys.exit(reporting_errors(main))
