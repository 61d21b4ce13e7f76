"""Hash-based distribution of columns over banks: maps and their inverses, balance metrics, search for a multiplier."""

from dataclasses import dataclass

import numpy as np

from golden.spec import hash_bank_mapper as spec


def index_width(n_columns):
    """Bits of a column index, w = ceil(log2(n_columns)); 0 for a single column."""
    return (int(n_columns) - 1).bit_length()


def default_multiplier(n_columns):
    """The odd integer nearest to 2**w / phi (159 for 256 columns, 633 for 1024, 2531 for 4096)."""
    return spec.default_multiplier(index_width(n_columns))


def inverse_multiplier(multiplier, width):
    """The k' with k * k' = 1 modulo 2**width, for an odd k."""
    return pow(int(multiplier) | 1, -1, 1 << width)


@dataclass(frozen=True, kw_only=True)
class BankMap(spec.BankMapParameters):
    """A bijection between column indices and (bank, address) pairs.

    With b = log2(n_banks) and w = ceil(log2(n_columns)), but at least b:

    ==============  =========================================  ==================
    hash            bank                                       address
    ==============  =========================================  ==================
    multiplicative  top b bits of x = (index * k) mod 2**w     low w - b bits of x
    modular         index mod n_banks                          index >> b
    range           top b bits of the w-bit index              low w - b bits
    xor_fold        XOR of the b-bit digits of the index       index >> b
    ==============  =========================================  ==================

    Every map is a bijection of the 2**w indices onto n_banks * 2**(w-b) slots.  Where n_columns is not a power of two,
    the slots of the indices n_columns .. 2**w - 1 stay empty, and :meth:`column` reports them with ``in_range`` false.

    The first three hashes are those of DiSC, section IV-D; taking the address from the same product, so that no table
    is needed, and the XOR fold are this project's.
    """

    def check(self):
        super().check()
        if self.multiplier == "runtime":
            self.refuse("multiplier", "a number in the model")
        if self.hash == "multiplicative" and self.multiplier is None:
            object.__setattr__(self, "multiplier", spec.default_multiplier(self.index_width))

    @property
    def depth(self):
        """Addresses a bank, 2**(w-b)."""
        return 1 << (self.index_width - self.bank_width)

    def _fold(self, word):
        """XOR of the b-bit digits of a w-bit word."""
        folded = np.zeros_like(word)
        for shift in range(0, self.index_width, max(self.bank_width, 1)):
            folded ^= word >> shift
        return folded & (self.n_banks - 1)

    def locate(self, index):
        """Bank and address of each index (taken modulo 2**w), any shape."""
        index = np.asarray(index, dtype=np.int64) & ((1 << self.index_width) - 1)
        if self.hash in ("modular", "xor_fold"):
            return self._fold(index) if self.hash == "xor_fold" else index % self.n_banks, index >> self.bank_width
        if self.hash == "multiplicative":
            assert isinstance(self.multiplier, int)  # as __post_init__ sees to
            index = index * (self.multiplier & ((1 << self.index_width) - 1)) & ((1 << self.index_width) - 1)
        return index // self.depth, index % self.depth

    def column(self, bank, address):
        """Index held at each (bank, address), and whether it is a column: ``(index, in_range)``.

        A bank or an address that does not exist (it may have one surplus bit in hardware) gives ``in_range`` false.
        """
        bank, address = np.broadcast_arrays(np.asarray(bank, dtype=np.int64), np.asarray(address, dtype=np.int64))
        exists = (bank < self.n_banks) & (address < self.depth)
        bank, address = bank % self.n_banks, address % self.depth
        if self.hash == "modular":
            index = address << self.bank_width | bank
        elif self.hash == "xor_fold":
            index = address << self.bank_width | (bank ^ self._fold(address))
        else:
            index = bank * self.depth + address
        if self.hash == "multiplicative":
            index = index * inverse_multiplier(self.multiplier, self.index_width) & ((1 << self.index_width) - 1)
        return index, exists & (index < self.n_columns)

    def layout(self):
        """Column at each [address, bank], -1 where the slot is empty: the order in which K and V rows are produced.

        Read row by row it is the order j = unhash(bank, address), bank fastest, so that every group of n_banks rows has
        one row for each bank and the aligner's transposed tiles land in their banks (DiSC, figure 16).
        """
        index, in_range = self.column(np.arange(self.n_banks), np.arange(self.depth)[:, None])
        return np.where(in_range, index, -1)

    def permutation(self):
        """The columns in production order: :meth:`layout` flattened, without the empty slots."""
        order = self.layout().ravel()
        return order[order >= 0]


