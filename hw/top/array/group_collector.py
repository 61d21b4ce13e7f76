"""GroupCollector: joins the units' scores of the same group of columns."""

from dataclasses import dataclass

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out

from golden.spec.formats import FP16
from hw.lib.stream import StreamQueue
from hw.top.array.plan import ArrayPlanParameters, item_layout, plan_layout
from hw.top.interfaces import imem_write
from hw.top.parameters import CorePart

__all__ = ["GroupCollector"]


@dataclass(frozen=True, kw_only=True)
class GroupCollectorParameters(ArrayPlanParameters):
    pass


class GroupCollector(CorePart):
    """A group has one element a unit, +0 beyond the last column; groups are in row order.

    MATMUL: for each of ``places`` the groups of a row, each with the word of IMEM and its position there. PROJECT: one
    group for each of ``items``, of zeros if it is empty. One group a clock; it is offered in the clock after its last
    score, and two of them may wait. Which scores it needs is known a clock before, so that they are taken without
    delay: that holds up the units.
    """

    Parameters = GroupCollectorParameters
    latency = 1
    members_doc = {
        "scores": "scores of each unit, in FP16",
        "plan": "constant while there is something to do",
        "places": "MATMUL: the first word of each row that is written",
        "items": "PROJECT: groups, in the order of their scores",
        "groups": "elements, their destination, and whether they are the row's last ones",
    }

    @staticmethod
    def members(p):
        item = item_layout(p)
        address = imem_write(p)["address"].shape
        return {
            "scores": In(stream.Signature(FP16.width)).array(p.n_banks),
            "plan": In(plan_layout(p)),
            "places": In(stream.Signature(address)),
            "items": In(stream.Signature(item)),
            "groups": Out(
                stream.Signature(
                    data.StructLayout(
                        {
                            "elements": data.ArrayLayout(FP16.width, p.n_banks),
                            "address": address,
                            "offset": range(p.row_parts),  # part of the word with the group's first element
                            "ends_row": 1,
                            "is_in_last_word": 1,  # what lies in the next word is not written
                        }
                    )
                )
            ),
        }

    def circuit(self):
        m = Module()
        p, plan, item = self.parameters, self.plan, self.items.payload
        layout = self.groups.payload.shape()
        m.submodules.waiting = waiting = StreamQueue(width=layout.size, depth=2)
        counted = Signal.like(item.group, name="counted")  # group of a row that is written
        group = Signal.like(counted, name="group")
        ends_row = Signal()
        # The next group: which units have a score for it, and its destination.
        place = data.StructLayout(
            {name: layout[name].shape for name in ("address", "offset", "ends_row", "is_in_last_word")}
        )
        words = plan.columns.last_word
        word, word_here = Signal.like(words, name="word"), Signal.like(words, name="word_here")
        offset, here = (Signal(place["offset"].shape, name=name) for name in ("offset", "offset_here"))
        following = Signal(range(2 * p.row_parts))
        next_one = Signal(place, name="next_place", reset_less=True)
        wants = Signal(self.n_banks, reset_less=True)
        is_wanted, moves = Signal(), Signal()
        taken = Signal()
        m.d.comb += [
            group.eq(Mux(plan.kind.project, item.group, counted)),
            ends_row.eq(counted == plan.last_group),
            moves.eq(~is_wanted | taken),
            self.places.ready.eq(moves & plan.kind.dense & ends_row),
            self.items.ready.eq(moves & plan.kind.project),
        ]
        with m.If(moves):
            m.d.sync += [
                is_wanted.eq(Mux(plan.kind.project, self.items.valid, self.places.valid)),
                next_one.offset.eq(here),
                next_one.address.eq(self.places.payload + word_here),
                next_one.ends_row.eq(ends_row),
                next_one.is_in_last_word.eq(word_here == plan.columns.last_word),
                wants.eq(
                    Mux(
                        plan.kind.project & item.is_empty,
                        0,
                        (group < plan.columns.n_full).replicate(self.n_banks)
                        | (plan.columns.units & (group == plan.columns.n_full).replicate(self.n_banks)),
                    )
                ),
            ]
        # A group is n_banks elements further than the one before it.
        parts = p.n_banks // p.row_part
        ends_word = following >= p.row_parts
        m.d.comb += following.eq(here + parts)
        begins = counted == 0
        m.d.comb += [here.eq(Mux(begins, plan.columns.offset, offset)), word_here.eq(Mux(begins, 0, word))]
        with m.If(moves & plan.kind.dense & self.places.valid):
            m.d.sync += [
                counted.eq(Mux(ends_row, 0, counted + 1)),
                word.eq(word_here + ends_word),
                offset.eq(Mux(ends_word, following - p.row_parts, following)),
            ]

        has = Cat(score.valid for score in self.scores)
        found = Signal(layout)
        m.d.comb += [
            waiting.source.valid.eq(is_wanted & (has | ~wants).all()),
            taken.eq(waiting.source.valid & waiting.source.ready),
            *(score.ready.eq(taken & wants[unit]) for unit, score in enumerate(self.scores)),
            *(getattr(found, name).eq(getattr(next_one, name)) for name in place.members),
            *(
                element.eq(Mux(is_in, score.payload, 0))
                for element, is_in, score in zip(found.elements, wants, self.scores, strict=True)
            ),
            waiting.source.payload.eq(found),
            self.groups.payload.eq(waiting.sink.payload),
            self.groups.valid.eq(waiting.sink.valid),
            waiting.sink.ready.eq(self.groups.ready),
        ]
        return m
