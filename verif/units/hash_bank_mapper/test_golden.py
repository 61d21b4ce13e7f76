"""The hash maps, the hash-encoded format, the balance metrics and the search, against definitions by brute force."""

import time

import numpy as np
import pytest

from golden.core import hash_format
from golden.spec.hash_bank_mapper import HASHES
from golden.units.hash_bank_mapper import (
    BankMap,
    balance,
    bank_counts,
    default_multiplier,
    fullest_over_mean,
    index_width,
    inverse_multiplier,
    row_deviation,
    sddmm_cycles,
    search_multiplier,
)
from hw.units.hash_bank_mapper import HashBankMapper


def sizes(max_width):
    """Every power of two, its neighbours, and every legal number of banks."""
    for width in range(max_width + 1):
        for n_columns in sorted({(1 << width) - 1, 1 << width, (1 << width) - (1 << width) // 3} - {0}):
            for bank_width in range(index_width(n_columns) + 1):
                yield n_columns, 1 << bank_width


def some_multipliers(width):
    """All odd multipliers of narrow indices; of wide ones the extremes and a few between."""
    if width <= 6:
        return range(1, max(2, 1 << width), 2)
    return 1, 3, 13, default_multiplier(1 << width), (1 << width) // 2 + 1, (1 << width) - 1


def digits_folded(index, bank_width):
    """XOR of the digits of one integer, the long way."""
    folded = 0
    while bank_width and index:
        folded, index = folded ^ index % (1 << bank_width), index >> bank_width
    return folded


def test_maps_are_bijections_with_inverses():
    checked = 0
    for n_columns, n_banks in sizes(12):
        width = index_width(n_columns)
        space = np.arange(1 << width)
        for name in HASHES:
            for multiplier in some_multipliers(width) if name == "multiplicative" else (None,):
                bank_map = BankMap(n_columns=n_columns, n_banks=n_banks, hash=name, multiplier=multiplier)
                bank, address = bank_map.locate(space)
                assert bank.max() < n_banks and address.max() < bank_map.depth
                assert n_banks * bank_map.depth == 1 << width
                slot = bank * bank_map.depth + address
                assert np.array_equal(np.sort(slot), space)
                index, in_range = bank_map.column(bank, address)
                assert np.array_equal(index, space) and np.array_equal(in_range, space < n_columns)
                checked += 1
    assert checked > 3000


def test_every_odd_multiplier_of_up_to_12_bits():
    """With one bank the address is the whole product; more banks only cut the same word in two."""
    for width in range(13):
        space = np.arange(1 << width)
        for multiplier in range(1, max(2, 1 << width), 2):
            bank_map = BankMap(n_columns=1 << width, n_banks=1, multiplier=multiplier)
            product = bank_map.locate(space)[1]
            assert np.array_equal(bank_map.column(0, product)[0], space)
            assert np.bincount(product, minlength=1 << width).max() == 1


@pytest.mark.parametrize("n_columns, n_banks", [(1, 1), (256, 16), (200, 8), (4096, 32), (65536, 64), (37, 1)])
def test_definitions(n_columns, n_banks):
    width, bank_width = index_width(n_columns), n_banks.bit_length() - 1
    top = width - bank_width
    multiplier = default_multiplier(n_columns)
    definitions = {
        "modular": lambda j: (j % n_banks, j // n_banks),
        "range": lambda j: (j >> top, j % (1 << top)),
        "multiplicative": lambda j: divmod(j * multiplier % (1 << width), 1 << top),
        "xor_fold": lambda j: (digits_folded(j, bank_width), j >> bank_width),
    }
    indices = range(0, n_columns, max(1, n_columns // 1000))
    for name, definition in definitions.items():
        bank, address = BankMap(n_columns=n_columns, n_banks=n_banks, hash=name).locate(indices)
        assert list(zip(bank.tolist(), address.tolist(), strict=False)) == [definition(index) for index in indices]


def test_default_multipliers_and_inverses():
    assert [default_multiplier(n) for n in (256, 1024, 4096)] == [159, 633, 2531]
    for width in range(1, 13):
        odd = range(1, 1 << width, 2)
        assert all(k * inverse_multiplier(k, width) % (1 << width) == 1 for k in odd)


def test_multiplier_acts_modulo_the_index_space():
    wide, narrow = (BankMap(n_columns=100, n_banks=8, multiplier=k) for k in (13 + 5 * 128, 13))
    assert np.array_equal(wide.layout(), narrow.layout())


def test_slots_that_do_not_exist_are_out_of_range():
    bank_map = BankMap(n_columns=1, n_banks=1)
    index, in_range = bank_map.column([0, 1, 0], [0, 0, 1])
    assert index.tolist() == [0, 0, 0] and in_range.tolist() == [True, False, False]


def test_layout_gives_each_bank_one_row_of_a_group():
    for name in HASHES:
        full = BankMap(n_columns=64, n_banks=8, hash=name)
        assert np.array_equal(np.sort(full.permutation()), np.arange(64))
        assert all(full.locate(group)[0].tolist() == list(range(8)) for group in full.layout())
        partial = BankMap(n_columns=50, n_banks=8, hash=name)
        assert np.array_equal(np.sort(partial.permutation()), np.arange(50))
        assert (partial.layout() < 0).sum() == 14


@pytest.mark.parametrize(
    "values, message",
    [
        ({"n_columns": 0, "n_banks": 1}, "n_columns must be an integer from 1 to 65536, not 0"),
        ({"n_columns": 65537, "n_banks": 1}, "n_columns must be an integer from 1 to 65536, not 65537"),
        ({"n_columns": 8, "n_banks": 3}, "n_banks must be a power of two from 1 to 65536, not 3"),
        ({"n_columns": 8, "n_banks": 4, "multiplier": 6}, "multiplier must be .* an odd integer .*, not 6"),
        ({"n_columns": 8, "n_banks": 4, "hash": "sha"}, "hash must be one of .*, not 'sha'"),
        ({"n_columns": 8, "n_banks": 4, "hash": "range", "multiplier": 3}, "multiplier must be none for hash range"),
    ],
)
def test_refuses_what_the_hardware_refuses(values, message):
    for cls in (BankMap, HashBankMapper):
        with pytest.raises(ValueError, match=message):
            cls(**values)


def test_the_model_has_a_multiplier():
    with pytest.raises(ValueError, match="multiplier must be a number in the model, not 'runtime'"):
        BankMap(n_columns=8, n_banks=4, multiplier="runtime")
    assert BankMap(n_columns=8, n_banks=4).multiplier == HashBankMapper(n_columns=8, n_banks=4).parameters.constant == 5


def cycles_by_events(counts, run_ahead):
    """The run-ahead rule, one unit and one row at a time."""
    done = {}
    for row in range(counts.shape[0]):
        for unit in range(counts.shape[1]):
            start = done.get((row - 1, unit), 0)
            if row - 1 - run_ahead >= 0:
                start = max([start] + [done[row - 1 - run_ahead, other] for other in range(counts.shape[1])])
            done[row, unit] = start + int(counts[row, unit])
    return max(done[counts.shape[0] - 1, unit] for unit in range(counts.shape[1]))


def test_cycles_against_events():
    rng = np.random.default_rng(1)
    for _ in range(20):
        counts = rng.integers(0, 9, size=(rng.integers(1, 20), 1 << rng.integers(0, 4)))
        for run_ahead in (0, 1, 2, 5, 100):
            assert sddmm_cycles(counts, run_ahead) == cycles_by_events(counts, run_ahead)
        assert sddmm_cycles(counts, 0) == counts.max(axis=1).sum()
        assert sddmm_cycles(counts, 10**6) == counts.sum(axis=0).max()
    with pytest.raises(ValueError, match="run_ahead must be at least 0, got -1"):
        sddmm_cycles(counts, -1)


def test_metrics_by_hand():
    counts = np.array([[4, 0], [1, 3], [0, 0]])
    assert row_deviation(counts) == pytest.approx((2 + 1 + 0) / 3)
    assert fullest_over_mean(counts) == pytest.approx(5 / 4)
    assert fullest_over_mean(np.zeros((3, 2))) == 1.0
    mask = np.array([[1, 1, 1, 1, 0, 0, 0, 0], [1, 0, 0, 0, 1, 1, 1, 0], [0] * 8], dtype=bool)
    bank_map = BankMap(n_columns=8, n_banks=2, hash="range")
    assert np.array_equal(bank_counts(mask, bank_map), counts)
    found = balance(mask, bank_map, run_ahead=0)
    assert (found.cycles, found.utilisation, found.multiplier) == (7, pytest.approx(8 / 14), None)
    with pytest.raises(ValueError, match="mask must have 8 columns, got 7"):
        bank_counts(mask[:, :7], bank_map)


def test_counts_and_an_empty_mask():
    rng = np.random.default_rng(2)
    mask = rng.random((2, 9, 50)) < 0.4
    for name in HASHES:
        bank_map = BankMap(n_columns=50, n_banks=8, hash=name)
        bank = bank_map.locate(np.arange(50))[0]
        expected = np.stack([mask[..., bank == each].sum(axis=-1) for each in range(8)], axis=-1)
        assert np.array_equal(bank_counts(mask, bank_map), expected)
    assert balance(np.zeros((4, 50)), bank_map).utilisation == 1.0


def test_search_ranks_all_odd_multipliers_quickly():
    rng = np.random.default_rng(3)
    popularity = np.repeat(rng.random(32), 8)
    mask = rng.random((256, 256)) < popularity
    start = time.process_time()
    ranked = search_multiplier(mask, 32, run_ahead=8)
    assert time.process_time() - start < 5
    assert sorted(each.multiplier for each in ranked) == list(range(1, 256, 2))
    assert [each.cycles for each in ranked] == sorted(each.cycles for each in ranked)
    for each in ranked[::40]:
        assert each == balance(mask, BankMap(n_columns=256, n_banks=32, multiplier=each.multiplier), 8)
    assert ranked[0].cycles < ranked[-1].cycles
    assert [each.multiplier for each in search_multiplier(mask, 32, 8, candidates=[13, 159])] in ([13, 159], [159, 13])
    pair = search_multiplier(np.stack([mask, mask]), 32, run_ahead=8)
    assert pair[0].multiplier == ranked[0].multiplier and pair[0].cycles == 2 * ranked[0].cycles


@pytest.mark.parametrize(
    "n_columns, n_banks, density", [(64, 8, 0.4), (50, 16, 0.1), (1, 1, 0.5), (37, 1, 1.0), (16, 16, 0.0)]
)
@pytest.mark.parametrize("name", HASHES)
def test_hash_encoded_round_trip(name, n_columns, n_banks, density):
    rng = np.random.default_rng(4)
    bank_map = BankMap(n_columns=n_columns, n_banks=n_banks, hash=name)
    mask = rng.random((11, n_columns)) < density
    values = rng.integers(1, 1 << 16, size=mask.shape).astype(np.uint16)
    encoded = hash_format.encode(mask, values, bank_map)
    decoded_mask, decoded = hash_format.decode(encoded)
    assert np.array_equal(decoded_mask, mask) and np.array_equal(decoded, np.where(mask, values, 0))
    assert decoded.dtype == values.dtype and np.array_equal(encoded.counts, bank_counts(mask, bank_map))
    for row in range(len(mask)):
        bank, address, kept = encoded.row(row)
        columns = bank_map.column(bank, address)[0]
        assert sorted(columns.tolist()) == np.flatnonzero(mask[row]).tolist()
        assert np.array_equal(kept, values[row, columns])
    unpacked = np.unpackbits(encoded.packed(), axis=2, count=bank_map.depth, bitorder="little")
    assert np.array_equal(unpacked.astype(bool), encoded.bitmap)


def test_hash_encoded_order_by_hand():
    bank_map = BankMap(n_columns=8, n_banks=2, hash="modular")
    mask = np.array([[1, 0, 1, 1, 0, 0, 0, 0], [0, 0, 0, 0, 0, 1, 1, 1]], dtype=bool)
    encoded = hash_format.encode(mask, np.arange(16).reshape(2, 8), bank_map)
    assert encoded.values.tolist() == [[0, 2, 14], [3, 13, 15]]
    assert encoded.packed()[:, :, 0].tolist() == [[0b0011, 0b0010], [0b1000, 0b1100]]
    assert encoded.row_start.tolist() == [[0, 0], [2, 1], [3, 3]]


def test_rows_are_laid_out_by_bank():
    rows = np.arange(10, dtype=np.uint16)[:, None] + np.zeros(3, np.uint16)
    bank_map = BankMap(n_columns=10, n_banks=4, multiplier=5)
    laid_out = hash_format.lay_out_rows(rows, bank_map, fill=999)
    bank, address = bank_map.locate(np.arange(10))
    assert laid_out.shape == (4, 4, 3) and np.array_equal(laid_out[bank, address], rows)
    assert (laid_out == 999).sum() == 6 * 3


def test_bad_encodings_are_refused():
    bank_map = BankMap(n_columns=8, n_banks=2)
    with pytest.raises(ValueError, match="mask must be"):
        hash_format.encode(np.ones((2, 7)), np.ones((2, 7)), bank_map)
    with pytest.raises(ValueError, match="values must have the mask's shape"):
        hash_format.encode(np.ones((2, 8)), np.ones((2, 7)), bank_map)
    with pytest.raises(ValueError, match="bitmap must be"):
        hash_format.HashEncoded(bank_map, np.ones((2, 2, 3), bool), np.ones((2, 6)))
    with pytest.raises(ValueError, match="values must be"):
        hash_format.HashEncoded(bank_map, np.ones((2, 2, 4), bool), np.ones((2, 6)))
