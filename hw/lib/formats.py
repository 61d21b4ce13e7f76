"""Number formats: IEEE-style binary floating point, described once for every block."""

from dataclasses import dataclass

from amaranth.lib import data

__all__ = ["FloatFormat", "FP16", "BF16", "FP32", "FLOAT_FORMATS", "float_format"]


@dataclass(frozen=True)
class FloatFormat:
    """A binary format: sign, biased exponent, fraction; exponent all ones is Inf (fraction 0) or NaN."""

    name: str
    exponent_width: int
    fraction_width: int

    @property
    def width(self):
        return 1 + self.exponent_width + self.fraction_width

    @property
    def precision(self):
        """Bits of a normal significand, with the hidden one."""
        return self.fraction_width + 1

    @property
    def bias(self):
        return (1 << (self.exponent_width - 1)) - 1

    @property
    def max_exponent(self):
        """The exponent field of infinities and NaNs."""
        return (1 << self.exponent_width) - 1

    @property
    def infinity(self):
        """Bits of plus infinity."""
        return self.max_exponent << self.fraction_width

    @property
    def nan(self):
        """Bits of the canonical quiet NaN."""
        return self.infinity | 1 << (self.fraction_width - 1)

    @property
    def layout(self):
        """The word, from its least significant bit."""
        return data.StructLayout({"fraction": self.fraction_width, "exponent": self.exponent_width, "sign": 1})


FP16 = FloatFormat("fp16", 5, 10)
BF16 = FloatFormat("bf16", 8, 7)
FP32 = FloatFormat("fp32", 8, 23)

FLOAT_FORMATS = {fmt.name: fmt for fmt in (FP16, BF16, FP32)}


def float_format(name):
    """The format of that name."""
    if name not in FLOAT_FORMATS:
        raise ValueError(f"format must be one of {', '.join(FLOAT_FORMATS)}, not {name!r}")
    return FLOAT_FORMATS[name]
