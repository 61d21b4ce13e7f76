"""The cocotb test that plays a unit's batches on the emitted Verilog; the job is described by a JSON file."""

import itertools
import json
import os
import random
from pathlib import Path

import cocotb
from cocotb.triggers import Timer

from verif.bench.endpoints import PATTERNS, Gate, Sink, Source
from verif.bench.harness import load_bench

PERIOD_NS = 10
SHOWN = 8
MORE_BATCHES = 60
MORE_COUNT = 24
EACH_ONCE = (("none", "none"), ("random", "bursty"), ("bursty", "random"))
"""Pairs of a stall and an idle pattern with each of them once."""


class Testbench:
    """Owns the clock, the drivers and the monitors of one unit."""

    def __init__(self, dut, bench, seed):
        self.dut, self.bench = dut, bench
        self.random = random.Random(seed)
        self.messages, self.failed, self.cycle = [], 0, 0
        self.bins, self.stalls, self.idles, self.resets = {}, 0, 0, 0
        self.where = "start"
        self.delivered = 0  # beats at all outputs
        self.full_rate, self.held_up = (), 0  # the clock in which a result was held up last
        streams = bench.streams()
        self.sources = [Source(dut, name) for name in streams["inputs"]]
        self.sinks = [Sink(dut, name, self.report) for name in streams["outputs"]]
        self.clk, self.rst = getattr(dut, "clk", None), getattr(dut, "rst", None)

    @property
    def checked(self):
        return sum(sink.checked for sink in self.sinks)

    def missing_bins(self):
        """Corner cases that no batch has contained so far."""
        return sorted(set(self.bench.required_bins) - {name for name, hits in self.bins.items() if hits})

    def report(self, message):
        self.failed += 1
        if len(self.messages) < SHOWN:
            self.messages.append(f"{self.where}: {message}")

    async def step(self):
        """One clock: drive, let the logic time_hierarchy, sample, then the edge. True if any beat moved."""
        for end in (*self.sources, *self.sinks):
            end.drive()
        await Timer(PERIOD_NS // 2, "ns")
        moved = [end.sample(self.cycle) for end in (*self.sources, *self.sinks)]
        self.delivered += sum(moved[len(self.sources) :])
        self.check_waits(moved)
        if self.clk is not None:
            self.clk.value = 1
        await Timer(PERIOD_NS // 2, "ns")
        if self.clk is not None:
            self.clk.value = 0
        self.cycle += 1
        self.bench.watch(self.dut, self.report)
        return any(moved)

    def check_waits(self, moved):
        """Only results that are not taken make a unit wait, not a sink that is not ready while there is none."""
        if any(sink.holds for sink in self.sinks):
            self.held_up = self.cycle
        elif self.cycle - self.held_up > self.bench.latency + self.bench.held_back + 4:
            pairs = zip(self.sources, moved)
            needed = [(source, is_taken) for source, is_taken in pairs if source.name in self.full_rate]
            if not all(source.offers or is_taken for source, is_taken in needed):
                return  # streams that go together wait for each other
            for source, is_taken in needed:
                if not is_taken:
                    self.report(f"{source.name}: a beat waits in cycle {self.cycle}, yet no result does")

    async def reset(self):
        if self.rst is None:
            return
        self.rst.value = 1
        for sink in self.sinks:
            sink.start([], None)
            sink.compare = False
        for _ in range(self.random.choice((1, 1, 2, 3))):
            for source in self.sources:
                source.offer_anything(self.random)  # what is offered during reset is not taken
            await Timer(PERIOD_NS // 2, "ns")
            self.clk.value = 1
            await Timer(PERIOD_NS // 2, "ns")
            self.clk.value = 0
        for source in self.sources:
            source.abort()
        self.rst.value = 0
        self.bench.forget()
        for sink in self.sinks:
            sink.start([], None)
        await self.quiet("after reset")

    async def quiet(self, when):
        """Nothing may come out while nothing is under way."""
        for _ in range(self.bench.latency + 4):
            await self.step()
            for sink in self.sinks:
                sink.check_quiet(when)

    def begin(self, batch, stall, idle):
        for name, value in batch.statics.items():
            getattr(self.dut, name).value = value
        self.full_rate = batch.full_rate
        by_name = {source.name: source for source in self.sources}
        for name, source in by_name.items():
            earlier = [by_name[other] for other in batch.after.get(name, ())]
            source.start(batch.inputs[name], Gate(idle, self.random), earlier)
        for sink in self.sinks:
            sink.start(batch.outputs[sink.name], Gate(stall, self.random))

    async def play(self, count, stall, idle):
        """One batch to its end under a stall and an idle pattern, with all checks."""
        self.where = f"stall {stall}, idle {idle}"
        batch = self.bench.batch(count)
        self.begin(batch, stall, idle)
        patience = 200 + 40 * (self.bench.latency + self.bench.longest_silence)
        quiet_for = 0
        while not all(end.done for end in (*self.sources, *self.sinks)):
            quiet_for = 0 if await self.step() else quiet_for + 1
            if quiet_for > patience:
                left = {end.name: not end.done for end in (*self.sources, *self.sinks)}
                self.report(f"nothing moved for {patience} cycles; unfinished: {[n for n, u in left.items() if u]}")
                await self.reset()
                return
        for name, hits in batch.bins.items():
            self.bins[name] = self.bins.get(name, 0) + hits
        self.stalls += sum(sink.stalls for sink in self.sinks)
        self.idles += sum(source.idles for source in self.sources)
        if stall == idle == "none":
            self.check_timing(batch)
        for sink in self.sinks:
            sink.start([], None)
        await self.quiet("after the last result")

    def check_timing(self, batch):
        """Without stalls: one beat an interval accepted, every result exactly after the latency."""
        latency = self.bench.block.latency
        by_name = {end.name: end for end in (*self.sources, *self.sinks)}
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
            for index, beat in enumerate(beats):
                if beat is not None and seen[index] != taken[beat] + latency:
                    off = seen[index] - taken[beat]
                    self.report(f"{name}: beat {index} came after {off} clocks, the stated latency is {latency}")
                    break

    async def interrupt(self, count):
        """Reset in mid-flight, after any number of cycles or results and with stalled outputs among them."""
        self.where = "reset in mid-flight"
        if self.rst is None:
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
        for name, value in self.bench.idle_statics().items():
            getattr(self.dut, name).value = value
        if self.clk is not None:
            self.clk.value = 0
        if self.rst is not None:
            self.rst.value = 0
        await Timer(PERIOD_NS, "ns")
        await self.reset()

    async def play_all(self, count, every_pair=True, progress=lambda share: None):
        """About ``count`` beats under all pairs of patterns, and more until every corner case has been met.

        Otherwise each pattern is used once, in about a third of the time.
        """
        pairs = list(itertools.product(PATTERNS, PATTERNS))
        share = max(1, count // len(pairs))
        if not every_pair:
            pairs = EACH_ONCE
        for done, (stall, idle) in enumerate(pairs, start=1):
            await self.play(share, stall, idle)
            for _ in range(1 + done % 2):  # not always every other batch, for benches have kinds of batches in turn
                await self.interrupt(share)
            progress(done / len(pairs))
        for _ in range(MORE_BATCHES):  # short runs may not have met every corner case yet
            if not self.missing_bins():
                break
            await self.play(max(share, MORE_COUNT), "random", "random")
        missing = self.missing_bins()
        if missing:
            self.report(f"corner cases never hit: {', '.join(missing)}")


@cocotb.test()
async def play(dut):
    job = json.loads(Path(os.environ["BENCH_JOB"]).read_text())
    player = Testbench(dut, load_bench(job["unit"], job["parameters"], job["seed"]), job["seed"])
    await player.start()
    await player.play_all(
        job["count"], job.get("every_pair", True), lambda share: Path(job["progress"]).write_text(f"{share}")
    )
    result = {
        "checked": player.checked,
        "failed": player.failed,
        "messages": player.messages,
        "bins": player.bins,
        "stalls": player.stalls,
        "idles": player.idles,
        "resets": player.resets,
        "cycles": player.cycle,
    }
    Path(job["result"]).write_text(json.dumps(result, indent=1))
