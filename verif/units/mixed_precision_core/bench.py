"""The mixed-precision core's testbench: random commands, what they store, and which of them are refused."""

from collections import deque

from golden.spec.mixed_precision_core import Activation, Code, Error, Memory
from golden.units.mixed_precision_core import MixedPrecisionCore, check
from verif.bench.batch import Batch, Bench
from verif.bench.endpoints import word
from verif.units.mixed_precision_core.random_commands import RandomCommands

MAX_COMMANDS = 40


class MixedPrecisionCoreBench(Bench):
    """After reset all memories are loaded; then the state goes on from batch to batch."""

    unit = "mixed_precision_core"
    latency = 40
    clocks_a_beat = 40

    def __init__(self, block, seed):
        super().__init__(block, seed)
        self._commands = RandomCommands(self.parameters, self.rng)
        self._refusals = deque()
        self.forget()

    @property
    def required_bins(self):
        bins = {f"{kind} {memory.name}" for kind in ("LOAD", "STORE") for memory in list(Memory)[2:]}
        bins |= {"LOAD WEIGHTS", "LOAD SCALES", "QUANTISE", "MULTIPLY", "GELU", "IDENTITY", "CLEAR", "dropped"}
        bins |= {f"refused: {error.name}" for error in Error if error}
        return frozenset(
            bins | {"invalid vector", "restart", "full precision", "same tile again", "no slices", "shift"}
        )

    @property
    def longest_silence(self):
        """A tile is quantised, sorted and packed, then multiplied, and its outputs leave."""
        p = self.parameters
        return 2 * (16 * p.n_channels + 2 * p.tile_beats) + 200

    def forget(self):
        self._model = MixedPrecisionCore(**self.parameters.to_dict())
        self._refusals.clear()
        self._is_fresh, self._error, self._invalid, self._last = True, 0, 0, None

    def batch(self, count):
        bins = dict.fromkeys(self.required_bins, 0)
        streams = {"commands": [], "load": [], "store": []}
        if self._is_fresh:
            for command in self._commands.prologue():
                self._execute(command, streams, bins)
            missing = next(buffer for buffer in range(16) if buffer not in self._model.buffers)
            if missing < self.parameters.n_buffers:
                self._execute(self._commands.multiply_of(missing), streams, bins)
            self._is_fresh = False
        for _ in range(min(MAX_COMMANDS, max(4, count))):
            roll = self.rng.random()
            if self._model.error and roll < 0.5:
                command = self._commands.clear()
            elif roll < 0.06:
                command = self._commands.illegal()
            else:
                command = self._commands.legal(self._model.buffers)
            self._execute(command, streams, bins)
        if self._model.error:
            self._execute(self._commands.clear(), streams, bins)
        self._execute(self._commands.store_reference(), streams, bins)
        store = streams.pop("store")
        return Batch(streams, {"store": store}, bins, full_rate=(), causes={})

    def _execute(self, command, streams, bins):
        """One command on the model; beats are offered only for those that take them."""
        model, p = self._model, self.parameters
        before, error = model.invalid_vectors, model.error
        beats = self._commands.beats(command) if command.opcode == Code.LOAD and _is_load(model, command) else []
        run = model.execute([command], beats)
        streams["commands"].append(command.encode())
        streams["load"] += beats[: run.loaded]
        streams["store"] += [word | last << p.beat_width for word, last in run.stored]
        self._refusals.extend(run.refusals)
        if not run.executed[0]:
            bins["dropped"] += bool(error)
            for code, _ in run.refusals:
                bins[f"refused: {code.name}"] += 1
            return
        code = Code(command.opcode)
        name = code.name
        if code in (Code.LOAD, Code.STORE):
            name = f"{name} {Memory(command.function).name}"
        elif code == Code.ACTIVATE:
            name = Activation(command.function).name
        bins[name] += 1
        if code == Code.QUANTISE:
            bins["restart"] += command.has("restart")
            bins["full precision"] += command.has("full_precision")
            bins["invalid vector"] += model.invalid_vectors - before
            bins["no slices"] += not len(model.buffers[command.buffer].entries.key)
        elif code == Code.MULTIPLY:
            bins["shift"] += run.shifts
            bins["same tile again"] += self._last == (code, command.destination)
        self._last = (code, command.destination)

    def watch(self, dut, report):
        self._invalid = word(dut.invalid_vectors)
        error = word(dut.error)
        if error == self._error:
            return
        self._error = error
        if error == 0:
            return
        found = (error, word(dut.error_command))
        expected = self._refusals.popleft() if self._refusals else None
        if found != expected:
            report(f"error and its command are {found}, expected {expected}")

    def check_end(self, report):
        for code, command in self._refusals:
            report(f"command {command} was not refused with error {code}")
        self._refusals.clear()
        if self._invalid != self._model.invalid_vectors:
            report(f"invalid_vectors is {self._invalid}, expected {self._model.invalid_vectors}")


def _is_load(model, command):
    """Whether a LOAD will be executed."""
    return model.error == Error.NONE and check(command, model.sizes, model.buffers) == Error.NONE
