"""Layouts of what the parts around the core hand to each other."""

from amaranth.hdl import Mux, Signal
from amaranth.lib import data

__all__ = ["burst", "fault", "job", "shift_elements"]


def job(p, sizes):
    """A transfer: ``rows`` rows of ``elements`` elements in memory, ``pitch`` bytes apart; none of the two is 0.

    ``size`` is the index in ``sizes`` of the elements that a full beat of the core has. ``slot`` is the command's
    entry in the table. ``is_open``: the row may end earlier, with the last beat of the core's stream.
    """
    return data.StructLayout(
        {
            "address": p.address_width,
            "pitch": 32,
            "rows": 16,
            "elements": 31,
            "size": range(max(2, len(sizes))),
            "slot": p.slot_width,
            "is_open": 1,
        }
    )


def burst(p):
    """A burst on an address channel: its first byte, a multiple of a beat, and its beats less one."""
    return data.StructLayout({"address": p.address_width, "length": 8})


def fault(p):
    """A response that is an error: the command's entry in the table, and the address."""
    return data.StructLayout({"valid": 1, "slot": p.slot_width, "address": p.address_width})


def shift_elements(m, value, amount, *, left, name):
    """``value`` shifted by ``amount`` elements of 16 bits, one row of multiplexers for each bit of the amount."""
    width = len(value)
    for bit in range(len(amount)):
        distance = min(16 << bit, width)
        moved = (value << distance)[:width] if left else value >> distance
        row = Signal(width, name=f"{name}_{1 << bit}")
        m.d.comb += row.eq(Mux(amount[bit], moved, value))
        value = row
    return value
