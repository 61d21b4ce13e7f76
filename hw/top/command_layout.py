"""How a command lies on its stream: the layout of the one definition in golden.spec.commands."""

from amaranth.lib import data

from golden.spec.commands import COMMAND_WIDTH, FIELDS

__all__ = ["COMMAND_LAYOUT", "token_write"]

COMMAND_LAYOUT = data.FlexibleLayout(COMMAND_WIDTH, {item.name: data.Field(item.width, item.offset) for item in FIELDS})


def token_write(p):
    """One entry of the token list on its way to every unit: ``row`` becomes entry ``address``."""
    width = max(1, (p.max_tokens - 1).bit_length())
    return data.StructLayout({"write": 1, "address": width, "row": width})
