"""WriteDma: transfers from the core's store stream to memory."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out, connect, flipped

from hw.lib.stream import StreamQueue
from hw.top.system.layouts import burst, fault, job
from hw.top.system.parameters import SystemPart
from hw.top.system.word_packer import WordPacker

__all__ = ["WriteDma"]

N_JOBS = 4
"""Transfers that may wait."""


class WriteDma(SystemPart):
    """Collects the beats of a burst and asks for it when it has them all, so that the bus never waits for the core.

    At most ``n_writes`` bursts are under way. A transfer begins when ``may_begin`` is 1; with ``drops`` it is taken
    from the core and not written.
    """

    members_doc = {
        "jobs": "transfers, in order",
        "store": "beats of the core",
        "next": "the entry of the next transfer",
        "may_begin": "it may begin",
        "drops": "if it begins in this clock, nothing is written",
        "begins": "it begins in this clock",
        "bursts": "requests, in order",
        "words": "the beats of the bursts, in order, a strobe for each element",
        "answer": "a write response",
        "fault": "a response was an error: the address is that of the burst",
        "completed": "all of a transfer is in memory",
        "dropped": "a transfer that is not written has ended",
        "stop": "drop the transfers that wait and the one that has begun, of which the core sends nothing",
        "is_idle": "nothing is under way",
    }

    @staticmethod
    def members(p):
        return {
            "jobs": In(stream.Signature(job(p, p.store_sizes))),
            "store": In(stream.Signature(data.StructLayout({"data": 16 * p.row_word, "last": 1}))),
            "next": Out(data.StructLayout({"valid": 1, "slot": p.slot_width})),
            "may_begin": In(1),
            "drops": In(1),
            "begins": Out(1),
            "bursts": Out(stream.Signature(burst(p))),
            "words": Out(
                stream.Signature(data.StructLayout({"data": p.data_width, "enable": p.bus_elements, "last": 1}))
            ),
            "answer": In(data.StructLayout({"valid": 1, "is_error": 1})),
            "fault": Out(fault(p)),
            "completed": Out(data.StructLayout({"valid": 1, "slot": p.slot_width})),
            "dropped": Out(data.StructLayout({"valid": 1, "slot": p.slot_width})),
            "stop": In(1),
            "is_idle": Out(1),
        }

    def circuit(self):
        m = Module()
        p = self.parameters
        m.submodules.packer = packer = WordPacker.for_core(p)
        m.submodules.waiting = waiting = StreamQueue(width=job(p, p.store_sizes).size, depth=N_JOBS)
        connect(m, flipped(self.store), packer.store)
        transfer = data.View(job(p, p.store_sizes), waiting.sink.payload)
        is_begun, is_dropped = Signal(), Signal()
        m.d.comb += [
            waiting.source.valid.eq(self.jobs.valid),
            waiting.source.payload.eq(self.jobs.payload),
            self.jobs.ready.eq(waiting.source.ready),
            self.next.valid.eq(waiting.sink.valid & ~is_begun),
            self.next.slot.eq(transfer.slot),
            self.begins.eq(self.next.valid & self.may_begin & ~self.stop),
            packer.jobs.valid.eq(waiting.sink.valid & is_begun),
            packer.jobs.payload.eq(waiting.sink.payload),
            packer.is_dropped.eq(is_dropped),
            waiting.sink.ready.eq(packer.jobs.ready | self.stop),
        ]
        with m.If(self.begins):
            m.d.sync += [is_begun.eq(1), is_dropped.eq(self.drops)]
        with m.Elif(packer.jobs.ready):
            m.d.sync += is_begun.eq(0)
        self._bursts(m, packer, transfer.slot)
        m.d.comb += [
            self.dropped.valid.eq(packer.dropped),
            self.dropped.slot.eq(transfer.slot),
            packer.clear.eq(self.stop),
        ]
        with m.If(self.stop):
            m.d.sync += is_begun.eq(0)
        return m

    def _bursts(self, m, packer, slot):
        """Beats of the bus on their way: bursts that are whole are asked for, then their responses are awaited."""
        p = self.parameters
        request = data.StructLayout({"address": p.address_width, "length": 8, "slot": p.slot_width, "ends_job": 1})
        answered = data.StructLayout({"address": p.address_width, "slot": p.slot_width, "ends_job": 1})
        m.submodules.beats = beats = StreamQueue(
            width=p.data_width + p.bus_elements + 1, depth=p.write_depth + 1, storage="memory"
        )
        m.submodules.whole = whole = StreamQueue(width=request.size, depth=2)
        m.submodules.awaited = awaited = StreamQueue(width=answered.size, depth=p.n_writes)
        word, passes = packer.words.payload, Signal()
        length, address = Signal(8), Signal(p.address_width)  # of the burst that is collected: beats so far
        first = Signal(p.address_width)
        m.d.comb += [
            first.eq(Mux(length == 0, word.address, address)),
            # Where the burst ends there must be room for it too; depths of queues allow for it after a while.
            packer.words.ready.eq(beats.source.ready & (whole.source.ready | ~word.ends_burst)),
            passes.eq(packer.words.valid & packer.words.ready),
            beats.source.valid.eq(passes),
            beats.source.payload.eq(Cat(word.data, word.enable, word.ends_burst)),
            whole.source.valid.eq(passes & word.ends_burst),
            whole.source.payload.eq(Cat(first, length, slot, word.ends_job)),
        ]
        with m.If(passes):
            m.d.sync += [length.eq(Mux(word.ends_burst, 0, length + 1)), address.eq(first)]
        # A burst goes on both channels at the same time; neither waits for the other's ready.
        burst_here = data.View(request, whole.sink.payload)
        n_open, is_asked = Signal(range(p.n_writes + 1)), Signal()  # bursts whose beats may be sent
        asks, sends_last = Signal(), Signal()
        starts = Signal()
        m.d.comb += [
            starts.eq(whole.sink.valid & awaited.source.ready & (n_open != p.n_writes) & ~is_asked),
            self.bursts.valid.eq(starts | is_asked),
            self.bursts.payload.address.eq(burst_here.address),
            self.bursts.payload.length.eq(burst_here.length),
            asks.eq(self.bursts.valid & self.bursts.ready),
            whole.sink.ready.eq(asks),
            awaited.source.valid.eq(starts),
            awaited.source.payload.eq(Cat(burst_here.address, burst_here.slot, burst_here.ends_job)),
            self.words.valid.eq(beats.sink.valid & (n_open != 0)),
            self.words.payload.eq(beats.sink.payload),
            beats.sink.ready.eq(self.words.ready & (n_open != 0)),
            sends_last.eq(self.words.valid & self.words.ready & self.words.payload.last),
        ]
        m.d.sync += [is_asked.eq(self.bursts.valid & ~self.bursts.ready), n_open.eq(n_open + starts - sends_last)]
        ended = data.View(answered, awaited.sink.payload)
        m.d.comb += [
            awaited.sink.ready.eq(self.answer.valid),
            self.fault.valid.eq(self.answer.valid & self.answer.is_error),
            self.fault.slot.eq(ended.slot),
            self.fault.address.eq(ended.address),
            self.is_idle.eq(
                packer.is_idle
                & ~beats.sink.valid
                & ~whole.sink.valid
                & ~awaited.sink.valid
                & (n_open == 0)
                & ~self.next.valid
            ),
        ]
        with m.If(self.answer.valid & ended.ends_job):
            m.d.comb += [self.completed.valid.eq(1), self.completed.slot.eq(ended.slot)]
