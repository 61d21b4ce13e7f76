"""BoundsStore: stores, for every value of a latent, the bounds of unchanged values."""

from dataclasses import dataclass
from functools import reduce
from operator import or_

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data
from amaranth.lib.wiring import In, Out

from golden.spec.parameters import integer
from hw.arith.difference import DECODED_THRESHOLD
from hw.arith.stored_bounds import STORED_BOUNDS, BoundsMaker
from hw.lib.block import Block
from hw.lib.memory import MemoryBank
from hw.lib.pipeline import Pipeline
from hw.units.token_selector.index_scanner import from_lowest, more_than_one
from hw.units.token_selector.order import BeatCounter, LatentParameters

__all__ = ["BoundsStore", "WRITE_DELAY"]

MASK_DELAY = 3
"""Advances from the read of a word's last beat to its mask bits."""

WRITE_DELAY = MASK_DELAY + 3 + BoundsMaker.latency
"""Clocks from the read of a word's last beat until its address may be read again."""


@dataclass(frozen=True, kw_only=True)
class BoundsStoreParameters(LatentParameters):
    bounds: int = integer(4, low=1, high=64, doc="values whose bounds are made a clock")

    @property
    def latent(self):
        """The part that describes the latent."""
        return {name: value for name, value in self.to_dict().items() if name != "bounds"}


