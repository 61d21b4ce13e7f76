"""``--verify``: the files on disk are compared with what Yosys made, and a damaged one is noticed."""

import re
import tempfile

import pytest

from hw.__main__ import main
from hw.cli import verify, verilog
from hw.cli.arguments import reporting_errors
from hw.emit import equivalence

WORDS = ["verilog", "hash_bank_mapper", "-p", "n_columns=40", "n_banks=4", "--verify", "-o"]


def run(folder, capsys):
    code = reporting_errors(lambda: main([*WORDS, str(folder)]))
    return code, *capsys.readouterr()


def damage(monkeypatch, edit):
    """What is written gets an edit on the disk, after it was emitted."""

    def write(folder, files):
        removed = write_files(folder, files)
        path = folder / "hash_bank_mapper.v"
        text = path.read_text()
        path.write_text(edit(text))
        assert path.read_text() != text
        return removed

    write_files = verilog.write_files
    monkeypatch.setattr(verilog, "write_files", write)


def test_what_is_written_is_proved(tmp_path, capsys):
    code, output, errors = run(tmp_path, capsys)
    assert code == 0 and re.search(r"^hash_bank_mapper: modules proved equal: [2-9]$", output, re.M)
    assert "error" not in errors


def test_a_folder_for_temporary_files_may_have_a_space(tmp_path, capsys, monkeypatch):
    (tmp_path / "with space").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "with space"))
    code, _, errors = run(tmp_path / "with space" / "out", capsys)
    assert code == 0 and "error" not in errors


@pytest.mark.parametrize(
    "edit",
    [
        lambda text: re.sub(r"(assign .* )[&^]( .*;)", r"\1|\2", text, count=1),
        lambda text: text.replace("1'h0", "1'h1", 1),
        lambda text: re.sub(r"( <= )(\w+;)", r"\1~\2", text, count=1),
    ],
)
def test_a_damaged_file_is_noticed(tmp_path, capsys, monkeypatch, edit):
    damage(monkeypatch, edit)
    code, output, errors = run(tmp_path, capsys)
    assert code == 1 and re.search(r"^error: \w+ is not what Yosys wrote: a proof shows a difference$", errors, re.M)
    name = re.search(r"error: (\w+) is not", errors)[1]
    assert f"module {name} (" in (tmp_path / "hash_bank_mapper.v").read_text() and "different: 1" in output


def test_a_file_that_is_no_verilog(tmp_path, capsys, monkeypatch):
    damage(monkeypatch, lambda text: text.replace("endmodule", "end", 1))
    code, _, errors = run(tmp_path, capsys)
    assert code == 1 and "cannot be compared" in errors and "Traceback" not in errors


@pytest.mark.parametrize("edit, code", [(None, 0), (lambda text: text.replace("1'h0", "1'h1", 1), 1)])
def test_what_cannot_be_proved_is_simulated(tmp_path, capsys, monkeypatch, edit, code):
    monkeypatch.setattr(equivalence, "_compare", lambda gold, gate, seconds: None)
    if edit:
        damage(monkeypatch, edit)
    found, output, errors = run(tmp_path, capsys)
    assert found == code and "simulated without a difference: " in output and "proved equal" not in output
    assert ("random patterns show a difference" in errors) == bool(code)


def test_time_for_a_proof_is_bounded():
    assert 0 < verify.SECONDS <= 600
