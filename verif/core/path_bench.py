"""The testbench of a path of the core: commands on its emitted Verilog, with its memories in Python beside it."""

import importlib

from amaranth.lib.wiring import In

from golden.spec.commands import Command
from hw.lib.ports import leaf_ports
from verif.bench.endpoints import StallPattern, set_ports, word
from verif.bench.harness import run_job
from verif.bench.packing import join
from verif.bench.port_bits import decode, width_of
from verif.bench.scoreboard import Scoreboard

PATIENCE = 600


def run_path(block, setup, runs, *, seed=1, sim=None):
    """Run commands on a path's emitted Verilog, one after the other from a reset on; returns a dictionary.

    ``setup`` names the module whose ``connect(testbench)`` gives the memories and other ends of this kind of path. A
    run has ``command`` (a dictionary), ``n_active``, and where needed ``tokens`` (a token list to write first),
    ``load`` (``[memory, part, address, value]`` to put into the memories first), ``rows`` (for each row the writes that
    make it done, in the same form), ``allowed`` (for each memory, and bank, how many reads the first n rows allow, n
    from 0 on), ``stall`` (a pattern for writes and words, or one each for "writes" and "reads"), ``limit`` ("all", or a
    pattern by which rows become ready), ``abort`` (a clock in which reset comes), ``patience`` (clocks without a write
    after which it counts as stuck) and ``extra`` (for the ends).

    The result has ``messages``, ``checked`` (writes), and one entry a run in ``runs``, None for those that were
    aborted: ``clocks`` from start to done, ``row_done`` (the clock from which on each row counts), ``stalls``, and
    for each field of ``counters`` the clocks in which it was not 0, and its total.
    """
    job = {
        "module": type(block).__module__,
        "class": type(block).__name__,
        "parameters": block.parameters.to_dict(),
        "setup": setup,
        "runs": runs,
        "seed": seed,
    }
    return run_job(block, f"{__name__}:run_commands", job, sim=sim)


class Watch:
    """Follows one run: which rows may count as done, which do, the counters, and the end."""

    def __init__(self, testbench, run, begin):
        self._testbench, self._begin = testbench, begin
        self._n_active, rows = run["n_active"], run["rows"]
        self.missing = {tuple(key): (row, value) for row, writes in enumerate(rows) for *key, value in writes}
        self._left = [len(writes) for writes in rows]
        self._complete = 0
        self.row_done, self.is_done = [], False
        self.counters = {name: {"clocks": [], "total": 0} for name in testbench.counter_names}

    def wrote(self, key):
        """The value that is expected, or None."""
        row, value = self.missing.pop(key, (None, None))
        if row is not None:
            self._left[row] -= 1
        return row, value

    def sample(self, cycle):
        """Before this clock's writes: a row counts in the clock after its last write at the earliest."""
        testbench, dut, clock = self._testbench, self._testbench.dut, cycle - self._begin
        while self._complete < self._n_active and not self._left[self._complete]:
            self._complete += 1
        for name in self.counters:
            self._count(name, clock)
        self.is_done = testbench.bit(dut.control__done, "done")
        counted = word(dut.control__rows_done)
        if clock == 0:
            if self.is_done:
                testbench.report("done comes at start")
            return
        if counted is None or not len(self.row_done) <= counted <= self._complete:
            testbench.report(
                f"rows_done is {counted} in clock {clock}, after {len(self.row_done)}, of which "
                f"{self._complete} are written"
            )
        self.row_done += [clock] * ((counted or 0) - len(self.row_done))
        if self.is_done and (counted != self._n_active or self.missing):
            testbench.report(
                f"done comes after {counted} of {self._n_active} rows, and {len(self.missing)} writes are "
                f"missing: {list(self.missing)[:3]}"
            )

    def _count(self, name, clock):
        value = decode(self._testbench.shapes["counters"], str(self._testbench.dut.counters.value))[name]
        if value is None:
            self._testbench.report(f"counter {name} is X in clock {clock}")
        elif value:
            self.counters[name]["clocks"].append(clock)
            self.counters[name]["total"] += value


