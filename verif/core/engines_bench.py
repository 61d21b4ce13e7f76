"""The memories beside the engines' path, and SPMM commands with what they must write."""

from collections import deque

import numpy as np

from golden.core import vector as core_vector
from golden.core.memories import Words
from golden.spec.commands import FLAGS, Command, Opcode
from golden.spec.sizes import words_for
from verif.bench.endpoints import Source, StallPattern
from verif.bench.packing import join, pack
from verif.bench.port_bits import width_of
from verif.core.path_memories import ArbitratedReads, MemoryReadPort, WriteStream
from verif.core.row_program import RowProgram, imem_parts
from verif.core.softmax_bench import mask_word


def connect(testbench):
    """The endpoints of the engines' path for :mod:`verif.core.path_bench`."""
    parts = imem_parts(testbench.block.parameters)
    return [
        MemoryReadPort(testbench, "mask", "mask"),
        ArbitratedReads(testbench, "probabilities", "probabilities"),
        WriteStream(testbench, "imem", "imem_write", parts),
        BankWrites(testbench, testbench.shapes["word_write"]),
    ]


class BankWrites:
    """Writes the engines' banks before a command and beside it: whole words and, by ``value_write``, elements."""

    name, role = "banks", "reads"

    def __init__(self, testbench, shape):
        self._testbench, self._shape = testbench, shape
        self._source = Source(testbench.dut, "value_write")
        self.start("none", None)

    def start(self, pattern, allowed):
        self._source.abort()
        self._words = deque()
        self._pattern = pattern

    async def prepare(self, extra):
        self._begin(extra.get("values_before", ()), extra.get("words", ()))
        await self.finish()
        self._begin(extra.get("values_beside", ()), extra.get("words_beside", ()))

    def _begin(self, beats, words):
        self._source.start(beats, StallPattern(self._pattern, self._testbench.random))
        self._words = deque(words)

    async def finish(self):
        for _ in range(40 * (1 + len(self._source._beats) + len(self._words))):
            if self._source.done and not self._words:
                return
            await self._testbench.clock.step()
        self._testbench.report("value_write, word_write: writes are not taken")

    def drive(self, cycle):
        self._source.drive(cycle)
        fields = (1, *self._words[0]) if self._words else (0, 0, 0, 0)
        widths = (width_of(field.shape) for _, field in self._shape)
        self._testbench.dut.word_write.value = join(*zip(fields, widths, strict=True))

    def sample(self, cycle):
        self._source.sample(cycle)
        if self._words:
            self._words.popleft()


BESIDE = ("values_beside", "words_beside")
"""How banks are written while a command runs."""


