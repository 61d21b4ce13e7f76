"""The demo's picture: the mask, the work of each bank, and which unit was busy when."""

import matplotlib
import numpy as np
from matplotlib import pyplot

from golden.core.hash_format import mask_to_bitmap
from golden.spec.commands import Unit
from golden.units.hash_bank_mapper import BankMap
from verif.core.demo.program import MULTIPLIER

matplotlib.use("Agg")

UNITS = {"dot-product units": Unit.ARRAY, "softmax": Unit.SOFTMAX, "engines": Unit.ENGINES}
COLOURS = ("#1b6ca8", "#d1793b", "#3f8f5b")
TRANSFERS = "#999999"

__all__ = ["draw"]


def draw(path, title, sizes, mask, session, phases):
    """Write the picture. ``phases`` are ``{name: {span, transfers, busy, note}}``.

    ``span`` is (first clock, end) of the commands, ``transfers`` the beats to load and store, ``busy`` the utilisation
    of each of ``UNITS``, ``note`` what the plot's title says besides the name.
    """
    figure = pyplot.figure(figsize=(12, 9), layout="constrained")
    figure.suptitle(title, fontsize=14)
    upper, lower = figure.subfigures(2, 1, height_ratios=(3, 2))
    left, right = upper.subplots(1, 2)
    left.imshow(mask, cmap="Blues", interpolation="nearest")
    left.set(title=f"mask: {mask.mean():.1%} of the scores are computed", xlabel="key", ylabel="query")
    _bank_loads(right, sizes, mask)
    axes = np.atleast_1d(lower.subplots(len(phases), 1, sharex=True))
    for axis, (name, phase) in zip(axes, phases.items(), strict=True):
        _timeline(axis, session, phase)
        axis.set_title(f"{name}: {phase['note']}")
    axes[-1].set_xlabel("clock")
    figure.savefig(path, dpi=110)


def _bank_loads(axis, sizes, mask):
    """How many scores each bank has, against the mean."""
    bank_map = BankMap(n_columns=mask.shape[1], n_banks=sizes.n_banks, hash="multiplicative", multiplier=MULTIPLIER)
    loads = mask_to_bitmap(mask, bank_map).sum(axis=(0, 2))
    axis.bar(np.arange(sizes.n_banks), loads, color=COLOURS[0])
    label = f"mean; the fullest bank has {loads.max() / loads.mean():.2f} times as many"
    axis.axhline(loads.mean(), color=COLOURS[1], label=label)
    axis.set(title="scores computed by each bank", xlabel="bank", ylabel="scores")
    axis.legend(loc="lower right")


def _timeline(axis, session, phase):
    """When each unit worked, with its utilisation inside the bar, and loads and stores behind the commands."""
    first, end = phase["span"]
    for row, (unit, colour) in enumerate(zip(UNITS.values(), COLOURS, strict=True)):
        edges = np.flatnonzero(np.diff(np.concatenate([[0], session.busy[first:end, unit].astype(np.int8), [0]])))
        bars = [(begin, stop - begin) for begin, stop in edges.reshape(-1, 2)]
        axis.broken_barh(bars, (-row - 0.4, 0.8), color=colour)
        axis.text(0.01 * end, -row, phase["busy"][row], color="white", va="center", fontsize=9)
    axis.broken_barh([(end - first, phase["transfers"])], (-len(UNITS) - 0.4, 0.8), color=TRANSFERS)
    axis.text(end - first, -len(UNITS), f" {phase['transfers']:,}", va="center", fontsize=9)
    axis.set(yticks=[-row for row in range(len(UNITS) + 1)], yticklabels=[*UNITS, "loads and stores"])
