"""Products of a program, and the words that its commands read and write in each memory."""

from collections import Counter
from dataclasses import dataclass, field

from golden.spec.commands import Memory, Opcode, Product, Projection, form_of
from golden.spec.sizes import words_for

__all__ = ["Usage"]


@dataclass
class Usage:
    """Sums over commands. ``reads`` and ``writes``: words of a memory, of each of its banks; weights and values are
    read by each unit for each of its beats."""

    products: int = 0
    array_beats: int = 0
    reads: Counter = field(default_factory=Counter)
    writes: Counter = field(default_factory=Counter)

    def add(self, item, sizes):
        """A command that is executed, a :class:`golden.timing.trace.Traced`."""
        command, n = item.command, item.n_active
        bias = command.has("bias")
        n_in, n_out, banks = command.n_in, command.n_out, sizes.n_banks
        row, result = words_for(n_in, sizes.row_word), words_for(n_out, sizes.row_word)
        beats = words_for(n_in, sizes.n_lanes) + bias
        match command.opcode:
            case Opcode.MATMUL:
                self._product(n * n_in * n_out, n * n_out * beats)
                self._partial(command, n * n_out)
                self.reads["imem"] += n * row
                self.writes["imem"] += n * result
            case Opcode.PROJECT:
                self._product(n * n_in * n_out, n * n_out * beats)
                self.reads["imem"] += n * row * words_for(n_out, banks)
                lanes = sizes.simd_lanes if command.function == Projection.VALUES else sizes.n_lanes
                memory = "vmem" if command.function == Projection.VALUES else "wmem"
                self.writes[memory] += n * words_for(n_out, lanes)
            case Opcode.SDDMM:
                scores = int(item.counts.sum())
                self._product(scores * n_in, scores * beats)
                self.reads["imem"] += n * row
                self.writes["scores"] += scores
            case Opcode.SOFTMAX:
                scores = int(item.counts.sum())
                self.reads["scores"] += scores
                self.writes["probabilities"] += scores
            case Opcode.WEIGHTED_SUM:
                weights = sizes.slots_of(n_out) * sizes.column_beats
                self._product(int(item.counts.sum()) * n_in, n * n_in * weights)
                self._partial(command, n * n_in)
                self.reads["probabilities"] += int(item.counts.sum())
                self.writes["imem"] += n * row
            case Opcode.SPMM:
                terms, passes = int(item.counts.sum()), words_for(n_in, sizes.simd_lanes)
                self.products += terms * n_in
                self.reads["probabilities"] += terms
                self.reads["vmem"] += terms * passes
                self.writes["imem"] += n * row
            case Opcode.ELEMENTWISE | Opcode.LAYER_NORM:
                self.reads["imem"] += n * row * len(form_of(command).reads)
                self.writes["imem"] += n * row
            case Opcode.LOAD if command.function == Memory.ROWS:
                self.writes["imem"] += n * row
            case Opcode.LOAD if command.function in (Memory.WEIGHTS, Memory.VALUES):
                self.writes["wmem" if command.function == Memory.WEIGHTS else "vmem"] += n * banks
            case Opcode.STORE if command.function == Memory.ROWS:
                self.reads["imem"] += n * row

    def _product(self, products, beats):
        self.products += products
        self.array_beats += beats
        self.reads["wmem"] += beats

    def _partial(self, command, sums):
        if command.function in (Product.NEXT, Product.LAST):
            self.reads["partial"] += sums
        if command.function in (Product.FIRST, Product.NEXT):
            self.writes["partial"] += sums
