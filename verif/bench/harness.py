"""Runs scenarios on the emitted Verilog of a block: emit, build, simulate, collect the result."""

import json
import os
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from hw.emit.package import build_package
from verif.bench import simulator
from verif.bench.batch import bench_class
from verif.bench.hierarchy import expanded_size
from verif.bench.progress import watched

DEFAULT_COUNT = 900
LEAST_COUNT = 27
ALL_PAIRS_FROM = 270
LARGE_FROM = 90
WORK = {"icarus": 250_000_000, "verilator": 2_500_000_000}
"""Beats times the size of a design that a run takes unless more is asked for: one or two minutes."""
LONG_COUNT = 10_000  # from here on a faster simulation pays for the time to build it


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
    times: list[dict[str, list[int]]] = field(default_factory=list)

    @property
    def passed(self):
        return self.checked > 0 and self.failed == 0

    def line(self):
        return f"{self.unit}: {self.checked} checked, {self.failed} failed"


_emitted, _sizes = {}, {}


def emit(block, top):
    """The Verilog files of a block, emitted once a process."""
    key = (block.key, top)
    if key not in _emitted:
        files = build_package({top: block})
        _emitted[key] = {name: text for name, text in files.items() if name.endswith(".v")}
    return _emitted[key]


def work_of_beat(block):
    """What a beat of stimulus costs: the size of the block's Verilog times the clocks that a beat takes."""
    if block.key not in _sizes:
        _sizes[block.key] = expanded_size(emit(block, block.base_name), block.base_name)
    return _sizes[block.key] * bench_class(block.base_name).clocks_a_beat


def scope(block, sim=None):
    """``(simulator, beats, every_pair)`` for a run of the standard testbench of which the user said nothing more.

    The beats become fewer with the size of the design; below ``ALL_PAIRS_FROM`` each stall and idle pattern is used
    once instead of all pairs of them, and where Icarus would not do ``LARGE_FROM`` beats in time Verilator is the
    choice.
    """
    work = work_of_beat(block)
    sim = simulator.choose_for(work * LARGE_FROM > WORK["icarus"], sim)
    count = max(LEAST_COUNT, min(DEFAULT_COUNT, WORK[sim] // work))
    return sim, count, count >= ALL_PAIRS_FROM


def run_bench(
    block, *, seed=1, sim=None, count=DEFAULT_COUNT, every_pair=True, waves=False, keep=None, edit=None, coverage=False
):
    """Run the standard testbench of a unit on its emitted Verilog; returns a :class:`Result`.

    ``every_pair``: all stall patterns with all idle patterns, or each once. ``keep`` is a folder for what the run
    leaves behind; ``edit`` makes the Verilog that is simulated, ``{file: text}``, from the emitted one; ``coverage``
    counts lines and toggles (in Verilator).
    """
    unit = block.base_name
    sim = simulator.choose_for(work_of_beat(block) * count > WORK["icarus"], sim)
    job = {
        "unit": unit,
        "parameters": block.parameters.to_dict(),
        "seed": seed,
        "count": count,
        "every_pair": every_pair,
    }
    result = run_job(
        block,
        "verif.bench.testbench:run_standard",
        job,
        sim=sim,
        waves=waves,
        keep=keep,
        edit=edit,
        long=count >= LONG_COUNT,
        coverage=coverage,
    )
    return Result(unit=unit, seed=seed, sim=sim, **result)


def run_job(block, scenario, job, *, sim=None, waves=False, keep=None, edit=None, long=False, coverage=False):
    """Run a scenario on a block's emitted Verilog and return its result.

    ``scenario`` is ``module:function``, see :mod:`verif.bench.runtime`; ``job`` is plain data for it. ``long``: see
    :func:`verif.bench.simulator.build`; the other options are those of :func:`run_bench`.
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
        paths = {"result": str(folder / "result.json"), "progress": str(folder / "progress")}
        (folder / "job.json").write_text(json.dumps({**job, **paths, "scenario": scenario}))
        environment = {"BENCH_JOB": str(folder / "job.json"), "PYTHONPATH": os.getcwd()}
        with watched(f"{top} in {sim}", Path(paths["progress"])):
            simulator.simulate(built, top, sim, "verif.bench.runtime", folder, environment, waves, coverage)
        return read_result(folder, top)


def read_result(folder, top):
    """The result that a scenario wrote into its folder."""
    path = folder / "result.json"
    if not path.exists():
        log = (folder / "simulation.log").read_text(errors="replace")
        raise simulator.SimulatorError(f"the simulation of {top} ended without a result: {log[-3000:] or 'no message'}")
    written = json.loads(path.read_text())
    if "error" in written:
        raise simulator.SimulatorError(f"the testbench of {top} broke off: {written['error']}")
    return written["result"]
