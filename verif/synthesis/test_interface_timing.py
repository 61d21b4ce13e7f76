"""Interface timing: the load of a module's inputs delays their drivers, within its boundary constraints."""

from collections import Counter

import pytest

from hw.synthesis.repair.buffering import add_trees, remove_buffers
from hw.synthesis.repair.sizing import Sizer, SizingTarget
from hw.synthesis.sta.analysis import Analysis
from hw.synthesis.sta.characterize import interface_timing
from hw.synthesis.sta.hierarchy import constrain_boundaries, time_hierarchy
from hw.synthesis.sta.interface_timing import BoundaryConstraints
from verif.synthesis import mini_liberty

CLOCK, A, B, Y = range(2, 6)
KEY = ("a", 0)


@pytest.fixture
def parts(tmp_path):
    return mini_liberty.read(tmp_path)


def design(library, n_loads, n_instances):
    """A register that drives instances of a module whose input has some inverters."""
    loads = {f"load_{n}": ("INV", {"A": A, "Y": 20 + n}) for n in range(n_loads)}
    outputs = [20 + n for n in range(n_loads)]
    inner = mini_liberty.module({"clk": ("input", [CLOCK]), "a": ("input", [A]), "y": ("output", outputs)}, loads)
    ends = [[100 * (n + 1) + output for output in outputs] for n in range(n_instances)]
    instances = {f"one_{n}": ("inner", {"clk": CLOCK, "a": B, "y": end}) for n, end in enumerate(ends)}
    cells = {"register": ("DFF", {"CK": CLOCK, "D": Y, "Q": B}), **instances}
    return mini_liberty.netlist(library, {"clk": ("input", [CLOCK]), "d": ("input", [Y])}, cells, inner=inner)


@pytest.mark.parametrize("n_instances", [1, 3])
def test_more_load_delays_the_driver_outside(parts, n_instances):
    """As much as if the boundary constraints were worked out again; alike instances change together."""
    library, tables = parts
    found = []
    for n_loads in (1, 4):
        netlist = design(library, n_loads, n_instances)
        inner = Analysis(netlist, "inner", tables, library, "clk")
        inner.update()
        found.append(
            (netlist, constrain_boundaries(netlist, "top", tables, "clk", {"inner": interface_timing(inner)})["inner"])
        )
    (_, before), (netlist, after) = found
    inner = Analysis(netlist, "inner", tables, library, "clk", constraints=before)
    inner.update()
    net = inner.bits().index(A)
    assert after.arrival[KEY][0] > before.arrival[KEY][0] + 1
    assert inner.arrival.reshape(-1, 2)[net] == pytest.approx(after.arrival[KEY], abs=0.01)


def test_the_sides_of_a_boundary_share_what_a_path_is_too_long(parts):
    """Of a path from a register through a module to a register, all shrinks alike; of one that is short, nothing."""
    library, tables = parts
    inner = mini_liberty.module({"a": ("input", [A]), "y": ("output", [Y])}, {"inside": ("INV", {"A": A, "Y": Y})})
    cells = {
        "from": ("DFF", {"CK": CLOCK, "D": 10, "Q": 11}),
        "before": ("XOR2", {"A": 11, "B": 11, "Y": 12}),
        "one": ("inner", {"a": 12, "y": 13}),
        "after": ("INV", {"A": 13, "Y": 14}),
        "to": ("DFF", {"CK": CLOCK, "D": 14, "Q": 15}),
    }
    netlist = mini_liberty.netlist(library, {"clk": ("input", [CLOCK]), "d": ("input", [10])}, cells, inner=inner)
    period, interfaces = time_hierarchy(netlist, "top", tables, "clk", from_inputs=True)
    free = constrain_boundaries(netlist, "top", tables, "clk", interfaces)["inner"]
    for goal, share in ((period * 0.8, 0.8), (period * 2, 1.0)):
        wanted = constrain_boundaries(netlist, "top", tables, "clk", interfaces, goal_ps=goal)["inner"]
        assert max(wanted.arrival[KEY]) == pytest.approx(share * max(free.arrival[KEY]), rel=0.05)
        assert max(wanted.needed["y", 0]) == pytest.approx(share * max(free.needed["y", 0]), rel=0.05)
        assert wanted.slew == free.slew and wanted.load == free.load


@pytest.mark.parametrize("resistance, stays", [(0.0, False), (5.0, True)])
def test_a_buffer_at_an_input_stays_where_its_loads_would_delay_the_input(parts, resistance, stays):
    library, tables = parts
    ports = {"clk": ("input", [CLOCK]), "a": ("input", [A]), "y": ("output", [30 + n for n in range(20)])}
    cells = {
        "buffer": ("BUF", {"A": A, "Y": B}),
        **{f"waits_{n}": ("INV", {"A": B, "Y": 30 + n}) for n in range(20)},
        "late": ("INV", {"A": A, "Y": Y}),
        "register": ("DFF", {"CK": CLOCK, "D": Y, "Q": 60}),
    }
    netlist = mini_liberty.netlist(library, ports, cells)
    constraints = BoundaryConstraints(
        arrival={KEY: (300.0, 300.0)},
        slew={KEY: (5.0, 5.0)},
        resistance={KEY: (resistance, resistance)},
        reference_load={KEY: (2.0, 2.0)},
        is_complete=True,
    )
    sizer = Sizer(Analysis(netlist, "top", tables, library, "clk", constraints=constraints), library)
    sizer.analysis.update()
    remove_buffers(netlist, "top", sizer, SizingTarget(330.0, 1.0, 5.0))
    assert ("buffer" in mini_liberty.cells_of(netlist)) == stays


def test_the_gradient_knows_what_drives_an_input(parts):
    """A fF more at an input costs what the cost grows by when its driver is that much later."""
    library, tables = parts
    ports = {"clk": ("input", [CLOCK]), "a": ("input", [A])}
    cells = {"late": ("INV", {"A": A, "Y": Y}), "register": ("DFF", {"CK": CLOCK, "D": Y, "Q": 60})}
    netlist = mini_liberty.netlist(library, ports, cells)
    target = SizingTarget(300.0, 1.0, 5.0)

    def sizer(reference_load):
        constraints = BoundaryConstraints(
            {KEY: (300.0, 300.0)}, {KEY: (5.0, 5.0)}, {KEY: (3.0, 3.0)}, {KEY: reference_load}
        )
        made = Sizer(Analysis(netlist, "top", tables, library, "clk", constraints=constraints), library)
        made.analysis.update()
        return made

    here, heavier = sizer((2.0, 2.0)), sizer((1.9, 1.9))  # as if 0.1 fF were added
    net = here.analysis.bits().index(A)
    by_load = here.gradient(target).load.reshape(-1, 2)[net].sum()
    assert by_load == pytest.approx((heavier.cost(target) - here.cost(target)) / 0.1, rel=0.02)
    assert by_load > 1


def test_a_small_load_with_much_time_does_not_keep_large_ones_from_a_tree(parts):
    library, tables = parts
    netlist = design(library, 30, 8)
    netlist.modules["top"]["cells"]["idle"] = {"type": "INV", "connections": {"A": [B], "Y": [99]}}
    inner = Analysis(netlist, "inner", tables, library, "clk")
    inner.update()
    analysis = Analysis(netlist, "top", tables, library, "clk", {"inner": interface_timing(inner)})
    assert add_trees(netlist, "top", analysis, "tree_") >= 8
    cells = netlist.modules["top"]["cells"]
    loads = Counter(
        "inner" if cell["type"] == "inner" else "other"
        for cell in cells.values()
        if [B] in cell["connections"].values()
    )
    assert loads["inner"] == 0
