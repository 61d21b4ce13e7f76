"""Layout of a command on its stream, from the definition in golden.spec.commands."""

from amaranth.lib import data

from golden.spec.commands import COMMAND_WIDTH, FIELDS

__all__ = ["COMMAND_LAYOUT"]

COMMAND_LAYOUT = data.FlexibleLayout(COMMAND_WIDTH, {item.name: data.Field(item.width, item.offset) for item in FIELDS})
