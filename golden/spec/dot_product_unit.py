"""Parameters and constants of the dot-product unit."""

from dataclasses import dataclass

from golden.spec.formats import OPERAND_FORMATS, float_format
from golden.spec.parameters import Parameters, choice, flag, integer, power_of_two

__all__ = [
    "DEFAULT_ALIGN_WIDTHS",
    "DEFAULT_MAX_TERMS",
    "MAX_ALIGN_WIDTH",
    "MIN_ALIGN_WIDTH",
    "ALIGNMENT_SLACK_BITS",
    "DotProductUnitParameters",
]

DEFAULT_ALIGN_WIDTHS = {"fp16": 27, "bf16": 20}
"""The window of FP16 keeps FP32's precision for a few terms; that of BF16 keeps twice BF16's 8 bits and 4 more."""
MIN_ALIGN_WIDTH, MAX_ALIGN_WIDTH = 17, 40
DEFAULT_MAX_TERMS = 1 << 14

ALIGNMENT_SLACK_BITS = 2
"""Low bits of the alignment exponent that are always ones, which shortens the search for the maximum."""


@dataclass(frozen=True, kw_only=True)
class DotProductUnitParameters(Parameters):
    n_lanes: int = integer(16, low=1, high=1024, doc="products a beat")
    format: str = choice(OPERAND_FORMATS[0], *OPERAND_FORMATS, "int8", doc="of query and key")
    align_width: int | None = integer(
        None,
        low=MIN_ALIGN_WIDTH,
        high=MAX_ALIGN_WIDTH,
        doc="W, which bounds the error of alignment: from 23 (fp16) or 17 (bf16), by default "
        + " or ".join(f"{width} ({name})" for name, width in DEFAULT_ALIGN_WIDTHS.items()),
    )
    max_terms: int | None = power_of_two(
        None,
        low=2,
        high=1 << 20,
        doc=f"terms that a dot product may have, at least n_lanes; by default {DEFAULT_MAX_TERMS} (fp16 and bf16)",
    )

    wide_score: bool = flag(True, doc="whether scores are also given in FP32; always with int8, in INT32")

    def check(self):
        if self.format == "int8":
            if not self.wide_score:
                self.refuse("wide_score", "true with format=int8, which has no other score")
            for name in ("align_width", "max_terms"):
                if getattr(self, name) is not None:
                    self.refuse(name, "none with format=int8, which is exact")
            return
        lowest = 2 * float_format(self.format).precision + 1
        if self.align_width is not None and self.align_width < lowest:
            self.refuse("align_width", f"at least {lowest} with format={self.format}, so that products fit the window")
        if self.max_terms is not None and self.max_terms < self.n_lanes:
            self.refuse("max_terms", f"at least n_lanes={self.n_lanes}")

    @property
    def window_width(self):
        """The effective alignment width."""
        return self.align_width or DEFAULT_ALIGN_WIDTHS[self.format]

    @property
    def term_limit(self):
        """The effective maximum number of terms."""
        return self.max_terms or DEFAULT_MAX_TERMS
