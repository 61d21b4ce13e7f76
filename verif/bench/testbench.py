"""The standard testbench of a unit: batches of stimulus under all stall and idle patterns, with every check."""

import itertools
import random

from verif.bench.batch import load_bench
from verif.bench.clock import Clock
from verif.bench.endpoints import PATTERNS, Sink, Source, StallPattern, set_ports
from verif.bench.scoreboard import Scoreboard

MORE_BATCHES = 60
MORE_COUNT = 24
EACH_ONCE = (("none", "none"), ("random", "bursty"), ("bursty", "random"))
"""Pairs of a stall and an idle pattern with each of them once."""


class Testbench:
    """Owns the clock, the sources and the sinks of one unit, and the scoreboard that they report to."""

    def __init__(self, dut, bench, seed, scoreboard=None):
        self.dut, self.bench = dut, bench
        self.random = random.Random(seed)
        self.scoreboard = scoreboard or Scoreboard()
        self.report = self.scoreboard.report
        self.bins, self.stalls, self.idles, self.resets = {}, 0, 0, 0
        self.delivered = 0  # beats at all outputs
        self.times = {}  # for each stream, the clocks in which the beats of the last batch were taken
        self.full_rate, self.stalled_at = (), 0  # the clock in which a result was stalled last
        streams = bench.streams()
        self.sources = [Source(dut, name) for name in streams["inputs"]]
        self.sinks = [Sink(dut, name, self.report) for name in streams["outputs"]]
        self.clock = Clock(dut, [*self.sources, *self.sinks, *bench.endpoints(dut, self.random)])

    @property
    def checked(self):
        return sum(getattr(end, "checked", 0) for end in self.clock.endpoints)

    @property
    def is_done(self):
        return all(end.done for end in self.clock.endpoints)

    def missing_bins(self):
        """Required bins that no batch has hit so far."""
        return sorted(set(self.bench.required_bins) - {name for name, hits in self.bins.items() if hits})

    def result(self):
        """What a run found, as plain data."""
        return {
            **self.scoreboard.result(),
            "checked": self.checked,
            "bins": self.bins,
            "stalls": self.stalls,
            "idles": self.idles,
            "resets": self.resets,
            "cycles": self.clock.cycle,
        }

    async def step(self):
        """One clock; True if any beat moved."""
        moved = await self.clock.step()
        self.delivered += sum(moved[len(self.sources) :])
        self._check_waits(moved, self.clock.cycle - 1)
        self.bench.watch(self.dut, self.report)
        return any(moved)

    def _check_waits(self, moved, cycle):
        """Only results that are not taken make a unit wait, not a sink that is not ready while there is none."""
        if any(sink.is_stalled for sink in self.sinks):
            self.stalled_at = cycle
        elif cycle - self.stalled_at > self.bench.latency + self.bench.longest_stall + 4:
            pairs = zip(self.sources, moved, strict=False)
            needed = [(source, is_taken) for source, is_taken in pairs if source.name in self.full_rate]
            if not all(source.offers or is_taken for source, is_taken in needed):
                return  # streams that go together wait for each other
            for source, is_taken in needed:
                if not is_taken:
                    self.report(f"{source.name}: a beat waits in cycle {cycle}, yet no result does")

    async def reset(self):
        if not self.clock.has_reset:
            return
        for sink in self.sinks:
            sink.start([])
            sink.compare = False

        def offer():  # what is offered during reset is not taken
            for source in self.sources:
                source.offer_anything(self.random)

        await self.clock.reset(self.random.choice((1, 1, 2, 3)), offer)
        for source in self.sources:
            source.abort()
        self.bench.forget()
        for sink in self.sinks:
            sink.start([])
        await self._quiet("after reset")

    async def _quiet(self, when):
        """Nothing may come out while nothing is under way."""
        for _ in range(self.bench.latency + 4):
            await self.step()
            for sink in self.sinks:
                sink.check_quiet(when)

    def begin(self, batch, stall, idle):
        set_ports(self.dut, batch.statics)
        self.full_rate = batch.full_rate
        by_name = {source.name: source for source in self.sources}
        for name, source in by_name.items():
            earlier = [by_name[other] for other in batch.after.get(name, ())]
            source.start(batch.inputs[name], StallPattern(idle, self.random), earlier)
        for sink in self.sinks:
            sink.start(batch.outputs[sink.name], StallPattern(stall, self.random))

    async def run(self, batch, stall, idle):
        """One batch to its end under a stall and an idle pattern, with all checks."""
        self.scoreboard.where = f"stall {stall}, idle {idle}"
        self.begin(batch, stall, idle)
        patience = 200 + 40 * (self.bench.latency + self.bench.longest_silence)
        quiet_for = 0
        while not self.is_done:
            quiet_for = 0 if await self.step() else quiet_for + 1
            if quiet_for > patience:
                left = [end.name for end in self.clock.endpoints if not end.done]
                self.report(f"nothing moved for {patience} cycles; unfinished: {left}")
                await self.reset()
                return
        for name, hits in batch.bins.items():
            self.bins[name] = self.bins.get(name, 0) + hits
        self.stalls += sum(sink.stalls for sink in self.sinks)
        self.idles += sum(source.idles for source in self.sources)
        if stall == idle == "none":
            self._check_timing(batch)
        self.times = {source.name: source.taken_at for source in self.sources}
        self.times |= {sink.name: sink.seen_at for sink in self.sinks}
        for sink in self.sinks:
            sink.start([])
        await self._quiet("after the last result")
        self.bench.check_end(self.report)

    def _check_timing(self, batch):
        """Without stalls: one beat an interval accepted, every result exactly after the latency."""
        by_name = {end.name: end for end in self.clock.endpoints}
        for source in self.sources:
            if source.name in batch.full_rate and source.waits:
                self.report(f"{source.name}: waited {source.waits} cycles though no output stalled")
        for name in batch.gapless:
            seen = by_name[name].seen_at
            if seen and seen[-1] - seen[0] != len(seen) - 1:
                self.report(f"{name}: {len(seen)} beats took {seen[-1] - seen[0] + 1} clocks though nothing stalled")
        for name, (cause, beats) in batch.causes.items():
            seen, taken = by_name[name].seen_at, by_name[cause].taken_at
            if len(seen) != len(beats):
                continue  # reported as beats missing or too many
            latencies = batch.latencies.get(name) or [self.bench.block.latency] * len(beats)
            for index, (beat, latency) in enumerate(zip(beats, latencies, strict=True)):
                if beat is not None and seen[index] != taken[beat] + latency:
                    off = seen[index] - taken[beat]
                    self.report(f"{name}: beat {index} came after {off} clocks, the stated latency is {latency}")
                    break

    async def interrupt(self, count):
        """Reset in mid-flight, after any number of cycles or results and with stalled outputs among them."""
        self.scoreboard.where = "reset in mid-flight"
        if not self.clock.has_reset:
            return
        batch = self.bench.batch(count)
        self.begin(batch, self.random.choice(PATTERNS), self.random.choice(PATTERNS))
        for sink in self.sinks:
            sink.compare = False
        longest = 3 * self.bench.latency + count
        steps = self.random.randint(1, longest)
        results = float("inf")
        if self.random.random() < 0.5:  # while results come out
            results, steps = self.delivered + self.random.randint(1, count), 2 * longest
        while steps and self.delivered < results:
            await self.step()
            steps -= 1
        self.resets += 1
        await self.reset()

    async def start(self):
        """Set everything that is driven to a value, and reset."""
        set_ports(self.dut, self.bench.idle_statics())
        await self.clock.start()
        await self.reset()

    async def run_all(self, count, every_pair=True, progress=lambda share: None):
        """About ``count`` beats under all pairs of patterns, and more until every required bin has been hit.

        Otherwise each pattern is used once, in about a third of the time.
        """
        pairs = list(itertools.product(PATTERNS, PATTERNS))
        share = max(1, count // len(pairs))
        if not every_pair:
            pairs = EACH_ONCE
        for done, (stall, idle) in enumerate(pairs, start=1):
            await self.run(self.bench.batch(share), stall, idle)
            for _ in range(1 + done % 2):  # not always every other batch, for benches have kinds of batches in turn
                await self.interrupt(share)
            progress(done / len(pairs))
        for _ in range(MORE_BATCHES):  # short runs may not have hit every bin yet
            if not self.missing_bins():
                break
            await self.run(self.bench.batch(max(share, MORE_COUNT)), "random", "random")
        missing = self.missing_bins()
        if missing:
            self.report(f"required bins never hit: {', '.join(missing)}")


async def run_standard(simulation):
    """Scenario. Job: ``unit``, ``parameters``, ``seed``, ``count``, and ``every_pair``."""
    job = simulation.job
    testbench = Testbench(simulation.dut, load_bench(job["unit"], job["parameters"], job["seed"]), job["seed"])
    await testbench.start()
    await testbench.run_all(job["count"], job.get("every_pair", True), simulation.progress)
    return testbench.result()
