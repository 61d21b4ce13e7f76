"""Random programs for the accelerator: those of the core, with their data at random places in memory, and errors."""

from dataclasses import replace

from golden.core.memories import Words
from golden.core.streams import n_load_beats, unpack
from golden.spec.accelerator.descriptor import DESCRIPTOR_FLAGS, Descriptor
from golden.spec.accelerator.errors import AcceleratorError
from golden.spec.accelerator.transfers import piece_elements
from golden.spec.commands import Memory, Opcode
from golden.spec.sizes import words_for
from golden.system.memory import SystemMemory
from golden.system.transfers import elements_of, rows_of
from verif.core.random_programs import RandomPrograms
from verif.system.script import Script

__all__ = ["SystemPrograms"]

RING, FIRST = 0x0F80, 0x3000
"""The ring's first slots lie in front of a multiple of 4 KiB; data begin behind the longest ring."""


class SystemPrograms:
    """Writes programs that follow each other on one accelerator.

    Data of every transfer have a place of their own in a memory full of random bytes, so that whatever is written
    beside them is seen. A third of the places begin shortly before a multiple of 4 KiB.
    """

    def __init__(self, sizes, rng, n_bytes=1 << 20):
        self.sizes, self.rng, self.n_bytes = sizes, rng, n_bytes
        self.forget()

    def forget(self):
        """The accelerator was reset."""
        memory = SystemMemory(self.n_bytes)
        memory.data[:] = self.rng.integers(0, 256, self.n_bytes)
        self.image = memory.data.copy()
        self.programs = RandomPrograms(self.sizes, self.rng, most_beats=200)
        self.script = Script(self.sizes, memory)
        self._free = FIRST
        self.bins = {}
        self._is_started = False

    def _count(self, name, condition=True):
        self.bins[name] = self.bins.get(name, 0) + bool(condition)

    def program(self, n_commands):
        """Steps for about so many commands beside loads and stores; what the memory must be is in the script's."""
        script, rng = self.script, self.rng
        self.bins = {}
        if not self._is_started:
            script.start(RING, int(rng.integers(1, 5)))
            self._is_started = True
        first = self.programs.core.n_commands
        piece = self.programs.piece(n_commands)
        self.bins.update(piece.bins)
        refused = {refusal.command - first for refusal in piece.refusals}
        taken, is_dropping, waiting = 0, False, []
        for index, command in enumerate(piece.commands):
            if is_dropping and command.opcode != Opcode.CLEAR:
                continue  # software has seen the error
            is_dropping = index in refused
            n_beats = 0 if is_dropping else self._n_beats(command)
            descriptor = self._descriptor(command, piece.load_beats[taken : taken + n_beats], is_dropping)
            taken += n_beats
            if rng.random() < 0.03:
                waiting = self._submit(waiting)
                self._wrong(descriptor)
            waiting.append(descriptor)
            if is_dropping or len(waiting) == 1 << script.log2 or rng.random() < 0.2:
                waiting = self._submit(waiting)
        self._submit(waiting)
        script.finish()
        return script.take()

    def _n_beats(self, command):
        if command.opcode == Opcode.CTR:
            return self.programs.core.compare.n_beats
        return n_load_beats(command, self.sizes) if command.opcode == Opcode.LOAD else 0

    def _submit(self, descriptors):
        """Submit, and recover from what the model stops at; returns an empty list."""
        if descriptors and not self.script.submit(descriptors, bool(self.rng.random() < 0.5)):
            self._count("refused", self.script.model.error == AcceleratorError.REFUSED)
            self._recover()
        return []

    def _recover(self):
        self.script.check_error()
        self.script.clear()

    def _wrong(self, descriptor):
        """A descriptor that is wrong in itself, or that the bus does not give."""
        rng, script = self.rng, self.script
        kind = rng.choice(["flags", "reserved", "length", "odd", "beyond", "fetch"])
        moves = rows_of(descriptor, self.sizes) is not None
        if kind == "fetch":
            slot = RING + script.n_submitted % (1 << script.log2) * 64
            script.faults("read", (slot, slot + 64))
        elif kind in ("flags", "reserved") or not moves:
            field = "reserved" if kind == "reserved" else "flags"
            descriptor = replace(descriptor, **{field: getattr(descriptor, field) | 1 << int(rng.integers(2, 32))})
        elif kind == "length":
            is_list = (descriptor.command.opcode, descriptor.command.function) == (Opcode.STORE, Memory.TOKENS)
            change = -2 if is_list else int(rng.choice([-1, 1, 2, 1 << 20]))
            descriptor = replace(descriptor, length=max(0, descriptor.length + change) ^ (descriptor.length == 0))
        elif kind == "odd":
            descriptor = replace(descriptor, address=descriptor.address | 1)
        elif self.sizes.address_width < 64:
            descriptor = replace(
                descriptor, address=descriptor.address | 1 << int(rng.integers(self.sizes.address_width, 64))
            )
        else:
            return
        script.submit([descriptor])
        if script.model.error == AcceleratorError.NONE:
            return
        self._count(f"error {script.model.error.name.lower()}")
        self._recover()
        script.faults("read")

    def _place(self, n_bytes):
        """A free place with some bytes around it."""
        rng = self.rng
        first = self._free + 2 * int(rng.integers(1, 40))
        kind = rng.random()
        if kind < 0.3:
            first = first // 4096 * 4096 + 4096 - 2 * int(rng.integers(1, 20))
        elif kind < 0.5:
            first = -(-first // 64) * 64
        if first + n_bytes + 256 > self.n_bytes:  # from the begin again: what is there was compared before
            self._count("memory is used again")
            first = FIRST + 2 * int(rng.integers(1, 40))
        self._free = first + n_bytes + 128
        return first

    def _descriptor(self, command, beats, is_refused):
        """The descriptor of a command; the data that it loads are put into memory."""
        rng, sizes = self.rng, self.sizes
        number = int(rng.integers(0, 1 << 32))
        flags = DESCRIPTOR_FLAGS["interrupt"] if rng.random() < 0.1 else 0
        flags |= DESCRIPTOR_FLAGS["fence"] if rng.random() < 0.05 else 0
        plain = Descriptor(command=command, flags=flags, number=number)
        rows = rows_of(plain, sizes)
        if rows is None:
            return plain
        length = rows.bytes
        if (command.opcode, command.function) == (Opcode.STORE, Memory.TOKENS):
            length += int(rng.integers(0, 9))
        pitch = rows.bytes + 2 * int(rng.choice([0, 0, 1, 7, 50]))
        plain = replace(plain, length=length, pitch=pitch)
        if is_refused:
            return replace(plain, address=FIRST)
        address = self._place((rows.n_rows - 1) * max(pitch, rows.pitch) + rows.bytes)
        descriptor = replace(plain, address=address)
        if command.opcode != Opcode.STORE:
            elements = self._elements(command, beats, rows)
            for start, row in zip(rows_of(descriptor, sizes).starts(), elements, strict=True):
                self.script.place(start, row.astype("<u2").tobytes())
        return descriptor

    def _elements(self, command, beats, rows):
        """What lies in memory for the beats of a load: rows of elements."""
        sizes = self.sizes
        if command.opcode == Opcode.CTR:
            size = sizes.n_banks
        elif command.function == Memory.ROWS:
            return elements_of(command, Words.of(beats), sizes).data
        else:
            size = piece_elements(command.function, sizes)
        if size > sizes.row_word:
            whole = words_for(size, sizes.row_word) * sizes.row_word
            return beats.reshape(-1, whole)[:, :size].reshape(1, -1)
        return unpack(beats, rows.n_elements // size, size).reshape(1, -1)
