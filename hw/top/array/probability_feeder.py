"""ProbabilityFeeder: reads the probabilities of rows and cuts them into the beats of the dot-product units."""

from dataclasses import dataclass

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out

from golden.spec.formats import FP16
from hw.top.array.plan import mask_layout
from hw.top.interfaces import BankReadPort, mask_read
from hw.top.parameters import CorePart, KeyMask, Lanes, OmemDepth, RowDim, SimdLanes

__all__ = ["ProbabilityFeeder"]


@dataclass(frozen=True, kw_only=True)
class ProbabilityFeederParameters(OmemDepth, RowDim, SimdLanes, Lanes, KeyMask):
    pass


class ProbabilityFeeder(CorePart):
    """A row is its slots, one after the other: a slot is one element of each bank, in ``column_beats`` beats.

    Each bank's probabilities are read one after the other from ``source`` on, wherever the row's mask has a one; the
    other elements, and lanes without a bank, are 0. A slot a clock, ``query_beats // column_beats`` slots a transfer,
    without a bubble between rows.
    """

    Parameters = ProbabilityFeederParameters
    members_doc = {
        "start": "begin at the first probability; only while idle",
        "source": "at start: first word of the probabilities",
        "plan": "constant while there are rows: rows and slots of the mask",
        "rows": "rows to be read",
        "mask": "rows of the mask memory",
        "probabilities": "probabilities, by bank",
        "query": "beats, and which one of them ends the row",
    }

    @staticmethod
    def members(p):
        n_beats = p.query_beats
        beats = data.ArrayLayout(data.ArrayLayout(FP16.width, p.n_lanes), n_beats)
        return {
            "start": In(1),
            "source": In(16),
            "plan": In(mask_layout(p)),
            "rows": In(stream.Signature(p.token_width)),
            "mask": Out(mask_read(p)),
            "probabilities": Out(BankReadPort(p.n_banks, p.omem_depth)),
            "query": Out(stream.Signature(data.StructLayout({"query": beats, "last": n_beats}))),
        }

    def circuit(self):
        m = Module()
        p, plan = self.parameters, self.plan
        m.d.comb += [
            self.mask.address.payload.eq(Mux(plan.is_common, 0, plan.first + self.rows.payload)),
            self.mask.address.valid.eq(self.rows.valid),
            self.rows.ready.eq(self.mask.address.ready),
        ]
        reads, moves = Signal(), Signal()
        slot_bits, is_last = self._scan(m, reads, moves)
        m.d.comb += self.probabilities.enable.eq(slot_bits & reads.replicate(p.n_banks))
        for bank, address in enumerate(self.probabilities.address):
            pointer = Signal(len(address), name=f"pointer_{bank}", reset_less=True)
            m.d.comb += address.eq(pointer)
            with m.If(self.start):
                m.d.sync += pointer.eq(self.source)
            with m.Elif(self.probabilities.enable[bank]):
                m.d.sync += pointer.eq(pointer + 1)
        self._collect(m, reads, moves, slot_bits, is_last)
        return m

    def _scan(self, m, reads, moves):
        """The bits of one slot a clock, and whether it is the row's last one."""
        p, plan = self.parameters, self.plan
        rest = [Signal(p.key_slots, name=f"rest_{bank}", reset_less=True) for bank in range(p.n_banks)]
        left = Signal(p.key_slots, name="slots_left", reset_less=True)  # a one for each slot after this one
        is_scanning, is_last, takes = Signal(), Signal(), Signal()
        m.d.comb += [
            is_last.eq(~left.any()),
            reads.eq(is_scanning & moves),
            takes.eq(~is_scanning | (reads & is_last)),
            self.mask.word.ready.eq(takes),
        ]
        used = Cat(1, plan.slots)
        for bank, bits in enumerate(rest):
            with m.If(takes):
                m.d.sync += bits.eq(self.mask.word.payload.word_select(bank, p.key_slots) & used)
            with m.Elif(reads):
                m.d.sync += bits.eq(bits >> 1)
        with m.If(takes):
            m.d.sync += [is_scanning.eq(self.mask.word.valid), left.eq(plan.slots)]
        with m.Elif(reads):
            m.d.sync += left.eq(left >> 1)
        return Cat(bits[0] for bits in rest), is_last

    def _collect(self, m, reads, moves, slot_bits, is_last):
        """The words that were read, a slot a clock; a transfer is complete with its last slot or that of the row."""
        p, query = self.parameters, self.query.payload
        slots_a_transfer = p.query_beats // p.column_beats
        is_here, ends_row, ends_transfer = Signal(), Signal(reset_less=True), Signal()
        bits = Signal(p.n_banks, name="bits_here", reset_less=True)
        place = Signal(range(slots_a_transfer))
        m.d.comb += [
            ends_transfer.eq(ends_row | (place == slots_a_transfer - 1)),
            self.query.valid.eq(is_here & ends_transfer),
            # The memory holds the word while its transfer waits.
            moves.eq(~is_here | ~ends_transfer | self.query.ready),
        ]
        with m.If(moves):
            m.d.sync += is_here.eq(reads)
            with m.If(is_here):
                m.d.sync += place.eq(Mux(ends_transfer, 0, place + 1))
        with m.If(reads):
            m.d.sync += [bits.eq(slot_bits), ends_row.eq(is_last)]
        width = p.column_beats * p.n_lanes
        word = Signal(FP16.width * width, name="slot_word")
        m.d.comb += word.eq(
            Cat(value & bit.replicate(FP16.width) for value, bit in zip(self.probabilities.word, bits, strict=True))
        )
        for index in range(p.query_beats // p.column_beats):
            held = word
            if index < slots_a_transfer - 1:
                held = Signal(len(word), name=f"slot_{index}", reset_less=True)
                with m.If(is_here & moves & (place == index)):
                    m.d.sync += held.eq(word)
                held = Mux(place == index, word, held)
            for part in range(p.column_beats):
                beat = index * p.column_beats + part
                m.d.comb += query.query[beat].eq(held.word_select(part, FP16.width * p.n_lanes))
            m.d.comb += query.last[(index + 1) * p.column_beats - 1].eq(ends_row & (place == index))
