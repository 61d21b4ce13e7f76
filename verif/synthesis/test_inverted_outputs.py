"""The second output of flip-flops: what becomes of inverters and ANDs beside them, and what must stay."""

import pytest

from hw.synthesis import liberty
from hw.synthesis.repair.inverted_outputs import MOST_LOADS, InvertedOutputs
from verif.synthesis import mini_liberty

CLOCK, A, B, DATA, Q, QN, FREE = range(2, 9)


@pytest.fixture
def library(tmp_path):
    cells = {**mini_liberty.CELLS, "AND2": (2.6, {"A": 1.0, "B": 1.0}, {"Y": "A & B"})}
    (tmp_path / "mini.lib").write_text(mini_liberty.text(cells))
    return liberty.read(tmp_path / "mini.lib")


def changed(library, cells, outputs):
    """The cells, as ``{name: (type, {pin: net})}``, of a module of some cells after the work."""
    ports = {"clk": ("input", [CLOCK]), "ab": ("input", [A, B]), "y": ("output", outputs)}
    netlist = mini_liberty.netlist(library, ports, cells)
    InvertedOutputs(library).use(netlist, "top")
    return mini_liberty.cells_of(netlist), netlist.modules["top"]["ports"]["y"]["bits"]


def register(**pins):
    return "DFF", {"CK": CLOCK, "D": DATA, **pins}


def test_inverters_before_and_behind_go(library):
    cells = {
        "before": ("INV", {"A": A, "Y": DATA}),
        "register": register(Q=Q, QN=QN),
        "behind": ("INVX2", {"A": Q, "Y": FREE}),
    }
    found, outputs = changed(library, cells, [Q, FREE])
    assert found == {"register": ("DFF", {"CK": CLOCK, "D": A, "QN": Q, "Q": QN})}
    assert outputs == [Q, QN]


def test_an_output_that_is_not_connected_is_used(library):
    cells = {"register": register(Q=Q), "behind": ("INV", {"A": Q, "Y": FREE})}
    found, outputs = changed(library, cells, [FREE])
    assert list(found) == ["register"]
    assert outputs == [found["register"][1]["QN"]] and outputs[0] not in (Q, FREE)


def test_an_and_becomes_a_nand(library):
    cells = {"gate": ("AND2", {"A": A, "B": B, "Y": DATA}), "register": register(Q=Q, QN=QN)}
    found, outputs = changed(library, cells, [Q])
    assert found["gate"] == ("NAND2", {"A": A, "B": B, "Y": DATA})
    assert found["register"] == ("DFF", {"CK": CLOCK, "D": DATA, "QN": Q, "Q": QN})
    assert outputs == [Q]


@pytest.mark.parametrize("gate", [("INV", {"A": A, "Y": DATA}), ("NAND2", {"A": A, "B": B, "Y": DATA})])
def test_what_others_read_or_is_small_stays(library, gate):
    outputs = [Q, DATA] if gate[0] == "INV" else [Q]
    cells = {"gate": gate, "register": register(Q=Q, QN=QN)}
    assert changed(library, cells, outputs) == (cells, outputs)


def test_an_inverter_with_many_loads_stays(library):
    loads = {f"load_{n}": ("INV", {"A": FREE, "Y": FREE + 1 + n}) for n in range(MOST_LOADS + 1)}
    cells = {"register": register(Q=Q, QN=QN), "behind": ("INV", {"A": Q, "Y": FREE}), **loads}
    found, _ = changed(library, cells, [])
    assert found == cells
    del cells["load_0"]
    found, _ = changed(library, cells, [])
    assert "behind" not in found and found["load_1"][1]["A"] == QN


def test_a_flip_flop_with_clear_stays(tmp_path):
    text = mini_liberty.text().replace('next_state : "D";', 'next_state : "D";\n      clear : "!D";')
    (tmp_path / "clear.lib").write_text(text)
    cells = {"before": ("INV", {"A": A, "Y": DATA}), "register": register(Q=Q, QN=QN)}
    assert changed(liberty.read(tmp_path / "clear.lib"), cells, [Q])[0] == cells
