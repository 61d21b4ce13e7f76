"""The memories beside the array path, and its loader of weights."""

from amaranth.hdl import Shape

from verif.bench.packing import join
from verif.core.path_memories import Direct, MemoryReadPort, WriteMonitor, WriteStream
from verif.core.row_program import imem_parts

__all__ = ["connect"]


def connect(testbench):
    """The endpoints of an array path for :mod:`verif.core.path_bench`."""
    p = testbench.block.parameters

    def lanes(write):
        for engine, value in enumerate(write["elements"]):
            yield engine * p.simd_lanes + (write["lane"] or 0), write["address"], value

    return [
        MemoryReadPort(testbench, "imem", "imem"),
        MemoryReadPort(testbench, "mask", "mask"),
        Direct(testbench, "probabilities", "probabilities"),
        WriteStream(testbench, "parts", "imem_write", imem_parts(p)),
        WriteStream(testbench, "values", "value_write", lanes),
        WriteMonitor(testbench, "scores", "score_write"),
        WeightLoader(testbench),
    ]


class WeightLoader:
    """Writes words into the weight banks before a command."""

    role, name = "writes", "weights"

    def __init__(self, testbench):
        self._testbench = testbench
        self._port = testbench.dut.weight_write
        layout = testbench.shapes["weight_write"]
        self._widths = {name: Shape.cast(field.shape).width for name, field in layout}

    def start(self, pattern, allowed):
        self._port.value = 0

    def drive(self, cycle):
        pass

    def sample(self, cycle):
        pass

    async def prepare(self, extra):
        widths = self._widths
        for bank, address, word in extra.get("weights", ()):
            self._port.value = join(
                (1, 1), (bank, widths["bank"]), (address, widths["address"]), (word, widths["words"])
            )
            await self._testbench.clock.step()
        self._port.value = 0
