"""The presets of blocks alone are those of the blocks inside the core of that preset."""

import pytest

from hw.presets import CORES, MIXED_PRECISION, PRESETS
from hw.registry import make_block
from hw.top.array.column_writer import ColumnWriter
from hw.top.array.controller import ArrayController
from hw.top.array.hash_order import HashOrder
from hw.top.engines.controller import EnginesController
from hw.top.host.token_compare import TokenCompare
from hw.top.parameters import CoreSizes
from hw.top.softmax.controller import SoftmaxController
from hw.top.vector.layer_norm_controller import LayerNormController
from hw.units.dot_product_array.slice import DpuSlice


def _child(block, name):
    """A block that another one has inside."""
    module = block.circuit()
    module._MustUse__used = True  # that it is not elaborated is no mistake
    return module._named_submodules[name][0]


def _inside(config):
    """``{name: block}`` of the blocks that a core has inside, taken from its parts."""
    core = CoreSizes(**CORES[config])
    array = _child(ArrayController.for_core(core), "array")
    unit = _child(DpuSlice(**array.parameters.dpu_slice()), "dot_product")
    return {
        "dot_product_array": array,
        "dot_product_unit": unit,
        "softmax_unit": _child(SoftmaxController.for_core(core), "unit"),
        "spmm_array": _child(EnginesController.for_core(core), "array"),
        "layer_norm_unit": _child(LayerNormController.for_core(core), "unit"),
        "data_aligner": _child(ColumnWriter.for_core(core), "aligner"),
        "token_selector": _child(TokenCompare.for_core(core), "selector"),
        "hash_bank_mapper": _child(HashOrder.for_core(core), "mapper"),
    }


MODES = {
    "token_selector": {"reference"},
    "hash_bank_mapper": {"multiplier", "direction"},
    "dot_product_unit": {"wide_score"},
    "dot_product_array": {"query_depth"},
}
"""Parameters that say how a block is used, in which the core asks for less than the block alone can do."""


@pytest.mark.parametrize("config", [*list(CORES)[:3], pytest.param("disc", marks=pytest.mark.slow)])
def test_blocks_are_those_of_the_core(config):
    inside = _inside(config)
    assert set(PRESETS[config]) == {
        *inside,
        "core",
        "accelerator",
        "bitonic_sorter",
        "vector_unit",
        *MIXED_PRECISION[config],
    }
    for name, found in inside.items():
        alone = make_block(name, config)
        assert type(alone) is type(found)
        differing = {key for key, value in found.parameters.to_dict().items() if getattr(alone, key) != value}
        assert differing <= MODES.get(name, set()), f"{name}: {differing}"
        if name not in MODES:
            assert alone.latency == found.latency
