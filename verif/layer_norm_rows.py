"""``python -m verif.layer_norm_rows``: finds rows on which an error of one unit inside the layer-norm unit shows.

Among random rows some are on the edge: a sum just at the next step of what it is cut to, a result just at a tie. They
are rare where much is cut, so they are looked for once and kept in ``data``; testbenches play them in any block.
"""

import argparse
from functools import cache

import numpy as np

from golden.floats import FP16, from_float64
from golden.layer_norm_unit import SLIPS, encode_epsilon, normalise
from verif.datasets import DATA, read

__all__ = ["FILE", "SLIPS_BOTH_WAYS", "load_rows"]

FILE = DATA / "layer_norm_rows.npz"
N_ELEMENTS = 8
"""Elements of a row at most; the others are not enabled."""
EPSILONS = (1e-5, 0.001, 1.5)
CANDIDATES = 1 << 16
KEPT = 12
"""Rows of each slip and epsilon."""
SLIPS_BOTH_WAYS = [(name, way) for name in SLIPS for way in ((1,) if name == "scale" else (1, -1))]
"""What is wrong, and by how much."""


@cache
def load_rows():
    """``values`` and ``enable`` [rows, N_ELEMENTS], the row's ``epsilon`` and ``slip``, an index of SLIPS_BOTH_WAYS."""
    return read(FILE)


def candidates(rng, n_rows):
    """Rows whose elements are near or far from one another and from 0, some of few bits."""
    shape = n_rows, N_ELEMENTS
    values = rng.normal(0, 1, shape) * np.exp2(rng.uniform(-8, 0, (n_rows, 1)))
    values *= np.exp2(rng.uniform(-1, 1, shape) * rng.choice([0, 1, 8], (n_rows, 1)))  # far from one another
    values += rng.choice([0, 0, 1, -3], (n_rows, 1)) * rng.uniform(0, 1, (n_rows, 1))
    steps = np.exp2(rng.integers(2, 6, (n_rows, 1)))
    values = np.where(rng.random((n_rows, 1)) < 0.25, np.round(values * steps) / steps, values)
    n_enabled = rng.integers(2, N_ELEMENTS + 1, (n_rows, 1))
    return from_float64(FP16, values), np.arange(N_ELEMENTS) < n_enabled


def search(rounds, seed):
    """As load_rows gives them: rows whose result a slip would change, the same number of each where enough are found."""
    rng = np.random.default_rng(seed)
    found = {}
    for turn in range(rounds):
        values, enable = candidates(rng, CANDIDATES)
        for epsilon in map(encode_epsilon, EPSILONS):
            right = normalise(values, enable, epsilon)
            for index, (name, way) in enumerate(SLIPS_BOTH_WAYS):
                rows = found.setdefault((epsilon, index), [])
                if len(rows) >= KEPT:
                    continue
                wrong = normalise(values, enable, epsilon, {name: way})
                hit = np.flatnonzero(((wrong != right) & enable).any(axis=1))[: KEPT - len(rows)]
                rows += [(values[row], enable[row], epsilon, index) for row in hit]
    columns = zip(*(row for rows in found.values() for row in rows))
    return dict(zip(("values", "enable", "epsilon", "slip"), map(np.array, columns)))


def main():
    parser = argparse.ArgumentParser(prog="python -m verif.layer_norm_rows", description="renew the file of rows")
    parser.add_argument("--rounds", type=int, default=40, help=f"times {CANDIDATES:,} candidates (default 40)")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    rows = search(options.rounds, options.seed)
    np.savez_compressed(FILE, **rows)
    for index, (name, way) in enumerate(SLIPS_BOTH_WAYS):
        counts = [int(((rows["slip"] == index) & (rows["epsilon"] == encode_epsilon(epsilon))).sum())
                  for epsilon in EPSILONS]
        print(f"{name} {way:+}: {counts}")


if __name__ == "__main__":
    main()
