"""Parameters of the dot-product array and of its slices."""

from dataclasses import dataclass

from golden.spec.dot_product_unit import DotProductUnitParameters
from golden.spec.formats import OPERAND_FORMATS
from golden.spec.limits import MAX_BANKS, MAX_RUN_AHEAD, MAX_SLOTS
from golden.spec.parameters import choice, integer, power_of_two

__all__ = ["MAX_BEATS", "MAX_QUERY_BEATS", "MAX_WEIGHT_DEPTH", "DotProductArrayParameters", "DpuSliceParameters"]

MAX_BEATS, MAX_QUERY_BEATS, MAX_WEIGHT_DEPTH = 1 << 11, 1 << 6, 1 << 22
"""Beats of a dot product, and of a transfer of the query stream; words of a weight bank."""


@dataclass(frozen=True, kw_only=True)
class DpuSliceParameters(DotProductUnitParameters):
    n_lanes: int = integer(16, low=1, high=1024, doc="products a beat")
    format: str = choice(OPERAND_FORMATS[0], *OPERAND_FORMATS, doc="of query and key")
    n_slots: int = integer(16, low=1, high=MAX_SLOTS, doc="bits of a unit's part of a mask: columns divided by units")
    max_beats: int = integer(
        2, low=1, high=MAX_BEATS, doc="largest number of beats a dot product: head dimension divided by lanes"
    )
    weight_depth: int | None = integer(
        None,
        low=1,
        high=MAX_WEIGHT_DEPTH,
        doc="words a weight bank, of n_lanes elements; by default n_slots * max_beats",
    )
    query_beats: int | None = integer(
        None,
        low=1,
        high=MAX_QUERY_BEATS,
        doc="beats a transfer of the query stream; by default 2 where max_beats allows",
    )
    query_depth: int | None = integer(
        None,
        low=1,
        high=MAX_WEIGHT_DEPTH,
        doc="words of a unit's ring of queries, row_words for each row; by default run_ahead + 2 of the longest rows",
    )
    run_ahead: int = integer(
        MAX_RUN_AHEAD, low=0, high=MAX_RUN_AHEAD, doc="rows that a unit may be ahead of the slowest one"
    )

    def check(self):
        super().check()
        if self.query_width > self.max_beats:
            self.refuse("query_beats", f"at most max_beats={self.max_beats}")
        if self.query_depth is not None and self.query_depth * self.query_width < self.max_beats:
            self.refuse("query_depth", f"at least {-(-self.max_beats // self.query_width)}, for a row of max_beats")
        if self.max_beats * self.n_lanes > self.term_limit:
            self.refuse("max_beats", "no more than max_terms divided by n_lanes")

    @property
    def query_width(self):
        """Beats in one transfer of the query stream, and in one word of the query ring."""
        return self.query_beats or min(2, self.max_beats)


@dataclass(frozen=True, kw_only=True)
class DotProductArrayParameters(DpuSliceParameters):
    n_units: int = power_of_two(4, low=2, high=MAX_BANKS, doc="dot-product units, each with its weight bank")
