"""Headers are contracts: every port and field of every block says what it means, and so does a user's own top."""

import re

import pytest
from amaranth.hdl import Module
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.emit.contract import contract_of, members
from hw.emit.header import file_header
from hw.emit.package import build_package
from hw.registry import BLOCKS, PRESETS, make_block, unit_class

FURTHER = [
    ("dot_product_unit", {"format": "int8"}),
    ("token_selector", {"reference": "last"}),
    ("token_selector", {"reference": "last", "bounds": 2}),
    ("hash_bank_mapper", {"multiplier": "runtime"}),
    ("bitonic_sorter", {"payload_width": 0}),
    ("dot_product_array", {"query_depth": 10}),
    ("spmm_array", {"wide": True}),
    ("quantizer_unit", {"reconstruct": True}),
]
CONFIGURATIONS = [(name, config, {}) for name in BLOCKS for config in PRESETS] + [
    (name, None, parameters) for name, parameters in FURTHER
]


def docs(name, config, parameters):
    """``{member or member.field: sentence}`` of a block."""
    found = {}
    for member in members(make_block(name, config, parameters)):
        found[member["name"]] = member["doc"]
        found |= {f"{member['name']}.{field['name']}": field["doc"] for field in member["fields"]}
    return found


@pytest.mark.parametrize("name, config, parameters", CONFIGURATIONS)
def test_every_port_and_field_says_what_it_means(name, config, parameters):
    found = docs(name, config, parameters)
    assert found and [key for key, text in found.items() if not text] == []
    assert not [text for text in found.values() if "{" in text]


@pytest.mark.parametrize("name", BLOCKS)
def test_no_sentence_is_of_a_port_that_there_is_not(name):
    found = set()
    for configuration in CONFIGURATIONS:
        if configuration[0] == name:
            found |= {re.sub(r"_\d+\b|\[\d+\]", "", key) for key in docs(*configuration)}
    assert {re.sub(r"_\d+\b", "", key) for key in unit_class(name).members_doc} == found


@pytest.mark.parametrize("name", BLOCKS)
def test_numbers_have_a_format(name):
    """An array of 16-bit words is of numbers whose format is told, or of what is no number."""
    for member in members(make_block(name, "small")):
        for field in member["fields"]:
            if field["lanes"].endswith("x 16"):
                assert re.search(r"(?i)fp16|bf16|any bits|as they came|slot s|word", field["doc"]), field


def test_a_header_is_all_one_needs_to_connect():
    block = make_block("softmax_unit", "tiny")
    text = file_header("softmax_unit", contract_of(block), {"clk", "rst"})
    words = " ".join(text.replace("//", " ").split())
    for phrase in (
        "(1 + bits 14:0 / 2**15) * 2**(bits 18:15 - 12)",
        "latency 26 clocks, one beat every 1 clock(s)",
        "rst synchronous, active high",
        "While rst is 1 a ready may be 1, and a beat offered then is lost",
        "Of a stream that is not used",
        "hold it at 1 (0x3c00)",
        "n_banks = 4",
    ):
        assert phrase in words, phrase
    assert max(map(len, text.splitlines())) <= 120


class Passing(wiring.Component):
    """Passes beats on; a user's own design."""

    source: In(stream.Signature(data.StructLayout({"left": 3, "right": 5})))
    sink: Out(stream.Signature(8))
    members_doc = {"source": "pairs", "source.left": "a count", "source.right": "a mark", "sink": "the same bits"}

    def elaborate(self, platform):
        m = Module()
        m.d.comb += [
            self.sink.payload.eq(self.source.payload),
            self.sink.valid.eq(self.source.valid),
            self.source.ready.eq(self.sink.ready),
        ]
        return m


class Bare(Passing):
    members_doc = None


def test_a_users_top_has_a_full_header():
    text = build_package({"passing": Passing()})["passing.v"]
    for line in (
        "// passing: Passes beats on; a user's own design.",
        "//   source: input stream, 8 bits. pairs",
        "//            [2:0] left (3 bits): a count",
        "//   sink: output stream, 8 bits. the same bits",
    ):
        assert f"{line}\n" in text
    assert "latency" not in text and "rst" not in text


def test_a_users_top_may_say_nothing():
    text = build_package({"bare": Bare()})["bare.v"]
    assert "// bare: A design around blocks of the generator.\n" in text
    assert "//   sink: output stream, 8 bits.\n" in text