class BoundsStore(Block):
    """Reads the bounds of every beat and, once a mask word is known, computes those of its selected tokens.

    The values of a beat wait in a queue until its mask word is known. For each selected token in the beat, the bounds
    of up to ``bounds`` values a clock are then computed and written; those of other tokens are preserved by the
    memory's write enables, one for each value.

    A beat may be read only while ``may_read``: the queue has room, and the write to this address for the previous
    latent is complete.
    """

    Parameters = BoundsStoreParameters
    latency = 1
    members_doc = {
        "threshold": "of the new bounds",
        "may_read": "a beat may be read",
        "read": "read the bounds of a beat",
        "position": "number of that beat in the latent",
        "reference": "the bounds that were read",
        "keep": "push the beat that was read into the queue",
        "current": "its values",
        "take_mask": "a mask word becomes known at this clock edge",
        "may_take_mask": "a mask word may be taken",
        "mask": "the mask word, from the clock after take_mask until the next one",
    }

    @staticmethod
    def members(p):
        position = BeatCounter(**p.latent).signature.members["position"].shape
        return {
            "threshold": In(DECODED_THRESHOLD),
            "may_read": Out(1),
            "read": In(1),
            "position": In(position),
            "reference": Out(data.ArrayLayout(STORED_BOUNDS, p.n_values)),
            "keep": In(1),
            "current": In(data.ArrayLayout(16, p.n_values)),
            "take_mask": In(1),
            "may_take_mask": Out(1),
            "mask": In(p.word_tokens),
        }

    def circuit(self):
        m = Module()
        p = self.parameters
        m.submodules.references = references = MemoryBank(
            depth=p.n_beats, width=STORED_BOUNDS.size * p.n_values, granularity=STORED_BOUNDS.size
        )
        m.d.comb += [
            references.read_enable.eq(self.read),
            references.read_address.eq(self.position),
            self.reference.eq(references.read_data),
        ]
        fetch = Signal()
        written = Signal()
        beat = self._waiting(m, fetch, written)
        slots = p.token_slots(p.bounds)
        chosen = Signal(len(slots))  # the slot of the current beat whose bounds are computed now, if any
        ends_beat = Signal()
        address = Signal.like(self.position)
        self._choose(m, slots, fetch, chosen, ends_beat, address)
        made = self._make(m, slots, beat, chosen)

        # Write them to the slot's lanes.
        always = Pipeline(m, advance=1)
        stages = 1 + BoundsMaker.latency
        for stage in range(1, stages + 1):
            ends_beat = always.control(ends_beat, name=f"ends_beat_{stage}")
            chosen = always.control(chosen, name=f"slot_{stage}")
        m.d.comb += [
            written.eq(ends_beat),
            references.write_address.eq(always.register(address, name="address_later", stages=stages)),
        ]
        for lane in range(p.n_values):
            places = {}  # {index in the slot: numbers of slots}
            for number, (_, lanes, _) in enumerate(slots):
                if lane in lanes:
                    places.setdefault(lanes.index(lane), []).append(number)
            writes = [Cat(chosen[number] for number in numbers).any() for numbers in places.values()]
            words = [Value.cast(made[index]) for index in places]
            if len(places) > 1:
                words = [word & write.replicate(len(word)) for word, write in zip(words, writes, strict=True)]
            m.d.comb += [
                references.write_enable[lane].eq(Cat(writes).any()),
                references.write_data.word_select(lane, STORED_BOUNDS.size).eq(_any(words)),
            ]
        return m

    def _waiting(self, m, fetch, written):
        """The queue of beats read and not yet written; returns the one fetched last."""
        p = self.parameters
        depth = min(p.n_beats, p.beats_a_word + WRITE_DELAY)
        m.submodules.waiting = waiting = MemoryBank(depth=depth, width=16 * p.n_values)
        head = Signal(range(depth))
        tail = Signal(range(depth))
        under_way = Signal(range(depth + 1))
        m.d.comb += [
            self.may_read.eq(under_way != depth),
            waiting.write_enable.eq(self.keep),
            waiting.write_address.eq(tail),
            waiting.write_data.eq(self.current),
            waiting.read_enable.eq(fetch),
            waiting.read_address.eq(head),
        ]
        m.d.sync += under_way.eq(under_way + self.read - written)
        for moves, pointer in ((self.keep, tail), (fetch, head)):
            with m.If(moves):
                m.d.sync += pointer.eq(Mux(pointer == depth - 1, 0, pointer + 1))
        return waiting.read_data

    def _choose(self, m, slots, fetch, chosen, ends_beat, address):
        """One word at a time, beat by beat: fetch a beat when the slots of the one before are done."""
        m.submodules.place = place = BeatCounter(**self.parameters.latent)
        pending = Signal()
        fetching = Signal()
        is_done = Signal()
        start = Signal()
        mask = Signal.like(self.mask, reset_less=True)
        present_mask = Signal.like(self.mask)
        has_beat = Signal()
        others = Signal.like(chosen)  # the slots after the selected one
        has_others = Signal()
        m.d.comb += [
            is_done.eq(~has_others),
            ends_beat.eq(has_beat & is_done),
            start.eq(pending & ~fetching & is_done),
            fetch.eq((pending | fetching) & is_done),
            self.may_take_mask.eq(~pending | start),
            present_mask.eq(Mux(fetching, mask, self.mask)),
            place.step.eq(fetch),
        ]
        with m.If(start):
            m.d.sync += [mask.eq(self.mask), pending.eq(0)]
        with m.If(self.take_mask):
            m.d.sync += pending.eq(1)
        with m.If(fetch):
            m.d.sync += fetching.eq(~place.closes_word)

        rest = Signal.like(chosen)
        address_register = Signal.like(address, reset_less=True)
        m.d.comb += [rest.eq(others), address.eq(address_register)]
        with m.If(is_done):
            m.d.sync += [has_beat.eq(fetch), address_register.eq(place.position)]
            m.d.comb += rest.eq(
                Cat(
                    present_mask[token] & (pending | fetching) & self._has_kind(place.kind, kinds)
                    for token, _, kinds in slots
                )
            )
        above_first = from_lowest(m, rest) << 1
        m.d.sync += [
            chosen.eq(rest & ~above_first),
            others.eq(rest & above_first),
            has_others.eq(more_than_one(m, rest)),
        ]

    def _make(self, m, slots, beat, chosen):
        """The bounds of the chosen slot's values, ``1 + BoundsMaker.latency`` clocks later."""
        size = max(len(lanes) for _, lanes, _ in slots)
        made = Signal(data.ArrayLayout(STORED_BOUNDS, size))
        for index in range(size):
            value = Signal(16, name=f"value_{index}", reset_less=True)
            m.d.sync += value.eq(
                _any(
                    beat.word_select(lanes[index], 16) & chosen[number].replicate(16)
                    for number, (_, lanes, _) in enumerate(slots)
                    if index < len(lanes)
                )
            )
            m.submodules[f"maker_{index}"] = maker = BoundsMaker()
            m.d.comb += [
                maker.advance.eq(1),
                maker.reference.eq(value),
                maker.threshold.eq(self.threshold),
                made[index].eq(maker.bounds),
            ]
        return made

    def _has_kind(self, kind, kinds):
        """Whether ``kind`` is one of ``kinds``."""
        if len(kinds) == len(self.parameters.kinds()):
            return 1
        return Cat(kind == number for number in kinds).any()


def _any(words):
    """The OR of words; 0 of none."""
    return reduce(or_, words, Const(0))
