"""Ports whose payload is a layout, in which single bits may be X: text to Python values and back."""

from amaranth.hdl import Shape
from amaranth.lib import data

__all__ = ["decode", "width_of", "word_text"]


def width_of(shape):
    return Shape.cast(shape).width


def decode(shape, text):
    """The value of a port out of its bits, the highest first: a dictionary, a list, or an integer, None with any X."""
    if isinstance(shape, data.ArrayLayout):
        return [decode(field.shape, _cut(text, field)) for _, field in shape]
    if isinstance(shape, data.Layout):
        return {name: decode(field.shape, _cut(text, field)) for name, field in shape}
    return int(text or "0", 2) if set(text) <= {"0", "1"} else None


def _cut(text, field):
    end = len(text) - field.offset
    return text[end - field.width : end]


def word_text(value, width):
    """The bits of a word, from the highest on; X where the value is None; text stays as it is."""
    if isinstance(value, str):
        return value
    return "X" * width if value is None else f"{value:0{width}b}"
