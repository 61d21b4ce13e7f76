"""The parts of the core take the parameters that they use, and no others.

Those around it (hw.top.system) share the parameters of the bus, which must agree in all of them.
"""

import importlib
import pkgutil
from dataclasses import dataclass

import pytest
from amaranth.hdl import Module

import hw.top
from hw.lib.block import Block
from hw.registry import PRESETS, make_block
from hw.top.array.column_writer import ColumnWriter
from hw.top.array.controller import ArrayController
from hw.top.core import Core
from hw.top.parameters import OmemDepth
from hw.top.vector.row_reader import RowReader


def _parts():
    """Every block that is defined below hw/top, by name."""
    modules = [importlib.import_module(found.name) for found in pkgutil.walk_packages(hw.top.__path__, "hw.top.")]
    classes = {
        each
        for module in modules
        for each in vars(module).values()
        if isinstance(each, type) and issubclass(each, Block) and each.__module__ == module.__name__
    }
    return sorted(classes, key=lambda each: each.__name__)


PARTS = [
    each
    for each in _parts()
    if each.Parameters.__dataclass_fields__ and not each.__module__.startswith("hw.top.system.")
]


def parameters_read(cls):
    """The parameters that a block reads for its ports, its properties, its logic and its children."""
    names, read = set(cls.Parameters.__dataclass_fields__), set()

    class RecordedParameters(cls.Parameters):
        def __getattribute__(self, name):
            if name in names:
                read.add(name)
            return super().__getattribute__(name)

    def recorded(self, name):
        if name in names:
            read.add(name)
        return object.__getattribute__(self, name)

    recorded_class = type(cls.__name__, (cls,), {"Parameters": RecordedParameters, "__getattribute__": recorded})
    block = recorded_class()
    read.clear()  # making it copied and checked them all
    block.members(block.parameters)
    block.prepare()
    _ = block.latency
    module = block.circuit()
    assert isinstance(module, Module)
    module._MustUse__used = True  # that it is not elaborated is no mistake
    return read


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.__name__)
def test_every_parameter_is_read(part):
    """What is handed to a child counts as read: the child is a part, too, or asks for just what it names."""
    assert parameters_read(part) == set(part.Parameters.__dataclass_fields__)


@pytest.mark.parametrize("config", PRESETS)
def test_a_lane_write_lies_as_the_array_takes_it(config):
    """Two payloads are connected bit by bit, whatever their fields are called."""
    parameters = make_block("core", config).parameters
    array = ArrayController.for_core(parameters)._array
    assert ColumnWriter.for_core(parameters).keys.payload.shape() == array.weight_lane.payload.shape()


def test_there_are_all_parts():
    assert len(PARTS) >= 20 and Core in PARTS


def test_a_parameter_that_is_not_read_is_found():
    @dataclass(frozen=True, kw_only=True)
    class MoreParameters(OmemDepth, RowReader.Parameters):
        pass

    class Reader(RowReader):
        Parameters = MoreParameters

    assert set(MoreParameters.__dataclass_fields__) - parameters_read(Reader) == {"omem_depth"}
