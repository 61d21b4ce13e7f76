"""Random programs for the core, with what the golden model makes of them.

A program is made piece by piece, each a mixture of chains of commands on the same rows, which the hardware runs at the
same time, projections, single commands, and wrong ones with what they make the core drop. What a command reads is
loaded before it unless it is there (or, now and then, not at all); where it writes is left to chance, often to where
others read or wrote before. A piece ends with stores of everything that changed.
"""

from dataclasses import replace

import numpy as np

from golden.core.streams import n_load_beats
from golden.program import placement
from golden.spec.commands import COMMANDS, FIELDS, FLAGS, Command, ErrorCode, Memory, Opcode, Product, Projection
from golden.spec.operands import Matrix
from golden.spec.sizes import words_for
from golden.units.layer_norm_unit import encode_epsilon
from golden.units.softmax_unit import encode_scale
from verif.core.program_writer import Piece
from verif.core.random_commands import random_command
from verif.core.random_inputs import RandomInputs

__all__ = ["Piece", "RandomPrograms"]


_ROWWISE = [
    form
    for form in COMMANDS
    if form.chained(form.reads) and form.chained(form.writes)
    if all(isinstance(operand, Matrix) and operand.elements == "n_in" for operand in (*form.reads, *form.writes))
]
_WEIGHTS = [min(2, len(form.functions) or 1) for form in _ROWWISE]
_WEIGHTS = [weight / sum(_WEIGHTS) for weight in _WEIGHTS]
"""Commands from rows to rows, and how often each is chosen."""


