"""Number formats: IEEE-style binary floating point, described once for models and hardware."""

from dataclasses import dataclass

__all__ = [
    "FloatFormat",
    "PositiveFormat",
    "FP16",
    "BF16",
    "FP32",
    "FP64",
    "FORMATS",
    "OPERAND_FORMATS",
    "check_operand_format",
    "float_format",
]


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
    def one(self):
        """Bits of 1."""
        return self.bias << self.fraction_width

    @property
    def infinity(self):
        """Bits of plus infinity."""
        return self.max_exponent << self.fraction_width

    @property
    def nan(self):
        """Bits of the canonical quiet NaN."""
        return self.infinity | 1 << (self.fraction_width - 1)

    @property
    def sign_bit(self):
        """Bits of minus zero."""
        return 1 << (self.width - 1)


@dataclass(frozen=True)
class PositiveFormat:
    """A positive number without zero: a fraction and, above it, an exponent; every word is a number."""

    fraction_width: int
    exponent_width: int
    bias: int

    @property
    def width(self):
        return self.fraction_width + self.exponent_width

    @property
    def text(self):
        """The meaning of a word, for documents."""
        fraction, exponent = f"{self.fraction_width - 1}:0", f"{self.width - 1}:{self.fraction_width}"
        return f"(1 + bits {fraction} / 2**{self.fraction_width}) * 2**(bits {exponent} - {self.bias})"


FP16 = FloatFormat("fp16", 5, 10)
BF16 = FloatFormat("bf16", 8, 7)
FP32 = FloatFormat("fp32", 8, 23)
FP64 = FloatFormat("fp64", 11, 52)

FORMATS = {fmt.name: fmt for fmt in (FP16, BF16, FP32)}
"""The formats of the hardware, by name."""

OPERAND_FORMATS = (FP16.name, BF16.name)
"""Formats of operands; the first one is the default. FP32 is only a format of results."""


def float_format(name):
    """The format of that name."""
    if name not in FORMATS:
        raise ValueError(f"format must be one of {', '.join(FORMATS)}, not {name!r}")
    return FORMATS[name]


def check_operand_format(fmt):
    """Refuse formats that are only formats of results."""
    if fmt.name not in OPERAND_FORMATS:
        raise ValueError(f"format must be one of {', '.join(OPERAND_FORMATS)}, not {fmt.name!r}")
