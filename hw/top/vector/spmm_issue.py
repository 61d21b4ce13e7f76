"""SpmmIssue: converts the mask scan into the vector unit's SPMM commands."""

from dataclasses import dataclass

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out, connect, flipped
from amaranth.utils import ceil_log2

from golden.spec.commands import FLAGS
from golden.spec.formats import FP16
from hw.top.command_layout import COMMAND_LAYOUT
from hw.top.interfaces import BankReadPort, address_width
from hw.top.parameters import CorePart, OmemDepth, VmemDepth
from hw.top.rows.mask_scanner import MaskScanner, MaskScannerParameters, used_slots

__all__ = ["SpmmIssue"]


@dataclass(frozen=True, kw_only=True)
class SpmmIssueParameters(OmemDepth, VmemDepth, MaskScannerParameters):
    pass


class SpmmIssue(CorePart):
    """Each row is scanned once for every simd_lanes elements of its result; a step is a command.

    Each bank reads its probabilities one after the other from ``source`` on, and restarts at the row's first one in
    every pass. In pass c a slot's values are at word ``bank_address + c * slots_of(n_out) + slot``. One command
    a clock, within rows and from row to row; the first one comes ``latency`` clocks after its row.

    Probabilities are read with one clock of latency, and the word must stay until the next read.
    """

    Parameters = SpmmIssueParameters
    latency = MaskScanner.latency + 2
    members_doc = {
        "start": "begin at the first probability; only while idle",
        "command": "constant while rows are scanned",
        "turns": "constant while rows are scanned: passes over each row",
        "rows": "rows of the result",
        "mask": "rows of the mask memory",
        "probabilities": "probabilities, by bank",
        "terms": "enabled engines, probability and value address of each term; first and last of a pass",
    }

    @staticmethod
    def members(p):
        scanner = MaskScanner.for_core(p).signature.members
        terms = {
            "enable": p.n_banks,
            "probability": data.ArrayLayout(FP16.width, p.n_banks),
            "address": data.ArrayLayout(address_width(p.vmem_depth), p.n_banks),
            "first": 1,
            "last": 1,
        }
        return {
            "start": In(1),
            "command": In(COMMAND_LAYOUT),
            **{name: scanner[name] for name in ("turns", "rows", "mask")},
            "probabilities": Out(BankReadPort(p.n_banks, p.omem_depth)),
            "terms": Out(stream.Signature(data.StructLayout(terms))),
        }

    def circuit(self):
        m = Module()
        m.submodules.mask_scanner = scanner = MaskScanner.for_core(self.parameters)
        m.d.comb += [
            scanner.mask_number.eq(self.command.mask),
            scanner.n_keys.eq(self.command.n_out),
            scanner.turns.eq(self.turns),
        ]
        is_gated = (self.command.flags & FLAGS["gated"]).any()
        m.d.comb += [
            scanner.rows.payload.eq(self.rows.payload + Mux(is_gated, 0, self.command.first_row)),
            scanner.rows.valid.eq(self.rows.valid),
            self.rows.ready.eq(scanner.rows.ready),
        ]
        connect(m, scanner.mask, flipped(self.mask))
        step, taken = scanner.step.payload, Signal(name="step_taken")
        self._read(m, step, taken)

        # Two stages: probabilities are being read; they are here. The memory holds them while the second one is full.
        is_reading, is_here = Signal(), Signal()
        moves = Signal()
        m.d.comb += [
            moves.eq(~is_here | self.terms.ready),
            scanner.step.ready.eq(~is_reading | moves),
            taken.eq(scanner.step.valid & scanner.step.ready),
            self.terms.valid.eq(is_here),
        ]
        m.d.sync += is_reading.eq(taken | (is_reading & ~moves))
        with m.If(moves):
            m.d.sync += is_here.eq(is_reading)
        terms = self.terms.payload
        known = {name: getattr(step, name) for name in ("enable", "first", "last")}
        known["address"] = self._addresses(m, step, taken)
        reading = {name: Signal.like(terms[name], name=f"{name}_reading", reset_less=True) for name in known}
        with m.If(taken):
            m.d.sync += [reading[name].eq(value) for name, value in known.items()]
        # A bank without a term is not read: the old content of its output must not reach the unit.
        probability = Cat(
            word & enable.replicate(len(word))
            for word, enable in zip(self.probabilities.word, reading["enable"], strict=True)
        )
        for name, value in (*reading.items(), ("probability", probability)):
            here = Signal.like(terms[name], name=f"{name}_here", reset_less=True)
            with m.If(moves):
                m.d.sync += here.eq(value)
            m.d.comb += terms[name].eq(here)
        return m

    def _read(self, m, step, taken):
        """One probability for each bank of the step; at the end of a pass back to the row's first one."""
        read = self.probabilities
        m.d.comb += read.enable.eq(step.enable & taken.replicate(self.n_banks))
        for bank, address in enumerate(read.address):
            pointer, begin, behind = (
                Signal(len(address), name=f"{name}_{bank}", reset_less=True)
                for name in ("pointer", "row_begin", "behind")
            )
            m.d.comb += [address.eq(pointer), behind.eq(pointer + step.enable[bank])]
            with m.If(self.start):
                m.d.sync += [pointer.eq(self.command.source), begin.eq(self.command.source)]
            with m.Elif(taken):
                m.d.sync += pointer.eq(Mux(step.last & ~step.last_turn, begin, behind))
                with m.If(step.last & step.last_turn):
                    m.d.sync += begin.eq(behind)

    def _addresses(self, m, step, taken):
        """Addresses of the values of the step's slots."""
        p = self.parameters
        used = used_slots(p, self.command.n_out)
        width = len(self.terms.payload.address[0])
        n_slots = Signal(range(p.key_slots + 1))
        first = Signal(width, name="first_value", reset_less=True)
        # The number of slots is a power of two: one more than the highest that is used.
        m.d.comb += n_slots.eq(1)
        for slot in (power - 1 for power in (2 << level for level in range(ceil_log2(p.key_slots)))):
            with m.If(used[slot]):
                m.d.comb += n_slots.eq(slot + 1)
        with m.If(self.start):
            m.d.sync += first.eq(self.command.bank_address)
        with m.Elif(taken & step.last):
            m.d.sync += first.eq(Mux(step.last_turn, self.command.bank_address, first + n_slots))
        return Cat((first + slot)[:width] for slot in step.slot)
