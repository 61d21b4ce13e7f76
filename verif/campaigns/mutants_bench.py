"""The cocotb test that plays a unit's standard testbench on one mutant after the other, all in one simulation."""

import json
import os
from pathlib import Path

import cocotb

from verif.bench.batch import Bench
from verif.bench.harness import load_bench
from verif.bench.testbench import Testbench


class _Killed(Exception):
    """The testbench has found something wrong."""


class _MutantPlayer(Testbench):
    """Gives up at the first thing that is wrong."""

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


@cocotb.test()
async def play(dut):
    job = json.loads(Path(os.environ["BENCH_JOB"]).read_text())
    bench = repeated = _Repeated(load_bench(job["unit"], job["parameters"], job["seed"]))
    keeps_account = type(repeated._bench).forget is not Bench.forget  # of what the unit did
    verdicts = {}
    for mutant in job["mutants"]:
        repeated.next = 0
        if keeps_account:
            bench = load_bench(job["unit"], job["parameters"], job["seed"])
        dut.mutsel.value = mutant
        verdicts[mutant] = "the simulation broke off"
        _write(job, verdicts)
        try:
            player = _MutantPlayer(dut, bench, job["seed"])
            await player.start()
            await player.play_all(job["count"])
            verdicts[mutant] = None
        except _Killed as killed:
            verdicts[mutant] = str(killed)
        Path(job["progress"]).write_text(f"{len(verdicts) / len(job['mutants'])}")
    _write(job, verdicts)


def _write(job, verdicts):
    Path(job["result"]).write_text(json.dumps(verdicts))
