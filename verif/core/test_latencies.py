"""The latencies of the cycle model, which follow from the parameters, are those of the hardware."""

import pytest

from golden.spec.sizes import CoreSizes
from golden.timing.latencies import Latencies, layer_norm_clocks, score_clocks, softmax_clocks
from hw.presets import CORES
from hw.top.controller.command_checker import CommandChecker
from hw.top.softmax.controller import SoftmaxController
from hw.top.vector.controller import VectorController
from hw.units.dot_product_unit.unit import DotProductUnit
from hw.units.layer_norm_unit.unit import LayerNormUnit

pytestmark = pytest.mark.core

ODD = {"n_lanes": 9, "simd_lanes": 3, "max_tokens": 50, "max_head_dim": 20, "max_dim": 40, "pmem_depth": 64}


@pytest.mark.parametrize("core", [*CORES, "odd"])
def test_of_a_core(core):
    sizes = CoreSizes(**CORES.get(core, ODD))
    latencies = Latencies.of(sizes)
    assert latencies.command == 4 + CommandChecker.for_core(sizes).latency
    assert latencies.softmax == 1 + SoftmaxController.for_core(sizes).latency
    assert latencies.elementwise == 1 + VectorController.for_core(sizes).latency


def test_of_units():
    for n in (1, 2, 3, 4, 5, 7, 8, 9, 16, 18, 19, 20, 32, 64, 65, 72, 128):
        assert score_clocks(n) == DotProductUnit(n_lanes=n).latency, n
        assert layer_norm_clocks(n) == LayerNormUnit(n_lanes=n, n_slots=4).latency, n
    for n in (2, 4, 8, 16, 32, 64):
        assert softmax_clocks(n) == SoftmaxController.for_core(CoreSizes(n_banks=n, max_tokens=64)).latency, n
