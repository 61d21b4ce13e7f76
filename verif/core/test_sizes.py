"""The sizes of a core check themselves, and allow what the hardware can be built for."""

import random

import pytest

from golden.core.core import Core as Model
from golden.program.assembler import Program
from golden.spec.limits import MAX_TOKENS
from golden.spec.sizes import CoreSizes
from golden.spec.vector_unit import VectorUnitParameters
from hw.registry import PRESETS
from hw.top.array.controller import ArrayController
from hw.top.controller.controller import Controller
from hw.top.core import Core
from hw.top.engines.controller import EnginesController
from hw.top.host.load import LoadUnit
from hw.top.host.store import StoreUnit
from hw.top.memories.shared_memory import SharedMemory
from hw.top.softmax.controller import SoftmaxController
from hw.top.vector.controller import VectorController
from hw.units.vector_unit.unit import VectorUnitParameters as HardwareParameters

POWERS = (1, 2, 4, 8, 16, 32, 64)

BEYOND = [
    ({"n_banks": 3}, {"n_banks": 2}, "n_banks must be a power of two from 2 to 64, not 3"),
    (
        {"max_tokens": 8193},
        {"max_tokens": 2048, "wmem_depth": 512},
        "max_tokens must be an integer from 2 to 8192, not 8193",
    ),
    ({"max_dim": 16385}, {"max_dim": 64}, "max_dim must be an integer from 1 to 16384, not 16385"),
    (
        {"max_dim": 8189, "wmem_depth": 4000, "imem_depth": 4000},
        {"max_dim": 8188, "wmem_depth": 4000, "imem_depth": 4000},
        "max_dim must be at most 8188, 2047 beats of n_lanes, not 8189",
    ),
    (
        {"n_banks": 2, "n_lanes": 16, "max_dim": 8193, "wmem_depth": 4000, "imem_depth": 4000},
        {"n_banks": 2, "n_lanes": 16, "max_dim": 8192, "wmem_depth": 4000, "imem_depth": 4000},
        "max_dim must be at most 8192, 4096 columns a bank, not 8193",
    ),
    ({"max_head_dim": 33}, {"max_head_dim": 32}, "max_head_dim must be at most max_dim=32, not 33"),
    ({"vector_lanes": 3}, {"vector_lanes": 2}, "vector_lanes must be a divisor of a word of IMEM, 8 elements, not 3"),
    (
        {"vector_lanes": 2, "special_lanes": 3},
        {"vector_lanes": 2, "special_lanes": 2},
        "special_lanes must be at most vector_lanes=2, not 3",
    ),
    ({"mask_depth": 65}, {"mask_depth": 64}, "mask_depth must be at most max_tokens=64, not 65"),
    ({"omem_depth": 15}, {"omem_depth": 16}, "omem_depth must be at least 16, for the scores of one row"),
    ({"wmem_depth": 15}, {"wmem_depth": 16}, "wmem_depth must be at least 16, for n_banks columns of max_dim"),
    ({"imem_depth": 11}, {"imem_depth": 12}, "imem_depth must be at least 12, for two rows of max_dim elements"),
    (
        {"n_banks": 2, "latent_width": 1024, "channels": 64, "patch": 64, "max_tokens": 1024, "wmem_depth": 600},
        {"n_banks": 2, "latent_width": 128, "channels": 64, "patch": 64, "max_tokens": 1024, "wmem_depth": 600},
        "latent_width must be at most 128, not 1024",
    ),
    ({"max_tokens": 15}, {"max_tokens": 16}, "max_tokens must be at least 16, the patches of the latent, not 15"),
    ({"run_ahead": 9}, {"run_ahead": 0}, "run_ahead must be an integer from 0 to 8, not 9"),
    ({"n_masks": 16}, {"n_masks": 15}, "n_masks must be an integer from 1 to 15, not 16"),
    ({"reference": "first"}, {"reference": "previous"}, "reference must be one of previous, last, not 'first'"),
]


def build_parts(sizes):
    """The core's ports and its large parts with the units inside: each refuses what it cannot be."""
    Core(**sizes.to_dict())
    for part in (
        ArrayController,
        Controller,
        EnginesController,
        LoadUnit,
        SoftmaxController,
        StoreUnit,
        VectorController,
    ):
        part.for_core(sizes)


@pytest.mark.parametrize("beyond, legal, message", BEYOND, ids=[message.split(",")[0] for *_, message in BEYOND])
def test_what_is_beyond_is_refused(beyond, legal, message):
    for cls in (CoreSizes, Core):
        with pytest.raises(ValueError, match=message):
            cls(**beyond)
    build_parts(CoreSizes(**legal))


def test_sizes_must_be_numbers():
    with pytest.raises(TypeError, match="n_banks must be a power of two from 2 to 64, not 4.0 of type float"):
        CoreSizes(n_banks=4.0)


def test_assembler_and_model_take_sizes_only():
    for user in (Program, Model):
        with pytest.raises(TypeError, match="sizes must be CoreSizes, not {'n_banks': 3}"):
            user({"n_banks": 3})


def test_all_legal_sizes_can_be_built():
    """Random sizes with extremes: the units inside refuse nothing that the core allows."""
    rng = random.Random(5)
    built = 0
    while built < 12:
        sizes = {
            **{name: rng.choice(POWERS) for name in ("n_banks", "n_lanes", "simd_lanes", "channels", "patch")},
            "max_tokens": rng.choice([2, 64, 8191, 8192, 8193]),
            "max_dim": rng.choice([1, 64, 1023, 4096, 4097, 16384]),
            "max_head_dim": rng.choice([1, 64, 4096]),
            **{f"{name}mem_depth": rng.choice([2, 1 << 16]) for name in "iwvo"},
            "n_masks": rng.choice([1, 2, 15]),
            "latent_width": rng.choice([1, 1024]),
            "latent_height": rng.choice([1, 64]),
        }
        try:
            legal = CoreSizes(**sizes)
        except ValueError:
            continue
        build_parts(legal)
        built += 1


def test_the_memory_of_masks_is_why_there_are_not_more_tokens():
    """A row of a mask is a word of it, which four readers take."""
    SharedMemory(width=MAX_TOKENS, part_width=MAX_TOKENS, n_readers=4)
    with pytest.raises(ValueError, match="has [0-9]+ output bits; at most 65536 can be emitted"):
        SharedMemory(width=2 * MAX_TOKENS, part_width=MAX_TOKENS, n_readers=4)


@pytest.mark.parametrize("config", PRESETS)
def test_width_of_a_vector_command_is_that_of_its_layout(config):
    values = PRESETS[config]["vector_unit"]
    assert VectorUnitParameters(**values).command_width == HardwareParameters(**values).command_layout.size


@pytest.mark.parametrize("n_engines", [1, 16, 64, 128])
def test_most_lanes_are_the_most(n_engines):
    most = VectorUnitParameters(n_engines=n_engines, n_lanes=1).most_lanes
    if most <= 128:
        VectorUnitParameters(n_engines=n_engines, n_lanes=most)
        with pytest.raises(ValueError, match=f"n_lanes must be at most {most} with n_engines {n_engines}"):
            VectorUnitParameters(n_engines=n_engines, n_lanes=most + 1)
