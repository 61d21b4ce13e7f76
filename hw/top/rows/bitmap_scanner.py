"""BitmapScanner: scans the set bits of bitmaps, all banks in parallel, each by rising slot, without a bubble."""

from dataclasses import dataclass

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from golden.spec.limits import MAX_SLOTS
from golden.spec.parameters import Parameters, integer, power_of_two
from hw.lib.block import Block
from hw.lib.pipeline import Pipeline
from hw.top.rows.slot_finder import SlotFinder

__all__ = ["BitmapScanner"]


@dataclass(frozen=True, kw_only=True)
class BitmapScannerParameters(Parameters):
    n_banks: int = power_of_two(4, low=1, high=128, doc="banks of a bitmap")
    n_slots: int = integer(16, low=1, high=MAX_SLOTS, doc="bits of a bank")
    max_turns: int = integer(1, low=1, high=4096, doc="largest number of passes over a row")


class BitmapScanner(Block):
    """A step outputs the next set bit of every bank that has any left; an empty row is one step without banks.

    So a pass over a row has as many steps as its fullest bank has set bits, at least one. Each row is scanned in
    ``turns`` passes before the next one; its bitmap is taken when the last pass begins. Slots not in ``used`` are
    ignored. ``used`` and ``turns`` may change while the scanner is empty.

    One step a clock, within rows and from row to row. The first step of a row's last pass comes ``latency`` clocks
    after its bitmap was taken.
    """

    Parameters = BitmapScannerParameters
    latency = 2
    members_doc = {
        "bitmap": "n_banks times n_slots bits, one transfer a row",
        "used": "constant: enabled slots, the same for all banks",
        "turns": "constant: passes over each row, at least one",
        "step": "banks with a set bit and its slot; first and last of a pass; whether it is the row's last pass",
    }

    @staticmethod
    def members(p):
        step = {
            "enable": p.n_banks,
            "slot": data.ArrayLayout(ceil_log2(p.n_slots), p.n_banks),
            "first": 1,
            "last": 1,
            "last_turn": 1,
        }
        return {
            "bitmap": In(stream.Signature(data.StructLayout({"bitmap": data.ArrayLayout(p.n_slots, p.n_banks)}))),
            "used": In(p.n_slots),
            "turns": In(range(p.max_turns + 1)),
            "step": Out(stream.Signature(data.StructLayout(step))),
        }

    def circuit(self):
        m = Module()
        rest = [Signal(self.n_slots, name=f"rest_{bank}", reset_less=True) for bank in range(self.n_banks)]
        finders = [SlotFinder(n_slots=self.n_slots) for _ in rest]
        is_scanning = Signal()
        is_first = Signal(reset_less=True)
        is_last_turn = Signal(reset_less=True)
        turn = Signal(range(self.max_turns))

        scanned = stream.Signature(self.step.payload.shape()).create(path=("scanned",))
        pipe = Pipeline(m, source=scanned, sink=self.step)
        pipe.valid_chain(1)
        m.d.comb += self.step.payload.eq(pipe.register(scanned.payload, name="step_register"))

        begins = Signal()
        ends_row = Signal()
        m.d.comb += [
            scanned.valid.eq(is_scanning),
            scanned.payload.enable.eq(Cat(finder.any for finder in finders)),
            scanned.payload.first.eq(is_first),
            scanned.payload.last.eq(~Cat(finder.several for finder in finders).any()),
            scanned.payload.last_turn.eq(is_last_turn),
            begins.eq(self.bitmap.valid & (~is_scanning | (scanned.ready & scanned.payload.last))),
            ends_row.eq(turn + 1 == self.turns),
            self.bitmap.ready.eq(begins & ends_row),
        ]
        for bank, (left, finder) in enumerate(zip(rest, finders, strict=True)):
            m.submodules[f"finder_{bank}"] = finder
            m.d.comb += [finder.bits.eq(left), scanned.payload.slot[bank].eq(finder.slot)]
            with m.If(begins):
                m.d.sync += left.eq(self.bitmap.payload.bitmap[bank] & self.used)
            with m.Elif(scanned.ready):
                m.d.sync += left.eq(finder.others)
        with m.If(begins):
            m.d.sync += [is_scanning.eq(1), is_first.eq(1), is_last_turn.eq(ends_row)]
            m.d.sync += turn.eq(Mux(ends_row, 0, turn + 1))
        with m.Elif(is_scanning & scanned.ready):
            m.d.sync += [is_first.eq(0), is_scanning.eq(~scanned.payload.last)]
        return m
