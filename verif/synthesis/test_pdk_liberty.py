"""A library in the style of an open PDK means the same as in plain style, to the reader and to the whole flow."""

import numpy as np
import pytest

from hw.synthesis import flow, liberty, sta
from verif.synthesis import mini_liberty, pdk_liberty
from verif.synthesis.designs import DESIGN


@pytest.fixture
def files(tmp_path):
    """The two libraries, and that of the PDK's style without the cells that the other has not."""
    texts = {"mini": mini_liberty.text(), "pdk": pdk_liberty.text(), "same": pdk_liberty.text(extra="")}
    for name, text in texts.items():
        (tmp_path / f"{name}.lib").write_text(text)
    return {name: tmp_path / f"{name}.lib" for name in texts}


def test_cells_and_functions_are_the_same(files):
    mini, pdk = liberty.read(files["mini"]), liberty.read(files["pdk"])
    for name, cell in mini.cells.items():
        other = pdk.cells[name]
        assert other.area == cell.area and other.storage == cell.storage and other.usable
        assert other.inputs == pytest.approx(cell.inputs)
        assert other.functions == cell.functions and other.behaviour == cell.behaviour
    assert (pdk.name, pdk.nand2.name, pdk.buffer.name, pdk.full_adder) == ("mini", "NAND2", "BUF", mini.full_adder)
    assert pdk.output_load == pytest.approx(mini.output_load)


def test_flip_flops_clock_gates_buses_and_what_must_not_be_used(files):
    cells = liberty.read(files["pdk"]).cells
    register = cells["mini__dfrtp"]
    assert register.storage == "flip-flop" and register.state_names == ("IQ", "IQ_N")
    assert dict(register.state) | {"power_down_function": ""} == {
        "clear": "!RESET_B", "clocked_on": "CLK", "next_state": "D", "power_down_function": "",
    }  # fmt: skip
    assert register.inputs == pytest.approx({"CLK": 1.8, "D": 1.7, "RESET_B": 3.5})
    gate = cells["mini__dlclkp"]
    assert gate.storage == "clock gate" and gate.clock_gate == {"clock": "CLK", "enable": "GATE", "out": "GCLK"}
    assert [name for name, cell in cells.items() if not cell.usable] == ["mini__unused", "mini__ram4"]
    assert cells["mini__ram4"].area == 1000 and cells["mini__ram4"].behaviour is None


def test_delay_tables_are_the_same(files):
    mini, pdk = (sta.read_delay_tables(path, path.read_text()) for path in (files["mini"], files["same"]))
    assert pdk.cells.keys() == mini.cells.keys()
    for name, cell in mini.cells.items():
        other = pdk.cells[name]
        assert (other.shape, other.setup_shape) == (cell.shape, cell.setup_shape)
        assert other.maximum_load == pytest.approx(cell.maximum_load)
        slews, loads = np.array([3.0, 700.0]), np.array([20.0, 90.0])
        for n in range(len(cell.shape)):
            found = [
                tables.arcs.look_up(arc := np.array([first + n] * 2), slews, tables.arcs.at_loads(arc, loads))
                for tables, first in ((mini, cell.first), (pdk, other.first))
            ]
            assert np.allclose(*found, rtol=2e-3)  # the plain library's delays have four decimals


@pytest.mark.slow
def test_the_flow_makes_the_same_netlist(files, tmp_path):
    (tmp_path / "top.v").write_text(DESIGN)
    reports = [flow.synthesise([tmp_path / "top.v"], "top", liberty=files[name]) for name in ("mini", "same")]
    assert reports[0]["figures"] == reports[1]["figures"]
    assert reports[1]["delay"]["worst_path_ps"] == pytest.approx(reports[0]["delay"]["worst_path_ps"], rel=2e-3)


@pytest.mark.parametrize("share", [0.1, 0.35, 0.6, 0.9])
def test_a_truncated_file_is_one_sentence(tmp_path, share):
    text = pdk_liberty.text()
    path = tmp_path / "cut.lib"
    path.write_text(text[: int(share * len(text))])
    with pytest.raises(ValueError, match="is truncated or malformed") as caught:
        liberty.read(path)
    assert "\n" not in str(caught.value)
