"""Hierarchy: which modules are preserved, how they are counted, how the area of a core divides over its parts."""

import pytest

from hw.registry import make_block
from hw.synthesis import flow, groups, worker
from verif.synthesis import mini_liberty
from verif.synthesis.designs import TWINS


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    path = tmp_path_factory.mktemp("library") / "mini.lib"
    path.write_text(mini_liberty.text())
    return path


@pytest.fixture(scope="module")
def twins(tmp_path_factory):
    path = tmp_path_factory.mktemp("design") / "twins.v"
    path.write_text(TWINS)
    return path


def test_hierarchy_is_multiplied_out(twins, library):
    files = [twins]
    parts = flow.synthesise(files, "twins", liberty=library, flatten="hierarchy")
    whole = flow.synthesise(files, "twins", liberty=library, flatten="flat")
    assert parts["flattening"]["preserved_modules"] == ["leaf"]
    assert whole["flattening"]["preserved_modules"] == []
    rows = {row["module"]: row for row in parts["modules"]}
    assert (rows["leaf"]["instances"], rows["leaf"]["flip_flops"]) == (3, 8)
    assert parts["figures"]["flip_flops"] == whole["figures"]["flip_flops"] == 24
    assert parts["figures"]["area_um2"] == pytest.approx(3 * rows["leaf"]["area_um2"])


def test_estimates_of_a_hierarchy(twins, library):
    parts = flow.synthesise([twins], "twins", flatten="hierarchy")["figures"]
    whole = flow.synthesise([twins], "twins", flatten="flat")["figures"]
    assert parts["transistors_estimate"] == whole["transistors_estimate"]
    assert parts["logic_depth_estimate"] == whole["logic_depth_estimate"] == 1


def cell(kind, width=1):
    return {"type": kind, "connections": {"Y": list(range(width))}}


def module(role=None, **cells):
    return {"attributes": {"role": role} if role else {}, "cells": cells}


def preserving(*names):
    """What flattening does if these modules are preserved."""
    return [*(f"setattr -mod -set keep_hierarchy 1 {name}" for name in sorted(names)), "flatten", "opt_clean"]


def test_auto_preserves_large_modules_that_repeat():
    modules = {
        "big": module(x=cell("$xor", 500)),
        "small": module(x=cell("$xor", 5)),
        "single": module(x=cell("$xor", 500)),
        "top": module(a=cell("big"), b=cell("big"), c=cell("small"), d=cell("small"), e=cell("single")),
    }
    assert worker.flatten(modules, "top", "auto", 1000, 100, 0) == preserving("big")
    assert worker.flatten(modules, "top", "auto", 2000, 100, 0) == preserving()
    assert worker.flatten(modules, "top", "flat", 1000, 100, 0) == preserving()
    assert worker.flatten(modules, "top", "hierarchy", 1000, 100, 0) == []


@pytest.mark.parametrize("most, preserved", [(300, ["leaf", "pair"]), (600, ["pair"])])
def test_a_module_of_moderate_size_is_not_divided(most, preserved):
    """What is in it is flattened unless it is a part of a core; a table of constants is as small as it is."""
    table = {"type": "$shr", "connections": {"A": ["0"] * 256, "B": list(range(8)), "Y": list(range(256))}}
    modules = {
        "leaf": module(x=cell("$xor", 150)),
        "engine": module("dot_product", x=cell("$xor", 150)),
        "pair": module(a=cell("leaf"), b=cell("leaf"), c=cell("engine"), t=table),
        "top": module(a=cell("pair"), b=cell("pair"), x=cell("$xor", 500)),
    }
    assert worker.flatten(modules, "top", "auto", 1000, 100, most) == preserving("engine", *preserved)
    assert worker.flatten(modules, "top", "auto", 1600, 100, most) == preserving()


def test_auto_preserves_the_parts_of_a_core():
    modules = {
        "engine": module("dot_product", x=cell("$xor", 500)),
        "lanes": module("vector_lanes", x=cell("$xor", 5)),
        "core": module(a=cell("engine"), b=cell("lanes"), c=cell("$xor", 900)),
    }
    assert worker.flatten(modules, "core", "auto", 1000, 100, 0) == preserving("engine")


@pytest.mark.parametrize("unit", ["dot_product_unit", "vector_unit", "softmax_unit", "layer_norm_unit"])
def test_the_units_have_the_roles_of_the_parts(unit):
    attributes = make_block(unit, "tiny").module_attributes
    assert groups.part_of({"attributes": attributes}) in groups.PARTS.values()


def test_area_divides_over_the_parts_of_a_core():
    """A part has all that is below it, however often; what is below none is everything else."""
    netlist = {
        "core": {"array": 2, "vector_unit_8": 1, "INV_X1": 3},
        "array": {"dot_product_unit_16": 4, "queue": 1},
        "dot_product_unit_16": {"lane": 2, "queue": 1},
        "vector_unit_8": {"lane": 8, "dot_product_united": 1},
        "dot_product_united": {},
        "lane": {},
        "queue": {},
    }
    own = {
        "core": 10.0,
        "array": 3.0,
        "dot_product_unit_16": 5.0,
        "vector_unit_8": 2.0,
        "dot_product_united": 0.5,
        "lane": 1.0,
        "queue": 0.25,
    }
    parts = {"dot_product_unit_16": "dot products", "vector_unit_8": "vector lanes", "lane": None}
    assert groups.divide(netlist, "core", own, parts) == {
        "dot products": 8 * (5.0 + 2 * 1.0 + 0.25),
        "vector lanes": 2.0 + 8 * 1.0 + 0.5,
        "everything else": 10.0 + 2 * (3.0 + 0.25),
    }
    assert groups.divide({"lane": {}}, "lane", own, parts) is None
