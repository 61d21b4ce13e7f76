"""The accelerator's testbench: random programs through ring and memory against the golden model."""

from golden.spec.commands import Opcode
from verif.bench.batch import Batch, Bench
from verif.bench.endpoints import PATTERNS
from verif.system.axi_memory import AxiMemory
from verif.system.host import Host
from verif.system.random_programs import SystemPrograms
from verif.system.session import differences


class AcceleratorBench(Bench):
    """A batch is a program of about so many commands; software and memory are endpoints of the clock.

    Patterns of stalls and the latency of the memory are drawn for each batch.
    """

    unit = "accelerator"
    latency = 100
    clocks_a_beat = 500
    longest_silence = 2000

    def __init__(self, block, seed):
        super().__init__(block, seed)
        self._programs = SystemPrograms(self.parameters, self.rng)
        self._memory = self._host = None
        self._messages = []

    @property
    def required_bins(self):
        bins = {opcode.name.lower() for opcode in Opcode}
        return frozenset(bins | {"refused", "error flags", "error length", "error fetch_response", "slow memory"})

    def streams(self):
        return {"inputs": [], "outputs": []}

    def endpoints(self, dut, rng):
        data = bytearray(self._programs.image)
        self._memory = AxiMemory(dut, self.parameters, self._messages.append, rng, data)
        self._host = Host(dut, self._memory, self._messages.append, rng)
        return [self._memory, self._host]

    def batch(self, count):
        steps = self._programs.program(count)
        pattern, is_slow = str(self.rng.choice(PATTERNS)), self.rng.random() < 0.3
        if self._host is not None:
            self._memory.set_pattern(pattern)
            self._memory.latency = (1, 400) if is_slow else (1, 8)
            self._host.start(steps, pattern)
        bins = {**self._programs.bins, "slow memory": int(is_slow)}
        return Batch(inputs={}, outputs={}, bins=bins, full_rate=(), causes={})

    def forget(self):
        self._programs.forget()
        if self._memory is not None:
            self._memory.reset()
            self._memory.data[:] = bytes(self._programs.image)
            self._memory.read_faults = []
            self._host.reset()

    def watch(self, dut, report):
        for message in self._messages:
            report(message)
        self._messages.clear()

    def check_end(self, report):
        for message in differences(self._memory.data, self._programs.script.memory):
            report(message)
        self._host.checked += 1
