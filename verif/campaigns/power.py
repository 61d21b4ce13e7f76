"""``python -m verif.campaigns.power``: power of a block's netlist under its testbench at full rate, by OpenSTA.

The netlist that the synthesis flow makes is simulated with models of the library's cells, and every net's transitions
are counted while results flow, one a clock; OpenSTA makes power of them. The results are checked as always.
"""

import argparse
import re
import sys
import tempfile
from pathlib import Path

from cocotb.utils import get_sim_time
from tabulate import tabulate

from hw.cli.arguments import add_block_arguments, block_from, check_least, reporting_errors
from hw.cli.reports import block_label, report_name, synthesis_settings, telling, write_report, write_to
from hw.lib.errors import UsageError
from hw.registry import UNITS
from hw.synthesis import liberty, power, timing
from hw.synthesis.recipes import RECIPES
from verif.bench import simulator
from verif.bench.batch import load_bench
from verif.bench.harness import run_job
from verif.bench.testbench import Testbench
from verif.campaigns.activity import read_vcd
from verif.campaigns.gates import Netlist

__all__ = ["measure"]

CLOCK = "clk"


def measure(block, library_file, recipe, period_ps, count, seed=1, sim=None, progress=lambda text: None):
    """The power report of a block."""
    with tempfile.TemporaryDirectory(prefix="power-") as scratch:
        folder = Path(scratch)
        progress("synthesis")
        netlist = Netlist(block, library_file, recipe, folder, period_ps=period_ps)
        period_ps = _period(netlist.report)
        progress("simulation of the netlist")
        run, nets = _simulate(netlist, folder, count, seed, sim)
        progress("power")
        (folder / "cells.lib").write_text(liberty.read_text(library_file))
        figures = power.report(folder, netlist.mapped, netlist.top, CLOCK, period_ps, nets)
    picojoules = figures["total_mw"] * period_ps / 1000 * run["cycles"] / run["results"]
    return {
        "parameters": block.parameters.to_dict(),
        "tools": netlist.report["tools"],
        "recipe": recipe,
        "library": netlist.report["library"],
        "area_um2": netlist.report["figures"]["area_um2"],
        "period_ps": period_ps,
        "results": run["results"],
        "clocks": run["cycles"],
        **{name: round(value, 6) for name, value in figures.items()},
        "picojoules_a_result": round(picojoules, 4),
        "assumptions": list(power.ASSUMPTIONS),
    }


def _period(report):
    """The period that was asked for, or the one that the netlist needs if that is longer."""
    needed, wanted = report["delay"]["period_ps"] or report["delay"]["worst_path_ps"], report["recipe"]["period_ps"]
    return max(needed, wanted) if isinstance(wanted, (int, float)) else needed


def _simulate(netlist, folder, count, seed, sim):
    """``(what was run, {scope: {net: (transitions a clock, share of the time at 1)}})``."""
    sim = simulator.choose(sim)
    unit = netlist.block.base_name
    job = {"unit": unit, "parameters": netlist.block.parameters.to_dict(), "seed": seed, "count": count}
    keep = folder / "run"
    text = netlist.verilog
    if sim == "icarus":  # which writes VCD on its own; cocotb's way of waveforms would write another format
        text = _dumping(text, list(netlist.mapped.modules), netlist.top)
    run = run_job(
        netlist.block,
        "verif.campaigns.power:run_at_full_rate",
        job,
        sim=sim,
        waves=sim == "verilator",
        keep=keep,
        edit=lambda files: {f"{unit}.v": text},
    )
    if run["failed"] or not run["results"]:
        raise ValueError(f"the netlist fails its testbench: {'; '.join(run['messages']) or 'nothing was checked'}")
    with (keep / "dump.vcd").open("rb") as file:
        nets = read_vcd(file, netlist.top, run["begin_ps"], run["end_ps"])
    return run, {
        scope: {net: (transitions / run["cycles"], share) for net, (transitions, share) in of_scope.items()}
        for scope, of_scope in nets.items()
    }


