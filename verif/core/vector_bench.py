"""The memories beside the vector path, and its commands with what they must write."""

from collections import deque

import numpy as np

from golden.core import vector as core_vector
from golden.core.bitmap_scanner import scan
from golden.core.memories import Memories, Words
from golden.spec.commands import FLAGS, Command, Elementwise, Opcode
from golden.spec.sizes import words_for
from golden.units.layer_norm_unit import encode_epsilon
from verif.bench.endpoints import Source, StallPattern, word
from verif.bench.packing import join, pack
from verif.bench.port_bits import width_of, word_text
from verif.core.path_memories import Direct, MemoryReadPort, WriteStream
from verif.core.softmax_bench import mask_word


def connect(testbench):
    """The endpoints of a vector path for :mod:`verif.core.path_bench`. Words read from IMEM are the memory "rows"."""
    p, shapes = testbench.block.parameters, testbench.shapes

    def parts(write):
        n = p.row_part
        for part in range(p.row_parts):
            if write["enable"] >> part & 1:
                elements = write["values"][part * n : part * n + n]
                value = None if None in elements else join(*((element, 16) for element in elements))
                yield part, write["address"], value

    return [
        MemoryReadPort(testbench, "mask", "mask"),
        MemoryReadPort(testbench, "rows", "imem"),
        Direct(testbench, "probabilities", "probabilities"),
        WriteStream(testbench, "imem", "imem_write", parts),
        BankWrites(testbench, shapes["word_write"]),
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
        if self._words and word(self._testbench.dut.word_ready) == 1:
            self._words.popleft()


BESIDE = ("values_beside", "words_beside")
"""How banks are written while a command runs."""


class VectorProgram:
    """Makes runs at random; the banks hold their contents from run to run."""

    def __init__(self, parameters, seed):
        self.parameters, self.rng = parameters, np.random.default_rng(seed)
        self._memories = Memories(parameters)
        self._spare = None  # (bank_address, chunks, slots) of values that were written beside another command

    def _words(self, shape):
        """Numbers near 1, some of them any."""
        rng = self.rng
        words = rng.normal(0, 1, shape).astype(np.float16).view(np.uint16)
        return np.where(rng.random(shape) < 0.05, rng.integers(0, 1 << 16, shape), words).astype(np.uint16)

    def _rows(self, n_rows, gated):
        """The token list, and the rows that are worked on."""
        gated = bool(self.rng.integers(2)) if gated is None else gated
        if not gated:
            return None, np.arange(n_rows)
        tokens = np.sort(self.rng.permutation(n_rows)[: self.rng.integers(0, n_rows + 1)])
        return tokens.tolist(), tokens

    def _run(self, command, tokens, rows, group, **more):
        """The run of a command whose result is in IMEM."""
        if more.get("abort") is not None and any([more["extra"].pop(how, None) for how in BESIDE]):
            self._spare = None  # not all of it would be written
        return {
            "name": f"{Opcode(command.opcode).name}, {len(rows)} of {command.n_rows} rows, {command.n_in} elements, "
            f"function {command.function}, {command.n_out} keys",
            "command": {name: int(getattr(command, name)) for name in command.__dataclass_fields__},
            "n_active": len(rows),
            "tokens": tokens,
            "rows": self._writes(command, rows, group),
            **more,
        }

    def _writes(self, command, rows, group):
        """What becomes of IMEM, row by row, in parts; ``None`` where it is not defined."""
        p = self.parameters
        part, word = p.row_part, p.row_word
        n_parts = words_for(command.n_in, group) * group // part
        first = command.destination + rows * command.destination_stride
        elements = (first * word)[:, None] + np.arange(n_parts * part)
        found = self._memories.imem.reshape(-1)[elements]
        data, defined = (array.reshape(len(rows), n_parts, part) for array in (found.data, found.defined))
        return [
            [
                [
                    "imem",
                    index * part % word // part,
                    int(place) + index * part // word,
                    pack(data[row, index], 16) if defined[row, index].all() else None,
                ]
                for index in range(n_parts)
            ]
            for row, place in enumerate(first)
        ]

    def _places(self, n_rows, n_words, n_matrices, n_pairs=0):
        """Matrices in IMEM that do not meet, as ``(first, stride)``; fewer rows if there is not enough room.

        The last ``n_pairs`` of them have two rows.
        """
        rng, depth = self.rng, self.parameters.imem_depth
        strides = [n_words + int(rng.integers(0, 3)) for _ in range(n_matrices)]

        def lengths():
            return [
                ((n_rows if index < n_matrices - n_pairs else 2) - 1) * stride + n_words
                for index, stride in enumerate(strides)
            ]

        while sum(lengths()) > depth:
            if max(strides) > n_words:
                strides = [n_words] * n_matrices
            else:
                n_rows -= 1
        lengths = lengths()
        slack = depth - sum(lengths)
        gaps = np.diff(np.sort(rng.integers(0, slack + 1, n_matrices)), prepend=0)
        first, places = 0, [None] * n_matrices
        for index in rng.permutation(n_matrices):
            first += int(gaps[index])
            places[index] = first, strides[index]
            first += lengths[index]
        return n_rows, places

    # SPMM ----------------------------------------------------------------------------------------------------------

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
        n_rows, ((destination, stride),) = self._places(n_rows, words_for(n_in, p.row_word), 1)
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
        )
        counted = core_vector.spmm(memories, command, rows, bits)
        steps = scan(bits)
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
            n_steps=len(steps.row) * chunks,
            density=density,
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

    # ELEMENTWISE ---------------------------------------------------------------------------------------------------

    def elementwise(self, *, function=None, n_rows=None, n_in=None, gated=None, beside=None, **options):
        """A run of ELEMENTWISE; of the last word of a row, what is beyond n_in may be undefined."""
        p, rng = self.parameters, self.rng
        word = p.row_word
        n_in = n_in or int(rng.integers(1, p.max_dim + 1))
        n_words = words_for(n_in, word)
        function = int(rng.choice(list(Elementwise))) if function is None else function
        beside = bool(rng.integers(2)) if beside is None else beside
        is_pair = Elementwise(function).n_operands == 2
        n_rows, (target, left, right) = self._places(
            min(n_rows or int(rng.integers(1, p.max_tokens + 1)), p.max_tokens), n_words, 3
        )
        right = left if rng.random() < 0.2 else right
        tokens, rows = self._rows(n_rows, gated)
        load = self._operand(left, rows, n_in) + (self._operand(right, rows, n_in) if is_pair and right != left else [])
        command = Command(
            opcode=Opcode.ELEMENTWISE,
            function=function,
            flags=FLAGS["gated"] if tokens is not None else 0,
            n_rows=n_rows,
            n_in=n_in,
            source=left[0],
            source_stride=left[1],
            source_2=right[0],
            source_2_stride=right[1],
            destination=target[0],
            destination_stride=target[1],
        )
        counted = core_vector.elementwise(self._memories, command, rows)
        reads = n_words * (1 + is_pair)
        return self._run(
            command,
            tokens,
            rows,
            word,
            load=load,
            extra=self._values_beside() if beside else {},
            allowed={"rows": [n * reads for n in range(len(rows) + 1)]},
            counted=counted,
            n_reads=reads * len(rows),
            **options,
        )

    # LAYER_NORM ----------------------------------------------------------------------------------------------------

    def layer_norm(self, *, n_rows=None, n_in=None, gated=None, beside=None, **options):
        """A run of LAYER_NORM; what is beyond n_in in a row's last word may be undefined."""
        p, rng = self.parameters, self.rng
        word = p.row_word
        n_in = n_in or int(rng.integers(1, p.max_dim + 1))
        n_words = words_for(n_in, word)
        n_rows, (target, source, coefficients) = self._places(
            min(n_rows or int(rng.integers(1, p.max_tokens + 1)), p.max_tokens), n_words, 3, 1
        )
        tokens, rows = self._rows(n_rows, gated)
        load = self._operand(source, rows, n_in) + self._operand(coefficients, np.arange(2), n_in)
        command = Command(
            opcode=Opcode.LAYER_NORM,
            flags=FLAGS["gated"] if tokens is not None else 0,
            n_rows=n_rows,
            n_in=n_in,
            source=source[0],
            source_stride=source[1],
            source_2=coefficients[0],
            source_2_stride=coefficients[1],
            destination=target[0],
            destination_stride=target[1],
            scale=encode_epsilon(float(rng.choice([1e-5, 1e-2, 1]))) | int(rng.integers(2)) << 18,
        )
        counted = core_vector.layer_norm(self._memories, command, rows)
        beside = bool(rng.integers(2)) if beside is None else beside
        return self._run(
            command,
            tokens,
            rows,
            word,
            load=load,
            extra=self._values_beside() if beside else {},
            allowed={"rows": [(n + 2) * n_words for n in range(len(rows) + 1)]},
            counted=counted,
            n_reads=(len(rows) + 2) * n_words,
            n_words=n_words,
            **options,
        )

    def _operand(self, place, rows, n_in):
        """Fill rows of a matrix; returns the words for the memory "rows"."""
        p, rng = self.parameters, self.rng
        word, load = p.row_word, []
        n_words = words_for(n_in, word)
        pads = bool(rng.integers(2))
        for row in rows:
            first = place[0] + int(row) * place[1]
            words = Words.of(self._words((n_words, word)))
            if pads and n_in % word:
                words.defined[-1, n_in % word :] = False
            self._memories.imem[first : first + n_words] = words
            for index in range(n_words):
                bits = [
                    word_text(int(value) if known else None, 16)
                    for value, known in zip(words.data[index], words.defined[index], strict=True)
                ]
                load.append(["rows", 0, first + index, "".join(reversed(bits))])
        return load
