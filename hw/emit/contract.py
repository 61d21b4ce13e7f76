"""The contract of a component in plain data: what it does, its ports and their fields, its timing.

It is read from the component alone, before anything is emitted; header, manifest and README are made from it.
"""

import inspect
import re
from dataclasses import dataclass
from typing import Any

from amaranth.hdl import Const, Shape, Value
from amaranth.lib import data
from amaranth.lib.wiring import In

from hw.lib.block import Block
from hw.lib.ports import leaf_ports, port_name

__all__ = ["Contract", "contract_of", "flat_ports", "members", "summary"]


@dataclass(frozen=True)
class Contract:
    """What a user of a component relies on."""

    summary: str
    block: str | None
    """The block's name; None of a component that is no block."""
    parameters: dict[str, Any]
    latency: int | None
    interval: int | None
    ports: list[dict]
    """``{name, direction, width}`` of each Verilog port but clk and rst."""
    members: list[dict]

    def with_clocking(self, clocking):
        """The Verilog ports, with those of clk and rst that the module has."""
        clocked = [{"name": name, "direction": "input", "width": 1} for name in ("clk", "rst") if name in clocking]
        return clocked + self.ports


def contract_of(component):
    """The contract of a block or of any other component."""
    is_block = isinstance(component, Block)
    return Contract(
        summary=summary(component),
        block=component.base_name if is_block else None,
        parameters=component.parameters.to_dict() if is_block else {},
        latency=getattr(component, "latency", None),
        interval=getattr(component, "interval", None),
        ports=[
            {"name": name, "direction": direction, "width": len(value)}
            for name, (direction, value) in flat_ports(component).items()
        ],
        members=members(component),
    )


def summary(component):
    """The first paragraph of the class's docstring, on one line."""
    text = inspect.cleandoc(type(component).__doc__ or "A design around blocks of the generator.")
    return " ".join(text.split("\n\n")[0].replace("``", "").split())


def flat_ports(component):
    """The ports as Verilog sees them: ``{name: (direction, value)}``, without zero-width and constant ones."""
    ports = {}
    for path, member, value in component.signature.flatten(component):
        value = Value.cast(value)
        if len(value) and not isinstance(value, Const):
            ports[port_name(path)] = ("input" if member.flow is In else "output", value)
    return ports


def members(component):
    """What the user connects: streams and plain ports, with what they mean and the bits of their fields."""
    values = component.parameters.to_dict() if isinstance(component, Block) else {}

    def text(doc):
        """A name of a parameter in braces stands for its value."""
        return re.sub(r"\{(\w+)\}", lambda match: str(values[match[1]]), doc)

    return [
        {
            "name": port.name,
            "kind": "stream" if port.is_stream else "signal",
            "direction": "input" if port.flow is In else "output",
            "doc": text(port.doc),
            "width": Shape.cast(port.shape).width,
            "fields": [
                {**field, "doc": text(port.field_docs.get(re.sub(r"\[\d+\]", "", field["name"]), ""))}
                for field in _fields(port.shape)
            ],
        }
        for port in leaf_ports(component)
    ]


def _fields(shape, prefix="", offset=0):
    """``{name, low, high, lanes}`` of every field of a layout, bit 0 first; arrays of numbers stay one field."""
    if not isinstance(shape, data.Layout):
        return
    if isinstance(shape, data.ArrayLayout) and not prefix and not _is_array_of_layouts(shape):
        yield {"name": "elements", "low": 0, "high": shape.size - 1, "lanes": _lanes(shape)}
        return
    for key, field in shape:  # pyright: ignore[reportGeneralTypeIssues]
        name = f"{prefix}{key}" if isinstance(key, str) else f"{prefix}[{key}]"
        low, width = offset + field.offset, Shape.cast(field.shape).width
        if not width:
            continue
        if isinstance(field.shape, data.StructLayout) or _is_array_of_layouts(field.shape):
            nested = name + "." if isinstance(field.shape, data.StructLayout) else name
            yield from _fields(field.shape, nested, low)
        else:
            yield {"name": name, "low": low, "high": low + width - 1, "lanes": _lanes(field.shape)}


def _is_array_of_layouts(shape):
    return isinstance(shape, data.ArrayLayout) and isinstance(shape.elem_shape, data.StructLayout)


def _lanes(shape):
    """``"16 x 8"`` for an array of 16 numbers of 8 bits, element 0 in the lowest bits; nested arrays likewise."""
    if isinstance(shape, data.ArrayLayout):
        return f"{shape.length} x {_lanes(shape.elem_shape)}"
    cast = Shape.cast(shape)
    return f"{cast.width}{' signed' if cast.signed else ''}"
