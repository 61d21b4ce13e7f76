"""ReferenceStore: stores, for every token, the latent values at which it was last computed."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data
from amaranth.lib.wiring import In, Out

from hw.lib.block import Block
from hw.lib.memory import MemoryBank
from hw.units.token_selector.order import BeatCounter, LatentParameters
from hw.units.token_selector.patches import PatchSpread

__all__ = ["ReferenceStore", "WRITE_DELAY"]

MASK_DELAY = 4
"""Advances from the read of a word's last beat to its mask bits."""

WRITE_DELAY = MASK_DELAY + 2
"""Clocks from the read of a word's last beat until its address may be read again."""


class ReferenceStore(Block):
    """Reads the reference of every beat; once the mask bits of a word are known, writes its selected tokens.

    A beat waits in a queue beside its reference until its word of the mask is known; it is then written back, with
    the new values where the token was selected and the old ones elsewhere. The memory holds every value once, the
    queue little more than the beats of one word.

    A beat may be read only while ``may_read``: the queue has room, and the write to this address for the previous
    latent is complete.
    """

    Parameters = LatentParameters
    latency = 1
    members_doc = {
        "may_read": "a beat may be read",
        "read": "read the reference of a beat",
        "position": "number of that beat in the latent",
        "reference": "the values read",
        "keep": "push the beat that was read into the queue",
        "current": "its new values",
        "take_mask": "a mask word becomes known at this clock edge",
        "may_take_mask": "a mask word may be taken",
        "mask": "the mask word, from the clock after take_mask until the next one",
    }

    @staticmethod
    def members(p):
        values = data.ArrayLayout(16, p.n_values)
        position = BeatCounter(**p.to_dict()).signature.members["position"].shape
        return {
            "may_read": Out(1),
            "read": In(1),
            "position": In(position),
            "reference": Out(values),
            "keep": In(1),
            "current": In(values),
            "take_mask": In(1),
            "may_take_mask": Out(1),
            "mask": In(p.word_tokens),
        }

    def circuit(self):
        m = Module()
        p = self.parameters
        # A beat is written at most this many clocks after it was read, if nothing stalls.
        depth = min(p.n_beats, p.beats_a_word + WRITE_DELAY)
        width = 16 * p.n_values
        m.submodules.references = references = MemoryBank(depth=p.n_beats, width=width)
        m.submodules.waiting = waiting = MemoryBank(depth=depth, width=2 * width)
        m.submodules.place = place = BeatCounter(**p.to_dict())

        m.d.comb += [
            references.read_enable.eq(self.read),
            references.read_address.eq(self.position),
            self.reference.eq(references.read_data),
        ]
        under_way = Signal(range(depth + 1))  # beats read and not yet written
        written = Signal()
        m.d.comb += self.may_read.eq(under_way != depth)
        with m.If(self.read & ~written):
            m.d.sync += under_way.eq(under_way + 1)
        with m.If(~self.read & written):
            m.d.sync += under_way.eq(under_way - 1)

        def wrap(pointer):
            return Mux(pointer == depth - 1, 0, pointer + 1)

        head = Signal(range(depth))
        tail = Signal(range(depth))
        m.d.comb += [
            waiting.write_enable.eq(self.keep),
            waiting.write_address.eq(tail),
            waiting.write_data.eq(Cat(self.current, self.reference)),
        ]
        with m.If(self.keep):
            m.d.sync += tail.eq(wrap(tail))

        # One word at a time: fetch its beats from the queue, and write each in the clock after.
        pending = Signal()
        fetching = Signal()
        start = Signal()
        fetch = Signal()
        mask = Signal(p.word_tokens, reset_less=True)
        m.d.comb += [
            start.eq(pending & ~fetching),
            fetch.eq(start | fetching),
            self.may_take_mask.eq(~pending | start),
            waiting.read_enable.eq(fetch),
            waiting.read_address.eq(head),
            place.step.eq(fetch),
        ]
        with m.If(start):
            m.d.sync += [mask.eq(self.mask), pending.eq(0)]
        with m.If(self.take_mask):
            m.d.sync += pending.eq(1)
        with m.If(fetch):
            m.d.sync += [head.eq(wrap(head)), fetching.eq(~place.closes_word)]

        kind = Signal(p.kind_width, reset_less=True)
        address = Signal.like(self.position, reset_less=True)
        m.d.sync += [written.eq(fetch), kind.eq(place.kind), address.eq(place.position)]
        m.submodules.spread = spread = PatchSpread(**p.to_dict())
        m.d.comb += [spread.tokens.eq(mask), spread.kind.eq(kind)]
        new, old = waiting.read_data[:width], waiting.read_data[width:]
        m.d.comb += [
            references.write_enable.eq(written),
            references.write_address.eq(address),
            references.write_data.eq(
                Cat(
                    Mux(spread.lanes[lane], new.word_select(lane, 16), old.word_select(lane, 16))
                    for lane in range(p.n_values)
                )
            ),
        ]
        return m
