"""Command line: the workloads in the cycle model and on the Verilog; renews docs/bench.json and docs/bench.md."""

import argparse
import json
import sys
from pathlib import Path

from hw.cli.arguments import reporting_errors
from hw.lib.errors import UsageError
from verif.bench import simulator
from verif.core.benchmark.measure import model_result, verilog_result
from verif.core.benchmark.report import report
from verif.core.benchmark.workloads import WORKLOADS, sizes_of

DOCS = Path(__file__).parents[3] / "docs"


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="python -m verif.core.benchmark", description=__doc__)
    parser.add_argument("--model", action="store_true", help="the cycle model alone; figures of the Verilog stay")
    parser.add_argument("--only", metavar="TEXT", default="", help="workloads whose name contains this")
    parser.add_argument(
        "--sim", metavar="|".join(simulator.SIMULATORS), help="simulator (default: SIM, else Verilator)"
    )
    parser.add_argument("-o", "--output", default=str(DOCS), metavar="DIR", help="folder of both files (default docs)")
    options = parser.parse_args(arguments)
    chosen = [workload for workload in WORKLOADS if options.only in workload.name]
    if not chosen:
        names = ", ".join(repr(workload.name) for workload in WORKLOADS)
        raise UsageError(f"--only must be part of the name of a workload, not {options.only!r}: {names}")
    folder = Path(options.output)
    try:
        source = folder / "bench.json" if (folder / "bench.json").exists() else DOCS / "bench.json"
        figures = json.loads(source.read_text())
    except (OSError, ValueError) as error:
        raise UsageError(f"cannot read {str(source)!r}: {error}") from None
    try:
        for workload in chosen:
            _run(workload, figures, options)
    except simulator.SimulatorError as error:
        raise UsageError(str(error)) from None
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "bench.json").write_text(json.dumps(figures, indent=1, ensure_ascii=False) + "\n")
        (folder / "bench.md").write_text(report(figures))
    except OSError as error:
        raise UsageError(f"cannot write to the output folder {str(folder)!r}: {error.strerror}") from None
    print(report(figures))
    return 0


def _run(workload, figures, options):
    print(f"{workload.name}: cycle model", file=sys.stderr, flush=True)
    made = workload.make(sizes_of(workload))
    found = figures["workloads"].setdefault(workload.name, {})
    found["model"] = model_result(workload, made)
    if workload.on_verilog and not options.model:
        print(f"{workload.name}: Verilog", file=sys.stderr, flush=True)
        found["verilog"] = verilog_result(workload, made, options.sim)


if __name__ == "__main__":
    sys.exit(reporting_errors(main))
