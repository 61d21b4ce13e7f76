"""What the project uses of other packages beyond their documented interface: if one of these fails after an update of
a pinned version, the sentence says what has to change."""

import gc
import inspect
import re
import shutil
import subprocess
import warnings

import pytest
from amaranth.back import rtlil
from amaranth.hdl import Elaboratable, Module, Signal, UnusedElaboratable, _ir
from amaranth.lib.memory import Memory

from hw.emit import emission
from hw.units.bitonic_sorter import BitonicSorter


def test_directions_of_ports():
    assert {item.value for item in _ir.PortDirection} >= {"input", "output"}, (
        "amaranth.hdl._ir.PortDirection, with which hw/emit/emission.py tells rtlil.convert the directions of ports, "
        "has changed"
    )
    assert "ports" in inspect.signature(rtlil.convert).parameters


class _WithMemory(Elaboratable):
    def __init__(self):
        self.data = Signal(4)

    def elaborate(self, platform):
        m = Module()
        m.submodules.words = words = Memory(shape=4, depth=8, init=[5])
        port = words.read_port(domain="comb")
        m.d.comb += self.data.eq(port.data)
        return m


def _convert():
    design = _WithMemory()
    return rtlil.convert(design, ports={"data": (design.data, _ir.PortDirection.Output)}, emit_src=False)


def test_contents_of_memories_come_from_one_method():
    assert list(inspect.signature(rtlil.ModuleEmitter.emit_memory).parameters) == ["self", "cell_idx", "cell"], (
        "amaranth's ModuleEmitter.emit_memory, which hw/emit/emission.py replaces so that memories have no contents, "
        "takes other arguments now"
    )
    plain = _convert()
    with emission.memories_without_contents():
        bare = _convert()
    assert "$meminit" in plain and "$meminit" not in bare, "contents of memories come from elsewhere now"
    begin = plain.index("  cell $meminit")
    end = plain.index("  end\n", begin) + len("  end\n")
    rest, bare = (
        [re.sub(r"\$\d+", "$", line) for line in text.splitlines() if line]
        for text in (plain[:begin] + plain[end:], bare)
    )
    assert rest == bare, "ModuleEmitter.emit_memory makes more than the contents now"
    assert _convert() == plain, "the replacement outlives its use"


def _warnings_of(make):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        make()
        gc.collect()
    return [item for item in caught if issubclass(item.category, UnusedElaboratable)]


def test_blocks_may_be_made_and_not_elaborated():
    class Other(Elaboratable):
        def elaborate(self, platform):
            return Module()

    assert _warnings_of(Other), "amaranth does not warn of unused designs any more: drop _MustUse__silence"
    assert not _warnings_of(lambda: BitonicSorter(n=2)), (
        "the attribute _MustUse__silence, by which hw/lib/block.py tells amaranth that a block may be made for its "
        "description only, has another name now"
    )


@pytest.mark.skipif(not shutil.which("sta"), reason="OpenSTA (sta) is not installed")
def test_opensta_takes_activities_of_pins(tmp_path):
    script = tmp_path / "commands.tcl"
    script.write_text("puts <[info commands ::sta::set_power_pin_activity]>\nexit\n")
    run = subprocess.run(["sta", "-no_splash", "-exit", script], capture_output=True, text=True, timeout=60)
    assert "<::sta::set_power_pin_activity>" in run.stdout, (
        "this version of OpenSTA lacks ::sta::set_power_pin_activity, by which hw/synthesis/power.py gives the "
        f"activities of nets: {run.stdout}{run.stderr}"
    )
