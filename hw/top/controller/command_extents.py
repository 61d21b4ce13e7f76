"""The extents of a command's operands, computed from the lengths of the command table."""

from dataclasses import dataclass

from amaranth.hdl import Mux, Signal, Value
from amaranth.utils import ceil_log2

from golden.spec.commands import COMMANDS
from golden.spec.operands import Matrix, RoundUp, Words
from golden.spec.sizes import words_for
from hw.lib.division import quotient

__all__ = ["CommandExtents", "Operand", "n_steps"]

_END_WIDTH = 34
"""Bits of the end of an extent, for any command."""


@dataclass(frozen=True)
class Operand:
    """All operands of the table with the same base field: their extent in the command being checked."""

    operands: tuple  # (form, operand)
    first: Value
    end: Value
    words: Value | None = None  # of a matrix: words of a row

    @property
    def forms(self):
        return [form for form, _ in self.operands]


def operands_by_base(kind):
    """``{base field: [(form, operand)]}`` of all operands of a class."""
    found = {}
    for form in COMMANDS:
        for operand in form.operands(kind):
            found.setdefault(operand.base, []).append((form, operand))
    return found


def n_steps(sizes):
    """Bits of the factors of the products: of rows less one, and of the last factor of a length."""
    highest = [(1 << sizes.token_width) - 1]
    for operands in operands_by_base(Words).values():
        for form, operand in operands:
            if len(operand.factors) == 2:
                factor = operand.factors[1]
                bound = getattr(sizes, form.bounds[factor.field][1])
                highest.append(words_for(bound, getattr(sizes, factor.divisor)) + (factor.flag is not None))
    return max(value.bit_length() for value in highest)


