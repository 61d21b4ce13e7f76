"""Names of modules and ports: none is a word of a language or the name of a vendor's primitive."""

import importlib.util
import re
from pathlib import Path

import pytest

from hw.emit.emission import Emission
from hw.emit.netlist import read_rtlil
from hw.emit.reserved import RESERVED, why_no_module
from hw.registry import IN_ALL, make_block

VENDORS = ("xilinx", "ecp5", "ice40", "gowin", "nexus", "lattice", "intel_alm", "anlogic", "efinix", "microchip")


@pytest.mark.parametrize("vendor", VENDORS)
def test_no_primitive_that_yosys_knows_may_be_a_top(vendor):
    share = Path(importlib.util.find_spec("pyosys").origin).parent / "share" / vendor
    files = {*share.rglob("*cells*.v"), *share.rglob("*sim*.v")} - set(share.rglob("*map*.v"))
    names = {name for path in files for name in re.findall(r"^module (\w+)", path.read_text(), re.M)}
    names = {name for name in names if not name.startswith(("_", "$"))}
    assert names
    assert {name for name in names if why_no_module(name) is None} == set()


@pytest.mark.parametrize(
    "name", ["ALU", "LUT4", "RAM64x12", "dffeas", "units", "inf", "entity", "checker", "Signal", "2x"]
)
def test_names_that_are_refused(name):
    assert why_no_module(name)


@pytest.mark.parametrize("name", ["dot_product_unit", "FPU_top", "myALU", "a", "X"])
def test_names_that_are_taken(name):
    assert why_no_module(name) is None


@pytest.mark.parametrize("unit", IN_ALL)
def test_ports_of_tops_suit_every_language(unit):
    emission = Emission()
    emission.add_top(make_block(unit, "tiny"), unit)
    emission.verilog()
    top = next(module for module in read_rtlil(emission.netlist) if module.name == unit)
    ports = [name[1:].lower() for name in top.directions]
    assert len(set(ports)) == len(ports) and not RESERVED & set(ports)
