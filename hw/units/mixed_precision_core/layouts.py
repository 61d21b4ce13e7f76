"""Layouts between the parts of the mixed-precision core."""

from amaranth.hdl import Mux, signed
from amaranth.lib import data
from amaranth.utils import bits_for

from golden.spec.mixed_precision import SLICE_WIDTH, n_keys
from golden.spec.mixed_precision_core import COMMAND_WIDTH, FIELDS

__all__ = ["BUFFER_WIDTH", "COMMAND", "EXPONENT", "buffer_layout", "lane_layout", "locks_layout", "place_of"]

EXPONENT = signed(7)
"""Of a scale, or of a tile's sums."""

COMMAND = data.FlexibleLayout(
    COMMAND_WIDTH,
    {
        item.name: data.Field(signed(item.width) if item.name == "finest_exponent" else item.width, item.offset)
        for item in FIELDS
    },
)

BUFFER_WIDTH = next(item.width for item in FIELDS if item.name == "buffer")
"""Bits of the number of a buffer in a command."""


def place_of(number, size, offset):
    """``number * size + offset``: an address in a memory of pieces of one size, a sum of shifted constants."""
    return sum(Mux(bit, size << index, 0) for index, bit in enumerate(number)) + offset


def lane_layout(p):
    """A slice in a buffer, and the shift before its group."""
    return data.StructLayout(
        {
            "digits": data.ArrayLayout(SLICE_WIDTH, p.n_rows),
            "channel": p.channel_width,
            "is_top": 1,
            "is_used": 1,
            "shift": bits_for(n_keys(p.n_levels) - 1),
        }
    )


def buffer_layout(p):
    """Of a quantised tile: the number of its last group, and the exponent of its sums."""
    return data.StructLayout({"last_group": bits_for(p.buffer_rows - 1), "exponent": EXPONENT})


def locks_layout(p):
    """What a command that is under way keeps others from using; the indices are valid with the bit before."""
    return data.StructLayout(
        {
            "activations": 1,
            "references": 1,
            "output_port": 1,
            "buffers": 1,
            "buffer": bits_for(max(1, p.n_buffers - 1)),
            "regions": 1,
            "region": bits_for(max(1, p.n_regions - 1)),
            "outputs": 1,
            "tile": bits_for(max(1, p.n_tiles - 1)),
        }
    )