class CommandExtents:
    """Builds the logic. ``matrices`` and ``words`` are ``{base field: Operand}``.

    Operands with the same base field share an adder. Sizes of rows are rounded up to words in the clock after the
    command; ends come a clock after the products, which take as many clocks as their factors have bits.
    """

    def __init__(self, m, sizes, command, decoder, largest_token, is_first_step):
        self._m, self._sizes, self._command, self._decoder = m, sizes, command, decoder
        self._largest_token = largest_token
        self._is_first_step = is_first_step
        self._registers = {}
        self._slots_log2 = self._slots()
        self.matrices = {base: self._matrix(base, items) for base, items in operands_by_base(Matrix).items()}
        self.words = {base: self._words(base, items) for base, items in operands_by_base(Words).items()}

    # Sizes, one clock after the command ------------------------------------------------------------------------------

    def _factor(self, factor):
        """A factor of a length, in the clock of the command."""
        if not isinstance(factor, RoundUp):
            return self._command[factor]
        words = _round_up(self._command[factor.field], getattr(self._sizes, factor.divisor))
        return words if factor.flag is None else words + self._decoder.has_flag(factor.flag)

    def _factor_and_words(self, operand):
        """A length's only factor beside slots, and the words of a slot."""
        return operand.factors[0], 1 if operand.slots is None else operand.slots.words_of(self._sizes)

    def _register(self, name, value, width):
        """A value of the clock before; one of each name."""
        if name not in self._registers:
            register = Signal(width, name=name, reset_less=True)
            self._m.d.sync += register.eq(value)
            self._registers[name] = register
        return self._registers[name]

    def _choose(self, items, key, value):
        """``value`` of the key of the command's operand, and all keys."""
        cases = {}
        for form, operand in items:
            cases.setdefault(key(operand), []).append(form)
        return self._decoder.choose([(forms, value(item)) for item, forms in cases.items()]), list(cases)

    def _slots(self):
        """log2 of :meth:`golden.spec.sizes.CoreSizes.slots_of` of the command's tokens; 0 where it has no slots."""
        fields = {}
        for form in COMMANDS:
            slots = {operand.slots.field for operand in form.operands(Words) if operand.slots}
            fields.setdefault(slots.pop() if slots else None, []).append(form)
        cases = [(forms, 0 if name is None else self._command[name]) for name, forms in fields.items()]
        tokens, n_banks = self._decoder.choose(cases), self._sizes.n_banks
        highest = ceil_log2(self._sizes.key_slots)
        value = 0
        for exponent in range(highest):
            value = Mux(tokens > n_banks << exponent, exponent + 1, value)
        return self._register("slots_log2", value, range(highest + 1))

    # Products --------------------------------------------------------------------------------------------------------

    def _shifting(self, name, value, width):
        """The bits of a factor, the lowest first, from the second step on."""
        if name not in self._registers:
            register = Signal(width, name=name, reset_less=True)
            with self._m.If(self._is_first_step):
                self._m.d.sync += register.eq(value)
            with self._m.Else():
                self._m.d.sync += register.eq(register >> 1)
            self._registers[name] = register
        return self._registers[name]

    def _product(self, name, factor, multiplicand):
        """``factor`` gives one bit a clock."""
        m = self._m
        total = Signal(_END_WIDTH, name=f"{name}_product", reset_less=True)
        shifted = Signal(_END_WIDTH, name=f"{name}_shifted", reset_less=True)
        with m.If(self._is_first_step):
            m.d.sync += [total.eq(0), shifted.eq(multiplicand)]
        with m.Else():
            m.d.sync += shifted.eq(shifted << 1)
            with m.If(factor[0]):
                m.d.sync += total.eq(total + shifted)
        return total

    # Ends, one clock after the products ------------------------------------------------------------------------------

    def _end(self, name, value):
        return self._register(f"{name}_end", value, _END_WIDTH)

    def _matrix(self, base, items):
        """``first + (n_rows - 1) * stride + words``."""
        command = self._command
        field, fields = self._choose(
            items,
            lambda operand: (operand.elements, operand.column),
            lambda names: command[names[0]] + (command[names[1]] if names[1] else 0),
        )
        name = f"words_of_{fields[0][0] if len(fields) == 1 and not fields[0][1] else base}"
        words = self._register(name, _round_up(field, self._sizes.row_word), 17)
        stride = command[items[0][1].stride]

        def span(n_rows):
            if isinstance(n_rows, int):
                return (n_rows - 1) * stride if n_rows != 2 else stride
            # The rows of a gated command are those of the token list.
            last_row = Mux(self._decoder.has_flag("gated"), self._largest_token, command[n_rows] - 1)
            rows = self._shifting(f"{n_rows}_left", last_row, 16)
            return self._product(base, rows, stride)

        span_of_rows, _ = self._choose(items, lambda operand: operand.n_rows, span)
        end = self._end(base, command[base] + span_of_rows + words)
        return Operand(tuple(items), command[base], end, words)

    def _words(self, base, items):
        """``first`` + length, which is a factor, a product, or a factor times slots."""
        single = [item for item in items if len(item[1].factors) == 1]
        double = [item for item in items if len(item[1].factors) == 2]
        cases = []
        if single:
            factor, factors = self._choose(single, self._factor_and_words, lambda pair: self._factor(pair[0]) * pair[1])
            if len(factors) > 1 or isinstance(factors[0][0], RoundUp):
                has_flag = any(isinstance(item, RoundUp) and item.flag for item, _ in factors)
                most = max(words for _, words in factors)
                factor = self._register(f"{base}_factor", factor, 17 + has_flag + (most - 1).bit_length())
            cases.append(([form for form, _ in single], factor << self._slots_log2))
        if double:
            multiplicand, _ = self._choose(double, lambda operand: operand.factors[0], self._factor)
            factor, _ = self._choose(double, lambda operand: operand.factors[1], self._factor)
            multiplicand = self._register(f"{base}_multiplicand", multiplicand, 18)
            factor = self._register(f"{base}_multiplier", factor, 17)
            bits = self._shifting(f"{base}_multiplier_left", factor, 17)
            cases.append(([form for form, _ in double], self._product(f"{base}_words", bits, multiplicand)))
        end = self._end(f"{base}_words", self._command[base] + self._decoder.choose(cases))
        return Operand(tuple(items), self._command[base], end)


def _round_up(elements, word):
    """Words of ``word`` elements that hold ``elements``."""
    return quotient(elements + word - 1, word)
