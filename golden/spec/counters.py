"""The counters of the core, in the order in which STORE sends them."""

__all__ = ["COUNTERS", "COUNTER_WIDTH", "DEPENDS_ON_TIME"]

COUNTER_WIDTH = 32

COUNTERS = {
    "cycles": "clocks in which the core had a command",
    "array_busy": "clocks of MATMUL, PROJECT and SDDMM",
    "softmax_busy": "clocks of SOFTMAX",
    "vector_busy": "clocks of SPMM, ELEMENTWISE and LAYER_NORM",
    "load_store_busy": "clocks of LOAD, STORE and CTR",
    "commands": "commands that were executed, the one that stores the counters included",
    "array_beats": "beats that dot-product units issued, all units together",
    "array_waits_for_sink": "clocks in which a unit's beat waited for its results to be taken, all units together",
    "array_waits_for_rows": "the same, for units that are too many rows behind",
    "array_waits_for_query": "the same, for its query",
    "vector_issues": "commands of the vector unit",
    "spmm_terms": "enabled engines of its SPMM commands: products of a probability and a part of a value row",
    "vector_waits": "clocks in which the vector unit held a result that was not taken",
    "scores": "scores that SDDMM computed",
    "skipped_scores": "scores that the mask spared SDDMM",
    "skipped_rows": "rows that the token list spared gated commands",
    "load_beats": "beats of the load stream",
    "store_beats": "beats of the store stream, those of counters left out",
}

DEPENDS_ON_TIME = {
    "cycles",
    "array_busy",
    "softmax_busy",
    "vector_busy",
    "load_store_busy",
    "array_waits_for_sink",
    "array_waits_for_rows",
    "array_waits_for_query",
    "vector_waits",
}
"""Counters that depend on stalls; the others follow from the commands and the data."""
