"""Roles of blocks: attributes of their modules in the Verilog and in the manifest; circuits by emission target."""

import json
import re
from itertools import product

import pytest
from amaranth.hdl import Elaboratable, Module
from amaranth.lib import wiring
from amaranth.lib.wiring import Out
from amaranth.sim import Simulator

from hw.arith.multiplier import RecodedMultiplier, UnsignedMultiplier
from hw.arith.prefix_adder import PrefixAdder
from hw.emit.emission import Emission, attribute_line
from hw.emit.package import build_package
from hw.lib.memory import MemoryBank
from hw.registry import make_block

# Two operands, made as wide as their product.
_PRODUCT = r" = \{\d+'h00*, \w+\} \* \{\d+'h00*, \w+\};"


def attributes_in(files):
    """``{module: attribute line}`` of emitted Verilog."""
    text = "".join(text for name, text in files.items() if name.endswith(".v"))
    return {name: line for line, name in re.findall(r"^(\(\* role.*\*\)\n)(?:.*\n)?(?:.*\n)?module (\w+)", text, re.M)}


def listed_in(files):
    """``{module: attributes}`` of a manifest, of the modules that have a role."""
    modules = json.loads(files["manifest.json"])["modules"]
    attributes = {
        name: {key: entry[key] for key in entry if key not in ("file", "sha256")} for name, entry in modules.items()
    }
    return {name: entry for name, entry in attributes.items() if entry}


@pytest.mark.parametrize("memory", ["model", "macro"])
def test_a_memory_says_that_it_is_one_and_its_bits(memory):
    files = build_package({"bank": MemoryBank(depth=24, width=5)}, memory)
    assert attributes_in(files) == {"bank": '(* role = "memory", bits = 120 *)\n'}
    assert listed_in(files) == {"bank": {"role": "memory", "bits": 120}}


def test_the_manifest_lists_what_the_verilog_says():
    files = build_package({"dot_product_unit": make_block("dot_product_unit", "tiny")})
    listed = listed_in(files)
    assert attributes_in(files) == {name: attribute_line(attributes) for name, attributes in listed.items()}
    roles = {attributes["role"] for attributes in listed.values()}
    assert roles == {"adder", "dot_product", "multiplier", "full_adder_row", "half_adder_row"}
    assert listed["dot_product_unit"] == {"role": "dot_product"}


def test_a_block_without_a_role_has_no_attribute():
    files = build_package({"bitonic_sorter": make_block("bitonic_sorter", "tiny")})
    assert attributes_in(files) == {} == listed_in(files)


def test_a_target_that_there_is_not():
    with pytest.raises(ValueError, match="target must be one of asic, fpga, not 'gpu'"):
        Emission(target="gpu")


MULTIPLIERS = [
    lambda: UnsignedMultiplier(multiplicand_width=4, multiplier_width=3),
    lambda: RecodedMultiplier(multiplicand_width=3, multiplier_width=4, registered=False),
    lambda: RecodedMultiplier(multiplicand_width=3, multiplier_width=4),
]


@pytest.mark.parametrize("make", MULTIPLIERS)
def test_multipliers_of_the_fpga_target_are_one_product(make):
    files = {target: build_package({"top": make()}, target=target)["top.v"] for target in ("asic", "fpga")}
    assert re.search(_PRODUCT, files["fpga"]) and "adder_row" not in files["fpga"]
    assert not re.search(_PRODUCT, files["asic"])


def test_an_adder_of_the_fpga_target_is_an_addition():
    files = {
        target: build_package({"top": PrefixAdder(width=12)}, target=target)["top.v"] for target in ("asic", "fpga")
    }
    assert " = a + b;" in files["fpga"] and "keep" not in files["fpga"]
    assert " + " not in files["asic"].split("module top")[1]


def test_the_nodes_of_an_adder_are_kept():
    """All nodes above the pairs of bits, and nothing else; a fifth pair of bits begins the third level."""
    verilog = build_package({"top": PrefixAdder(width=11)})["top.v"]
    kept = re.findall(r"^  \(\* keep \*\) wire (?:\[(\d+):0\] )?(\w+);$", verilog, re.M)
    nodes = {name: int(high or 0) + 1 for high, name in kept}
    assert nodes == {"generate_2": 2, "propagate_2": 1, "generate_4": 2, "generate_8": 1}
    assert verilog.count("keep") == len(kept)


class KeptOutput(wiring.Component):
    y: Out(2)

    def elaborate(self, platform):
        self.y.attrs["keep"] = 1
        m = Module()
        m.d.comb += self.y.eq(2)
        return m


def test_a_kept_net_may_be_a_port():
    emission = Emission()
    emission.add_top(KeptOutput(), "top")
    assert "  (* keep *) output wire [1:0] y\n" in emission.verilog()["top"]


class OnFpga(Elaboratable):
    """A block as the platform of the emission for FPGAs elaborates it."""

    def __init__(self, block):
        self._block = block

    def elaborate(self, platform):
        return self._block.circuit_for("fpga")


@pytest.mark.parametrize("make", MULTIPLIERS)
@pytest.mark.parametrize("wrap", [OnFpga, lambda block: block])
def test_multipliers_multiply_on_both_targets(make, wrap):
    """All operands, one an advance; while there is none, a registered product holds."""
    block = make()
    is_registered = "advance" in block.signature.members
    simulator = Simulator(wrap(block))
    if is_registered:
        simulator.add_clock(1e-9)

    async def bench(context):
        operands = product(range(1 << len(block.multiplicand)), range(1 << len(block.multiplier)))
        for number, (first, second) in enumerate(operands):
            context.set(block.multiplicand, first)
            context.set(block.multiplier, second)
            if is_registered:
                context.set(block.advance, 1)
                await context.tick()
                context.set(block.advance, 0)
                context.set(block.multiplicand, number % 5)
                await context.tick()
            assert context.get(block.product) == first * second

    simulator.add_testbench(bench)
    simulator.run()
