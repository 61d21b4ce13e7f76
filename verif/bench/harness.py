"""Runs a unit's standard testbench: emit the Verilog, build it, play the batches, collect the result."""

import importlib
import json
import os
import re
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from hw.emit.package import build_package
from verif.bench import simulator
from verif.bench.progress import watched

DEFAULT_COUNT = 900
OTHER_BENCHES = {
    "core": "verif.core.bench",
    "bitmap_scanner": "verif.core.bitmap_scanner_bench",
    "stream_helper": "verif.lib.stream_helper_bench",
}
"""Where the benches lie that belong to no folder of ``verif/units``."""
LONG_COUNT = 10_000  # from here on a faster simulation is worth the time to build it


@dataclass
class Result:
    """What a run found; it passes if something was checked and nothing failed."""

    unit: str
    seed: int
    sim: str
    checked: int = 0
    failed: int = 0
    messages: list[str] = field(default_factory=list)
    bins: dict[str, int] = field(default_factory=dict)
    stalls: int = 0
    idles: int = 0
    resets: int = 0
    cycles: int = 0

    @property
    def passed(self):
        return self.checked > 0 and self.failed == 0

    def line(self):
        return f"{self.unit}: {self.checked} checked, {self.failed} failed"


def bench_class(unit):
    """The bench of a unit: class ``UnitNameBench`` in ``verif/units/unit_name/bench.py``."""
    module = importlib.import_module(OTHER_BENCHES.get(unit, f"verif.units.{unit}.bench"))
    return getattr(module, re.sub(r"(?:^|_)([a-z])", lambda match: match[1].upper(), unit) + "Bench")


def load_bench(unit, parameters, seed):
    """The bench for a block with the given parameters (a dictionary)."""
    cls = bench_class(unit)
    return cls(cls.make_block(parameters), seed)


_emitted = {}


def emit(block, top):
    """The Verilog files of a block, emitted once a process."""
    key = (block.key, top)
    if key not in _emitted:
        files = build_package({top: block})
        _emitted[key] = {name: text for name, text in files.items() if name.endswith(".v")}
    return _emitted[key]


def run_bench(
    block, *, seed=1, sim=None, count=DEFAULT_COUNT, every_pair=True, waves=False, keep=None, edit=None, coverage=False
):
    """Play the standard testbench of a unit on its emitted Verilog; returns a :class:`Result`.

    ``every_pair``: all stall patterns with all idle patterns, or each once. ``keep`` is a folder for what the run leaves
    behind; ``edit`` makes the Verilog that is simulated, ``{file: text}``, from the emitted one; ``coverage`` counts
    lines and toggles (in Verilator).
    """
    unit = block.base_name
    job = {
        "unit": unit,
        "parameters": block.parameters.to_dict(),
        "seed": seed,
        "count": count,
        "every_pair": every_pair,
    }
    result = run_job(
        block,
        "verif.bench.testbench",
        job,
        sim=sim,
        waves=waves,
        keep=keep,
        edit=edit,
        long=count >= LONG_COUNT,
        coverage=coverage,
    )
    return Result(unit=unit, seed=seed, sim=simulator.choose(sim), **result)


def run_job(block, test_module, job, *, sim=None, waves=False, keep=None, edit=None, long=False, coverage=False):
    """Run a cocotb module on a block's emitted Verilog.

    The module finds ``job`` (plain data) in the JSON file that ``BENCH_JOB`` names and writes its result, as JSON,
    to ``job["result"]``; this function returns that result. It may write how far it is, from 0 to 1, to
    ``job["progress"]``. ``long``: see :func:`verif.bench.simulator.build`.
    """
    sim = simulator.choose(sim)
    top = block.base_name
    files = emit(block, top)
    with watched(f"building {top} for {sim}"):
        built = simulator.build(edit(files) if edit else files, top, sim, waves, long and sim == "verilator", coverage)
    with tempfile.TemporaryDirectory(prefix="run-", dir=simulator.BUILD_ROOT) as temporary:
        folder = Path(keep or temporary).resolve()
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise simulator.SimulatorError(f"cannot write to the folder {str(folder)!r}: {error.strerror}") from None
        job = {**job, "result": str(folder / "result.json"), "progress": str(folder / "progress")}
        (folder / "job.json").write_text(json.dumps(job))
        environment = {"BENCH_JOB": str(folder / "job.json"), "PYTHONPATH": os.getcwd()}
        with watched(f"{top} in {sim}", Path(job["progress"])):
            simulator.simulate(built, top, sim, test_module, folder, environment, waves, coverage)
        if not Path(job["result"]).exists():
            log = (folder / "simulation.log").read_text(errors="replace")
            raise simulator.SimulatorError(
                f"the simulation of {top} ended without a result: {log[-3000:] or 'no message'}"
            )
        return json.loads(Path(job["result"]).read_text())
