"""The shortest run of a bench hits every corner case that it requires, for any seed: no simulator is needed to see."""

import pytest

from hw.registry import make_block
from verif.bench.batch import bench_class
from verif.bench.endpoints import PATTERNS

POINTS = [
    ("dot_product_unit", {"n_lanes": 1, "format": "int8"}),
    ("dot_product_unit", {"n_lanes": 1, "format": "bf16", "align_width": 17, "max_terms": 2}),
    ("dot_product_unit", {"n_lanes": 17, "align_width": 40}),
    ("vector_unit", {"n_engines": 1, "n_lanes": 1, "bank_depth": 1, "max_terms": 1}),
    ("token_selector", {"width": 1, "height": 1, "channels": 1, "patch": 1, "n_values": 1}),
    ("token_selector", {"width": 1, "height": 17, "channels": 1, "patch": 1, "n_values": 1, "reference": "last"}),
    ("token_selector", {"width": 3, "height": 2, "channels": 2, "patch": 64, "n_values": 1}),
    ("token_selector", {"width": 7, "height": 5, "patch": 3, "n_values": 64, "reference": "last"}),
    ("hash_bank_mapper", {"n_columns": 1, "n_banks": 1}),
    ("hash_bank_mapper", {"n_columns": 3, "n_banks": 2, "hash": "modular", "n_indices": 2}),
    ("bitonic_sorter", {"n": 2, "key_width": 1, "payload_width": 0}),
    ("bitonic_sorter", {"n": 8, "key_width": 64, "payload_width": 1}),
    ("dot_product_array", {"n_units": 2, "n_lanes": 1, "n_slots": 1, "max_beats": 1}),
]


@pytest.mark.parametrize("unit, parameters", POINTS)
@pytest.mark.parametrize("seed", [0, 4294967295])
@pytest.mark.parametrize("count", [1, 33])
def test_every_corner_case_is_hit(unit, parameters, seed, count):
    bench = bench_class(unit)(make_block(unit, None, parameters), seed)
    hits = {}
    for _ in range(len(PATTERNS) ** 2):
        for name, number in bench.batch(count).bins.items():
            hits[name] = hits.get(name, 0) + number
        bench.batch(count)  # the one that reset interrupts, of which nothing is counted
    assert bench.required_bins
    assert not {name for name in bench.required_bins if not hits.get(name)}
