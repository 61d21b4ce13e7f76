"""``python -m golden balance``: finds the multiplier that best balances given masks over the banks."""

import numpy as np
from tabulate import tabulate

from golden.program.arrays import read_arrays
from golden.units.hash_bank_mapper import search_multiplier

MOST_BANKS, MOST_COLUMNS = 1024, 65536
"""Limits of an exhaustive search over all multipliers."""


def add_arguments(parser):
    """The options of the search."""
    parser.add_argument(
        "file", metavar="FILE", help="masks: .npy, or .npz with --key; the last two axes are rows and columns"
    )
    parser.add_argument("--key", metavar="NAME", help="array of an .npz file")
    parser.add_argument("--packed", action="store_true", help="columns are bits of bytes, lowest bit first")
    parser.add_argument("--banks", type=int, default=16, help="number of banks, a power of two (default 16)")
    parser.add_argument("--run-ahead", type=int, default=8, help="rows that a unit may run ahead (default 8)")
    parser.add_argument("--best", type=int, default=10, help="how many multipliers to show (default 10)")


def run(options):
    """Print the best multipliers with their metrics; raises ``ValueError`` for illegal masks or options."""
    if not 1 <= options.banks <= MOST_BANKS or options.banks & (options.banks - 1):
        raise ValueError(f"--banks must be a power of two from 1 to {MOST_BANKS}, not {options.banks}")
    for name, low in (("run-ahead", 0), ("best", 1)):
        value = getattr(options, name.replace("-", "_"))
        if value < low:
            raise ValueError(f"--{name} must be an integer from {low}, not {value}")
    masks = _masks(options)
    if masks.shape[2] > MOST_COLUMNS:
        raise ValueError(f"masks must have from 1 to {MOST_COLUMNS} columns, not {masks.shape[2]}")
    ranked = search_multiplier(masks, options.banks, options.run_ahead)
    rows = [
        [
            each.multiplier,
            each.cycles,
            f"{each.utilisation:.3f}",
            f"{each.deviation:.2f}",
            f"{each.fullest_over_mean:.2f}",
        ]
        for each in ranked[: options.best]
    ]
    print(
        f"{masks.shape[0]} mask(s) of {masks.shape[1]} x {masks.shape[2]}, {masks.mean():.1%} non-zeros, "
        f"{options.banks} banks, run-ahead {options.run_ahead}; best of {len(ranked)} multipliers"
    )
    headers = ["multiplier", "cycles (dot products)", "utilisation", "deviation a bank and row", "fullest / mean"]
    print(tabulate(rows, headers=headers))
    return 0


def _masks(options):
    """The masks as booleans [masks, rows, columns]."""
    try:
        content = read_arrays(options.file)
    except OSError as error:
        raise ValueError(f"cannot read masks from {options.file!r}: {error.strerror or error}") from None
    except ValueError as error:
        raise ValueError(f"masks: {error}") from None
    if isinstance(content, dict):
        if options.key not in content:
            raise ValueError(f"--key must be one of {', '.join(content)}, not {options.key!r}")
        content = content[options.key]
    kinds, words = (np.uint8, "bytes") if options.packed else (("bool", "integral"), "integers or booleans")
    if not np.isdtype(content.dtype, kinds) or content.ndim < 2 or not content.size:
        raise ValueError(f"masks must be {words} with rows and columns, not {content.dtype} of shape {content.shape}")
    if options.packed:
        content = np.unpackbits(content, axis=-1, bitorder="little")
    return content.reshape(-1, *content.shape[-2:]).astype(bool)
