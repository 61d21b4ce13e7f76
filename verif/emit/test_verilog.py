"""The emitted Verilog computes what Yosys made of the design, reads well, and keeps its names apart."""

import re

import pytest
from amaranth.hdl import Array, Cat, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from hw.emit.emission import Emission
from hw.emit.equivalence import prove
from hw.registry import make_block
from verif.campaigns import lint

CASES = [
    ("bitonic_sorter", {"n": 4, "key_width": 3, "payload_width": 2, "stable": True}),
    ("hash_bank_mapper", {"n_columns": 40, "n_banks": 4, "multiplier": "runtime"}),
    ("token_selector", {"width": 5, "height": 3, "channels": 1, "patch": 2, "n_values": 2}),
    ("dot_product_unit", {"n_lanes": 2}),
    pytest.param("vector_unit", {"n_engines": 2, "n_lanes": 1, "bank_depth": 4}, marks=pytest.mark.slow),
]


def emitted(block, name):
    emission = Emission()
    emission.add_top(block, name)
    return emission, "\n".join(emission.verilog().values())


@pytest.mark.parametrize("unit, parameters", CASES)
def test_every_module_is_proved(unit, parameters):
    emission, text = emitted(make_block(unit, None, parameters), unit)
    verdicts = prove(emission.netlist, emission.matches, text)
    assert len(verdicts) == len(emission.matches) > 1 and set(verdicts.values()) == {True}


class Everything(wiring.Component):
    """Operators with operands of unequal width and sign, parts of registers, a memory, and names that clash."""

    a: In(5)
    b: In(8)
    n: In(3)
    start: In(1)
    count_2: In(1)
    units: Out(1)
    y: Out(64)
    z: Out(64)
    count: Out(4)

    def elaborate(self, platform):
        m = Module()
        m.submodules.memory = memory = Memory(shape=8, depth=6, init=[])
        write, read = memory.write_port(granularity=4), memory.read_port()
        m.d.comb += [write.addr.eq(self.n), write.data.eq(self.b), write.en.eq(self.a), read.addr.eq(self.a)]
        m.d.comb += read.en.eq(self.start)
        inf, below, count = Signal(8, name="inf"), Signal(name="Inf"), Signal(4)
        signed = self.b.as_signed()
        m.d.comb += [inf.eq(read.data ^ self.b), below.eq(self.a.as_signed() < signed), self.units.eq(below)]
        chosen = Array([self.a, ~self.a, self.a + 1])[self.n[:2]]
        m.d.comb += self.y.eq(
            Cat(self.a + self.b, (self.a - signed)[:9], -self.a, ~self.a & self.b, (self.a * signed)[3:])
        )
        m.d.comb += self.z.eq(
            Cat(signed >> self.n, (self.a << self.n)[:7], chosen, self.b == 0, inf, self.b % 5, self.a.all())
        )
        m.d.comb += self.count.eq(count)
        with m.If(self.start):
            m.d.sync += count.eq(4)
        with m.Elif((count != 0) & self.count_2):
            m.d.sync += count.eq(count - 1)
        with m.Switch(self.n):
            with m.Case(0):
                m.d.sync += count[1].eq(self.b[3])
            with m.Case(1, 2):
                m.d.comb += self.z[40:60].eq(self.y)
            with m.Case(6):
                m.d.comb += self.z[40:60].eq(self.y[7:])
        return m


@pytest.fixture(scope="module")
def everything():
    return emitted(Everything(), "everything")


def test_all_operators_are_proved_and_clean(everything):
    emission, text = everything
    assert prove(emission.netlist, emission.matches, text) == {"everything": True}
    report = lint.lint({"everything.v": lint.as_file("", [text])}, ["everything"])
    assert {tool: found for tool, found in report.items() if found} == {}
    assert "inf_net" in text and not re.search(r"\bI?inf\b|\\", text)


@pytest.mark.parametrize(
    "right, wrong",
    [
        (r" \+ ", " - "),
        (r"<= count_next", "<= ~count_next"),
        (r"\[3:0\] <=", "[7:4] <="),
        (r"\$signed\((\w+)\)", r"\1"),
        (r"if \(start\)", "if (!start)"),
    ],
)
def test_a_wrong_text_is_not_proved(everything, right, wrong):
    emission, text = everything
    changed = re.sub(right, wrong, text, count=1)
    assert changed != text
    assert prove(emission.netlist, emission.matches, changed) == {"everything": False}


# Nets and registers that are named by what they are or feed, such as sum_next, in thousand lines.
@pytest.mark.parametrize("unit", ["dot_product_unit", "softmax_unit"])
def test_text_reads_well(unit):
    _, text = emitted(make_block(unit, "tiny"), unit)
    assert not re.search(r"\b_\w*\d+_\b|\b_signal|\$(?!signed|unsigned)", text)
    assert max(map(len, text.splitlines())) <= 120
    assert not re.search(r"'d\d{3}", text)
