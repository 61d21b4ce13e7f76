"""Commands of the array at random, with the rows, masks and weights that they read and what they must write."""

import numpy as np

from golden.core import array as core_array
from golden.core.memories import Memories, SampledElements, Words
from golden.spec.commands import FLAGS, Command, Opcode, Projection
from golden.spec.sizes import words_for
from verif.bench.packing import pack

__all__ = ["ArrayProgram"]


class ArrayProgram:
    """Makes runs at random; a run brings its own rows, masks and weights, or reads the keys that the last one made."""

    def __init__(self, parameters, seed):
        self.parameters, self.rng = parameters, np.random.default_rng(seed)
        self.memories = Memories(parameters)

    def _pick(self, low, high):
        """A number from low to high, the bounds more often than the others."""
        return int(self.rng.choice([low, high, *self.rng.integers(low, high + 1, 2)]))

    def _numbers(self, *shape):
        """FP16 words of all sizes; a few are infinite or no numbers at all."""
        rng = self.rng
        words = rng.normal(0, 1, shape).astype(np.float16).view(np.uint16).astype(np.int64)
        words = np.where(rng.random(shape) < 0.1, rng.integers(0, 1 << 16, shape) & 0xBBFF, words)
        return np.where(rng.random(shape) < 0.002, rng.integers(0, 1 << 16, shape), words)

    def _rows(self, n_rows, n_in):
        """Puts a matrix into IMEM: its place, and what to load; behind its rows' ends lies anything."""
        p = self.parameters
        n_words = words_for(n_in, p.row_word)
        widest = (p.imem_depth - n_words) // (n_rows - 1) if n_rows > 1 else (1 << 16) - 1
        stride = self._pick(n_words, max(n_words, min(widest, n_words + 5)))
        source = self._pick(0, p.imem_depth - (n_rows - 1) * stride - n_words)
        words = self._numbers(n_rows, n_words, p.row_word)
        words.reshape(n_rows, -1)[:, n_in:] = self.rng.integers(0, 1 << 16, (n_rows, n_words * p.row_word - n_in))
        where = source + np.arange(n_rows)[:, None] * stride + np.arange(n_words)
        self.memories.imem[where] = Words.of(words)
        load = [
            ["imem", 0, int(at), word]
            for at, word in zip(where.ravel(), pack(words.reshape(-1, p.row_word), 16), strict=True)
        ]
        return {"source": source, "source_stride": stride}, load

    def _weights(self, n_words, bank_address, values=None):
        """Puts words into all weight banks; returns them for the loader."""
        p = self.parameters
        words = self._numbers(p.n_banks, n_words, p.n_lanes) if values is None else values
        self.memories.wmem[:, bank_address : bank_address + n_words] = Words.of(words)
        packed = pack(words.reshape(-1, p.n_lanes), 16)
        places = [[bank, bank_address + word] for bank in range(p.n_banks) for word in range(n_words)]
        return [[*place, word] for place, word in zip(places, packed, strict=True)]

    def _most_rows(self, n_in):
        """Rows for which there is room."""
        p = self.parameters
        return min(p.max_tokens, p.imem_depth // words_for(n_in, p.row_word))

    def _tokens(self, n_rows, gated):
        if not gated:
            return None
        tokens = self.rng.permutation(n_rows)[: self.rng.integers(0, n_rows + 1)]
        return tokens if self.rng.integers(2) else np.sort(tokens)

    def _run(self, command, active, tokens, load, rows, allowed, weights, beats, options):
        if "abort" in options:
            self.memories.wmem = Words.undefined(*self.memories.wmem.data.shape)
        name = Opcode(command["opcode"]).name
        fields = ("n_rows", "n_in", "n_out", "flags", "function", "mask")
        return {
            "name": f"{name}, {len(active)} rows, " + ", ".join(f"{key} {command.get(key, 0)}" for key in fields),
            "command": command,
            "n_active": len(active),
            "tokens": None if tokens is None else tokens.tolist(),
            "load": load,
            "rows": rows,
            "allowed": allowed,
            "extra": {"weights": weights},
            "beats": beats,
            **options,
        }

    def matmul(self, *, n_rows=None, n_in=None, n_out=None, bias=None, gated=None, **options):
        """Rows times weights."""
        p = self.parameters
        bias = bool(self.rng.integers(2)) if bias is None else bias
        gated = bool(self.rng.integers(2)) if gated is None else gated
        n_in = n_in or self._pick(1, p.max_dim)
        beats = words_for(n_in, p.n_lanes) + bias
        most = min(p.max_dim, p.wmem_depth // beats * p.n_banks)
        n_out = n_out or self._pick(1, most)
        n_rows = n_rows or self._pick(1, min(self._most_rows(n_in), self._most_rows(n_out)))
        place, load = self._rows(n_rows, n_in)
        slots = words_for(n_out, p.n_banks)
        bank_address = self._pick(0, p.wmem_depth - beats * slots)
        weights = self._weights(beats * slots, bank_address)
        tokens = self._tokens(n_rows, gated)
        active = np.arange(n_rows) if tokens is None else tokens
        command = {
            "opcode": int(Opcode.MATMUL),
            "flags": FLAGS["bias"] * bias + FLAGS["gated"] * gated,
            "n_rows": n_rows,
            "n_in": n_in,
            "n_out": n_out,
            **place,
            **self._result(n_rows, n_out),
            "bank_address": bank_address,
        }
        core_array.matmul(self.memories, Command(**command), active)
        n_read = words_for(n_in, p.row_word)
        allowed = {"imem": [n * n_read for n in range(len(active) + 1)]}
        rows = self._written(command, active, n_out)
        return self._run(command, active, tokens, load, rows, allowed, weights, len(active) * n_out * beats, options)

    def _result(self, n_rows, n):
        """Where rows of n elements of a product are written: its fields."""
        p = self.parameters
        column = p.product_step * int(self.rng.integers(0, 5)) if self.rng.random() < 0.3 else 0
        if (n_rows - 1) * words_for(column + n, p.row_word) + words_for(column + n, p.row_word) > p.imem_depth:
            column = 0
        n_words = words_for(column + n, p.row_word)
        stride = self._pick(n_words, max(n_words, min((p.imem_depth - n_words) // max(1, n_rows - 1), n_words + 5)))
        destination = self._pick(0, p.imem_depth - (n_rows - 1) * stride - n_words)
        return {"destination": destination, "destination_stride": stride, "column": column}

    def _written(self, command, active, n):
        """What must be written for each row: its parts, the last one's other elements are zeros."""
        p = self.parameters
        column, part = command["column"], p.row_part
        groups = words_for(n, p.n_banks) * p.n_banks
        n_elements = min(groups, words_for(column + n, p.row_word) * p.row_word - column)
        rows = []
        for row in active:
            first = command["destination"] + int(row) * command["destination_stride"]
            words = self.memories.rows(
                command["destination"], command["destination_stride"], [row], column + n_elements
            )
            words = words[:, column:]
            assert words.defined.all()
            parts = pack(words.data.reshape(n_elements // part, part), 16)
            places = column // part + np.arange(len(parts))
            rows.append(
                [
                    ["parts", int(place % p.row_parts), first + int(place // p.row_parts), value]
                    for place, value in zip(places, parts, strict=True)
                ]
            )
        return rows

    def weighted_sum(self, *, n_rows=None, n_in=None, n_keys=None, density=None, gated=None, mask=None, **options):
        """Probabilities under a mask times columns of values."""
        p, rng = self.parameters, self.rng
        gated = bool(rng.integers(2)) if gated is None else gated
        mask = int(rng.integers(p.n_masks)) if mask is None else mask
        n_in = n_in or self._pick(1, p.max_head_dim)
        groups = words_for(n_in, p.n_banks)
        while not n_keys or groups * p.slots_of(n_keys) * p.column_beats > p.wmem_depth:
            n_keys = self._pick(1, p.max_tokens)
        slots = p.slots_of(n_keys)
        beats = slots * p.column_beats
        n_rows = n_rows or self._pick(1, min(self._most_rows(n_in), p.omem_depth // slots))
        bank_address = self._pick(0, p.wmem_depth - beats * groups)
        values = self._numbers(p.n_banks, beats * groups, p.n_lanes) & 0xBFFF  # finite: 0 times them is 0
        weights = self._weights(beats * groups, bank_address, values)
        tokens = self._tokens(n_rows, gated)
        active = np.arange(n_rows) if tokens is None else tokens
        load, bits = self._mask(mask, n_rows, active, density, slots)
        source = self._pick(0, p.omem_depth - n_rows * slots)
        for bank, count in enumerate(bits.sum(axis=(0, 2))):
            words = self._numbers(int(count))
            self.memories.probabilities[bank, source : source + len(words)] = Words.of(words)
            load += [["probabilities", bank, source + place, int(word)] for place, word in enumerate(words)]
        command = {
            "opcode": int(Opcode.WEIGHTED_SUM),
            "flags": FLAGS["gated"] * gated,
            "mask": mask,
            "n_rows": n_rows,
            "n_in": n_in,
            "n_out": n_keys,
            "source": source,
            **self._result(n_rows, n_in),
            "bank_address": bank_address,
        }
        core_array.weighted_sum(self.memories, Command(**command), active, bits)
        rows = self._written(command, active, n_in)
        counts = np.vstack([np.zeros((1, p.n_banks), np.int64), np.cumsum(bits.sum(axis=2), axis=0)])
        allowed = {"mask": list(range(len(active) + 1)), "probabilities": counts.T.tolist()}
        return self._run(command, active, tokens, load, rows, allowed, weights, len(active) * n_in * beats, options)

    def _mask(self, mask, n_rows, active, density, slots):
        """Puts rows of a mask into its memory: what to load, and the bits of the rows that are used."""
        bitmap = self._bitmap(n_rows if mask else 1, density)
        words = pack(bitmap.reshape(len(bitmap), -1).astype(np.int64), 1)
        numbers = self.memories.mask_row_numbers(mask, np.arange(len(bitmap)))
        self.memories.mask[numbers] = Words.of(bitmap.reshape(len(bitmap), -1), bool)
        load = [["mask", 0, int(at), word] for at, word in zip(numbers, words, strict=True)]
        return load, self.memories.mask_bits(mask, active, slots).data

    def project(self, *, n_rows=None, n_in=None, n_out=None, bias=None, values=None, **options):
        """All rows times weights, into keys or values."""
        p, rng = self.parameters, self.rng
        bias = bool(rng.integers(2)) if bias is None else bias
        values = bool(rng.integers(2)) if values is None else values
        depth, lanes = (p.vmem_depth, p.simd_lanes) if values else (p.wmem_depth, p.n_lanes)
        given = n_rows, n_in, n_out
        while True:
            n_in = given[1] or self._pick(1, p.max_dim)
            n_out = given[2] or self._pick(1, p.max_head_dim)
            n_rows = given[0] or self._pick(1, self._most_rows(n_in))
            n_weights = (words_for(n_in, p.n_lanes) + bias) * words_for(n_out, p.n_banks)
            slots, chunks = p.slots_of(n_rows), words_for(n_out, lanes)
            if slots * chunks <= depth and n_weights + slots * chunks * (not values) <= p.wmem_depth:
                break
        place, load = self._rows(n_rows, n_in)
        # In the weight banks keys may lie before the weights or after them.
        if values:
            bank_address = self._pick(0, p.wmem_depth - n_weights)
            destination = self._pick(0, depth - slots * chunks)
        else:
            low = self._pick(0, depth - n_weights - slots * chunks)
            swapped = bool(rng.integers(2))
            high = self._pick(
                low + (slots * chunks if swapped else n_weights), depth - (n_weights if swapped else slots * chunks)
            )
            bank_address, destination = (high, low) if swapped else (low, high)
        weights = self._weights(n_weights, bank_address)
        command = {
            "opcode": int(Opcode.PROJECT),
            "function": int(Projection.VALUES if values else Projection.KEYS),
            "flags": FLAGS["bias"] * bias,
            "n_rows": n_rows,
            "n_in": n_in,
            "n_out": n_out,
            **place,
            "multiplier": int(rng.integers(1 << 16)),
            "destination": destination,
            "bank_address": bank_address,
        }
        core_array.project(self.memories, Command(**command), np.arange(n_rows))
        self._keys = destination, n_rows, n_out, not values
        rows = [[] for _ in range(n_rows)]
        if values:
            written = self.memories.vmem[:, destination : destination + slots * chunks]
            assert written.defined.all()
            rows[-1] = [
                ["values", bank * lanes + lane, destination + word, int(value)]
                for (bank, word, lane), value in np.ndenumerate(written.data)
            ]
        beats = n_rows * n_out * (words_for(n_in, p.n_lanes) + bias)
        # The first value, and the end of keys, may come after the whole work.
        groups = words_for(chunks * lanes, p.n_banks)
        options["patience"] = 600 + 4 * slots * p.n_banks * groups * max(words_for(n_in, p.n_lanes) + bias, 8)
        return self._run(command, np.arange(n_rows), None, load, rows, {}, weights, beats, options)

    def sddmm(
        self, *, n_rows=None, n_in=None, n_keys=None, density=None, gated=None, mask=None, reads_keys=False, **options
    ):
        """Scores under a mask; with ``reads_keys`` of rows that pick elements of the keys that were projected last."""
        p, rng = self.parameters, self.rng
        gated = bool(rng.integers(2)) if gated is None else gated
        mask = int(rng.integers(p.n_masks)) if mask is None else mask
        weights = []
        if reads_keys:
            bank_address, n_keys, n_out, _ = self._keys
            n_in = min(words_for(n_out, p.n_lanes) * p.n_lanes, p.max_dim)
        n_in = n_in or self._pick(1, p.max_head_dim)
        beats = words_for(n_in, p.n_lanes)
        while not n_keys or beats * p.slots_of(n_keys) > p.wmem_depth:
            n_keys = self._pick(1, p.max_tokens)
        slots = p.slots_of(n_keys)
        n_rows = n_rows or self._pick(1, min(self._most_rows(n_in), p.omem_depth // slots))
        if reads_keys:
            n_rows = min(n_in, self._most_rows(n_in), p.omem_depth // slots)
        else:
            bank_address = self._pick(0, p.wmem_depth - beats * slots)
            weights = self._weights(beats * slots, bank_address)
        place, load = self._rows(n_rows, n_in)
        if reads_keys:
            load = self._unit_vectors(place, n_rows, n_in)
        tokens = self._tokens(n_rows, gated)
        active = np.arange(n_rows) if tokens is None else tokens
        loaded, bits = self._mask(mask, n_rows, active, density, slots)
        load += loaded
        destination = self._pick(0, p.omem_depth - n_rows * slots)
        command = {
            "opcode": int(Opcode.SDDMM),
            "flags": FLAGS["gated"] * gated,
            "mask": mask,
            "n_rows": n_rows,
            "n_in": n_in,
            "n_out": n_keys,
            **place,
            "destination": destination,
            "bank_address": bank_address,
        }
        core_array.sddmm(self.memories, Command(**command), active, bits)
        kept = SampledElements.of(bits)
        rows = [[] for _ in active]
        for row, bank, at in zip(kept.row, kept.bank, destination + kept.position, strict=False):
            value = self.memories.scores[bank, at]
            assert value.defined
            rows[row].append(["scores", int(bank), int(at), int(value.data)])
        n_read = words_for(n_in, p.row_word)
        counts = range(len(active) + 1)
        allowed = {"imem": [n * n_read for n in counts], "mask": list(counts)}
        return self._run(
            command,
            active,
            tokens,
            load,
            rows,
            allowed,
            weights,
            len(kept.row) * beats,
            {"counts": bits.sum(axis=2).tolist(), **options},
        )

    def _unit_vectors(self, place, n_rows, n_in):
        """Rows that each pick one element of the keys."""
        p = self.parameters
        n_words = words_for(n_in, p.row_word)
        rows = np.zeros((n_rows, n_words * p.row_word), np.int64)
        rows[np.arange(n_rows), self.rng.permutation(n_in)[:n_rows]] = 0x3C00
        where = place["source"] + np.arange(n_rows)[:, None] * place["source_stride"] + np.arange(n_words)
        self.memories.imem[where] = Words.of(rows.reshape(n_rows, n_words, -1))
        return [
            ["imem", 0, int(at), word]
            for at, word in zip(where.ravel(), pack(rows.reshape(-1, p.row_word), 16), strict=True)
        ]

    def _bitmap(self, n_rows, density):
        """Rows of bits, of slots without keys as well: some empty, some full, some of one bank."""
        p, rng = self.parameters, self.rng
        shape = n_rows, p.n_banks, p.key_slots
        if density is not None:
            return rng.random(shape) < density
        bitmap = rng.random(shape) < rng.random((n_rows, 1, 1))
        kind = rng.integers(0, 8, n_rows)
        bitmap[kind == 0] = False
        bitmap[kind == 1] = True
        bitmap[kind == 2, 1:] = False
        return bitmap

    def any(self, **options):
        """A run of a kind chosen at random; some runs are followed by one that reads the keys they made."""
        kind = self.rng.choice(["matmul", "sddmm", "values", "keys", "weighted_sum"])
        if kind in ("values", "keys"):
            runs = [self.project(values=kind == "values", **options)]
            if kind == "keys" and "abort" not in options:
                runs.append(self.sddmm(reads_keys=True, density=1, gated=False, **options))
            return runs
        return [getattr(self, str(kind))(**options)]
