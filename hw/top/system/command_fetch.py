"""CommandFetch: descriptors from the ring, read ahead, or from the window of the registers."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out

from golden.spec.accelerator.descriptor import DESCRIPTOR_WORDS
from golden.spec.accelerator.parameters import DESCRIPTOR_BYTES
from hw.lib.stream import StreamQueue
from hw.top.system.parameters import SystemPart

__all__ = ["CommandFetch", "fetched_layout"]

_LOG2_BYTES = (DESCRIPTOR_BYTES - 1).bit_length()


def fetched_layout():
    """A descriptor, whether the bus could not read it, and whether it comes from the ring."""
    return data.StructLayout({"words": 8 * DESCRIPTOR_BYTES, "is_error": 1, "is_ring": 1})


class CommandFetch(SystemPart):
    """Asks for the descriptors up to the tail, at most ``fetch_depth`` ahead of those that were taken.

    A descriptor is one burst, or, on a bus of 1024 bits, one narrow beat. All answers are taken at once. The registers'
    window writes the same words in which the beats of a descriptor are collected.
    """

    members_doc = {
        "enable": "ask for descriptors",
        "base": "the ring; a multiple of 64",
        "size": "log2 of its descriptors",
        "tail": "descriptors that are there, counted from the ring's start",
        "restart": "the next one is number 0; only while idle and empty",
        "window": "write a word of the descriptor",
        "submit": "hand on the descriptor in the window",
        "request": "address of a descriptor",
        "words": "beats of the answers, always taken",
        "descriptor": "the 64 bytes; is_error if a response was not OKAY",
        "drop": "take and drop all descriptors",
        "is_idle": "nothing was asked for that has not come",
        "is_behind": "there are descriptors that were not asked for",
        "is_empty": "nothing was read ahead",
    }

    @staticmethod
    def members(p):
        return {
            "enable": In(1),
            "base": In(p.address_width),
            "size": In(5),
            "tail": In(32),
            "restart": In(1),
            "window": In(data.StructLayout({"valid": 1, "word": 4, "data": 32})),
            "submit": In(1),
            "request": Out(stream.Signature(p.address_width)),
            "words": In(data.StructLayout({"valid": 1, "data": p.data_width, "is_error": 1, "last": 1})),
            "descriptor": Out(stream.Signature(fetched_layout())),
            "drop": In(1),
            "is_idle": Out(1),
            "is_behind": Out(1),
            "is_empty": Out(1),
        }

    def circuit(self):
        m = Module()
        p = self.parameters
        asked = Signal(32)  # from the ring
        n_ahead, n_coming = Signal(range(p.fetch_depth + 1)), Signal(range(p.fetch_depth + 1))
        asks, comes, takes = Signal(), Signal(), Signal()
        index = Signal(p.max_ring_log2)
        is_held, is_whole = Signal(), Signal()
        m.submodules.queue = queue = StreamQueue(width=fetched_layout().size, depth=p.fetch_depth + 1, storage="memory")
        m.d.comb += [
            index.eq(asked & ~((~0 << self.size)[: p.max_ring_log2])),
            self.is_behind.eq(asked != self.tail),
            self.request.payload.eq(self.base + (index << _LOG2_BYTES)),
            self.request.valid.eq((self.enable & self.is_behind & (n_ahead != p.fetch_depth)) | is_held),
            asks.eq(self.request.valid & self.request.ready),
            comes.eq(self.words.valid & self.words.last),
            takes.eq(queue.sink.valid & queue.sink.ready),
            self.is_idle.eq((n_coming == 0) & ~is_held & ~is_whole),
            self.is_empty.eq(n_ahead == 0),
        ]
        m.d.sync += [
            is_held.eq(self.request.valid & ~self.request.ready),
            n_ahead.eq(n_ahead + (asks | self.submit) - takes),
            n_coming.eq(n_coming + asks - comes),
            asked.eq(asked + asks),
        ]
        with m.If(self.restart):
            m.d.sync += asked.eq(0)

        words = [Signal(32, name=f"word_{i}", reset_less=True) for i in range(DESCRIPTOR_WORDS)]
        beat, has_failed = Signal(range(max(2, p.descriptor_beats))), Signal()
        is_error, is_ring = Signal(), Signal()
        a_beat = p.data_width // 32
        coming = self.words.data
        if a_beat > DESCRIPTOR_WORDS:  # a narrow beat: in one half or the other
            is_odd = Signal()
            with m.If(comes):
                m.d.sync += is_odd.eq(~is_odd)
            with m.If(self.restart):
                m.d.sync += is_odd.eq(0)
            # A ring of one descriptor stays where it is.
            is_upper = self.base[_LOG2_BYTES] ^ (is_odd & (self.size != 0))
            coming = coming.word_select(is_upper, 8 * DESCRIPTOR_BYTES)
        for i, word in enumerate(words):
            is_here = (beat == i // a_beat) if p.descriptor_beats > 1 else 1
            with m.If(self.words.valid & is_here):
                m.d.sync += word.eq(coming.word_select(i % a_beat, 32))
            with m.Elif(self.window.valid & (self.window.word == i)):
                m.d.sync += word.eq(self.window.data)
        m.d.sync += is_whole.eq(comes | self.submit)
        with m.If(self.words.valid):
            m.d.sync += [
                beat.eq(Mux(self.words.last, 0, beat + 1)),
                has_failed.eq(~self.words.last & (has_failed | self.words.is_error)),
            ]
        m.d.sync += is_ring.eq(comes)
        m.d.sync += is_error.eq(comes & (has_failed | self.words.is_error))
        m.d.comb += [
            queue.source.valid.eq(is_whole),
            queue.source.payload.eq(Cat(*words, is_error, is_ring)),
            self.descriptor.payload.eq(queue.sink.payload),
            self.descriptor.valid.eq(queue.sink.valid & ~self.drop),
            queue.sink.ready.eq(self.descriptor.ready | self.drop),
        ]
        return m
