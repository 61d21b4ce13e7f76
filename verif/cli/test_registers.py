"""``python -m hw registers``: the page is current, SystemRDL says what the table says, and the command writes all."""

from pathlib import Path

from systemrdl import RDLCompiler

from golden.spec.accelerator.registers import REGISTERS, SPACE_BYTES, Access
from hw import __main__ as command_line
from hw.cli import register_documents


def test_the_page_is_current():
    assert Path("docs/registers.md").read_text() == register_documents.markdown(), "run: make readme"


def test_registers_lie_apart_and_in_their_space():
    places = [item.offset + 4 * index for item in REGISTERS for index in range(item.count)]
    assert places == sorted(set(places)) and places[-1] < SPACE_BYTES
    for item in REGISTERS:
        bits = [bit for field in item.fields for bit in range(field.low, field.low + field.width)]
        assert len(bits) == len(set(bits)) and max(bits) < 32, item.name


def test_systemrdl_says_the_same(tmp_path):
    assert command_line.main(["registers", "-o", str(tmp_path)]) == 0
    assert {path.name for path in tmp_path.iterdir()} == {
        register_documents.MARKDOWN,
        register_documents.HEADER,
        register_documents.SYSTEMRDL,
    }
    compiler = RDLCompiler()
    compiler.compile_file(str(tmp_path / register_documents.SYSTEMRDL))
    found = {item.inst_name: item for item in compiler.elaborate().top.registers()}
    assert list(found) == [item.name for item in REGISTERS]
    for item in REGISTERS:
        node = found[item.name]
        assert node.raw_address_offset == item.offset
        assert (node.array_dimensions or [1]) == [item.count]
        fields = {field.inst_name: field for field in node.fields()}
        assert list(fields) == [field.name for field in item.fields]
        for field in item.fields:
            other = fields[field.name]
            assert (other.lsb, other.width) == (field.low, field.width)
            assert other.is_sw_readable == (field.access is not Access.WO)
            assert other.is_sw_writable == (field.access is not Access.RO)
            if isinstance(field.reset, int) and field.access is not Access.WO:
                assert (other.get_property("reset") or 0) == field.reset
