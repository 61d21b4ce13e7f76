"""Runs a script of software against the AXI4 memory and the AXI4-Lite manager of the library cocotbext-axi."""

import itertools
import logging

import cocotb
from cocotbext.axi import AxiBus, AxiLiteBus, AxiLiteMaster, AxiRam

from golden.spec.accelerator.registers import register
from verif.system.host import STEPS, AtLeast, Expect, ExpectInterrupt, Place, Poll, Write

__all__ = ["run"]

MOST_CLOCKS = 200_000


def _pauses(rng, share):
    """Whether a channel pauses in a clock, for ever."""
    return itertools.cycle([rng.random() < share for _ in range(997)])


async def _software(steps, dut, ram, registers, found):
    """The steps of :mod:`verif.system.host`, with the library's manager."""
    for step in steps:
        if isinstance(step, Place):
            ram.write(step.address, bytes.fromhex(step.data))
        elif isinstance(step, ExpectInterrupt):
            if int(dut.interrupt.value) != step.value:
                found.append(f"the interrupt is not {step.value}")
        elif isinstance(step, Write):
            place = register(step.name).offset + 4 * step.index
            answer = await registers.write(place, step.value.to_bytes(4, "little"))
            if int(answer.resp) != step.response:
                found.append(f"the write of {step.name} was answered with {answer.resp}")
        elif isinstance(step, (Poll, Expect, AtLeast)):
            while True:
                value = await registers.read_dword(register(step.name).offset)
                if isinstance(step, AtLeast):
                    if (value - step.value) & 0xFFFFFFFF < 1 << 31:
                        break
                    continue
                if (value ^ step.value) & step.mask == 0:
                    break
                if isinstance(step, Expect):
                    found.append(f"{step.name} is {value:#x}, expected {step.value:#x}")
                    break
    for place in (0x3C, 0x200):
        for answer in (await registers.read(place, 4), await registers.write(place, bytes(4))):
            if int(answer.resp) != 2:
                found.append(f"there is no register at {place:#x}, and the answer is {answer.resp}")
    narrow = await registers.write(register("TAIL").offset + 1, bytes(1))
    if int(narrow.resp) != 2:
        found.append("a write of one byte is not refused")


async def run(simulation):
    """Scenario: as :func:`verif.system.session.run`, without faults; ``share`` of the clocks channels pause."""
    dut, job, clock, rng = simulation.dut, simulation.job, simulation.clock, simulation.random
    logging.getLogger("cocotb").setLevel(logging.WARNING)
    for name in ("awaddr", "awprot", "wdata", "wstrb", "araddr", "arprot"):
        getattr(dut, f"s_axi_{name}").value = 0
    await clock.start()
    image = bytes.fromhex(job["image"])
    ram = AxiRam(AxiBus.from_prefix(dut, "m_axi"), dut.clk, dut.rst, size=len(image))
    registers = AxiLiteMaster(AxiLiteBus.from_prefix(dut, "s_axi"), dut.clk, dut.rst)
    ram.write(0, image)
    await clock.reset(4)
    channels = [ram.write_if.aw_channel, ram.write_if.w_channel, ram.write_if.b_channel]
    channels += [ram.read_if.ar_channel, ram.read_if.r_channel]
    for channel in channels:
        channel.set_pause_generator(_pauses(rng, job["share"]))
    found, steps = [], [STEPS[name](*fields) for name, *fields in job["steps"]]
    task = cocotb.start_soon(_software(steps, dut, ram, registers, found))
    begin = clock.cycle
    while not task.done():
        await clock.step()
        if clock.cycle - begin > MOST_CLOCKS:
            found.append(f"not done after {MOST_CLOCKS} clocks")
            break
    return {"memory": bytes(ram.read(0, len(image))).hex(), "messages": found, "clocks": clock.cycle - begin}
