"""Buffers of a mapped netlist: those of no use are removed, and their loads move to the net before them."""

import pytest

from hw.synthesis.repair.buffering import remove_buffers
from hw.synthesis.repair.sizing import Sizer, SizingTarget
from hw.synthesis.sta.analysis import Analysis
from verif.synthesis import mini_liberty

CLOCK, A, FIRST, SECOND, Y, Q = range(2, 8)
TARGET = SizingTarget(10_000, 0.5, 20.0)  # a period that is easily met: only area counts


@pytest.fixture
def parts(tmp_path):
    return mini_liberty.read(tmp_path)


def without_buffers(parts, cells, outputs):
    """The cells that are left, as ``{name: {pin: net}}``, after as many rounds as there is something to take out."""
    library, tables = parts
    ports = {"clk": ("input", [CLOCK]), "a": ("input", [A]), "y": ("output", outputs)}
    netlist = mini_liberty.netlist(library, ports, cells)
    while True:
        sizer = Sizer(Analysis(netlist, "top", tables, library, "clk"), library)
        sizer.analysis.update()
        if not remove_buffers(netlist, "top", sizer, TARGET):
            break
    return {name: pins for name, (_, pins) in mini_liberty.cells_of(netlist).items()}


def test_a_chain_of_buffers_is_removed(parts):
    cells = {
        "first": ("BUF", {"A": A, "Y": FIRST}),
        "second": ("BUF", {"A": FIRST, "Y": SECOND}),
        "inverter": ("INV", {"A": SECOND, "Y": Y}),
        "register": ("DFF", {"CK": CLOCK, "D": FIRST, "Q": Q}),
    }
    assert without_buffers(parts, cells, [Y, Q]) == {
        "inverter": {"A": A, "Y": Y},
        "register": {"CK": CLOCK, "D": A, "Q": Q},
    }


def test_a_buffer_that_drives_an_output_or_makes_the_clock_stays(parts):
    cells = {"out": ("BUF", {"A": Q, "Y": Y}), "register": ("DFF", {"CK": CLOCK, "D": A, "Q": Q})}
    assert without_buffers(parts, cells, [Y]).keys() == cells.keys()


@pytest.mark.parametrize("n_loads, stays", [(50, False), (70, True)])
def test_a_buffer_stays_where_its_loads_are_more_than_the_cell_before_it_may_drive(parts, n_loads, stays):
    inverters = {f"inverter_{n}": ("INV", {"A": SECOND, "Y": 20 + n}) for n in range(n_loads)}
    cells = {"driver": ("INV", {"A": A, "Y": FIRST}), "buffer": ("BUF", {"A": FIRST, "Y": SECOND}), **inverters}
    assert ("buffer" in without_buffers(parts, cells, [20 + n for n in range(n_loads)])) == stays
