"""Reads and writes a memory at random and compares the read port with an array in Python in every clock."""

from verif.bench.endpoints import set_ports, word


class MemoryAccess:
    """The endpoint: both ports of a memory. Words never written and undefined reads are not compared."""

    def __init__(self, dut, job, rng):
        self._dut, self._job, self._rng = dut, job, rng
        self._part_width = job["granularity"] or job["width"]
        self._parts = range(job["width"] // self._part_width)
        self._contents = {}  # of each part that was written: its value
        self._expected, self._access = None, None
        self._collides = self._is_partial = self._is_held = False
        self.counts = {"checked": 0, "failed": 0, "collisions": 0, "held": 0, "partial": 0}

    def _word(self, address):
        """The word at an address, None where a part of it was never written."""
        values = [self._contents.get((address, part)) for part in self._parts]
        if None in values:
            return None
        return sum(value << self._part_width * part for part, value in enumerate(values))

    def drive(self, cycle):
        job, rng = self._job, self._rng
        all_parts = (1 << len(self._parts)) - 1
        reads, writes = rng.random() < 0.7, rng.random() < 0.7
        read_address, write_address = rng.randrange(job["depth"]), rng.randrange(job["depth"])
        data = rng.randrange(1 << job["width"])
        some = rng.randrange(1, all_parts + 1) if rng.random() < 0.6 else all_parts
        if job["ports"] == "single":
            reads &= not writes
            write_address = read_address
            ports = {"address": read_address}
        else:
            ports = {"read_address": read_address, "write_address": write_address}
        enables = some if writes else 0
        set_ports(self._dut, {**ports, "write_data": data, "read_enable": int(reads), "write_enable": enables})
        self._access = reads, read_address, enables, write_address, data

    def sample(self, cycle):
        """Check what the last clock's access left at the read port, and note what this clock's will."""
        counts = self.counts
        if self._expected is not None:
            counts["checked"] += 1
            counts["failed"] += word(self._dut.read_data) != self._expected
            counts["collisions"] += self._collides
            counts["held"] += self._is_held
            counts["partial"] += self._collides and self._is_partial
        reads, read_address, enables, write_address, data = self._access
        before = self._word(read_address) if reads else None
        for part in self._parts:
            if enables >> part & 1:
                value = data >> self._part_width * part & ((1 << self._part_width) - 1)
                self._contents[write_address, part] = value
        self._collides = bool(reads and enables and read_address == write_address)
        self._is_partial, self._is_held = enables != (1 << len(self._parts)) - 1, not reads
        if reads:
            mode = self._job["read_during_write"]
            self._expected = before
            if self._collides and mode != "old":
                self._expected = self._word(read_address) if mode == "new" else None


async def access(simulation):
    """Scenario. Job: the memory's parameters, ``clocks``, ``seed``."""
    memory = MemoryAccess(simulation.dut, simulation.job, simulation.random)
    simulation.clock.endpoints.append(memory)
    await simulation.clock.start()
    for _ in range(simulation.job["clocks"]):
        await simulation.clock.step()
    return memory.counts
