"""The command table is whole and fits fields, flags and sizes; the assembler takes what it has, and nothing else."""

import pytest

from golden.program.assembler import Program
from golden.spec.commands import COMMANDS, FIELDS, FLAGS, Opcode, Unit, fields_of, flags_of, forms_of
from golden.spec.operands import DEPTH, Form, MaskRows, Matrix, RoundUp, Slots, Words
from golden.spec.sizes import CoreSizes

NAMES = {item.name for item in FIELDS}
IDS = [form.name for form in COMMANDS]


def test_every_opcode_has_rows_and_every_function_one():
    for opcode in Opcode:
        forms = forms_of(opcode)
        functions = [number for form in forms for number in form.functions]
        assert forms and len(set(functions)) == len(functions)
        assert len(forms) == 1 or all(form.functions for form in forms), opcode
        assert len({(form.unit, form.flags) for form in forms}) == 1, opcode


@pytest.mark.parametrize("form", COMMANDS, ids=IDS)
def test_names_exist(form):
    sizes = CoreSizes()
    assert form.fields <= NAMES and set(form.flags) <= set(FLAGS)
    assert form.unit is None or form.unit in list(Unit)
    for lowest, highest in form.bounds.values():
        assert lowest >= 0 and (highest is None or getattr(sizes, highest) > 0)
    for operand in (*form.reads, *form.writes):
        assert set(operand.fields) <= NAMES
        assert getattr(operand, "flag", None) in (None, *form.flags)
        assert isinstance(operand, Matrix | Words) == (operand.memory in DEPTH)
        for factor in getattr(operand, "factors", ()):
            if isinstance(factor, RoundUp):
                divisor = getattr(sizes, factor.divisor)
                assert divisor & (divisor - 1) == 0 and factor.flag in (None, *form.flags)


@pytest.mark.parametrize("form", COMMANDS, ids=IDS)
def test_lengths_are_bounded(form):
    """Sums and products fit the checker's registers because every field of a length has a highest value."""
    for operand in form.operands(Matrix):
        assert form.bounds[operand.elements][1] is not None
        assert isinstance(operand.n_rows, int) or form.bounds[operand.n_rows][1] is not None
    for operand in form.operands(Words):
        fields = [factor if isinstance(factor, str) else factor.field for factor in operand.length]
        assert all(name in form.bounds for name in fields)
        assert len(fields) == 1 or all(form.bounds[name][1] is not None for name in fields)


def test_chained_operands_lie_in_the_same_fields():
    """The hazard checker compares fields of the two commands."""
    for memory in DEPTH:
        for is_written in (False, True):
            chained = [form.chained(form.of_memory(memory)[is_written]) for form in COMMANDS]
            assert len({(item.base, getattr(item, "layout", ())) for item in chained if item}) <= 1
    for form in COMMANDS:
        assert sum(getattr(item, "chained", False) for item in form.reads) <= 1


def test_lengths_that_hardware_does_not_have_are_refused():
    for words in (
        (Words("wmem", "bank_address", ("n_rows", "n_in", "n_out")),),
        (Words("wmem", "bank_address", ("n_rows", "n_in", Slots("n_out"))),),
        (Words("wmem", "bank_address", (Slots("n_out"),)),),
        (Words("wmem", "source", ("n_in", Slots("n_out"))), Words("vmem", "source_2", ("n_in", Slots("n_rows")))),
    ):
        with pytest.raises(ValueError, match="MATMUL: .* must have"):
            Form(opcode=Opcode.MATMUL, reads=words)


def test_a_mask_is_a_state_and_not_a_range():
    form = Form(opcode=Opcode.SDDMM, reads=(MaskRows("mask"),))
    assert form.fields == {"mask", "first_row", "n_rows"} and form.of_memory("mask") == ([MaskRows("mask")], [])


def test_the_assembler_takes_the_fields_of_the_table():
    for opcode in Opcode:
        fields = {name: 1 for name in fields_of(opcode) if name != "flags"}
        program = Program(CoreSizes(), checked=False)
        program.issue(opcode, flags={name: True for name in flags_of(opcode)}, **fields)
        (command,) = program.commands
        assert command.opcode == opcode and all(getattr(command, name) == 1 for name in fields)
        assert command.flags == sum(FLAGS[name] for name in flags_of(opcode))
        for name in NAMES - {"opcode", "flags", *fields}:
            with pytest.raises(TypeError, match=f"{opcode.name} has no field '{name}': legal are"):
                program.issue(opcode, **{name: 1})
        for name in set(FLAGS) - set(flags_of(opcode)):
            with pytest.raises(TypeError, match=f"{opcode.name} has no flag '{name}': legal are"):
                program.issue(opcode, flags={name: True})