class EnginesProgram(RowProgram):
    """SPMM; the banks hold their contents from run to run."""

    def __init__(self, parameters, seed):
        super().__init__(parameters, seed)
        self._spare = None  # (bank_address, chunks, slots) of values that were written beside another command

    def _run(self, command, tokens, rows, group, **more):
        if more.get("abort") is not None and any([more["extra"].pop(how, None) for how in BESIDE]):
            self._spare = None  # not all of it would be written
        return super()._run(command, tokens, rows, group, **more)

    def spmm(
        self,
        *,
        n_rows=None,
        n_keys=None,
        n_in=None,
        density=None,
        gated=None,
        mask=None,
        beside=None,
        how=None,
        **options,
    ):
        """A run of SPMM on values that are written before it (``how``), or were beside the run before."""
        p, rng, memories = self.parameters, self.rng, self._memories
        n_in = n_in or int(rng.integers(1, p.max_head_dim + 1))
        n_keys = n_keys or int(rng.integers(1, p.max_tokens + 1))
        slots, chunks = p.slots_of(n_keys), words_for(n_in, p.simd_lanes)
        while slots * chunks > p.vmem_depth:
            n_keys //= 2
            slots = p.slots_of(n_keys)
        bank_address = int(rng.integers(p.vmem_depth - slots * chunks + 1))
        spare, self._spare = self._spare if density is None else None, None
        if spare:
            bank_address, chunks, slots = spare
            n_in, n_keys = min(chunks * p.simd_lanes, p.max_head_dim), min(slots * p.n_banks, p.max_tokens)
        n_rows = min(n_rows or int(rng.integers(1, p.max_tokens + 1)), p.max_tokens, p.omem_depth // slots)
        column = p.simd_lanes * int(rng.integers(0, 4)) if rng.random() < 0.3 else 0
        n_rows, ((destination, stride),) = self._places(n_rows, words_for(column + n_in, p.row_word), 1)
        tokens, rows = self._rows(n_rows, gated)
        mask = int(rng.integers(p.n_masks)) if mask is None else mask

        load, bitmap = self._mask(mask, n_rows, density)
        bits = bitmap[rows, :, :slots]
        extra = {}
        if not spare:
            how = how or str(rng.choice(["words", "values_before"]))
            extra = self._values(how, bank_address, chunks, slots, bits.any(axis=0))
        if rng.integers(2) if beside is None else beside:
            extra |= self._values_beside(range(bank_address, bank_address + chunks * slots))
        source = int(rng.integers(p.omem_depth - n_rows * slots + 1))
        counts = bits.sum(axis=(0, 2))
        for bank in range(p.n_banks):
            words = self._words(int(counts[bank]))
            memories.probabilities[bank, source : source + len(words)] = Words.of(words)
            load += [["probabilities", bank, source + place, int(word)] for place, word in enumerate(words)]
        command = Command(
            opcode=Opcode.SPMM,
            flags=FLAGS["gated"] if tokens is not None else 0,
            mask=mask,
            n_rows=n_rows,
            n_in=n_in,
            n_out=n_keys,
            source=source,
            destination=destination,
            destination_stride=stride,
            bank_address=bank_address,
            column=column,
        )
        counted = core_vector.spmm(memories, command, rows, bits)
        ends = np.vstack([np.zeros((1, p.n_banks), np.int64), np.cumsum(bits.sum(axis=2), axis=0)]) * chunks
        return self._run(
            command,
            tokens,
            rows,
            p.simd_lanes,
            load=load,
            extra=extra,
            allowed={"mask": list(range(len(rows) + 1)), "probabilities": ends.T.tolist()},
            counted=counted,
            counts=bits.sum(axis=2).tolist(),
            chunks=chunks,
            **options,
        )

    def _mask(self, mask, n_rows, density):
        """Some rows empty, some full, some with one bank only; bits at slots beyond the keys do not count."""
        p, rng = self.parameters, self.rng
        n_mask_rows = n_rows if mask else 1
        shape = n_mask_rows, p.n_banks, p.key_slots
        bitmap = rng.random(shape) < (rng.random((n_mask_rows, 1, 1)) if density is None else density)
        if density is None:
            kind = rng.integers(0, 8, n_mask_rows)
            bitmap[kind == 0] = False
            bitmap[kind == 1] = True
            bitmap[kind == 2, 1:] = False
        words = pack(bitmap.reshape(n_mask_rows, -1), 1)
        load = [["mask", 0, mask_word(p, mask, row), words[row]] for row in range(n_mask_rows)]
        return load, bitmap if mask else np.repeat(bitmap, n_rows, axis=0)

    def _values(self, how, bank_address, chunks, slots, is_used):
        """New values for the banks, where they are used: as words of one bank, or as elements of all banks."""
        p = self.parameters
        values = self._words((p.n_banks, chunks, slots, p.simd_lanes))
        target = bank_address + np.arange(chunks)[:, None] * slots + np.arange(slots)
        self._memories.vmem[:, target] = Words.of(values)
        lane_width, address_width = (p.simd_lanes - 1).bit_length(), max(1, (p.vmem_depth - 1).bit_length())
        writes = []
        for (chunk, slot), address in np.ndenumerate(target):
            if how.startswith("words"):
                writes += [
                    [bank, int(address), pack(values[bank, chunk, slot], 16)]
                    for bank in range(p.n_banks)
                    if is_used[bank, slot]
                ]
            elif is_used[:, slot].any():
                writes += [
                    join(
                        (pack(values[:, chunk, slot, lane], 16), 16 * p.n_banks),
                        (address, address_width),
                        (lane, lane_width),
                    )
                    for lane in range(p.simd_lanes)
                ]
        return {how: [writes[index] for index in self.rng.permutation(len(writes))]}

    def _values_beside(self, taken=range(0)):
        """Values for a later SPMM, in words that the run itself does not use."""
        p, rng = self.parameters, self.rng
        chunks = int(rng.integers(1, words_for(p.max_head_dim, p.simd_lanes) + 1))
        slots = p.slots_of(int(rng.integers(1, p.max_tokens + 1)))
        free = [
            first
            for first in range(p.vmem_depth - chunks * slots + 1)
            if first >= taken.stop or first + chunks * slots <= taken.start
        ]
        if not free:
            return {}
        self._spare = int(rng.choice(free)), chunks, slots
        return self._values(str(rng.choice(BESIDE)), *self._spare, np.ones((p.n_banks, slots), bool))
