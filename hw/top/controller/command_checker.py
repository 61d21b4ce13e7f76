"""CommandChecker: whether a command can be carried out, and which words of IMEM it touches."""

from amaranth.hdl import Array, Module, Mux, Signal
from amaranth.lib import data
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from golden.spec.commands import FLAGS, LEGAL_FLAGS, Elementwise, ErrorCode, Memory, Opcode, Projection
from golden.spec.sizes import words_for
from hw.top.command_layout import COMMAND_LAYOUT
from hw.top.parameters import CommandLimits, CorePart

__all__ = ["CommandChecker", "EXTENT", "known_state"]

_END_WIDTH = 34
"""Bits of the end of an extent, whatever a command says."""

EXTENT = data.StructLayout({"is_used": 1, "first": 16, "end": 17})
"""Words first to end - 1 of IMEM."""


def known_state(p):
    """What the checks look at beside the command: what was written so far."""
    row_count = range(p.max_tokens + 1)
    return data.StructLayout(
        {
            "mask_rows": data.ArrayLayout(row_count, p.n_masks),
            "mass_rows": row_count,
            "tokens_valid": 1,
            "token_count": row_count,
            "token_largest": max(1, ceil_log2(p.max_tokens)),
        }
    )


class CommandChecker(CorePart):
    """Finds the first reason to refuse a command, in the order of :mod:`golden.core.checks`, which defines it.

    ``command`` and ``known`` stay as they are from ``start`` to ``done``; the results then hold until the next start.
    """

    Parameters = CommandLimits
    members_doc = {
        "start": "begin with the command",
        "command": "what to check",
        "known": "what was written so far",
        "done": "the results are ready",
        "error": "an ErrorCode",
        "reads": "words of IMEM that are read as rows",
        "second_reads": "words of IMEM that are read as second operands",
        "writes": "words of IMEM that are written",
    }

    @staticmethod
    def members(p):
        return {
            "start": In(1),
            "command": In(COMMAND_LAYOUT),
            "known": In(known_state(p)),
            "done": Out(1),
            "error": Out(4),
            "reads": Out(EXTENT),
            "second_reads": Out(EXTENT),
            "writes": Out(EXTENT),
        }

    @property
    def latency(self):
        """Clocks from start to done."""
        return 4 + self._steps

    @property
    def _steps(self):
        """Bits of the factors of the products."""
        sizes = self.parameters
        return max((self.max_tokens - 1).bit_length(), words_for(self.max_dim, sizes.n_banks).bit_length())

    def circuit(self):
        m = Module()
        step = Signal(range(self.latency + 1))
        with m.If(self.start):
            m.d.sync += step.eq(1)
        with m.Elif(step != 0):
            m.d.sync += step.eq(Mux(step == self.latency, 0, step + 1))
        m.d.comb += self.done.eq(step == self.latency)
        self._decode(m)
        self._measure(m)
        self._multiply(m, step)
        self._find_extents(m)
        self._judge(m)
        return m

    def _decode(self, m):
        """What kind of command it is."""
        command = self.command

        def named(name, condition):
            signal = Signal(name=name)
            m.d.comb += signal.eq(condition)
            return signal

        self._is = {code: named(f"is_{code.name.lower()}", command.opcode == code) for code in Opcode}
        self._memory = {item: named(f"function_is_{item.name.lower()}", command.function == item) for item in Memory}
        self._flag = {name: named(f"has_{name}", (command.flags & bit).any()) for name, bit in FLAGS.items()}
        op, memory = self._is, self._memory
        self._moves = named("moves_data", op[Opcode.LOAD] | op[Opcode.STORE])
        self._masked = named("is_masked", op[Opcode.SDDMM] | op[Opcode.SOFTMAX] | op[Opcode.SPMM])
        self._dense = named("is_dense", op[Opcode.MATMUL] | op[Opcode.PROJECT])
        two = 0
        for function in Elementwise:
            if function.n_operands == 2:
                two = two | (command.function == function)
        self._two = named("has_two_operands", op[Opcode.ELEMENTWISE] & two)
        per_element = op[Opcode.ELEMENTWISE] | op[Opcode.LAYER_NORM]
        rows_moved = memory[Memory.ROWS]
        self._reads_rows = named(
            "reads_rows", self._dense | op[Opcode.SDDMM] | per_element | (op[Opcode.STORE] & rows_moved)
        )
        self._reads_second = named("reads_second", self._two | op[Opcode.LAYER_NORM])
        self._writes_rows = named(
            "writes_rows", op[Opcode.MATMUL] | op[Opcode.SPMM] | per_element | (op[Opcode.LOAD] & rows_moved)
        )

    def _measure(self, m):
        """Rows and columns in words, beats, groups and slots; all one clock after the command."""
        sizes, command = self.parameters, self.command

        def rounded_up(name, elements, word):
            signal = Signal(17, name=name, reset_less=True)
            m.d.sync += signal.eq((elements + word - 1) >> ceil_log2(word))
            return signal

        def slots_log2(name, n_keys):
            """log2 of :meth:`golden.spec.sizes.CoreSizes.slots_of`."""
            signal = Signal(range(ceil_log2(sizes.key_slots) + 1), name=name, reset_less=True)
            value = 0
            for exponent in range(ceil_log2(sizes.key_slots)):
                value = Mux(n_keys > self.n_banks << exponent, exponent + 1, value)
            m.d.sync += signal.eq(value)
            return signal

        self._words_in = rounded_up("words_in", command.n_in, sizes.row_word)
        self._words_out = rounded_up(
            "words_out", Mux(self._is[Opcode.MATMUL], command.n_out, command.n_in), sizes.row_word
        )
        self._groups = rounded_up("groups_out", command.n_out, self.n_banks)
        self._beats = Signal(18, reset_less=True)
        m.d.sync += self._beats.eq(((command.n_in + self.n_lanes - 1) >> ceil_log2(self.n_lanes)) + self._flag["bias"])
        keys = command.function == Projection.KEYS
        width = Mux(self._is[Opcode.SPMM], command.n_in, command.n_out)
        self._chunks = Signal(17, reset_less=True)
        m.d.sync += self._chunks.eq(
            Mux(
                self._is[Opcode.PROJECT] & keys,
                (width + self.n_lanes - 1) >> ceil_log2(self.n_lanes),
                (width + self.simd_lanes - 1) >> ceil_log2(self.simd_lanes),
            )
        )
        self._slots_log2 = slots_log2("slots_log2", Mux(self._is[Opcode.PROJECT], command.n_rows, command.n_out))

    def _multiply(self, m, step):
        """All products at once, a bit of the factor a clock: rows - 1 with the strides, groups with beats."""
        command = self.command
        rows = Signal(16, reset_less=True)
        groups = Signal(17, reset_less=True)
        ln = self._is[Opcode.LAYER_NORM]
        self._product = {}
        for name, factor, multiplicand, width in (
            ("source", rows, command.source_stride, 16),
            ("source_2", rows, command.source_2_stride, 16),
            ("destination", rows, command.destination_stride, 16),
            ("weights", groups, self._beats, 18),
        ):
            total = Signal(_END_WIDTH, name=f"{name}_product", reset_less=True)
            shifted = Signal(_END_WIDTH, name=f"{name}_shifted", reset_less=True)
            with m.If(step == 1):
                m.d.sync += [total.eq(0), shifted.eq(multiplicand)]
            with m.Else():
                m.d.sync += shifted.eq(shifted << 1)
                with m.If(factor[0]):
                    m.d.sync += total.eq(total + shifted)
            self._product[name] = total
        with m.If(step == 1):
            m.d.sync += [rows.eq(command.n_rows - 1), groups.eq(self._groups)]
        with m.Else():
            m.d.sync += [rows.eq(rows >> 1), groups.eq(groups >> 1)]
        self._second_span = Mux(ln, command.source_2_stride, self._product["source_2"])

    def _find_extents(self, m):
        """Where everything that is read or written ends; one clock after the products."""
        command, op, memory = self.command, self._is, self._memory

        def end(name, value):
            signal = Signal(_END_WIDTH, name=f"{name}_end", reset_less=True)
            m.d.sync += signal.eq(value)
            return signal

        kept = command.n_rows << self._slots_log2
        moved = self._moves
        by_bank = Mux(
            self._dense, self._product["weights"], Mux(op[Opcode.SDDMM], self._beats, self._chunks) << self._slots_log2
        )
        self._source_end = end("source", command.source + self._product["source"] + self._words_in)
        self._second_end = end("source_2", command.source_2 + self._second_span + self._words_in)
        self._destination_end = end("destination", command.destination + self._product["destination"] + self._words_out)
        self._bank_end = end("bank", command.bank_address + Mux(moved, command.n_rows, by_bank))
        self._kept_in_end = end("kept_in", command.source + Mux(moved, command.n_rows, kept))
        self._kept_out_end = end("kept_out", command.destination + Mux(moved, command.n_rows, kept))
        self._projected_end = end("projected", command.destination + (self._chunks << self._slots_log2))

        for extent, used, first, last in (
            (self.reads, self._reads_rows, command.source, self._source_end),
            (self.second_reads, self._reads_second, command.source_2, self._second_end),
            (self.writes, self._writes_rows, command.destination, self._destination_end),
        ):
            m.d.comb += [extent.is_used.eq(used), extent.first.eq(first), extent.end.eq(last)]
        self._in_banks = memory[Memory.SCORES] | memory[Memory.PROBABILITIES]

    def _judge(self, m):
        """Every reason by itself, then the first one; one clock after the extents."""
        exists = 0
        for code in Opcode:
            exists = exists | self._is[code]
        reasons = {
            ErrorCode.UNKNOWN_OPCODE: ~exists,
            ErrorCode.UNKNOWN_FUNCTION: self._wrong_function(),
            ErrorCode.SIZE: self._wrong_size(),
            ErrorCode.RANGE: self._out_of_range(),
            ErrorCode.OVERLAP: self._overlaps(),
            ErrorCode.MASK_MISSING: self._mask_missing(),
            ErrorCode.TOKENS_MISSING: self._tokens_missing(),
            ErrorCode.MASS_MISSING: self._mass_missing(),
        }
        error = Signal(4, reset_less=True)
        value = ErrorCode.NONE
        for code in sorted(reasons, reverse=True):
            reason = Signal(name=f"refuses_{code.name.lower()}")
            m.d.comb += reason.eq(reasons[code])
            value = Mux(reason, code, value)
        m.d.sync += error.eq(value)
        m.d.comb += self.error.eq(error)

    def _wrong_function(self):
        command, op = self.command, self._is
        wrong = self._flag["make_mask"] & self._flag["use_mass"]
        for code in Opcode:
            legal = sum(FLAGS[name] for name in LEGAL_FLAGS.get(code, ()))
            wrong = wrong | (op[code] & (command.flags & (0xFF ^ legal)).any())
        elementwise = 0
        for function in Elementwise:
            elementwise = elementwise | (command.function == function)
        return (
            wrong
            | (op[Opcode.CLEAR] & (command.function > 1))
            | (op[Opcode.LOAD] & (command.function >= Memory.COUNTERS))
            | (
                op[Opcode.STORE]
                & ((command.function > Memory.COUNTERS) | self._memory[Memory.WEIGHTS] | self._memory[Memory.VALUES])
            )
            | (op[Opcode.PROJECT] & (command.function > 1))
            | (op[Opcode.ELEMENTWISE] & ~elementwise)
        )

    def _wrong_size(self):
        command, op, memory = self.command, self._is, self._memory

        def outside(value, high):
            return (value == 0) | (value > high)

        rowwise = self._dense | self._masked | op[Opcode.ELEMENTWISE] | op[Opcode.LAYER_NORM]
        by_row = memory[Memory.ROWS] | memory[Memory.MASK] | memory[Memory.MASS]
        by_word = memory[Memory.WEIGHTS] | memory[Memory.VALUES] | self._in_banks
        reads_dim = self._dense | op[Opcode.ELEMENTWISE] | op[Opcode.LAYER_NORM] | (self._moves & memory[Memory.ROWS])
        reads_head = op[Opcode.SDDMM] | op[Opcode.SPMM]
        mask = Mux(op[Opcode.LOAD], command.mask_out, command.mask)
        moves_mask = self._moves & memory[Memory.MASK]
        return (
            ((rowwise | (self._moves & by_row)) & outside(command.n_rows, self.max_tokens))
            | (self._moves & by_word & (command.n_rows == 0))
            | (op[Opcode.LOAD] & memory[Memory.TOKENS] & (command.n_rows > self.max_tokens))
            | (reads_dim & outside(command.n_in, self.max_dim))
            | (reads_head & outside(command.n_in, self.max_head_dim))
            | (op[Opcode.MATMUL] & outside(command.n_out, self.max_dim))
            | (op[Opcode.PROJECT] & outside(command.n_out, self.max_head_dim))
            | (self._masked & outside(command.n_out, self.max_tokens))
            | (self._reads_rows & (command.source_stride < self._words_in))
            | (
                self._reads_second
                & (command.source_2_stride < self._words_in)
                & ~(self._two & (command.source_2_stride == 0))
            )
            | (self._writes_rows & (command.destination_stride < self._words_out))
            | ((moves_mask | self._masked) & (mask >= self.n_masks))
            | (moves_mask & (mask == 0) & (command.n_rows != 1))
            | (self._flag["make_mask"] & ((command.mask_out == 0) | (command.mask_out >= self.n_masks)))
        )

    def _out_of_range(self):
        op, memory, moves = self._is, self._memory, self._moves
        to_values = op[Opcode.PROJECT] & (self.command.function == Projection.VALUES)
        to_keys = op[Opcode.PROJECT] & ~to_values
        uses_wmem = self._dense | op[Opcode.SDDMM] | (moves & memory[Memory.WEIGHTS])
        uses_vmem = op[Opcode.SPMM] | (moves & memory[Memory.VALUES])
        reads_kept = op[Opcode.SOFTMAX] | op[Opcode.SPMM] | (op[Opcode.STORE] & self._in_banks)
        writes_kept = op[Opcode.SDDMM] | op[Opcode.SOFTMAX] | (op[Opcode.LOAD] & self._in_banks)
        return (
            (self._reads_rows & (self._source_end > self.imem_depth))
            | (self._reads_second & (self._second_end > self.imem_depth))
            | (self._writes_rows & (self._destination_end > self.imem_depth))
            | (uses_wmem & (self._bank_end > self.wmem_depth))
            | (uses_vmem & (self._bank_end > self.vmem_depth))
            | (reads_kept & (self._kept_in_end > self.omem_depth))
            | (writes_kept & (self._kept_out_end > self.omem_depth))
            | (to_keys & (self._projected_end > self.wmem_depth))
            | (to_values & (self._projected_end > self.vmem_depth))
        )

    def _overlaps(self):
        command, op = self.command, self._is
        destination = (command.destination, self._destination_end)

        def meet(one, other):
            return (one[0] < other[1]) & (other[0] < one[1])

        weights = (command.bank_address, self._bank_end)
        projected = (command.destination, self._projected_end)
        return (
            (self._writes_rows & self._reads_rows & meet((command.source, self._source_end), destination))
            | (self._writes_rows & self._reads_second & meet((command.source_2, self._second_end), destination))
            | (op[Opcode.PROJECT] & (command.function == Projection.KEYS) & meet(weights, projected))
            | (self._flag["make_mask"] & (command.mask == command.mask_out))
        )

    def _mask_missing(self):
        command, op = self.command, self._is
        rows = Array(self.known.mask_rows[index] for index in range(self.n_masks))
        reads = self._masked | (op[Opcode.STORE] & self._memory[Memory.MASK])
        needed = Mux(command.mask == 0, 1, command.n_rows)
        keeps_others = self._flag["make_mask"] & self._flag["gated"]
        return (reads & (rows[command.mask] < needed)) | (keeps_others & (rows[command.mask_out] < command.n_rows))

    def _tokens_missing(self):
        command, known = self.command, self.known
        is_beyond = (known.token_count > command.n_rows) | (
            (known.token_count != 0) & (known.token_largest >= command.n_rows)
        )
        return (self._flag["gated"] & (~known.tokens_valid | is_beyond)) | (
            self._is[Opcode.STORE] & self._memory[Memory.TOKENS] & ~known.tokens_valid
        )

    def _mass_missing(self):
        needed = self._flag["use_mass"] | (self._flag["make_mask"] & self._flag["gated"])
        needed = needed | (self._is[Opcode.STORE] & self._memory[Memory.MASS])
        return needed & (self.known.mass_rows < self.command.n_rows)