class PathTestbench:
    """The clock, the endpoints, and what they write and read."""

    def __init__(self, simulation, block, setup):
        self.dut, self.block, self.random, self.clock = simulation.dut, block, simulation.random, simulation.clock
        self.scoreboard = Scoreboard()
        self.report = self.scoreboard.report
        self.checked, self.memory = 0, {}
        ports = leaf_ports(block)
        self.shapes = {port.name: port.shape for port in ports}
        self.counter_names = list(self.shapes["counters"].members) if "counters" in self.shapes else []
        self.limit, self.watch, self.scoreboard.is_silent = 0, None, True
        self.ends = importlib.import_module(setup).connect(self)
        self.clock.endpoints += [self, *self.ends]
        set_ports(self.dut, {port.name: 0 for port in ports if not port.is_stream and port.flow is In})

    @property
    def cycle(self):
        return self.clock.cycle

    def bit(self, handle, what):
        """A control bit, which must never be X."""
        value = word(handle)
        if value is None:
            self.report(f"{what} is X in cycle {self.cycle}")
        return value == 1

    # What the endpoints call
    # --------------------------------------------------------------------------------------------

    def read(self, name, part, address):
        if address is None:
            self.report(f"{name}: an address is X in cycle {self.cycle}")
        return self.memory.get((name, part, address))

    def check_read(self, name, count, allowed):
        if allowed is not None and count >= allowed[self.limit]:
            self.report(f"{name}: read {count} comes in cycle {self.cycle}, though only {self.limit} rows are ready")

    def wrote(self, name, part, address, value):
        key = name, part, address
        self.memory[key] = value
        if self.watch is None:
            self.report(f"{name}: a write outside of any command")
            return
        row, expected = self.watch.wrote(key)
        self.checked += 1
        where = f"{name}: part {part}, word {address}"
        shown = "X" if value is None else f"{value:#x}"
        if row is None:
            self.report(f"{where} is written in cycle {self.cycle} ({shown})")
        elif expected is not None and value != expected:
            self.report(f"{where}, of row {row}, became {shown}, expected {expected:#x}")

    # Clocks --------------------------------------------------------------------------------------------------------

    def drive(self, cycle):
        pass

    def sample(self, cycle):
        """As an endpoint, the first one: follow the run before this clock's writes are seen."""
        if self.watch is not None:
            self.watch.sample(cycle)

    async def start(self):
        await self.clock.start()
        await self.reset()

    async def reset(self):
        self.scoreboard.is_silent, self.watch = True, None
        self.dut.control__start.value = 0
        await self.clock.reset()
        for end in self.ends:
            end.start("none", None)
        self.scoreboard.is_silent = False
        await self.quiet("after reset")

    async def quiet(self, when):
        for _ in range(6):
            await self.clock.step()
            if self.bit(self.dut.control__done, "done"):
                self.report(f"done comes {when}")

    async def write_tokens(self, tokens):
        width = width_of(self.shapes["control__token"]["address"].shape)
        for address, row in enumerate(tokens):
            self.dut.control__token.value = join((1, 1), (address, width), (row, width))
            await self.clock.step()
        self.dut.control__token.value = 0

    async def run(self, run):
        self.scoreboard.where, self.scoreboard.is_silent = run.get("name", "run"), False
        for name, part, address, value in run.get("load", ()):
            self.memory[name, part, address] = value
        await self.write_tokens(run.get("tokens") or ())
        for end in self.ends:
            stall = run.get("stall", "none")
            end.start(
                stall.get(end.role, "none") if isinstance(stall, dict) else stall, run.get("allowed", {}).get(end.name)
            )
        for end in self.ends:
            if hasattr(end, "prepare"):
                await end.prepare(run.get("extra", {}))
        self.dut.control__command.value = Command(**run["command"]).encode()
        self.dut.control__n_active.value = run["n_active"]
        result = await self._until_done(run)
        self.watch = None
        if result is None:
            await self.reset()
        else:
            for end in self.ends:
                if hasattr(end, "finish"):
                    await end.finish()
            await self.quiet("twice")
        return result

    async def _until_done(self, run):
        n_active, abort = run["n_active"], run.get("abort")
        late = None if run.get("limit", "all") == "all" else StallPattern(run["limit"], self.random)
        self.limit = n_active if late is None else 0
        begin, quiet, patience = self.cycle, 0, run.get("patience", PATIENCE)
        self.watch = watch = Watch(self, run, begin)
        self.scoreboard.is_silent = abort is not None
        self.dut.control__start.value = 1
        while not watch.is_done:
            self.dut.control__limit.value = self.limit
            before = self.checked
            await self.clock.step()
            self.dut.control__start.value = 0
            if late is not None and self.limit < n_active and not late.stalls():
                self.limit = min(n_active, self.limit + self.random.randint(1, 2))
            quiet = 0 if self.checked > before or self.limit < n_active else quiet + 1
            if quiet > patience:
                self.report(f"nothing was written for {patience} clocks after {len(watch.row_done)} of {n_active} rows")
            if quiet > patience or (abort is not None and self.cycle - begin > abort):
                return None
        if abort is not None:
            return None
        return {
            "clocks": self.cycle - 1 - begin,
            "row_done": watch.row_done,
            "counters": watch.counters,
            "stalls": sum(getattr(end, "stalls", 0) for end in self.ends),
        }


async def run_commands(simulation):
    """Scenario of :func:`run_path`."""
    job = simulation.job
    block = getattr(importlib.import_module(job["module"]), job["class"])(**job["parameters"])
    testbench = PathTestbench(simulation, block, job["setup"])
    await testbench.start()
    results = []
    for index, run in enumerate(job["runs"], start=1):
        results.append(await testbench.run(run))
        simulation.progress(index / len(job["runs"]))
    return {**testbench.scoreboard.result(), "checked": testbench.checked, "runs": results}
