"""Pipeline stages of the parts of an accumulation.

Stage 0 is a command in the engines' own registers, one advance after it was accepted; stage n is n advances later.
"""

from hw.arith.trees import tree_latency
from hw.units.vector_unit.reduction_bus import ReductionBus

INPUT_LATENCY = 1
"""Advances from an accepted command to stage 0."""

KEY_STAGE = 2
"""The lanes' maxima."""

LANE_EXPONENT_STAGE = 3
"""The exponent codes of the lanes' sums, two stages ahead of the sums."""

LANE_SUM_STAGE = 5
"""The lanes' sums and their specials."""

EXPONENT_STAGE = LANE_EXPONENT_STAGE + ReductionBus.exponent_latency
"""The largest exponent codes over the lanes of an engine, and over the engines."""

SPECIAL_STAGE = LANE_SUM_STAGE + ReductionBus.special_latency
"""The unions of specials over the same."""

SUM_STAGE = LANE_SUM_STAGE + 1
"""The lanes' sums, aligned to these exponents."""


def lane_stages(n_engines):
    """A lane's sum over the engines, and its maximum."""
    return SUM_STAGE + tree_latency(n_engines), KEY_STAGE + tree_latency(n_engines)


def engine_total_stage(n_lanes):
    """An engine's sum and maximum over its lanes; not before the largest exponent of all engines is available."""
    return SUM_STAGE + max(1, tree_latency(n_lanes))


def all_total_stage(n_engines, n_lanes):
    """The total over all lanes: those of the engines are aligned and added."""
    return engine_total_stage(n_lanes) + 1 + tree_latency(n_engines)


def select_stage(scopes, n_engines, n_lanes):
    """The totals of every one of these scopes."""
    stages = {
        "lanes": lane_stages(n_engines)[0],
        "engine": engine_total_stage(n_lanes),
        "all": all_total_stage(n_engines, n_lanes),
    }
    return max(stages[scope] for scope in scopes)


def choice_latency(scopes):
    """Stages from the totals of all scopes to the rounder's input, of the command's scope."""
    return 1 if len(scopes) > 1 else 0
