"""Offers beats to a stream helper whose output stalls, and counts how many it takes."""

from verif.bench.endpoints import Source, set_ports


async def fill(simulation):
    """Scenario. Job: ``offered``, the number of clocks in which a beat is offered."""
    clock, source = simulation.clock, Source(simulation.dut, "source")
    set_ports(simulation.dut, {"sink__ready": 0})
    await clock.start()
    await clock.reset()
    clock.endpoints.append(source)
    source.start(range(simulation.job["offered"]))
    for _ in range(simulation.job["offered"]):
        await clock.step()
    return len(source.taken_at)