class RandomPrograms(RandomInputs):
    """Makes pieces that follow each other on one core."""

    def piece(self, n_commands):
        """The next piece, of about so many commands besides loads and stores."""
        self.begin()
        wanted = 0
        while wanted < n_commands:
            before = len(self._piece.commands)
            kind = self.rng.random()
            if kind < 0.55:
                self._chain()
            elif kind < 0.65:
                self._project()
            elif kind < 0.72:
                self._ctr()
            elif kind < 0.82:
                self._anything()
            elif kind < 0.92:
                self._wrong()
            else:
                self._emit(Command(opcode=Opcode.CLEAR, function=int(self.rng.random() < 0.2)))
            wanted += max(1, len(self._piece.commands) - before)
        self._store_everything()
        return self.finish()

    def _chain(self):
        """Commands on the same rows, each on what the one before it gave: first what they read, then all of them."""
        sizes, rng = self.sizes, self.rng
        n_rows, n = min(self._n_rows(), sizes.rows_a_mask), self._size(self._most_dim)
        gated = FLAGS["gated"] if rng.random() < 0.3 else 0
        if gated:
            self._need_tokens(n_rows)
        kind = rng.choice(["rows", "rows", "scores", "probabilities"])
        planned = []
        mask = int(rng.integers(0, sizes.n_masks))
        n_keys = self._key_count(n_rows)
        first_row = int(rng.integers(0, sizes.rows_a_mask - n_rows, endpoint=True)) if rng.random() < 0.3 else 0
        self._marked = (n_rows, 0) if gated else (n_rows, first_row)
        if kind == "rows":
            source = self._matrix(n_rows, n)
            self._need_rows(*source, n_rows, n)
        else:
            self._need_mask(mask, n_rows, n_keys, self._marked[1])
            source = self._score_source(kind, mask, n_rows, n_keys, first_row, gated)
        for _ in range(int(rng.choice([1, 2, 3, 3, 4, 6]))):
            if kind == "rows" and n <= sizes.max_head_dim and rng.random() < 0.5:
                n_keys = self._key_count(n_rows)
                mask = int(rng.integers(0, sizes.n_masks))
                self._need_mask(mask, n_rows, n_keys, self._marked[1])
                command = self._sddmm(source, n, mask, n_rows, n_keys)
                kind = "scores"
            elif kind == "rows":
                command, n = self._dense_or_rowwise(source, n, n_rows, planned)
            elif kind == "scores":
                command = self._softmax(source, mask, n_rows, n_keys, gated)
                kind = "probabilities"
            else:
                command, n = self._spmm(source, mask, n_rows, n_keys)
                kind = "rows"
            command = replace(command, flags=command.flags | gated, first_row=first_row)
            planned += self._in_pieces(command)
            source = (command.destination, command.destination_stride)
        for command in planned:
            if not self._go(command):
                break
        else:
            self._count("whole chains of three or more", len(planned) > 2)

    def _go(self, command):
        """Emit a command that should be right; where chance made it wrong it is mostly left out."""
        if self._code(command) != ErrorCode.NONE and self.rng.random() < 0.8:
            return False
        if self._emit(command):
            return True
        if self.core.refusal:
            self._recover()
        return False

    def _key_count(self, n_rows):
        """Keys for so many rows: their scores must fit."""
        n_keys = self._size(self._most_tokens)
        while n_rows * self.sizes.slots_of(n_keys) > self.sizes.omem_depth:
            n_keys = max(1, n_keys // 2)
        return n_keys

    def _score_source(self, kind, mask, n_rows, n_keys, first_row, gated):
        """Scores or probabilities that are there already, or loaded."""
        slots = self.sizes.slots_of(n_keys)
        first = self._place(kind, n_rows * slots)
        rows = self.core.state.tokens[first_row:][:n_rows] if gated else first_row + np.arange(n_rows)
        bits = self.core.memories.mask_bits(mask, np.array(rows, np.int64), slots).data
        function = Memory.SCORES if kind == "scores" else Memory.PROBABILITIES
        held = self.core.memories.scores if kind == "scores" else self.core.memories.probabilities
        self._need_words(function, held, int(bits.sum(axis=(0, 2)).max(initial=0)), first)
        return first, 0

    def _sddmm(self, source, n, mask, n_rows, n_keys):
        first = self._place("scores", n_rows * self.sizes.slots_of(n_keys))
        return Command(
            opcode=Opcode.SDDMM,
            mask=mask,
            n_rows=n_rows,
            n_in=n,
            n_out=n_keys,
            source=source[0],
            source_stride=source[1],
            destination=first,
            bank_address=self._keys(n_keys, n, Memory.WEIGHTS),
        )

    def _softmax(self, source, mask, n_rows, n_keys, gated):
        rng, sizes = self.rng, self.sizes
        flags, mask_out = 0, int(rng.integers(0, 16))
        others = [number for number in range(1, sizes.n_masks) if number != mask]
        if others and rng.random() < 0.5:
            mask_out, flags = int(rng.choice(others)), FLAGS["make_mask"]
            first_row = self._marked[1]
            if gated:
                self._need_mask(mask_out, n_rows, n_keys)
                self._need_mass(n_rows)
            elif first_row:
                self._need_mask(mask_out, first_row, n_keys)
                self._need_mass(first_row)
        elif rng.random() < 0.5:
            flags = FLAGS["use_mass"]
            self._need_mass(*self._marked)
        theta = placement.fp16_words(float(rng.choice([1, 2, 0.5, rng.random()]) / n_keys))
        if rng.random() < 0.1:
            theta = rng.choice([0, 0x8000, 0x7C00, 0x7E00, 0xBC00])
        return Command(
            opcode=Opcode.SOFTMAX,
            flags=flags,
            mask=mask,
            mask_out=mask_out,
            n_rows=n_rows,
            n_out=n_keys,
            source=source[0],
            destination=self._place("probabilities", n_rows * sizes.slots_of(n_keys)),
            theta=int(theta),
            scale=encode_scale(float(rng.choice([0.25, 1, 0.001, 8]))),
        )

    def _spmm(self, source, mask, n_rows, n_keys):
        """Probabilities times values, on the engines or on the dot-product units."""
        d = self._size(self.sizes.max_head_dim)
        on_array = self.rng.random() < 0.4
        column = self._column(self.sizes.product_step if on_array else self.sizes.simd_lanes)
        first, stride = self._matrix(n_rows, column + d)
        command = Command(
            opcode=Opcode.WEIGHTED_SUM if on_array else Opcode.SPMM,
            mask=mask,
            n_rows=n_rows,
            n_in=d,
            n_out=n_keys,
            source=source[0],
            destination=first,
            destination_stride=stride,
            column=column,
            bank_address=self._value_columns(n_keys, d) if on_array else self._keys(n_keys, d, Memory.VALUES),
        )
        return command, d

    def _dense_or_rowwise(self, source, n, n_rows, planned):
        """A command from rows to rows, and how long they are then."""
        rng, sizes = self.rng, self.sizes
        fields = {"n_rows": n_rows, "n_in": n, "source": source[0], "source_stride": source[1]}
        if rng.random() < 0.5:
            n_out = self._size(min(self._most_dim, sizes.max_head_dim) if rng.random() < 0.5 else self._most_dim)
            bias = FLAGS["bias"] if rng.random() < 0.5 else 0
            column = self._column(sizes.product_step)
            first, stride = self._matrix(n_rows, column + n_out)
            weights = self._weights(n, n_out, bool(bias))
            return Command(
                opcode=Opcode.MATMUL,
                flags=bias,
                n_out=n_out,
                destination=first,
                destination_stride=stride,
                column=column,
                bank_address=weights,
                **fields,
            ), n_out
        form = _ROWWISE[int(rng.choice(len(_ROWWISE), p=_WEIGHTS))]
        result = self._matrix(n_rows, n)
        fields |= {"destination": result[0], "destination_stride": result[1]}
        for operand in form.operands(Matrix)[1:-1]:
            place = self._further_operand(operand, n_rows, n, planned)
            fields |= {operand.base: place[0], operand.stride: place[1]}
        for name in form.values:
            fields[name] = self._value(form.opcode, name)
        function = int(rng.choice(form.functions)) if form.functions else int(rng.integers(256))
        return Command(opcode=form.opcode, function=function, **fields), n

    def _column(self, step):
        """Where a result begins in its rows: mostly with them."""
        return 0 if self.rng.random() < 0.8 else step * int(self.rng.integers(1, 4))

    def _in_pieces(self, command):
        """A product as it is, or now and then as several that are summed up."""
        rng, sizes = self.rng, self.sizes
        if command.opcode not in (Opcode.MATMUL, Opcode.WEIGHTED_SUM) or rng.random() < 0.5:
            return [command]
        columns = command.n_out if command.opcode == Opcode.MATMUL else command.n_in
        length = command.n_rows * words_for(columns, sizes.n_banks)
        if length > sizes.pmem_depth:
            return [command]
        command = replace(command, source_2=self._place("partial", length))
        pieces = [Product.FIRST, *[Product.NEXT] * int(rng.integers(0, 2)), Product.LAST]
        return [replace(command, function=int(piece)) for piece in pieces]

    def _further_operand(self, operand, n_rows, n, planned):
        """Where another matrix is: now and then what a command of this chain gave, also the one just before."""
        rng = self.rng
        earlier = [item for item in planned if item.destination_stride >= words_for(n, self.sizes.row_word)]
        if operand.n_rows == "n_rows" and earlier and rng.random() < 0.4:
            item = earlier[int(rng.integers(len(earlier)))]
            return item.destination, item.destination_stride
        n_read = n_rows if operand.n_rows == "n_rows" else operand.n_rows
        if operand.stride_may_be_0 and rng.random() < 0.3:
            n_read = 1
        first, stride = self._matrix(n_read, n)
        self._need_rows(first, stride, n_read, n)
        return first, stride if n_read == n_rows or not operand.stride_may_be_0 else 0

    def _value(self, opcode, name):
        """Any value, but for those of which most would be of no interest."""
        if (opcode, name) == (Opcode.LAYER_NORM, "scale"):
            return encode_epsilon(float(self.rng.choice([1e-5, 1e-12, 1])))
        return int(self.rng.integers(1 << next(item.width for item in FIELDS if item.name == name)))

    def _project(self):
        """Keys and values out of rows."""
        sizes, rng = self.sizes, self.rng
        n, n_in, d = self._n_rows(), self._size(self._most_dim), self._size(sizes.max_head_dim)
        source = self._matrix(n, n_in)
        self._need_rows(*source, n, n_in)
        places = {
            Projection.KEYS: ("wmem", sizes.n_lanes, 1),
            Projection.VALUES: ("vmem", sizes.simd_lanes, 1),
            Projection.COLUMNS: ("wmem", sizes.n_banks, sizes.column_beats),
        }
        for kind in rng.permutation(list(Projection))[: int(rng.integers(1, 4))]:
            memory, width, words = places[kind]
            bias = rng.random() < 0.5
            weights = self._weights(n_in, d, bias)
            first = self._place(memory, words_for(d, width) * sizes.slots_of(n) * words)
            self._go(
                Command(
                    opcode=Opcode.PROJECT,
                    function=int(kind),
                    flags=FLAGS["bias"] * bias,
                    n_rows=n,
                    n_in=n_in,
                    n_out=d,
                    multiplier=self._multiplier(),
                    source=source[0],
                    source_stride=source[1],
                    destination=first,
                    bank_address=weights,
                )
            )

    def _ctr(self):
        beats = self._words(self.core.compare.n_beats, self.sizes.row_word)
        if self.core.compare.last is not None and self.rng.random() < 0.7:
            # Only a few values differ, and tokens are selected by these.
            beats = self.core.compare.beats(self.core.compare.last)
            changes = self.rng.random(beats.shape) < self.rng.choice([0, 0.02, 0.2])
            beats = np.where(changes, self._words(*beats.shape), beats)
        theta = placement.fp16_words(float(self.rng.choice([0, 0.1, 1, -1])))
        flags = FLAGS["restart"] if self.rng.random() < 0.15 else 0
        self._emit(Command(opcode=Opcode.CTR, flags=flags, theta=int(theta)), beats)

    def _anything(self):
        """Any command that is right, on whatever there is."""
        for _ in range(20):
            command = random_command(self.rng, self.sizes)
            if self._code(command) != ErrorCode.NONE or self._beats_of(command) > self.most_beats:
                continue
            self._emit(command, self._words(self._beats_of(command), self.sizes.row_word))
            return

    def _beats_of(self, command):
        if command.opcode == Opcode.CTR:
            return self.core.compare.n_beats
        return n_load_beats(command, self.sizes) if command.opcode in (Opcode.LOAD, Opcode.STORE) else 0

    def _wrong(self):
        """A command that is refused, for any reason that is wanted if one comes up, and what follows it."""
        wanted = self.rng.choice([code for code in ErrorCode if code != ErrorCode.NONE])
        commands = [random_command(self.rng, self.sizes) for _ in range(50)]
        wrong = [command for command in commands if self._code(command) != ErrorCode.NONE]
        if wrong:
            self._emit(next((command for command in wrong if self._code(command) == wanted), wrong[0]))
        if self.core.refusal:
            self._recover()

    def _recover(self):
        """Commands that are dropped, right and wrong ones, then CLEAR."""
        for _ in range(int(self.rng.integers(0, 4))):
            command = random_command(self.rng, self.sizes)
            if command.opcode != Opcode.CLEAR or self._code(command) != ErrorCode.NONE:
                self._emit(command)
                self._count("dropped")
        self._emit(Command(opcode=Opcode.CLEAR, function=int(self.rng.random() < 0.1)))

    def _store_everything(self):
        """Stores of all that was written, and of keys and values by what can be computed with them."""
        sizes, state = self.sizes, self.core.state
        for memory in ("wmem", "vmem"):
            if self._touched.get(memory):
                self._chain()
        element = min(sizes.row_word, sizes.max_dim)
        for first, length in self._stretches("imem", sizes.max_tokens):
            self._emit(
                Command(
                    opcode=Opcode.STORE,
                    function=Memory.ROWS,
                    n_rows=length,
                    n_in=element,
                    source=first,
                    source_stride=1,
                )
            )
        for name, function in (("scores", Memory.SCORES), ("probabilities", Memory.PROBABILITIES)):
            for first, length in self._stretches(name, self.most_beats):
                self._emit(Command(opcode=Opcode.STORE, function=function, n_rows=length, source=first))
        for number, count in enumerate(state.mask_count):
            if count:
                first = int(self.rng.integers(0, count)) if self.rng.random() < 0.2 and number else 0
                command = Command(opcode=Opcode.STORE, function=Memory.MASK, mask=number, n_rows=count - first)
                self._emit(replace(command, first_row=first))
        if state.mass_count:
            self._emit(Command(opcode=Opcode.STORE, function=Memory.MASS, n_rows=state.mass_count))
        if state.tokens is not None:
            self._emit(Command(opcode=Opcode.STORE, function=Memory.TOKENS))
        self._emit(Command(opcode=Opcode.STORE, function=Memory.COUNTERS))
