"""When the parts of an accumulation are ready: stage n is n advances after the command was accepted."""

from hw.units.vector.trees import tree_latency

KEY_STAGE = 3
"""The lanes' maxima."""

EXPONENT_STAGE = 6
"""The largest exponent codes over the lanes of an engine, and over the engines."""

SPECIAL_STAGE = 7
"""The unions of specials over the same."""

SUM_STAGE = 7
"""The lanes' sums, aligned to these exponents."""


def lane_stages(n_engines):
    """A lane's sum over the engines, and its maximum."""
    return SUM_STAGE + tree_latency(n_engines), KEY_STAGE + tree_latency(n_engines)


def engine_total_stage(n_lanes):
    """An engine's sum and maximum over its lanes; not before the largest exponent of all engines is known."""
    return SUM_STAGE + max(1, tree_latency(n_lanes))


def select_stage(n_engines, n_lanes):
    """Totals of every scope: those over everything are aligned and added after the engines' own."""
    return engine_total_stage(n_lanes) + 1 + tree_latency(n_engines)
