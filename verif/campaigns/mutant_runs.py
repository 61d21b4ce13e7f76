"""Runs a unit's standard testbench on one mutant after the other, all in one simulation."""

from verif.bench.batch import Bench, load_bench
from verif.bench.scoreboard import Scoreboard
from verif.bench.testbench import Testbench


class _Killed(Exception):
    """The testbench has found something wrong."""


class _FirstFailure(Scoreboard):
    """Ends the run at the first failure."""

    def report(self, message):
        raise _Killed(f"{self.where}: {message}")


class _Repeated:
    """A bench that gives the batches of another one again: they are the same for every mutant."""

    def __init__(self, bench):
        self._bench, self._batches = bench, []
        self.next = 0

    def __getattr__(self, name):
        return getattr(self._bench, name)

    def batch(self, count):
        if self.next == len(self._batches):
            self._batches.append(self._bench.batch(count))
        self.next += 1
        return self._batches[self.next - 1]


async def run_each(simulation):
    """Scenario. Job: as for the standard testbench, and ``mutants``; the result is what killed each, or None."""
    dut, job = simulation.dut, simulation.job
    bench = repeated = _Repeated(load_bench(job["unit"], job["parameters"], job["seed"]))
    has_state = type(repeated._bench).forget is not Bench.forget  # of what the unit did
    results = {}
    for mutant in job["mutants"]:
        repeated.next = 0
        if has_state:
            bench = load_bench(job["unit"], job["parameters"], job["seed"])
        dut.mutsel.value = mutant
        results[mutant] = "the simulation broke off"
        simulation.save(results)
        try:
            testbench = Testbench(dut, bench, job["seed"], _FirstFailure())
            await testbench.start()
            await testbench.run_all(job["count"])
            results[mutant] = None
        except _Killed as killed:
            results[mutant] = str(killed)
        simulation.progress(len(results) / len(job["mutants"]))
    return results
