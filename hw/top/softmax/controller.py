"""SoftmaxController: the SOFTMAX command: masked scores to probabilities, and optionally a new mask."""

from dataclasses import dataclass

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out, connect, flipped
from amaranth.utils import ceil_log2

from golden.spec.commands import FLAGS
from golden.spec.formats import FP16
from hw.lib.stream import StreamQueue
from hw.top.interfaces import BankReadPort, UnitControl, address_width, mask_read, score_write
from hw.top.parameters import CorePart, OmemDepth
from hw.top.rows.mask_scanner import MaskScanner, MaskScannerParameters, mask_address
from hw.top.rows.row_sequencer import RowSequencer
from hw.units.softmax_unit.unit import SoftmaxUnit

__all__ = ["SoftmaxController"]

_ROWS_IN_FLIGHT = 6
"""Rows in flight from the address of their mask to the end of their scan that sustain full throughput, if the word
comes in the clock after its address, or up to two clocks later."""


@dataclass(frozen=True, kw_only=True)
class SoftmaxControllerParameters(OmemDepth, MaskScannerParameters):
    pass


class SoftmaxController(CorePart):
    """Executes SOFTMAX at one step of the mask scan a clock: the throughput is c clocks for a row of c steps.

    Each bank reads its scores one after the other from ``source`` on, wherever the mask has a one, and writes its
    probabilities one after the other from ``destination`` on. With make_mask, a row of mask_out is set where
    the probability is >= theta and cleared elsewhere. A row is done when its probabilities, mask row and retained mass
    are written.

    Scores and retained mass are read with one clock of latency, and the word must be stable until the next read. The
    scanned slot numbers wait in a memory for their probabilities, so that the mask is read only once.
    """

    Parameters = SoftmaxControllerParameters
    members_doc = {
        "control": "what to do, and how far it is",
        "mask": "rows of the mask memory",
        "scores": "scores, by bank",
        "mass": "retained mass, one memory",
        "probability_write": "one probability a bank, always taken",
        "mask_write": "row of mask_out, and its word of the mask memory",
        "mass_write": "the retained mass of a row, always taken",
    }

    def prepare(self):
        self._unit = SoftmaxUnit(n_banks=self.n_banks, n_slots=self.parameters.key_slots)

    @staticmethod
    def members(p):
        mask_write = {"address": address_width(p.mask_rows), "row": p.n_banks * p.key_slots}
        return {
            "control": In(UnitControl(p.max_tokens)),
            "mask": Out(mask_read(p)),
            "scores": Out(BankReadPort(p.n_banks, p.omem_depth)),
            "mass": Out(BankReadPort(1, p.max_tokens)),
            "probability_write": Out(score_write(p.n_banks, p.omem_depth)),
            "mask_write": Out(stream.Signature(data.StructLayout(mask_write))),
            "mass_write": Out(score_write(1, p.max_tokens)),
        }

    @property
    def latency(self):
        """Clocks from start to the first probability, for a row of one step whose words all come at once."""
        return RowSequencer.latency + MaskScanner.latency + 1 + self._unit.latency

    def circuit(self):
        m = Module()
        self._makes_mask, uses_mass = Signal(name="makes_mask"), Signal()
        m.d.comb += [
            self._makes_mask.eq((self.control.command.flags & FLAGS["make_mask"]).any()),
            uses_mass.eq((self.control.command.flags & FLAGS["use_mass"]).any()),
        ]
        # Passed from the scan to the probabilities of a step: the slots and the row's number.
        scanned = data.StructLayout(
            {
                "slot": data.ArrayLayout(ceil_log2(self.parameters.key_slots), self.n_banks),
                "row": self.parameters.token_width,
            }
        )
        m.submodules.scanned = steps = StreamQueue(width=scanned.size, depth=self._steps_inside, storage="memory")
        m.submodules.unit = self._unit
        step, row = self._scan(m)
        self._read(m, step, row, uses_mass, steps.source)
        m.d.comb += steps.source.payload.eq(Cat(step.payload.slot, row))
        self._write(m, data.View(scanned, steps.sink.payload), steps.sink)
        return m

    @property
    def _steps_inside(self):
        """Largest number of beats in the softmax unit and on the way into the queue."""
        return 2 * self.parameters.key_slots + self._unit.latency + 2

    def _pointers(self, m, enable, first, name):
        """One address a bank, from ``first`` on, that moves on behind each bank that is enabled."""
        width = address_width(self.omem_depth)
        pointers = [Signal(width, name=f"{name}_{bank}", reset_less=True) for bank in range(self.n_banks)]
        for bank, pointer in enumerate(pointers):
            with m.If(self.control.start):
                m.d.sync += pointer.eq(first)
            with m.Elif(enable[bank]):
                m.d.sync += pointer.eq(pointer + 1)
        return pointers

    def _scan(self, m):
        """The scan steps of all rows, each with its row."""
        m.submodules.loop = loop = RowSequencer(max_tokens=self.max_tokens)
        m.submodules.mask_scanner = scanner = MaskScanner.for_core(self.parameters)
        row = Signal.like(loop.rows.payload.row, name="marked_row")  # of masks and of the retained mass
        m.submodules.rows = rows = StreamQueue(width=len(row), depth=_ROWS_IN_FLIGHT)
        m.d.comb += [
            loop.token.eq(self.control.token),
            loop.start.eq(self.control.start),
            loop.gated.eq((self.control.command.flags & FLAGS["gated"]).any()),
            loop.first.eq(self.control.command.first_row),
            loop.n_active.eq(self.control.n_active),
            loop.limit.eq(self.control.limit),
            row.eq(loop.rows.payload.row + Mux(loop.gated, 0, self.control.command.first_row)),
            scanner.rows.payload.eq(row),
            rows.source.payload.eq(row),
            scanner.rows.valid.eq(loop.rows.valid & rows.source.ready),
            rows.source.valid.eq(loop.rows.valid & scanner.rows.ready),
            loop.rows.ready.eq(scanner.rows.ready & rows.source.ready),
            scanner.mask_number.eq(self.control.command.mask),
            scanner.n_keys.eq(self.control.command.n_out),
            scanner.turns.eq(1),
            rows.sink.ready.eq(scanner.step.valid & scanner.step.ready & scanner.step.payload.last),
        ]
        connect(m, scanner.mask, flipped(self.mask))
        return scanner.step, rows.sink.payload

    def _read(self, m, step, row, uses_mass, steps):
        """Read each step's scores and pass them to the unit from the next clock on."""
        score = self._unit.score
        is_read = Signal()
        advance = Signal(name="read_advance")
        taken = Signal(name="step_taken")
        enable = Signal(self.n_banks, reset_less=True)
        last = Signal(reset_less=True)
        m.d.comb += [
            advance.eq(~is_read | score.ready),
            step.ready.eq(advance & steps.ready),
            taken.eq(step.valid & step.ready),
            steps.valid.eq(taken),
            self.scores.enable.eq(step.payload.enable & taken.replicate(self.n_banks)),
            self.scores.address.eq(
                Cat(self._pointers(m, self.scores.enable, self.control.command.source, "score_pointer"))
            ),
            self.mass.enable.eq(taken & uses_mass),
            self.mass.address[0].eq(row),
        ]
        with m.If(advance):
            m.d.sync += [is_read.eq(taken), enable.eq(step.payload.enable), last.eq(step.payload.last)]
        scale = self._unit.scale.shape()
        m.d.comb += [
            score.valid.eq(is_read),
            score.payload.values.eq(self.scores.word),
            score.payload.enable.eq(enable),
            score.payload.last.eq(last),
            score.payload.factor.eq(Mux(uses_mass, self.mass.word[0], FP16.one)),
            self._unit.scale.eq(data.View(scale, self.control.command.scale)),
            self._unit.theta.eq(self.control.command.theta),
        ]

    def _write(self, m, step, steps):
        """Write probabilities immediately, a row's mask when it is complete."""
        found = self._unit.probability
        taken = Signal(name="found_taken")
        ends_row = Signal()
        is_waiting = Signal()  # a row of the mask is complete
        waiting_row = Signal(self.parameters.token_width, name="waiting_row", reset_less=True)
        enable = Signal(self.n_banks, name="found_enable")
        m.d.comb += [
            taken.eq(found.valid & found.ready),
            found.ready.eq(steps.valid & (~is_waiting | self.mask_write.ready)),
            steps.ready.eq(taken),
            ends_row.eq(taken & found.payload.last),
            enable.eq(found.payload.enable & taken.replicate(self.n_banks)),
            self.mass_write[0].valid.eq(ends_row & self._makes_mask),
            self.mass_write[0].address.eq(step.row),
            self.mass_write[0].value.eq(found.payload.retained_mass),
        ]
        for bank, pointer in enumerate(
            self._pointers(m, enable, self.control.command.destination, "probability_pointer")
        ):
            write = self.probability_write[bank]
            m.d.comb += [write.valid.eq(enable[bank]), write.address.eq(pointer)]
            m.d.comb += write.value.eq(found.payload["values"][bank])

        begins_row = Signal(init=1)
        mask_row = Signal(self.mask_write.payload.row.shape(), reset_less=True)
        next_mask_row = Signal.like(mask_row)
        new = Signal(data.ArrayLayout(self.parameters.key_slots, self.n_banks))
        m.d.comb += [new[bank].eq(keep << step.slot[bank]) for bank, keep in enumerate(found.payload.keep)]
        m.d.comb += next_mask_row.eq(Mux(begins_row, 0, mask_row) | new.as_value())
        with m.If(taken):
            m.d.sync += [mask_row.eq(next_mask_row), begins_row.eq(found.payload.last), waiting_row.eq(step.row)]
        m.d.sync += is_waiting.eq((ends_row & self._makes_mask) | (is_waiting & ~self.mask_write.ready))
        m.d.comb += [
            self.mask_write.valid.eq(is_waiting),
            self.mask_write.payload.row.eq(mask_row),
            self.mask_write.payload.address.eq(
                mask_address(self.parameters, self.control.command.mask_out, waiting_row)
            ),
        ]
        self._count(m, Mux(self._makes_mask, is_waiting & self.mask_write.ready, ends_row))

    def _count(self, m, is_written):
        """Count the rows written; done when all are."""
        is_running = Signal()
        n_written = Signal.like(self.control.rows_done, name="n_written")
        m.d.comb += [
            self.control.rows_done.eq(n_written),
            self.control.done.eq(is_running & (n_written == self.control.n_active)),
        ]
        with m.If(self.control.start):
            m.d.sync += [is_running.eq(1), n_written.eq(0)]
        with m.Else():
            m.d.sync += n_written.eq(n_written + is_written)
            with m.If(self.control.done):
                m.d.sync += is_running.eq(0)
