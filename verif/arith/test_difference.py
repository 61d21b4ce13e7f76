"""The decision about one value, in the emitted Verilog: exponents of every kind, differences around the threshold."""

import os

import numpy as np
import pytest
from amaranth.hdl import Module

from golden.units.token_selector import changed, words
from hw.arith.difference import DifferenceExceeds
from hw.arith.stored_bounds import BoundsMaker, OutsideBounds
from hw.lib.block import Block
from hw.lib.pipeline import Pipeline
from verif.bench.lockstep import run_lockstep

pytestmark = pytest.mark.slow

SEED = int(os.environ.get("SEED", "1"))
LARGEST, INFINITY = 0x7BFF, 0x7C00


class DifferenceByBounds(Block):
    """The same decision by way of stored bounds: the ports of :class:`DifferenceExceeds`."""

    latency = BoundsMaker.latency
    members_doc = DifferenceExceeds.members_doc

    @staticmethod
    def members(p):
        return dict(DifferenceExceeds().signature.members)

    def circuit(self):
        m = Module()
        m.submodules.maker = maker = BoundsMaker()
        m.submodules.outside = outside = OutsideBounds()
        m.d.comb += [
            maker.advance.eq(self.advance),
            maker.reference.eq(self.previous),
            maker.threshold.eq(self.threshold),
            outside.bounds.eq(maker.bounds),
            outside.current.eq(
                Pipeline(m, advance=self.advance).register(self.current.as_value(), name="current_later", stages=2)
            ),
            self.exceeds.eq(outside.outside),
        ]
        return m


def value(bits):
    return bits.astype(np.uint16).view(np.float16).astype(np.float64)


def decode(tau):
    """What :class:`hw.arith.difference.ThresholdDecoder` makes of thresholds that are zero or more."""
    exponent, fraction = tau >> 10 & 31, tau & 0x3FF
    fraction = np.where(exponent == 31, 0x3FF, fraction)
    return fraction | (exponent > 0) << 10 | np.maximum(exponent, 1) << 11


def around(rng, previous, tau):
    """Words near previous - tau and previous + tau."""
    side = rng.choice([-1, 1], previous.shape)
    near = words(np.clip(value(previous) + side * value(tau), -65504, 65504).astype(np.float16))
    return np.clip((near & 0x7FFF) + rng.integers(-1, 2, near.shape), 0, LARGEST) | near & 0x8000


@pytest.mark.parametrize("block", [DifferenceExceeds, DifferenceByBounds])
def test_every_pair_of_exponents(block):
    """Thresholds of all 32 exponents against previous values of all 31, both signs, on both sides."""
    rng = np.random.default_rng(SEED)
    rows = np.indices((32, 31, 2, 12)).reshape(4, -1)
    fractions = rng.choice([0, 1, 0x200, 0x3FE, 0x3FF, *rng.integers(0, 1 << 10, 5)], (2, rows.shape[1]))
    tau = np.minimum(rows[0] << 10 | fractions[0], INFINITY)
    previous = rows[1] << 10 | rows[2] << 15 | fractions[1]
    current = around(rng, previous, np.minimum(tau, LARGEST))
    special = rng.random(len(tau)) < 0.01
    current = np.where(special, rng.integers(0, 1 << 16, len(tau)), current)
    swap = rng.random(len(tau)) < 0.5
    current, previous = np.where(swap, previous, current), np.where(swap, current, previous)

    threshold = decode(tau)
    later = np.roll(threshold, 1)  # of the row before, which is one stage on
    inputs = {"current": current, "previous": previous, "threshold": threshold, "threshold_later": later}
    # The row that is sent last only pushes the others out.
    found = run_lockstep(block(), inputs, ["exceeds"], seed=SEED)["exceeds"][:-1]
    expected = changed(current, previous, tau)[:-1]
    assert np.array_equal(found, expected)
    with np.errstate(invalid="ignore"):  # infinities among the special values
        n_ties = (np.abs(value(current) - value(previous)) == value(tau)).sum()
    assert n_ties > 500 and 0.2 < expected.mean() < 0.8
