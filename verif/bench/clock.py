"""The clock of a simulated design: one loop that moves every endpoint, for all testbenches."""

from cocotb.handle import Immediate
from cocotb.triggers import Timer

__all__ = ["Clock", "PERIOD_NS"]

PERIOD_NS = 10

# Written at once, not in a phase of their own: a tenth of the time of a simulation with few ports.
_HIGH, _LOW = Immediate(1), Immediate(0)


class Clock:
    """Owns ``clk`` and ``rst``, where a design has them, and counts clocks.

    In each clock every endpoint drives its inputs (``drive``), the logic settles for half a period, every endpoint
    reads (``sample``), and then comes the rising edge. The clock is low between two steps.
    """

    def __init__(self, dut, endpoints=()):
        self._clk, self._rst = getattr(dut, "clk", None), getattr(dut, "rst", None)
        self.endpoints = list(endpoints)
        self.cycle = 0
        self._half = Timer(PERIOD_NS // 2, "ns")

    @property
    def has_reset(self):
        return self._rst is not None

    async def settle(self):
        """The first half of a clock: endpoints drive, the logic settles."""
        for end in self.endpoints:
            end.drive(self.cycle)
        await self._half

    async def edge(self):
        """The second half of a clock, from the rising edge on."""
        if self._clk is not None:
            self._clk.set(_HIGH)
        await self._half
        if self._clk is not None:
            self._clk.set(_LOW)
        self.cycle += 1

    async def step(self):
        """One clock; returns what each endpoint's ``sample`` returned: whether a beat moves at the edge."""
        await self.settle()
        moved = [end.sample(self.cycle) for end in self.endpoints]
        await self.edge()
        return moved

    async def start(self):
        """The clock is low and reset is off for one period, before the first step."""
        for port in (self._clk, self._rst):
            if port is not None:
                port.value = 0
        await Timer(PERIOD_NS, "ns")

    async def reset(self, clocks=2, drive=lambda: None):
        """Hold reset for so many clocks; the endpoints rest, and ``drive`` is called before each clock."""
        if self._rst is None:
            return
        self._rst.value = 1
        for _ in range(clocks):
            drive()
            await self._half
            await self.edge()
        self._rst.value = 0
