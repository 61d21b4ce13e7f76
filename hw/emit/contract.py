"""The contract of a block in plain data: ports, fields, timing. Header, manifest and README are made from it."""

from amaranth.hdl import Shape
from amaranth.lib import data
from amaranth.lib.wiring import In

from hw.emit.emission import flat_ports
from hw.lib.ports import leaf_ports


def ports(block, clocking):
    """The Verilog ports: a list of ``{name, direction, width}``; ``clocking`` says which of clk and rst there are."""
    clocked = [{"name": name, "direction": "input", "width": 1} for name in ("clk", "rst") if name in clocking]
    return clocked + [
        {"name": name, "direction": direction, "width": len(value)}
        for name, (direction, value) in flat_ports(block).items()
    ]


def members(block):
    """What the user connects: streams and plain ports, with their sentence and the bits of their fields."""
    return [
        {
            "name": port.name,
            "kind": "stream" if port.is_stream else "signal",
            "direction": "input" if port.flow is In else "output",
            "doc": port.doc,
            "width": Shape.cast(port.shape).width,
            "fields": list(_fields(port.shape)),
        }
        for port in leaf_ports(block)
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
