"""What the units of the core send each other."""

from amaranth.lib import data
from amaranth.utils import ceil_log2

from golden.spec.formats import FP16

__all__ = ["bank_write", "imem_write", "lane_write", "token_write", "value_write"]


def _address(depth):
    return max(1, ceil_log2(depth))


def imem_write(p):
    """A word of IMEM, of which only the enabled parts are written: part i has elements i * row_part and following."""
    return data.StructLayout(
        {"address": _address(p.imem_depth), "values": data.ArrayLayout(FP16.width, p.row_word), "enable": p.row_parts}
    )


def lane_write(p, depth, n_lanes):
    """One element for every bank, all at one word and lane, as the dot-product array's ``weight_lane`` takes it."""
    return data.StructLayout(
        {"elements": data.ArrayLayout(FP16.width, p.n_banks), "address": _address(depth), "lane": ceil_log2(n_lanes)}
    )


def value_write(p):
    """One element for every engine's bank."""
    return lane_write(p, p.vmem_depth, p.simd_lanes)


def token_write(p):
    """One entry of the token list on its way to every unit: ``row`` becomes entry ``address``."""
    width = max(1, (p.max_tokens - 1).bit_length())
    return data.StructLayout({"write": 1, "address": width, "row": width})


def bank_write(p, depth, n_lanes):
    """A word of one bank, without ready."""
    return data.StructLayout(
        {
            "valid": 1,
            "bank": ceil_log2(p.n_banks),
            "address": _address(depth),
            "words": data.ArrayLayout(FP16.width, n_lanes),
        }
    )
