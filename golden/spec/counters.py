"""The counters of the core, in the order in which STORE sends them."""

__all__ = ["COUNTERS", "COUNTER_WIDTH", "DEPENDS_ON_TIME"]

COUNTER_WIDTH = 32

COUNTERS = {
    "cycles": "clocks in which the core had a command",
    "array_busy": "clocks of MATMUL, PROJECT, SDDMM and WEIGHTED_SUM",
    "softmax_busy": "clocks of SOFTMAX",
    "vector_busy": "clocks of ELEMENTWISE and LAYER_NORM",
    "engines_busy": "clocks of SPMM",
    "load_busy": "clocks of LOAD and CTR",
    "store_busy": "clocks of STORE",
    "commands": "commands that were executed, the one that stores the counters included",
    "array_beats": "beats issued by dot-product units, summed over the units",
    "array_waits_for_sink": "clocks in which a beat waited because a result was not taken, summed over the units",
    "array_waits_for_rows": "clocks in which a beat waited for units that are more than run_ahead rows behind",
    "array_waits_for_query": "clocks in which a beat waited for its query",
    "vector_issues": "pieces of words that ELEMENTWISE took",
    "vector_waits": "clocks in which a result of the vector unit was not taken",
    "spmm_terms": "products of a probability and a part of a value row, summed over the engines",
    "engines_wait_for_rows": "clocks in which an engine waited for engines that are behind",
    "engines_wait_for_sink": "clocks in which an engine waited because a result was not taken, summed over the engines",
    "scores": "scores that SDDMM computed",
    "skipped_scores": "scores that SDDMM skipped because of the mask",
    "skipped_rows": "rows that gated commands skipped because of the token list",
    "load_beats": "beats of the load stream",
    "store_beats": "beats of the store stream, except those of counters",
}

DEPENDS_ON_TIME = {
    "cycles",
    "array_busy",
    "softmax_busy",
    "vector_busy",
    "engines_busy",
    "load_busy",
    "store_busy",
    "array_waits_for_sink",
    "array_waits_for_rows",
    "array_waits_for_query",
    "vector_waits",
    "engines_wait_for_rows",
    "engines_wait_for_sink",
}
"""Counters that depend on stalls; the others follow from the commands and the data."""
