"""Module names: one for each configuration of each block, and none too long."""

import importlib
import itertools
import pkgutil

import pytest

import hw.arith
import hw.lib
import hw.top
import hw.units
from hw.lib.block import MAX_NAME, Block
from hw.registry import BLOCKS, PRESETS, make_block


def _blocks():
    """Every block class of the generator."""
    for package in (hw.lib, hw.arith, hw.units, hw.top):
        for found in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
            importlib.import_module(found.name)
    waiting, found = [Block], set()
    while waiting:
        for each in waiting.pop().__subclasses__():
            if each.__module__.startswith("hw."):
                waiting.append(each)
                found.add(each)
    return found


def test_optional_parameters_do_not_look_alike():
    """Those that may be absent have initials of their own, in every block."""
    assert len(_blocks()) > 60
    for block in _blocks():
        optional = [name for name, item in block.Parameters.__dataclass_fields__.items() if item.default is None]
        initials = ["".join(word[0] for word in name.split("_")) for name in optional]
        assert len(set(initials)) == len(initials), f"{block.__name__}: {optional}"


def test_one_parameter_more_or_less_is_another_name():
    values = [None, 8, 16]
    names = {
        make_block("dot_product_array", None, {"weight_depth": a, "query_beats": b, "max_beats": 64}).module_name
        for a, b in itertools.product(values, values)
    }
    assert len(names) == len(values) ** 2


@pytest.mark.parametrize("config", PRESETS)
def test_no_name_is_too_long(config):
    for name in BLOCKS:
        assert len(make_block(name, config).module_name) <= MAX_NAME


def test_a_long_name_is_cut_and_stays_its_own():
    core = PRESETS["edge"]["core"]
    names = {make_block("core", None, core | {"channels": channels}).module_name for channels in (1, 2, 3)}
    assert len(names) == 3
    assert all(len(name) <= MAX_NAME and name.startswith("core_16_16_16_") for name in names)
