"""Delay tables of a library: interpolation, and one sentence for tables that are damaged."""

import numpy as np
import pytest

from hw.synthesis import sta
from hw.synthesis.sta import delay_tables
from verif.synthesis import mini_liberty


def test_tables_are_interpolated_and_extrapolated():
    tables = delay_tables.DelayTables(mini_liberty.text())
    nand = tables.cells["NAND2"].first
    arc = np.array([nand] * 4)
    slews, loads = np.array([1.0, 500.0, 250.5, 999.0]), np.array([0.1, 60.0, 30.05, 60.0])
    delay, slew = tables.arcs.look_up(arc, slews, tables.arcs.at_loads(arc, loads))
    # 40 ps at the first point; 5 and 2 times as much at the ends of the axes, 6 times at both
    assert delay == pytest.approx([40.0, 240.0, 140.0, 240.0 + 40 * 499 / 499], rel=1e-6)
    assert slew == pytest.approx(delay)
    (by_slew, by_load), _ = tables.arcs.gradients(arc, slews, tables.arcs.at_loads(arc, loads))
    assert by_slew == pytest.approx([40 / 499] * 4)
    assert by_load == pytest.approx([160 / 59.9] * 4)


@pytest.mark.parametrize(
    "change, message",
    [
        (lambda text: text.replace('values ("', 'values ("x'), "has delay tables that cannot be read"),
        (lambda text: text.replace('time_unit : "1ns"', 'time_unit : "one"'), "has delay tables that cannot be read"),
        (lambda text: text.replace('index_2 ("0.1, 60")', 'index_2 ("60, 0.1")'), "points are no rising numbers"),
        (lambda text: text.replace('values ("0.', 'values ("nan0.'), "has delay tables that cannot be read"),
        (lambda text: text.replace('index_1 ("0.001, 0.5");', ""), "has delay tables that cannot be read"),
    ],
)
def test_broken_tables_are_one_sentence(tmp_path, change, message):
    path = tmp_path / "broken.lib"
    path.write_text(change(mini_liberty.text()))
    with pytest.raises(ValueError, match=message) as caught:
        sta.read_delay_tables(path, path.read_text())
    assert "\n" not in str(caught.value)
