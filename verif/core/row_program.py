"""What the benches of the paths that write rows into IMEM share: places of matrices, rows, and what must be written."""

import numpy as np

from golden.core.memories import Memories
from golden.spec.commands import Opcode
from golden.spec.sizes import words_for
from verif.bench.packing import join, pack

__all__ = ["RowProgram", "imem_parts"]


def imem_parts(p):
    """Splits a write to IMEM into its parts: ``(part, word, value)``."""

    def parts(write):
        n = p.row_part
        for part in range(p.row_parts):
            if write["enable"] >> part & 1:
                elements = write["values"][part * n : part * n + n]
                value = None if None in elements else join(*((element, 16) for element in elements))
                yield part, write["address"] + (write.get("is_next", 0) >> part & 1), value

    return parts


class RowProgram:
    """Makes runs at random; the memories hold their contents from run to run."""

    def __init__(self, parameters, seed):
        self.parameters, self.rng = parameters, np.random.default_rng(seed)
        self._memories = Memories(parameters)

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
        skipped = command.column // part
        elements = (first * word)[:, None] + command.column + np.arange(n_parts * part)
        found = self._memories.imem.reshape(-1)[elements]
        data, defined = (array.reshape(len(rows), n_parts, part) for array in (found.data, found.defined))
        return [
            [
                [
                    "imem",
                    (skipped + index) * part % word // part,
                    int(place) + (skipped + index) * part // word,
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
