"""The Liberty reader: what it finds in a library, and one sentence for every file that is none."""

import gzip
import os
from itertools import product
from pathlib import Path

import pytest

from hw.synthesis import liberty
from verif.synthesis import mini_liberty

REFERENCE = Path(os.environ.get("LIBERTY") or Path(__file__).parents[3] / "shared" / "lib" / "nangate45_typ.lib.gz")


@pytest.fixture
def mini(tmp_path):
    path = tmp_path / "mini.lib"
    path.write_text(mini_liberty.text())
    return path


def test_cells_are_found_by_what_they_do(mini):
    library = liberty.read(mini)
    assert library.name == "mini"
    assert set(library.cells) == {*mini_liberty.CELLS, "DFF"}
    assert (library.nand2.name, library.nand2.area) == ("NAND2", 2.0)
    assert library.buffer.name == "BUF" and library.buffer.inputs == {"A": 1.0}
    assert library.full_adder == liberty.Adder("FULL", ("A", "B", "CI"), "S", "CO", frozenset())
    assert library.half_adder == liberty.Adder("HALF", ("A", "B"), "S", "CO", frozenset())
    assert [name for name, cell in library.cells.items() if cell.storage] == ["DFF"]


def test_compressed_library_is_the_same(mini):
    packed = mini.with_name("mini.lib.gz")
    packed.write_bytes(gzip.compress(mini.read_bytes()))
    assert liberty.read(packed).cells == liberty.read(mini).cells
    assert liberty.read(packed).sha256 == liberty.read(mini).sha256


def test_adder_with_inverted_outputs(mini):
    cells = dict(mini_liberty.CELLS)
    cells["FULL"] = (8.0, cells["FULL"][1], {"SN": "!(A ^ B ^ CI)", "CN": "!((A B) + (B CI) + (CI A))"})
    mini.write_text(mini_liberty.text(cells))
    adder = liberty.read(mini).full_adder
    assert (adder.sum, adder.carry, adder.inverted) == ("SN", "CN", {"SN", "CN"})


def test_cells_that_must_not_be_used_are_not(mini):
    mini.write_text(mini_liberty.text().replace("cell (FULL) {", "cell (FULL) {\n    dont_use : true;"))
    assert liberty.read(mini).full_adder is None


@pytest.mark.parametrize(
    "expression, function",
    [
        ("!(A & B)", lambda a, b, c: not (a and b)),
        ("(A B)'", lambda a, b, c: not (a and b)),
        ("A B + !A C", lambda a, b, c: (a and b) or (not a and c)),
        ("A ^ B ^ C", lambda a, b, c: (a + b + c) % 2),
        ("A*B'|C", lambda a, b, c: (a and not b) or c),
        ("A & B ^ C", lambda a, b, c: a and (b != c)),
        ("!A ^ (B | C)'", lambda a, b, c: (not a) != (not (b or c))),
        ("1", lambda a, b, c: 1),
    ],
)
def test_expressions(expression, function):
    rows = product((0, 1), repeat=3)
    assert liberty.truth_table(expression, ["A", "B", "C"]) == tuple(int(bool(function(*row))) for row in rows)


def test_expression_with_other_pins_is_no_function():
    assert liberty.truth_table("IQ & A", ["A"]) is None


MINI = mini_liberty.text()


@pytest.mark.parametrize(
    "content, message",
    [
        (b"", "is not a Liberty file"),
        (b"module top; endmodule\n", "is not a Liberty file"),
        (bytes(range(256)) * 8, "is not a Liberty file"),
        (MINI[:2000].encode(), "is truncated or malformed"),
        (MINI.rstrip()[:-1].encode(), "is truncated or malformed"),
        (MINI.replace("area : 8.0", "area : big").encode(), "cell FULL has area 'big'"),
        (b"library (empty) {\n}\n", "holds no cells"),
        (b"library () {\n}\n", "has no name"),
        (gzip.compress(MINI.encode())[:400], "is a truncated or damaged gzip file"),
        (b"\x1f\x8b" + b"garbage" * 20, "is a truncated or damaged gzip file"),
    ],
)
def test_bad_file_is_one_sentence(tmp_path, content, message):
    path = tmp_path / "bad.lib"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=message) as caught:
        liberty.read(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_file_that_is_not_there_or_a_folder(tmp_path):
    with pytest.raises(ValueError, match="nowhere.lib does not exist"):
        liberty.read(tmp_path / "nowhere.lib")
    with pytest.raises(ValueError, match="cannot be read: Is a directory"):
        liberty.read(tmp_path)


@pytest.mark.skipif(not REFERENCE.exists(), reason="the reference library is not here (set LIBERTY)")
def test_reference_library():
    library = liberty.read(REFERENCE)
    assert library.nand2.name == "NAND2_X1"
    assert library.buffer.name == "BUF_X1"
    assert library.full_adder.name == "FA_X1"
    assert library.half_adder.name == "HA_X1"
    assert library.wire_load == "5K_hvratio_1_1"
    assert library.cells["DFF_X1"].storage == "flip-flop"
    assert library.cells["DLH_X1"].storage == "latch"
    assert library.cells["DFF_X1"].area == 4.522
