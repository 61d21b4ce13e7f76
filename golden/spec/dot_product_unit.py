"""Parameters and constants of the dot-product unit."""

from dataclasses import dataclass

from golden.spec.formats import OPERAND_FORMATS, float_format
from golden.spec.parameters import Parameters, choice, integer, power_of_two

__all__ = [
    "DEFAULT_ALIGN_WIDTH",
    "DEFAULT_MAX_TERMS",
    "MAX_ALIGN_WIDTH",
    "MIN_ALIGN_WIDTH",
    "ALIGNMENT_SLACK_BITS",
    "DotProductUnitParameters",
]

DEFAULT_ALIGN_WIDTH, MIN_ALIGN_WIDTH, MAX_ALIGN_WIDTH = 27, 17, 40
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
        doc=f"W, which bounds the error of alignment: from 23 (fp16) or 17 (bf16), by default {DEFAULT_ALIGN_WIDTH}",
    )
    max_terms: int | None = power_of_two(
        None,
        low=2,
        high=1 << 20,
        doc=f"terms that a dot product may have, at least n_lanes; by default {DEFAULT_MAX_TERMS} (fp16 and bf16)",
    )

    def check(self):
        if self.format == "int8":
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
        return self.align_width or DEFAULT_ALIGN_WIDTH

    @property
    def term_limit(self):
        """The effective maximum number of terms."""
        return self.max_terms or DEFAULT_MAX_TERMS
