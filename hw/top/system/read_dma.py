"""ReadDma: transfers from memory to the core's load stream."""

from amaranth.hdl import Module, Signal
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out, connect, flipped

from hw.lib.stream import StreamQueue
from hw.top.system.beat_former import BeatFormer
from hw.top.system.burst_splitter import BurstSplitter
from hw.top.system.layouts import burst, fault, job
from hw.top.system.parameters import SystemPart

__all__ = ["ReadDma"]

N_JOBS = 4
"""Transfers whose beats may be under way, beyond the one whose bursts are asked for."""


class ReadDma(SystemPart):
    """Asks for the bursts of transfers as soon as there is room for all their beats, so every beat is taken at once.

    At most ``n_reads`` bursts and ``read_depth`` beats are under way. With ``stop`` nothing further is asked for and
    what comes is dropped; ``is_idle`` then says when nothing is under way, and ``clear`` makes it as after reset.
    """

    members_doc = {
        "jobs": "transfers, in order",
        "bursts": "requests, in order",
        "words": "beats of the answers, always taken",
        "load": "beats for the core",
        "fault": "a beat came with an error",
        "oldest": "entry of the oldest transfer whose beats have not all come",
        "stop": "ask for nothing further; drop what comes",
        "clear": "while stopped and idle: forget everything",
        "is_idle": "nothing was asked for that has not come, and nothing waits for the core",
    }

    @staticmethod
    def members(p):
        word = data.StructLayout({"data": p.data_width, "is_error": 1, "last": 1})
        return {
            "jobs": In(stream.Signature(job(p, p.load_sizes))),
            "bursts": Out(stream.Signature(burst(p))),
            "words": In(data.StructLayout({"valid": 1, "word": word})),
            "load": Out(stream.Signature(16 * p.row_word)),
            "fault": Out(fault(p)),
            "oldest": Out(data.StructLayout({"valid": 1, "slot": p.slot_width})),
            "stop": In(1),
            "clear": In(1),
            "is_idle": Out(1),
        }

    def circuit(self):
        m = Module()
        p = self.parameters
        width = job(p, p.load_sizes).size
        m.submodules.splitter = splitter = BurstSplitter.for_core(p)
        m.submodules.former = former = BeatFormer.for_core(p)
        m.submodules.asked = asked = StreamQueue(width=width, depth=2)
        m.submodules.coming = coming = StreamQueue(width=width, depth=N_JOBS)
        m.submodules.words = words = StreamQueue(width=p.data_width + 1, depth=p.read_depth + 1, storage="memory")
        may_take = Signal()
        m.d.comb += may_take.eq(asked.source.ready & coming.source.ready & ~self.stop)
        m.d.comb += self.jobs.ready.eq(may_take)
        for queue in (asked, coming):
            m.d.comb += [queue.source.valid.eq(self.jobs.valid & may_take), queue.source.payload.eq(self.jobs.payload)]
        m.d.comb += [
            splitter.jobs.valid.eq(asked.sink.valid),
            splitter.jobs.payload.eq(asked.sink.payload),
            asked.sink.ready.eq(splitter.jobs.ready | (self.stop & splitter.is_idle)),
            splitter.stop.eq(self.stop),
        ]

        # Room: a burst is offered when its beats have places, which they keep until they leave the queue.
        room, n_bursts = Signal(range(p.read_depth + 1), init=p.read_depth), Signal(range(p.n_reads + 1))
        beats, asks, comes, pops = Signal(9), Signal(), Signal(), Signal()
        n_coming = Signal(range(p.read_depth + 1))
        may_ask = Signal()
        is_held = Signal()  # a burst that was offered stays so
        m.d.comb += [
            beats.eq(splitter.bursts.payload.length + 1),
            may_ask.eq((room >= beats) & (n_bursts != p.n_reads)),
            self.bursts.payload.eq(splitter.bursts.payload),
            self.bursts.valid.eq(splitter.bursts.valid & (may_ask & ~self.stop | is_held)),
            asks.eq(self.bursts.valid & self.bursts.ready),
            # With stop, the splitter's burst is dropped unless it was offered already.
            splitter.bursts.ready.eq(asks | (self.stop & ~is_held)),
            comes.eq(self.words.valid),
            pops.eq(words.sink.valid & words.sink.ready),
        ]
        m.d.sync += [
            is_held.eq(self.bursts.valid & ~self.bursts.ready),
            room.eq(room - (beats & asks.replicate(9)) + pops),
            n_coming.eq(n_coming + (beats & asks.replicate(9)) - comes),
            n_bursts.eq(n_bursts + asks - (comes & self.words.word.last)),
        ]
        m.d.comb += [
            words.source.valid.eq(comes),
            words.source.payload.eq(self.words.word.as_value()[: p.data_width + 1]),
            former.words.payload.eq(words.sink.payload),
            former.words.valid.eq(words.sink.valid & ~self.stop),
            words.sink.ready.eq(former.words.ready | self.stop),
            former.jobs.valid.eq(coming.sink.valid & ~self.stop),
            former.jobs.payload.eq(coming.sink.payload),
            coming.sink.ready.eq(former.jobs.ready | self.stop),
            former.clear.eq(self.clear),
            self.fault.eq(former.fault),
            self.oldest.valid.eq(coming.sink.valid),
            self.oldest.slot.eq(data.View(job(p, p.load_sizes), coming.sink.payload).slot),
        ]
        connect(m, former.load, flipped(self.load))
        nothing_comes = Signal()
        m.d.comb += [
            nothing_comes.eq((n_coming == 0) & ~splitter.bursts.valid & splitter.is_idle & ~asked.sink.valid),
            self.is_idle.eq(
                nothing_comes & ~words.sink.valid & ~coming.sink.valid & (former.is_idle | self.stop) & ~self.load.valid
            ),
        ]
        return m