async def run_at_full_rate(simulation):
    """Scenario: one batch at full rate, and when it began and ended."""
    job = simulation.job
    testbench = Testbench(simulation.dut, load_bench(job["unit"], job["parameters"], job["seed"]), job["seed"])
    await testbench.start()
    begin, first_cycle = get_sim_time("ps"), testbench.clock.cycle
    await testbench.run(testbench.bench.batch(job["count"]), "none", "none")
    return {
        **testbench.scoreboard.result(),
        "results": testbench.sinks[0].checked,
        "cycles": testbench.clock.cycle - first_cycle,
        "begin_ps": begin,
        "end_ps": get_sim_time("ps"),
    }


def _dumping(verilog, modules, top):
    """The netlist with the statements that write the nets of its modules to dump.vcd."""
    for module in modules:
        file = '$dumpfile("dump.vcd"); ' if module == top else ""
        statement = f"  initial begin {file}$dumpvars(1, {module}); end\n"
        verilog = re.sub(
            rf"(^module {re.escape(module)} .*?)(?=^endmodule)", rf"\1{statement}", verilog, count=1, flags=re.M | re.S
        )
    return verilog


def table(reports):
    """The reports for people, with the conditions that the figures hold under."""
    headers = [
        "block",
        "µm²",
        "period ps",
        "leakage mW",
        "internal mW",
        "switching mW",
        "total mW",
        "clocks a result",
        "pJ a result",
    ]
    keys = ("leakage_mw", "internal_mw", "switching_mw", "total_mw")
    rows = [
        [
            report["name"],
            f"{report['area_um2']:,.0f}",
            f"{report['period_ps']:,.0f}",
            *(f"{report[key]:.4g}" for key in keys),
            f"{report['clocks'] / report['results']:.2f}",
            f"{report['picojoules_a_result']:.4g}",
        ]
        for report in reports
    ]
    notes = ["activity: the standard testbench at full rate on the netlist, its data random and corner cases"]
    notes += dict.fromkeys(text for report in reports for text in report["assumptions"])
    notes += dict.fromkeys(
        f"recipe {report['recipe']}; library {report['library']['name']} ({report['library']['corner']}); "
        + ", ".join(f"{tool} {version}" for tool, version in report["tools"].items())
        for report in reports
    )
    text = tabulate(rows, headers=headers, disable_numparse=True, colalign=["left"] + ["right"] * 8)
    return "\n".join([text, *notes])


def main(arguments=None):
    parser = argparse.ArgumentParser(
        prog="python -m verif.campaigns.power", description=__doc__.split("\n")[0].split(": ", 1)[1]
    )
    add_block_arguments(parser)
    parser.add_argument("-o", "--output", metavar="DIR", default="build/power", help="folder for the JSON report")
    parser.add_argument("--liberty", metavar="FILE", help="standard-cell library with power tables, .lib or .lib.gz")
    parser.add_argument("--recipe", default="area", metavar="|".join(RECIPES), help="how the design is mapped")
    parser.add_argument("--period", metavar="PS", type=float, help="wanted period (default: the recipe's own)")
    parser.add_argument("-n", "--count", type=int, default=200, help="beats of stimulus, about (default 200)")
    parser.add_argument("--seed", type=int, default=1, help="seed of the stimulus (default 1)")
    parser.add_argument("--sim", metavar="|".join(simulator.SIMULATORS), help="simulator (default: as for the tests)")
    options = parser.parse_args(arguments)
    check_least(options, count=1, seed=0)
    if options.unit not in UNITS:
        raise UsageError(f"{options.unit} has no testbench at full rate: take one of its blocks")
    block = block_from(options)
    if not options.liberty:
        raise UsageError("power needs a cell library: --liberty FILE (docs/synthesis.md says where to get one)")
    if timing.opensta_version() is None:
        raise UsageError(f"power needs OpenSTA ({timing.HOW_TO_GET})")
    write_to(options.output, {})
    try:
        report = measure(
            block,
            options.liberty,
            options.recipe,
            options.period,
            options.count,
            options.seed,
            options.sim,
            telling(options.unit),
        )
    except (simulator.SimulatorError, ValueError) as error:
        raise UsageError(f"power of {options.unit}: {error}") from None
    settings = synthesis_settings(options.recipe, options.period, None, liberty.read(options.liberty))
    settings += (f"{options.count}beats", f"seed-{options.seed}")
    label = block_label(options.unit, options)
    report = {"name": label, **report}
    path = write_report(options.output, report_name(label, *settings), report)
    print(table([report]))
    print(path)
    return 0


if __name__ == "__main__":
    sys.exit(reporting_errors(main))