def bank_counts(mask, bank_map):
    """Non-zeros of each row that fall in each bank: ``[..., rows, columns]`` booleans to ``[..., rows, n_banks]``."""
    mask = np.asarray(mask, dtype=bool)
    if mask.shape[-1] != bank_map.n_columns:
        raise ValueError(f"mask must have {bank_map.n_columns} columns, got {mask.shape[-1]}")
    order = bank_map.layout().T.ravel()
    by_bank = (mask[..., order] & (order >= 0)).reshape(*mask.shape[:-1], bank_map.n_banks, bank_map.depth)
    return by_bank.sum(axis=-1, dtype=np.int32)


def row_deviation(counts):
    """Standard deviation over banks of the non-zeros, averaged over rows (the measure of DiSC, figure 15)."""
    return np.asarray(counts).std(axis=-1).mean(axis=-1)


def fullest_over_mean(counts):
    """Load of the fullest bank over the mean load of a bank, all rows together; 1 where there is no work."""
    load = np.asarray(counts).sum(axis=-2)
    mean = load.mean(axis=-1)
    return np.where(mean > 0, load.max(axis=-1) / np.where(mean > 0, mean, 1), 1.0)


def sddmm_cycles(counts, run_ahead):
    """Time of an SDDMM in dot products, from ``[..., rows, n_banks]`` counts; the leading axes are vectorised.

    A unit starts row i once it has done row i-1 and every unit has done row i-1-run_ahead.  With run_ahead 0 all wait
    for each other at every row, and the time is the sum over rows of the fullest bank.
    """
    if run_ahead < 0:
        raise ValueError(f"run_ahead must be at least 0, got {run_ahead}")
    by_row = np.moveaxis(np.asarray(counts, dtype=np.int64), -2, 0)
    done = np.zeros(by_row.shape[1:], dtype=np.int64)
    all_done = []
    for row, work in enumerate(by_row):
        if row > run_ahead:
            done = np.maximum(done, all_done[row - 1 - run_ahead])
        done = done + work
        all_done.append(done.max(axis=-1, keepdims=True))
    return done.max(axis=-1)


@dataclass(frozen=True, kw_only=True)
class Balance:
    """How well a map spreads the work of some masks."""

    multiplier: int | None
    cycles: int
    utilisation: float
    deviation: float
    fullest_over_mean: float


def _balances(counts, run_ahead, multipliers):
    """Balance of each candidate, from counts ``[candidates, masks, rows, n_banks]``; masks run one after the other."""
    cycles = sddmm_cycles(counts, run_ahead).sum(axis=-1)
    work = counts.sum(axis=(-3, -2, -1), dtype=np.int64)
    capacity = cycles * counts.shape[-1]
    columns = zip(
        multipliers,
        cycles.tolist(),
        np.where(capacity > 0, work / np.maximum(capacity, 1), 1.0).tolist(),
        row_deviation(counts).mean(axis=-1).tolist(),
        fullest_over_mean(counts).mean(axis=-1).tolist(),
        strict=True,
    )
    names = ("multiplier", "cycles", "utilisation", "deviation", "fullest_over_mean")
    return [Balance(**dict(zip(names, values, strict=True))) for values in columns]


def balance(mask, bank_map, run_ahead=0):
    """Metrics of one map on masks ``[..., rows, columns]``: cycles are summed over the masks, the rest averaged."""
    counts = bank_counts(mask, bank_map)
    return _balances(counts.reshape(1, -1, *counts.shape[-2:]), run_ahead, [bank_map.multiplier])[0]


def search_multiplier(mask, n_banks, run_ahead=8, candidates=None):
    """Multipliers ranked by the SDDMM cycles they give on masks ``[..., rows, columns]``: a list of :class:`Balance`.

    The best comes first, of equal ones the smallest.  ``candidates`` defaults to every odd k below 2**w.
    """
    mask = np.asarray(mask, dtype=bool)
    n_columns = mask.shape[-1]
    if candidates is None:
        width = BankMap(n_columns=n_columns, n_banks=n_banks).index_width
        candidates = range(1, max(1 << width, 2), 2)
    candidates = [int(candidate) for candidate in candidates]
    mask = mask.reshape(-1, *mask.shape[-2:])
    chunk = max(1, (1 << 22) // max(1, mask.shape[0] * mask.shape[1] * n_banks))
    found = []
    for start in range(0, len(candidates), chunk):
        part = candidates[start : start + chunk]
        maps = (BankMap(n_columns=n_columns, n_banks=n_banks, multiplier=k) for k in part)
        found += _balances(np.stack([bank_counts(mask, each) for each in maps]), run_ahead, part)
    return sorted(found, key=lambda each: (each.cycles, each.multiplier))
