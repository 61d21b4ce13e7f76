"""Interfaces between the parts of the core, and the layouts of their words."""

from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out, Signature
from amaranth.utils import ceil_log2

from golden.spec.formats import FP16
from hw.top.command_layout import COMMAND_LAYOUT

__all__ = [
    "ArbitratedBankReadPort",
    "BankReadPort",
    "ReadPort",
    "UnitControl",
    "address_width",
    "bank_write",
    "imem_write",
    "imem_read",
    "lane_write",
    "mask_read",
    "score_write",
    "token_write",
    "value_write",
]


def address_width(depth):
    """Bits of an address."""
    return max(1, ceil_log2(depth))


class UnitControl(Signature):
    """Control and progress of a unit, as seen by the controller."""

    members_doc = {
        "token": "write one entry of the token list; not while a gated command runs",
        "start": "begin with the command; only while idle",
        "n_active": "constant from start to done: rows of the command",
        "limit": "rows whose operands are valid; only grows during a command; ignored by PROJECT",
        "command": "constant from start to done",
        "rows_done": "number of rows written, 0 at start",
        "done": "everything is written; idle from the next clock on",
    }

    def __init__(self, max_tokens):
        rows = range(max_tokens + 1)
        super().__init__(
            {
                "token": Out(token_write(max_tokens)),
                "start": Out(1),
                "n_active": Out(rows),
                "limit": Out(rows),
                "command": Out(COMMAND_LAYOUT),
                "rows_done": In(rows),
                "done": In(1),
            }
        )


class ReadPort(Signature):
    """Arbitrated reads, as seen by the reader: the words come in the order of their addresses."""

    members_doc = {"address": "word to read", "word": "the word, any time after its address"}

    def __init__(self, address, word):
        super().__init__({"address": Out(stream.Signature(address)), "word": In(stream.Signature(word))})


class BankReadPort(Signature):
    """Reads of n_banks memories, as seen by the reader: words come a clock later and hold until the next read."""

    members_doc = {
        "enable": "banks to read",
        "address": "word to read, by bank",
        "word": "the words read last, by bank",
    }

    def __init__(self, n_banks, depth, width=FP16.width):
        super().__init__(
            {
                "enable": Out(n_banks),
                "address": Out(data.ArrayLayout(address_width(depth), n_banks)),
                "word": In(data.ArrayLayout(width, n_banks)),
            }
        )


class ArbitratedBankReadPort(Signature):
    """Reads of n_banks memories that others read too: a bank's read is accepted where ``ready`` is 1."""

    members_doc = {
        "enable": "banks to read",
        "address": "word to read, by bank",
        "ready": "banks whose read is accepted",
        "word": "the word that was read in the clock before, by bank",
    }

    def __init__(self, n_banks, depth, width=FP16.width):
        super().__init__(
            {
                "enable": Out(n_banks),
                "address": Out(data.ArrayLayout(address_width(depth), n_banks)),
                "ready": In(n_banks),
                "word": In(data.ArrayLayout(width, n_banks)),
            }
        )


def token_write(max_tokens):
    """A write to every copy of the token list: ``row`` becomes entry ``address``."""
    width = address_width(max_tokens)
    return data.StructLayout({"write": 1, "address": width, "row": width})


def imem_read(p):
    """Reads of words of IMEM."""
    return ReadPort(address_width(p.imem_depth), FP16.width * p.row_word)


def mask_read(p):
    """Reads of rows of the mask memory: bit v * slots + a is the key at slot a of bank v."""
    return ReadPort(address_width(p.mask_rows), p.n_banks * p.key_slots)


def imem_write(p):
    """A write to IMEM with one enable for each part: part i has the elements from i * row_part on.

    Where groups may lie in two words, the parts of which ``is_next`` is set belong to the word after the address.
    """
    return data.StructLayout(
        {
            "address": address_width(p.imem_depth),
            "values": data.ArrayLayout(FP16.width, p.row_word),
            "enable": p.row_parts,
            **({"is_next": p.row_parts} if p.groups_straddle else {}),
        }
    )


def score_write(n_banks, depth):
    """A word for each bank of scores or probabilities, each at its own address; always taken."""
    word = {"valid": 1, "address": address_width(depth), "value": FP16.width}
    return data.ArrayLayout(data.StructLayout(word), n_banks)


def lane_write(p, depth, n_lanes):
    """One element for every bank, all at the same word and lane, as for the dot-product array's ``weight_lane``."""
    return data.StructLayout(
        {
            "elements": data.ArrayLayout(FP16.width, p.n_banks),
            "address": address_width(depth),
            "lane": ceil_log2(n_lanes),
        }
    )


def value_write(p):
    """One element for every engine's bank."""
    return lane_write(p, p.vmem_depth, p.simd_lanes)


def bank_write(p, depth, n_lanes):
    """A word of one bank, without ready."""
    return data.StructLayout(
        {
            "valid": 1,
            "bank": ceil_log2(p.n_banks),
            "address": address_width(depth),
            "words": data.ArrayLayout(FP16.width, n_lanes),
        }
    )
