"""The reasons to refuse a command: the conditions of the command table, each as one bit."""

from amaranth.hdl import Array, Mux

from golden.spec.commands import COMMANDS, FLAGS, ErrorCode, Opcode, flags_of, forms_of
from golden.spec.operands import DEPTH, MaskRows, MassRows, Matrix, TokenList
from hw.lib.division import remainder
from hw.top.controller.command_decoder import any_term

__all__ = ["CommandReasons"]


def _is_read(form, operand):
    return operand in form.reads


def _is_written(form, operand):
    return operand in form.writes


class CommandReasons:
    """Each reason independently of those before it."""

    def __init__(self, sizes, command, state, decoder, extents):
        self._sizes, self._command, self._state = sizes, command, state
        self._decoder, self._extents = decoder, extents

    def reasons(self):
        return {
            ErrorCode.UNKNOWN_OPCODE: ~any_term(map(self._decoder.is_opcode, Opcode)),
            ErrorCode.UNKNOWN_FUNCTION: self._wrong_function() | self._wrong_flags(),
            ErrorCode.SIZE: self._out_of_bounds()
            | self._rows_too_far()
            | self._stride_too_short()
            | self._no_such_column()
            | self._no_such_mask(),
            ErrorCode.RANGE: self._out_of_range(),
            ErrorCode.OVERLAP: self._words_overlap() | self._masks_overlap(),
            ErrorCode.MASK_MISSING: self._mask_missing(),
            ErrorCode.TOKENS_MISSING: self._tokens_missing(),
            ErrorCode.MASS_MISSING: self._mass_missing(),
        }

    # Functions and flags ---------------------------------------------------------------------------------------------

    def _wrong_function(self):
        """An illegal function of the opcode: beyond the last one, or in a gap."""
        decoder, terms = self._decoder, []
        for opcode in Opcode:
            functions = sorted(number for form in forms_of(opcode) for number in form.functions)
            if functions:
                gaps = [number for number in range(functions[-1]) if number not in functions]
                is_wrong = (self._command.function > functions[-1]) | any_term(map(decoder.is_function, gaps))
                terms.append(decoder.is_opcode(opcode) & is_wrong)
        return any_term(terms)

    def _wrong_flags(self):
        decoder, terms = self._decoder, []
        for opcode in Opcode:
            legal = sum(FLAGS[name] for name in flags_of(opcode))
            terms.append(decoder.is_opcode(opcode) & (self._command.flags & (0xFF ^ legal)).any())
        for names in {form.exclusive_flags for form in COMMANDS if form.exclusive_flags}:
            flags = [decoder.has_flag(name) for name in names]
            terms += [one & other for index, one in enumerate(flags) for other in flags[:index]]
        return any_term(terms)

    # Sizes -----------------------------------------------------------------------------------------------------------

    def _out_of_bounds(self):
        forms_by_bound = {}
        for form in COMMANDS:
            for name, bound in form.bounds.items():
                forms_by_bound.setdefault((name, *bound), []).append(form)
        terms = []
        for (name, lowest, highest), forms in forms_by_bound.items():
            value = self._command[name]
            is_low = value < lowest if lowest > 1 else value == 0 if lowest else 0
            is_high = value > getattr(self._sizes, highest) if highest else 0
            terms.append(self._decoder.any_of(forms) & (is_low | is_high))
        return any_term(terms)

    def _rows_too_far(self):
        """Rows of masks and of the retained mass, or entries of the token list, beyond the last one."""
        command = self._command
        marked = [form for form in COMMANDS if form.operands(MaskRows) or form.operands(MassRows)]
        gated, end = self._decoder.has_flag("gated"), command.first_row + command.n_rows
        is_beyond = (gated | self._decoder.any_of(marked)) & (end > self._sizes.max_tokens)
        if self._sizes.rows_a_mask < self._sizes.max_tokens:
            has_rows = any_term(uses & (number != 0) for number, uses in self._by_number(lambda *_: True))
            is_beyond = is_beyond | (has_rows & ~gated & (end > self._sizes.rows_a_mask))
        return is_beyond

    def _stride_too_short(self):
        terms = []
        for matrix in self._extents.matrices.values():
            stride = self._command[matrix.operands[0][1].stride]
            may_be_0 = [form for form, operand in matrix.operands if operand.stride_may_be_0]
            is_legal_0 = self._decoder.any_of(may_be_0) & (stride == 0)
            terms.append(self._decoder.any_of(matrix.forms) & (stride < matrix.words) & ~is_legal_0)
        return any_term(terms)

    def _no_such_column(self):
        """A result does not begin at a multiple of the elements that are written together."""
        steps = {}
        for form in COMMANDS:
            for operand in form.operands(Matrix):
                if operand.column:
                    step = getattr(self._sizes, operand.column_step)
                    steps.setdefault((operand.column, step), []).append(form)
        return any_term(
            self._decoder.any_of(forms) & (remainder(self._command[name], step) != 0)
            for (name, step), forms in steps.items()
            if step > 1
        )

    def _operands(self, kind, is_chosen):
        """``(form, operand)`` of a class that is read or written."""
        return [(form, operand) for form in COMMANDS for operand in form.operands(kind) if is_chosen(form, operand)]

    def _by_number(self, is_chosen):
        """Masks: ``(value of the field with the number, whether the command uses one of these masks)``."""
        by_number = {}
        for form, operand in self._operands(MaskRows, is_chosen):
            by_number.setdefault(operand.number, []).append((form, operand))
        return [(self._command[name], self._decoder.uses(operands)) for name, operands in by_number.items()]

    def _no_such_mask(self):
        """No mask has this number, or it is mask 0, which has a single row, and other rows are written."""
        is_moved = self._by_number(lambda form, _: form.is_transfer)
        is_made = self._by_number(lambda form, operand: not form.is_transfer and operand in form.writes)
        return (
            any_term(uses & (number >= self._sizes.n_masks) for number, uses in self._by_number(lambda *_: True))
            | any_term(
                uses & (number == 0) & (self._command.first_row + self._command.n_rows != 1)
                for number, uses in is_moved
            )
            | any_term(uses & (number == 0) for number, uses in is_made)
        )

    # Ranges and overlaps ---------------------------------------------------------------------------------------------

    def _places(self):
        return [*self._extents.matrices.values(), *self._extents.words.values()]

    def _out_of_range(self):
        terms = []
        for place in self._places():
            forms_by_depth = {}
            for form, operand in place.operands:
                forms_by_depth.setdefault(getattr(self._sizes, DEPTH[operand.memory]), []).append(form)
            terms += [self._decoder.any_of(forms) & (place.end > depth) for depth, forms in forms_by_depth.items()]
        return any_term(terms)

    def _words_overlap(self):
        """Words of one memory that a command reads and writes."""
        terms = []
        for read in self._places():
            for written in self._places():
                forms = [
                    form
                    for form, source in read.operands
                    for other, target in written.operands
                    if form is other and source.memory == target.memory
                    if source in form.reads and target in form.writes
                ]
                if forms:
                    meet = (read.first < written.end) & (written.first < read.end)
                    terms.append(self._decoder.any_of(forms) & meet & ~self._is_in_place(read, written, forms))
        return any_term(terms)

    def _is_in_place(self, read, written, forms):
        """Two matrices are one, and the command may replace what it reads."""
        operands = [[operand for form, operand in place.operands if form in forms] for place in (read, written)]
        allowed = [
            form
            for form, source, target in zip(forms, *operands, strict=True)
            if form.is_in_place and source.n_rows == target.n_rows and source.elements == target.elements
        ]
        if not allowed:
            return 0
        command, (source, *_), (target, *_) = self._command, *operands
        is_same = (read.first == written.first) & (command[source.stride] == command[target.stride])
        return self._decoder.any_of(allowed) & is_same

    def _masks_overlap(self):
        terms = []
        for form in COMMANDS:
            masks = form.operands(MaskRows)
            for index, mask in enumerate(masks):
                for other in masks[:index]:
                    is_used = self._decoder.uses([(form, mask)]) & (self._decoder.uses([(form, other)]))
                    terms.append(is_used & (self._command[mask.number] == self._command[other.number]))
        return any_term(terms)

    # What was never written ------------------------------------------------------------------------------------------

    def _needed(self, is_read):
        """Rows that must be valid: those that are read, those before others that are written, all that are listed."""
        command = self._command
        own = command.first_row + command.n_rows if is_read else command.first_row
        return Mux(self._decoder.has_flag("gated"), self._state.token_largest + 1, own)

    def _mask_missing(self):
        rows = Array(self._state.mask_rows[index] for index in range(self._sizes.n_masks))
        read, written = self._needed(True), self._needed(False)
        return any_term(
            uses & (rows[number] < Mux(number == 0, 1, read)) for number, uses in self._by_number(_is_read)
        ) | any_term(uses & (rows[number] < written) for number, uses in self._by_number(_is_written))

    def _mass_missing(self):
        decoder, rows = self._decoder, self._state.mass_rows
        return (decoder.uses(self._operands(MassRows, _is_read)) & (rows < self._needed(True))) | (
            decoder.uses(self._operands(MassRows, _is_written)) & (rows < self._needed(False))
        )

    def _tokens_missing(self):
        is_read = self._decoder.uses(self._operands(TokenList, _is_read))
        return (self._decoder.has_flag("gated") | is_read) & ~self._state.tokens_valid
