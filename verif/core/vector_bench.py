"""The memory beside the vector path, and its commands with what they must write."""

import numpy as np

from golden.core import vector as core_vector
from golden.core.memories import Words
from golden.spec.commands import FLAGS, Command, Elementwise, Opcode
from golden.spec.sizes import words_for
from golden.units.layer_norm_unit import encode_epsilon
from verif.bench.port_bits import word_text
from verif.core.path_memories import MemoryReadPort, WriteStream
from verif.core.row_program import RowProgram, imem_parts


def connect(testbench):
    """The endpoints of a vector path for :mod:`verif.core.path_bench`. Words read from IMEM are the memory "rows"."""
    parts = imem_parts(testbench.block.parameters)
    return [MemoryReadPort(testbench, "rows", "imem"), WriteStream(testbench, "imem", "imem_write", parts)]


class VectorProgram(RowProgram):
    """ELEMENTWISE and LAYER_NORM."""

    # ELEMENTWISE ---------------------------------------------------------------------------------------------------

    def elementwise(self, *, function=None, n_rows=None, n_in=None, gated=None, **options):
        """A run of ELEMENTWISE; of the last word of a row, what is beyond n_in may be undefined."""
        p, rng = self.parameters, self.rng
        word = p.row_word
        n_in = n_in or int(rng.integers(1, p.max_dim + 1))
        n_words = words_for(n_in, word)
        function = int(rng.choice(list(Elementwise))) if function is None else function
        is_pair = Elementwise(function).n_operands == 2
        n_rows, (target, left, right) = self._places(
            min(n_rows or int(rng.integers(1, p.max_tokens + 1)), p.max_tokens), n_words, 3
        )
        right = left if rng.random() < 0.2 else right
        target = left if rng.random() < 0.2 else right if is_pair and rng.random() < 0.2 else target  # in place
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
            allowed={"rows": [n * reads for n in range(len(rows) + 1)]},
            counted=counted,
            n_reads=reads * len(rows),
            n_pieces=len(rows) * n_words * word // p.n_vector_lanes,
            **options,
        )

    # LAYER_NORM ----------------------------------------------------------------------------------------------------

    def layer_norm(self, *, n_rows=None, n_in=None, gated=None, **options):
        """A run of LAYER_NORM; what is beyond n_in in a row's last word may be undefined."""
        p, rng = self.parameters, self.rng
        word = p.row_word
        n_in = n_in or int(rng.integers(1, p.max_dim + 1))
        n_words = words_for(n_in, word)
        n_rows, (target, source, coefficients) = self._places(
            min(n_rows or int(rng.integers(1, p.max_tokens + 1)), p.max_tokens), n_words, 3, 1
        )
        target = source if rng.random() < 0.2 else target  # in place
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
        return self._run(
            command,
            tokens,
            rows,
            word,
            load=load,
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
