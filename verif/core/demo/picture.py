"""The demo's picture: the mask, what each bank has to do, and who was busy when."""

import matplotlib
import numpy as np
from matplotlib import pyplot

from golden.core.hash_format import mask_to_bitmap
from golden.units.hash_bank_mapper import BankMap
from verif.core.demo.program import MULTIPLIER

matplotlib.use("Agg")

UNITS = ("DPU array", "softmax", "vector unit", "load/store")
COLOURS = ("#1b6ca8", "#d1793b", "#3f8f5b", "#999999")

__all__ = ["draw"]


def draw(path, sizes, mask, session, spans):
    """``spans`` are ``{phase: (first clock, end)}`` of the phases to show."""
    figure = pyplot.figure(figsize=(12, 9), layout="constrained")
    rows = figure.subfigures(2, 1, height_ratios=(3, 2))
    left, right = rows[0].subplots(1, 2)
    left.imshow(mask, cmap="Blues", interpolation="nearest")
    left.set(title=f"mask: {mask.mean():.1%} of the scores are kept", xlabel="key", ylabel="query")
    bank_map = BankMap(n_columns=mask.shape[1], n_banks=sizes.n_banks, hash="multiplicative", multiplier=MULTIPLIER)
    loads = mask_to_bitmap(mask, bank_map).sum(axis=(0, 2))
    right.bar(np.arange(sizes.n_banks), loads, color=COLOURS[0])
    right.axhline(
        loads.mean(),
        color=COLOURS[1],
        label=f"mean; the fullest bank has {loads.max() / loads.mean():.2f} times as many",
    )
    right.set(title="scores of each bank", xlabel="bank", ylabel="scores")
    right.legend(loc="lower right")
    axes = np.atleast_1d(rows[1].subplots(len(spans), 1, sharex=True))
    for axis, (name, (first, end)) in zip(axes, spans.items(), strict=True):
        for unit, colour in enumerate(COLOURS):
            edges = np.flatnonzero(np.diff(np.concatenate([[0], session.busy[first:end, unit].astype(np.int8), [0]])))
            axis.broken_barh(
                [(begin, stop - begin) for begin, stop in edges.reshape(-1, 2)], (-unit - 0.4, 0.8), color=colour
            )
        axis.set(title=name, yticks=[-unit for unit in range(len(UNITS))], yticklabels=UNITS)
    axes[-1].set_xlabel("clock")
    figure.savefig(path, dpi=110)
