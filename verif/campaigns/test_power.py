"""Power: what is read from a waveform, what OpenSTA makes of it, and what is said where something is missing."""

import io
import json
import os
import shutil
from pathlib import Path

import pytest

from hw.cli.arguments import reporting_errors
from hw.synthesis import liberty, power, timing
from verif.campaigns import power as command
from verif.campaigns.activity import read_vcd
from verif.synthesis import mini_liberty

REFERENCE = Path(os.environ.get("LIBERTY") or Path(__file__).parents[3] / "shared" / "lib" / "nangate45_typ.lib.gz")
needs_opensta = pytest.mark.skipif(timing.opensta_version() is None, reason="OpenSTA (sta) is not installed")
needs_library = pytest.mark.skipif(not REFERENCE.exists(), reason="the reference library is not here (LIBERTY)")

WAVES = """$timescale 10ps $end
$scope module bench $end
$var wire 1 ! before $end
$scope module top $end
$var wire 1 " a $end
$var wire 2 # b [1:0]
 $end
$scope module part $end
$var wire 1 " inner $end
$upscope $end $upscope $end $upscope $end
$enddefinitions $end
#0
x"
bxx #
1!
#10
1"
b0 #
#15
0!
0"
#20
1"
b10 #
#40
0"
b1 #
#60
1"
""".replace("$upscope $end $upscope $end $upscope $end", "$upscope $end\n$upscope $end\n$upscope $end")


def test_transitions_in_a_window_of_time():
    found = read_vcd(io.BytesIO(WAVES.encode()), "top", 100, 500)
    # From 100 to 500 ps: a is 1 but for 150-200 and 400-500; the rise at 100 is where the window begins.
    assert found[()] == {"a": (3, 0.625), "b[0]": (1, 0.25), "b[1]": (2, 0.5)}
    assert found[("part",)] == {"inner": (3, 0.625)}
    assert set(found) == {(), ("part",)}


def test_what_is_unknown_is_half_and_no_transition():
    found = read_vcd(io.BytesIO(WAVES.encode()), "top", 0, 200)
    # Unknown for 100 ps, 1 for 50; the fall at 150 and the rise at 200 are transitions, the first value is none.
    assert found[()]["a"] == (2, pytest.approx((100 * 0.5 + 50) / 200))


CLOCK, ENABLE, A, Y, GATED, Q, QN = range(2, 9)
PORTS = {"clk": ("input", [CLOCK]), "en": ("input", [ENABLE]), "a": ("input", [A]), "y": ("output", [Y])}


def chain(tmp_path, gated, rate, period_ps=1000):
    """The library and the power of a flip-flop and an inverter behind it, maybe with a clock gate."""
    cells = {
        "_r_": ("DFF_X1", {"CK": GATED if gated else CLOCK, "D": A, "Q": Q, "QN": QN}),
        "_g_": ("INV_X1", {"A": Q, "ZN": Y}),
    }
    if gated:
        cells["_c_"] = ("CLKGATE_X1", {"CK": CLOCK, "E": ENABLE, "GCK": GATED})
    library = liberty.read(REFERENCE)
    (tmp_path / "cells.lib").write_text(liberty.read_text(REFERENCE))
    nets = {(): {net: (rate, 0.5) for net in ("a", f"n{Q}", f"n{QN}", "y")}}
    netlist = mini_liberty.netlist(library, PORTS, cells)
    figures = power.report(tmp_path, netlist, "top", "clk", period_ps, nets)
    assert len(netlist.modules["top"]["cells"]) == len(cells)  # which is left as it was
    return library, figures


@needs_opensta
@needs_library
def test_opensta_takes_the_activity_of_every_net(tmp_path):
    library, figures = chain(tmp_path, False, 0.25)
    load = library.cells["INV_X1"].inputs["A"] + library.output_load  # of the net between and y
    switching = 0.5 * load * 1e-15 * 1.1**2 * 0.25 / 1e-9 * 1000
    assert figures["switching_mw"] == pytest.approx(switching, rel=0.02)
    parts = [figures[f"{part}_mw"] for part in ("internal", "switching", "leakage")]
    assert figures["total_mw"] == pytest.approx(sum(parts), rel=1e-3) and all(part > 0 for part in parts)
    _, idle = chain(tmp_path, False, 0)
    assert idle["switching_mw"] == 0 and 0 < idle["internal_mw"] < figures["internal_mw"]
    assert idle["leakage_mw"] == figures["leakage_mw"]
    _, slow = chain(tmp_path, False, 0.25, 2000)
    assert slow["internal_mw"] == pytest.approx(figures["internal_mw"] / 2, rel=1e-3)


@needs_opensta
@needs_library
def test_a_gated_clock_counts_as_the_clock(tmp_path):
    assert chain(tmp_path, True, 0.25)[1] == chain(tmp_path, False, 0.25)[1]


@pytest.mark.slow
@needs_opensta
@needs_library
@pytest.mark.skipif(shutil.which("iverilog") is None, reason="Icarus Verilog is not installed")
def test_a_block_from_synthesis_to_energy(tmp_path, capsys):
    arguments = ["bitonic_sorter", "-p", "n=2", "key_width=4", "payload_width=2", "--sim", "icarus", "-n", "40"]
    assert command.main([*arguments, "--liberty", str(REFERENCE), "-o", str(tmp_path)]) == 0
    (path,) = tmp_path.glob("bitonic_sorter_n-2_key_width-4_payload_width-2_area_1000ps_auto_*_40beats_seed-1.json")
    report = json.loads(path.read_text())
    assert report["results"] == 40 and report["clocks"] < 60
    energy = report["total_mw"] * report["period_ps"] / 1000 * report["clocks"] / report["results"]
    assert report["picojoules_a_result"] == pytest.approx(energy, rel=1e-3)
    # 26 flip-flops take some 15 fJ a clock each; the rest is a few dozen gates.
    assert 0.3 < report["picojoules_a_result"] < 1.5
    shown = capsys.readouterr().out
    assert all(text in shown for text in (*power.ASSUMPTIONS, "pJ a result", "activity:"))


@pytest.mark.parametrize(
    "arguments, has_opensta, message",
    [
        (["hash_bank_mapper"], True, "power needs a cell library: --liberty FILE"),
        (["hash_bank_mapper", "--liberty", "x.lib"], False, "power needs OpenSTA (on Debian and Ubuntu: apt install"),
        (["core", "--liberty", "x.lib"], True, "core has no testbench at full rate"),
        (["hash_bank_mapper", "--liberty", "x.lib"], True, "library x.lib does not exist"),
        (["hash_bank_mapper", "--liberty", "x.lib", "-n", "0"], True, "--count must be an integer from 1, not 0"),
    ],
)
def test_what_is_missing_is_said(arguments, has_opensta, message, monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(timing, "opensta_version", lambda: "2.0.17" if has_opensta else None)
    assert reporting_errors(lambda: command.main([*arguments, "-o", str(tmp_path / "out")])) == 2
    error = capsys.readouterr().err.splitlines()[-1]
    assert error.startswith("error: ") and message in error
