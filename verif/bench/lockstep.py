"""Runs a lock-step pipeline without streams: rows in, rows out ``latency`` advances later, stalls between."""

from verif.bench.endpoints import word
from verif.bench.harness import run_job

__all__ = ["run_lockstep"]


def run_lockstep(block, inputs, outputs, *, stalls=0.2, holds=False, seed=1, sim=None):
    """Drive ``{port: list of values}`` on a block's emitted Verilog and return ``{port: list of values}``, row by row.

    A share ``stalls`` of the clocks does not advance; meanwhile the inputs carry other rows. If ``holds`` is set, an
    output that changes then is an error. An output that is X in any bit comes back as ``None``.
    """
    job = {
        "inputs": {port: [int(value) for value in values] for port, values in inputs.items()},
        "outputs": list(outputs),
        "latency": block.latency,
        "stalls": stalls,
        "holds": holds,
        "seed": seed,
    }
    return run_job(block, f"{__name__}:run_rows", job, sim=sim)


class Pipeline:
    """The endpoint: all inputs, the enable, and all outputs of a lock-step block."""

    def __init__(self, dut, job, rng):
        self._rows = list(zip(*job["inputs"].values(), strict=True))
        self._inputs = [getattr(dut, port) for port in job["inputs"]]
        self._outputs = {port: getattr(dut, port) for port in job["outputs"]}
        self._advance, self._latency, self._stalls, self._rng = dut.advance, job["latency"], job["stalls"], rng
        self._advances, self._moves, self._driven = 0, True, None
        self._holds, self._held = job["holds"], None  # what a clock that did not advance must leave at the outputs
        self.stalled = 0
        self.results = {port: [] for port in job["outputs"]}

    @property
    def n_rows(self):
        return len(self._rows)

    @property
    def is_done(self):
        return self._advances == len(self._rows) + self._latency

    def drive(self, cycle):
        self._moves = self._rng.random() >= self._stalls
        is_next = self._moves and self._advances < len(self._rows)
        row = self._rows[self._advances] if is_next else self._rng.choice(self._rows)
        if self._moves != self._driven:
            self._advance.value = self._driven = int(self._moves)
        for port, value in zip(self._inputs, row, strict=False):
            port.value = value

    def sample(self, cycle):
        is_wanted = self._moves and self._advances >= self._latency
        if is_wanted or (self._holds and not self._moves) or self._held:
            found = [word(port) for port in self._outputs.values()]
            if self._held not in (None, found):
                raise AssertionError(f"outputs changed in clock {cycle} though the pipeline did not advance")
            self._held = found if self._holds and not self._moves else None
            if is_wanted:
                for values, value in zip(self.results.values(), found, strict=False):
                    values.append(value)
        self._advances += self._moves
        self.stalled += not self._moves
        return self._moves


async def run_rows(simulation):
    """Scenario of :func:`run_lockstep`."""
    pipeline = Pipeline(simulation.dut, simulation.job, simulation.random)
    simulation.clock.endpoints.append(pipeline)
    await simulation.clock.start()
    while not pipeline.is_done:
        await simulation.clock.step()
    if not pipeline.stalled and simulation.job["stalls"] * pipeline.n_rows > 20:
        raise AssertionError("the enable was never low")
    return pipeline.results
