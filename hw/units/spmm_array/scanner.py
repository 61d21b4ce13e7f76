"""SpmmScanner: scans an engine's bitmaps, each as often as its row has passes, and issues their terms."""

from dataclasses import dataclass

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from hw.arith.leading_zeros import LeadingZeroCounter
from hw.lib.block import Block
from hw.units.spmm_array.layouts import SpmmLanesParameters

__all__ = ["SpmmScanner"]


@dataclass(frozen=True, kw_only=True)
class SpmmScannerParameters(SpmmLanesParameters):
    pass


class SpmmScanner(Block):
    """A term for each set bit of a bitmap by rising slot, in each pass; no set bits give one term without factors.

    Two stages without a bubble: the remaining bits of the pass, and the term that is issued. A term waits until the
    probabilities are ready, and the last one of a pass until there is room for the pass.
    """

    Parameters = SpmmScannerParameters
    latency = 2
    members_doc = {
        "bitmap": "bits of the next row; taken when its last pass begins",
        "start": "begin at first_probability; only while idle",
        "first_probability": "place of the first row's first probability",
        "passes": "passes over each row, at least one",
        "value_base": "word of the bank with slot 0 in the first pass",
        "value_stride": "words from a pass to the next one",
        "ready": "probabilities can be read",
        "has_room": "the queues have room for the pass",
        "wants": "a term waits to be issued",
        "issues": "it is issued",
        "takes_part": "it has factors: a set bit",
        "first": "it is the first one of its pass",
        "last": "it is the last one of its pass",
        "probability": "place of its probability",
        "value": "word of the bank with its values",
    }

    @staticmethod
    def members(p):
        return {
            "bitmap": In(stream.Signature(p.n_slots)),
            "start": In(1),
            "first_probability": In(p.probability_address_width),
            "passes": In(range(p.max_passes + 1)),
            "value_base": In(p.value_address_width),
            "value_stride": In(p.value_address_width),
            "ready": In(1),
            "has_room": In(1),
            "wants": Out(1),
            "issues": Out(1),
            "takes_part": Out(1),
            "first": Out(1),
            "last": Out(1),
            "probability": Out(p.probability_address_width),
            "value": Out(p.value_address_width),
        }

    def circuit(self):
        m = Module()
        rest = Signal(self.n_slots, reset_less=True)
        others = Signal(self.n_slots)
        is_scanning, is_first = Signal(), Signal(reset_less=True)
        is_last_pass = Signal(reset_less=True)
        number = Signal(range(self.max_passes))
        origin = Signal(self.parameters.value_address_width, reset_less=True)
        moves, ends_pass, begins, ends_row = Signal(), Signal(), Signal(), Signal()
        m.d.comb += [
            others.eq(rest & (rest - 1)),
            moves.eq(is_scanning & (~self.wants | self.issues)),
            ends_pass.eq(~others.any()),
            begins.eq(self.bitmap.valid & (~is_scanning | (moves & ends_pass))),
            ends_row.eq(number + 1 == self.passes),
            self.bitmap.ready.eq(begins & ends_row),
        ]
        with m.If(begins):
            m.d.sync += [
                rest.eq(self.bitmap.payload),
                is_scanning.eq(1),
                is_first.eq(1),
                is_last_pass.eq(ends_row),
                number.eq(Mux(ends_row, 0, number + 1)),
                origin.eq(Mux(number == 0, self.value_base, origin + self.value_stride)),
            ]
        with m.Elif(moves):
            m.d.sync += [rest.eq(others), is_scanning.eq(~ends_pass), is_first.eq(0)]

        wants, is_rows_last = Signal(name="wants_register"), Signal(reset_less=True)
        m.submodules.first_one = first_one = LeadingZeroCounter(width=self.n_slots)
        slot = first_one.count[: ceil_log2(self.n_slots)]
        m.d.comb += [
            first_one.value.eq(rest[::-1]),
            self.wants.eq(wants),
            self.issues.eq(wants & self.ready & (self.has_room | ~self.last)),
        ]
        m.d.sync += wants.eq(moves | (wants & ~self.issues))
        term = {"takes_part": rest.any(), "first": is_first, "last": ends_pass, "value": origin + slot}
        for name, value in term.items():
            register = Signal.like(getattr(self, name), name=f"{name}_register", reset_less=True)
            m.d.comb += getattr(self, name).eq(register)
            with m.If(moves):
                m.d.sync += register.eq(value)
        with m.If(moves):
            m.d.sync += is_rows_last.eq(is_last_pass)
        self._probabilities(m, is_rows_last)
        return m

    def _probabilities(self, m, is_rows_last):
        """One after the other; in each pass again from the row's first one."""
        width = self.parameters.probability_address_width
        pointer, row_begin = (Signal(width, name=name, reset_less=True) for name in ("pointer", "row_begin"))
        behind = Signal(width)
        m.d.comb += [behind.eq(pointer + self.takes_part), self.probability.eq(pointer)]
        with m.If(self.start):
            m.d.sync += [pointer.eq(self.first_probability), row_begin.eq(self.first_probability)]
        with m.Elif(self.issues):
            m.d.sync += pointer.eq(Mux(self.last & ~is_rows_last, row_begin, behind))
            with m.If(self.last & is_rows_last):
                m.d.sync += row_begin.eq(behind)
