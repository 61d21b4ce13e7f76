"""MaskScanner: reads the mask row of every row of a command and scans its set bits."""

from dataclasses import dataclass

from amaranth.hdl import Cat, Module, Mux
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out, connect, flipped

from hw.top.interfaces import address_width, mask_read
from hw.top.parameters import CorePart, HeadDim, KeyMask, SimdLanes
from hw.top.rows.bitmap_scanner import BitmapScanner
from hw.top.rows.row_sequencer import RowSequencer

__all__ = ["MaskScanner", "MaskScannerParameters", "mask_address", "used_slots"]


def mask_address(p, mask, row):
    """The word of the mask memory for a row of a mask; mask 0 has a single row."""
    return Mux(mask == 0, 0, p.mask_base(mask) + row)[: address_width(p.mask_rows)]


def used_slots(p, n_keys):
    """One bit a slot: whether it is below ``p.slots_of(n_keys)``."""
    powers = [1 << slot.bit_length() - 1 for slot in range(1, p.key_slots)]
    # There are more slots than a power of two if the keys do not fit into so many a bank.
    return Cat(1, (n_keys > p.n_banks * power for power in powers))


@dataclass(frozen=True, kw_only=True)
class MaskScannerParameters(HeadDim, SimdLanes, KeyMask):
    pass


class MaskScanner(CorePart):
    """Each mask row is scanned in ``turns`` passes, see :class:`~hw.top.rows.bitmap_scanner.BitmapScanner`.

    The first step comes ``latency`` clocks after the row, plus any delay of the mask's word beyond the
    clock after its address. Rows may follow each other every clock.
    """

    Parameters = MaskScannerParameters
    latency = 1 + BitmapScanner.latency
    members_doc = {
        "rows": "rows to be scanned, in order",
        "mask_number": "constant: which mask",
        "n_keys": "constant: columns of the mask",
        "turns": "constant: passes over each row",
        "mask": "rows of the mask memory",
        "step": "as the bitmap scanner outputs them",
    }

    @staticmethod
    def _make_scanner(p):
        return BitmapScanner(n_banks=p.n_banks, n_slots=p.key_slots, max_turns=-(-p.max_head_dim // p.simd_lanes))

    @classmethod
    def members(cls, p):
        scanner = cls._make_scanner(p).signature.members
        return {
            "rows": In(stream.Signature(RowSequencer(max_tokens=p.max_tokens).parameters.row_width)),
            "mask_number": In(4),
            "n_keys": In(16),
            "turns": scanner["turns"],
            "mask": Out(mask_read(p)),
            "step": scanner["step"],
        }

    def circuit(self):
        m = Module()
        p = self.parameters
        m.submodules.scanner = scanner = self._make_scanner(self.parameters)
        m.d.comb += [
            self.mask.address.payload.eq(mask_address(p, self.mask_number, self.rows.payload)),
            self.mask.address.valid.eq(self.rows.valid),
            self.rows.ready.eq(self.mask.address.ready),
            scanner.bitmap.payload.eq(self.mask.word.payload),
            scanner.bitmap.valid.eq(self.mask.word.valid),
            self.mask.word.ready.eq(scanner.bitmap.ready),
            scanner.used.eq(used_slots(p, self.n_keys)),
            scanner.turns.eq(self.turns),
        ]
        connect(m, scanner.step, flipped(self.step))
        return m
