"""The last touches on emitted Verilog: same function, in a form that every tool takes."""

import subprocess
import sys

import pytest
from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hw.emit import verilog_subset
from hw.emit.emission import Emission
from verif.campaigns import lint

SELECTION = """\
  function [3:0] _07_;
    input [3:0] a;
    input [11:0] b;
    input [2:0] s;
    casez (s) // synopsys parallel_case
      3'b??1:
        _07_ = b[3:0];
      3'b?1?:
        _07_ = b[7:4];
      3'b1??:
        _07_ = b[11:8];
      default:
        _07_ = a;
    endcase
  endfunction
"""
MODULE = """\
module {name}(input [3:0] a, input [11:0] b, input [2:0] s, output [3:0] y, output z);
{selection}  assign y = _07_(a, b, s);
  assign z = (a != b[3:0]) & {zero};
endmodule
"""


def test_selection_and_reduction_are_equivalent(tmp_path):
    before = MODULE.format(name="gold", selection=SELECTION, zero="(! s)")
    after = verilog_subset.plain_reductions(verilog_subset.plain_selections(before)).replace("gold", "gate")
    assert "casez" not in after and "(~| s)" in after and "(* parallel_case *)" in after and "a != b" in after
    (tmp_path / "both.v").write_text(before + after)
    # Only one select bit at most: more have no meaning in either form.
    commands = [
        f"read_verilog {tmp_path / 'both.v'}", "proc", "miter -equiv -flatten -make_outputs gold gate miter",
        *(f"sat -verify -prove trigger 0 -set in_s {select} miter" for select in (0, 1, 2, 4)),
    ]  # fmt: skip
    code = "import sys; from pyosys import libyosys as y; d = y.Design(); [y.run_pass(c, d) for c in sys.argv[1:]]"
    run = subprocess.run([sys.executable, "-c", code, *commands], capture_output=True, text=True)
    assert run.returncode == 0 and run.stdout.count("SUCCESS!") == 4, run.stdout[-1500:] + run.stderr


class Reserved(wiring.Component):
    """Signals with names that mean something in Verilog, and a choice among values."""

    def __init__(self):
        super().__init__({"a": In(8), "s": In(3), "y": Out(8)})

    def elaborate(self, platform):
        m = Module()
        small, priority = Signal(8, name="small"), Signal(8, name="priority")
        m.d.comb += [small.eq(self.a + 1), priority.eq(small ^ self.a)]
        with m.Switch(self.s):
            with m.Case(0):
                m.d.comb += self.y.eq(priority)
            with m.Case(1):
                m.d.comb += self.y.eq(small)
            with m.Case(2):
                m.d.comb += self.y.eq(~small)
        return m


@pytest.fixture
def emitted():
    emission = Emission()
    emission.add_top(Reserved(), "reserved")
    return {f"{name}.v": text for name, text in emission.verilog().items()}


def test_reserved_words_and_selections_are_clean(emitted):
    text = emitted["reserved.v"]
    assert "small_net" in text and "priority_net" in text
    assert "mux_select[1]: " in text
    report = lint.lint(emitted, ["reserved"])
    assert {tool: found for tool, found in report.items() if found} == {}
