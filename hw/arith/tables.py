"""Tables of constants in logic."""

from amaranth.hdl import Const, Signal

__all__ = ["look_up"]


def look_up(m, name, index, values, width):
    """``values[index]``: each bit of the word is a constant with one bit for each value, shifted right by the index.

    If the constant's top bit were 0 the inverse is stored, since Verilog would print it with fewer bits.
    """
    word = Signal(width, name=name)
    for place in range(width):
        bits = [value >> place & 1 for value in values]
        inverted = bits[-1] == 0
        constant = sum((bit ^ inverted) << at for at, bit in enumerate(bits))
        column = Signal(len(values), name=f"{name}_column_{place}")
        m.d.comb += column.eq(Const(constant, len(values)) >> index)
        m.d.comb += word[place].eq(~column[0] if inverted else column[0])
    return word
