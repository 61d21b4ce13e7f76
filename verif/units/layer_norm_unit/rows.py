"""``python -m verif.units.layer_norm_unit.rows``: finds rows that expose an internal error of one unit.

Among random rows some are on the edge: a sum just at the next step of what it is cut to, a result just at a tie. They
are rare where much is cut, so they are searched once and stored in ``data``; testbenches use them in any block.
"""

import argparse
import sys
from functools import cache

import numpy as np

from golden.arith.floats import from_float64
from golden.spec.formats import FP16
from golden.units.layer_norm_unit import FAULT_SITES, encode_epsilon, normalise
from hw.cli.arguments import check_least, reporting_errors
from verif.bench.datasets import DATA, read

__all__ = ["FILE", "SHOWN", "load_rows", "shows"]

FILE = DATA / "layer_norm_rows.npz"
N_ELEMENTS = 8
"""Elements of a row at most; the others are not enabled."""
EPSILONS = (0, encode_epsilon(1e-5), encode_epsilon(1.5))
"""Words; the first one is the smallest and does not count, so that rows may be multiplied by powers of two."""
CANDIDATES = 1 << 16
SHOWN = [*((name, way, False) for name in FAULT_SITES for way in (1, -1)), ("product", 1, True), ("product", -1, True)]
"""What is wrong, by how much, and whether results are subnormal that show it."""
SHOWN.remove(("addend product", 1, False))  # these epsilons and so few elements are never on that edge


def n_kept(epsilon, name):
    """Rows that are enough; those of a wrong scale stand for all scales."""
    return 60 if name == "scale" and not epsilon else 12


@cache
def load_rows():
    """``values`` and ``enable`` [rows, N_ELEMENTS], the row's ``epsilon``, and ``shown``, an index of SHOWN."""
    return read(FILE)


def candidates(rng, n_rows):
    """Rows whose elements are near or far from one another and from 0, some of few bits, some in the middle of two."""
    shape = n_rows, N_ELEMENTS
    values = rng.normal(0, 1, shape) * np.exp2(rng.uniform(-8, 0, (n_rows, 1)))
    values *= np.exp2(rng.uniform(-1, 1, shape) * rng.choice([0, 1, 8], (n_rows, 1)))  # far from one another
    values += rng.choice([0, 0, 1, -3], (n_rows, 1)) * rng.uniform(0, 1, (n_rows, 1))
    steps = np.exp2(rng.integers(2, 6, (n_rows, 1)))
    values = np.where(rng.random((n_rows, 1)) < 0.25, np.round(values * steps) / steps, values)
    middle = rng.normal(0, 1, shape) * np.exp2(rng.uniform(-18, -12, (n_rows, 1)))
    middle[:, :2] = 1, -1
    values = np.where(rng.random((n_rows, 1)) < 0.2, middle * 8192, values)
    n_enabled = rng.integers(2, N_ELEMENTS + 1, (n_rows, 1))
    return from_float64(FP16, values), np.arange(N_ELEMENTS) < n_enabled


def shows(values, enable, epsilon, name, way, subnormal):
    """Which of the rows have another result when ``name`` is wrong by ``way``."""
    right, wrong = (normalise(values, enable, epsilon, faults) for faults in ({}, {name: way}))
    differ = (wrong != right) & enable
    if subnormal:
        differ &= (right & 0x7FFF) < 1 << FP16.fraction_width
    return differ.any(axis=1)


def search(rounds, seed):
    """As load_rows gives them, as many of each as are enough if they are found."""
    rng = np.random.default_rng(seed)
    found = {}
    for _ in range(rounds):
        values, enable = candidates(rng, CANDIDATES)
        for epsilon in EPSILONS:
            for index, (name, *how) in enumerate(SHOWN):
                rows = found.setdefault((epsilon, index), [])
                missing = n_kept(epsilon, name) - len(rows)
                if missing:
                    hit = np.flatnonzero(shows(values, enable, epsilon, name, *how))[:missing]
                    rows += [(values[row], enable[row], epsilon, index) for row in hit]
    columns = zip(*(row for rows in found.values() for row in rows), strict=False)
    return dict(zip(("values", "enable", "epsilon", "shown"), map(np.array, columns), strict=False))


def main():
    parser = argparse.ArgumentParser(
        prog="python -m verif.units.layer_norm_unit.rows", description="renew the file of rows"
    )
    parser.add_argument("--rounds", type=int, default=100, help=f"times {CANDIDATES:,} candidates (default 100)")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    check_least(options, rounds=1, seed=0)
    rows = search(options.rounds, options.seed)
    np.savez_compressed(FILE, **rows)
    for index, shown in enumerate(SHOWN):
        print(shown, [int(((rows["shown"] == index) & (rows["epsilon"] == epsilon)).sum()) for epsilon in EPSILONS])


if __name__ == "__main__":
    sys.exit(reporting_errors(main))
