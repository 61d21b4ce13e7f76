"""Figures of the demo: from the counters, and from results against float64."""

import math

import numpy as np
from tabulate import tabulate

from golden.core.attention import attention_reference
from golden.spec.counters import COUNTERS

__all__ = ["errors", "table"]


def _floats(words):
    return np.asarray(words, np.uint16).view(np.float16).astype(np.float64)


def _error(words, reference):
    """The largest error of all rows, relative to the largest element of each row."""
    size = np.abs(reference).max(axis=1, keepdims=True)
    return float((np.abs(_floats(words) - reference) / np.where(size > 0, size, 1)).max())


def errors(head, phases, results):
    """Largest error of each phase's result against float64: relative to the row's largest element."""
    mask, mass = results["mask"].astype(bool), _floats(results["mass"])[:, None]
    first, second = _floats(head.first), _floats(head.second)
    masked = attention_reference(*second, mask)
    references = {
        "dense": attention_reference(*first),
        "step t+1, dense": attention_reference(*second),
        "step t+1, masked": masked,
        "step t+1, masked, retained mass": masked * mass,
    }
    layers = {name: tuple(np.asarray(part, np.float64) for part in parts) for name, parts in phases.layers.items()}
    rows = first[0]
    for name in ("projection", "fc1", "fc2"):
        rows = rows @ layers[name][0] + layers[name][1]
        if name == "fc1":
            rows = rows * 0.5 * (1 + np.vectorize(math.erf)(rows / math.sqrt(2)))
    references["projection and FFN, all rows"] = references["projection and FFN, selected rows"] = rows
    found = {name: _error(results[name], reference) for name, reference in references.items()}
    found["step t, dense, makes the mask"] = found.pop("dense")
    # What the pruning itself costs, which is no matter of the hardware.
    dense = references["step t+1, dense"]
    size = np.abs(dense).max(axis=1, keepdims=True)
    pruning = {name: float((np.abs(references[name] - dense) / size).max()) for name in references if "masked" in name}
    return found, pruning


def table(sizes, phases, results, found):
    """One row a phase. The beats of loads and stores, one a clock, are added as if nothing overlapped."""
    rows, dense = [], {}
    for name in phases.counters:
        count = dict(zip(COUNTERS, map(int, results[name, "counters"]), strict=True))
        cycles, in_all = count["cycles"], count["cycles"] + phases.transfers[name]
        kind = "layers" if "FFN" in name else "attention"
        if name in ("step t+1, dense", "projection and FFN, all rows"):
            dense[kind] = cycles, in_all
        units = sizes.n_banks * cycles
        scores = count["scores"] + count["skipped_scores"]
        skipped_rows = count["skipped_rows"]
        rows.append(
            {
                "phase": name,
                "clocks": cycles,
                "with loads and stores": in_all,
                "array busy": f"{count['array_busy'] / cycles:.0%}",
                "DPU beats": f"{count['array_beats'] / units:.1%}",
                "softmax busy": f"{count['softmax_busy'] / cycles:.0%}",
                "engine terms": f"{count['spmm_terms'] / units:.1%}",
                "skipped": f"{count['skipped_scores'] / scores:.1%} of scores"
                if scores
                else f"{skipped_rows} rows"
                if skipped_rows
                else "",
                "speed-up": f"{dense[kind][0] / cycles:.2f}" if kind in dense else "",
                "with loads": f"{dense[kind][1] / in_all:.2f}" if kind in dense else "",
                "error": f"{found[name]:.1e}" if name in found else "",
            }
        )
    return tabulate(rows, headers="keys", tablefmt="github", disable_numparse=True)
