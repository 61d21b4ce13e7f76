"""Programs in files: what is written is read back, and what is no program is refused in one sentence."""

import io
import json
import re

import numpy as np
import pytest

from golden.__main__ import main as golden_main
from golden.core.core import Core
from golden.program.assembler import Program
from golden.program.dit.block import DitBlocks
from golden.program.dit.places import Sparsity
from golden.program.dit.weights import BlockShape, random_block
from golden.program.files import FORMAT, read_program, write_program
from golden.spec.sizes import CoreSizes
from verif.__main__ import main as verif_main

SMALLEST = {
    "format": FORMAT,
    "core": {"n_banks": 2, "n_lanes": 2, "simd_lanes": 2, "max_tokens": 16, "max_dim": 8, "max_head_dim": 4}
    | {"imem_depth": 64, "wmem_depth": 64, "vmem_depth": 32, "omem_depth": 64}
    | {"latent_width": 4, "latent_height": 4, "channels": 1},
    "commands": [
        {"opcode": "LOAD", "function": "ROWS", "n_rows": 2, "n_in": 4, "destination_stride": 1}
        | {"load": ["3c00400042004400", "bc00380034003000"]},
        {"opcode": "ELEMENTWISE", "function": "ADD", "n_rows": 2, "n_in": 4, "source_stride": 1}
        | {"source_2_stride": 1, "destination": 8, "destination_stride": 1},
        {"opcode": "STORE", "n_rows": 2, "n_in": 4, "source": 8, "source_stride": 1},
    ],
}
"""Two rows, doubled."""


@pytest.fixture
def write(tmp_path):
    """Writes an object, or a text, into a file; its path."""

    def write_file(content):
        path = tmp_path / "program.json"
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return str(path)

    return write_file


def dit_program():
    """A block with a token list, and a latent: every kind of load but scores and values."""
    shape = BlockShape(n_tokens=6, dim=8, n_heads=2, hidden=16)
    rng = np.random.default_rng(1)
    program = Program(CoreSizes(reference="previous"))
    masks = [(rng.random((6, 6)) < 0.5, np.ones(6)) for _ in range(2)]
    sparsity = Sparsity(tokens=[1, 4], cached=[rng.standard_normal((6, 8))], masks=[masks])
    program.ctr(rng.standard_normal((3, 8, 8)), 0.1, rng.standard_normal((3, 8, 8)))
    DitBlocks(program, shape).build(
        rng.standard_normal((6, 8)), rng.standard_normal(8), [random_block(shape)], sparsity
    )
    return program


def test_what_is_written_is_read_back(write):
    program = dit_program()
    text = io.StringIO()
    write_program(program, text)
    found = read_program(write(text.getvalue()))
    assert found.sizes == program.sizes and found.commands == program.commands
    assert np.array_equal(found.load_beats, program.load_beats)
    assert [stored.command for stored in found.stored] == [stored.command for stored in program.stored]


def test_a_file_written_by_hand(write):
    program = read_program(write(SMALLEST))
    run = Core(program.sizes).execute(program.commands, program.load_beats)
    numbers = program.stored[0].of(run).view(np.float16)
    assert numbers.tolist() == [[8, 6, 4, 2], [0.25, 0.5, 1, -2]]


def changed(command, **fields):
    """The program with fields of a command changed; None takes one away."""
    content = json.loads(json.dumps(SMALLEST))
    content["commands"][command].update(fields)
    content["commands"][command] = {name: value for name, value in content["commands"][command].items() if value != ()}
    return content


WRONG = [
    ("{", "is not a JSON file"),
    ("[1]", 'must be an object whose "format" is'),
    ({"format": "other"}, 'must be an object whose "format" is'),
    (SMALLEST | {"extra": 1}, "has no 'extra': legal are format, core, commands"),
    (SMALLEST | {"commands": []}, 'must have "commands", a list of at least one'),
    (SMALLEST | {"commands": [7]}, "command 0: it must be an object, not 7"),
    (SMALLEST | {"core": 3}, 'must have an object as "core", not 3'),
    (SMALLEST | {"core": {"banks": 3}}, "has no 'banks': legal are n_banks"),
    (SMALLEST | {"core": {"n_banks": 3}}, "n_banks must be a power of two from 2 to 64, not 3"),
    (SMALLEST | {"core": {"n_banks": [2]}}, r"n_banks must be a power of two from 2 to 64, not \[2\]"),
    (changed(0, opcode="FETCH"), "command 0: opcode must be one of CLEAR, LOAD, .*, not 'FETCH'"),
    (changed(0, function="STACK"), "command 0: function must be one of ROWS, WEIGHTS, .*, not 'STACK'"),
    (changed(1, n_out=3), "command 1: ELEMENTWISE has no 'n_out': legal are opcode, function"),
    (changed(1, flags=["bias"]), "command 1: ELEMENTWISE has no flag 'bias': legal are gated"),
    (changed(1, flags="gated"), "command 1: flags must be a list, not 'gated'"),
    (changed(1, n_rows=2.0), "command 1: n_rows must be an integer, not 2.0"),
    (changed(1, n_rows=True), "command 1: n_rows must be an integer, not True"),
    (changed(1, n_rows=-1), "command 1: n_rows must be from 0 to 65535, not -1"),
    (changed(1, n_rows=17), "command 1: ELEMENTWISE would be refused: SIZE: a size that is zero or beyond"),
    (changed(1, destination=63), "command 1: ELEMENTWISE would be refused: imem has 64 words, and words 63 to 64"),
    (changed(0, load=()), 'command 0: LOAD needs 2 beats in "load", not 0'),
    (changed(0, load=["3c00400042004400"]), 'command 0: LOAD needs 2 beats in "load", not 1'),
    (changed(0, load=["3c0040004200440", 1]), "command 0: a beat of load must be 16 hexadecimal digits, not '3c00"),
    (changed(0, load=["3c00 00042004400", 1]), "command 0: a beat of load must be 16 hexadecimal digits, not '3c00"),
    (changed(2, load=["3c00400042004400"]), "command 2: STORE has no 'load': |needs 0 beats"),
]


@pytest.mark.parametrize("content, message", WRONG, ids=[message for _, message in WRONG])
def test_no_program(write, content, message):
    with pytest.raises(ValueError, match=message):
        read_program(write(content))


def test_another_core(write):
    """A program for a core of other sizes: the beats do not fit."""
    with pytest.raises(ValueError, match="a beat of load must be 32 hexadecimal digits"):
        read_program(write(SMALLEST), CoreSizes())


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["core", "--program", "missing.json"], "cannot read the program 'missing.json': No such file"),
        (["core", "--program", "FILE", "--count", "3"], "--count cannot be used with --program"),
        (["core", "--program", "FILE", "--config", "huge"], "huge"),
        (["core", "--program", "FILE", "--config", "tiny"], "a beat of load must be 32 hexadecimal digits"),
        (["core", "--program", "FILE", "--load-interval", "0"], "--load-interval must be an integer from 1, not 0"),
        (["core", "--load-interval", "2"], "--load-interval needs --program"),
        (["bitonic_sorter", "--program", "FILE"], "--program needs the unit core, not 'bitonic_sorter'"),
    ],
)
def test_wrong_command_lines_of_verif(write, capsys, arguments, message):
    """Each is one sentence with exit code 2; reporting_errors makes it of the error."""
    from hw.cli.arguments import reporting_errors

    path = write(SMALLEST)
    assert reporting_errors(lambda: verif_main([path if word == "FILE" else word for word in arguments])) == 2
    error = capsys.readouterr().err
    assert message in error and error.startswith("error: ") and error.count("\n") == 1


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["missing.json"], "cannot read the program 'missing.json': No such file"),
        (["FILE", "--name", "1x"], "--name must be the name of a Verilog module, not '1x'"),
        (["FILE", "-o", "FILE/x"], "cannot write to the output folder"),
    ],
)
def test_wrong_command_lines_of_vectors(write, capsys, arguments, message):
    path = write(SMALLEST)
    assert golden_main(["vectors", *(word.replace("FILE", path) for word in arguments)]) == 2
    error = capsys.readouterr().err
    assert message in error and error.startswith("error: ") and error.count("\n") == 1


def test_vectors(write, tmp_path):
    """One line a command and a beat; undefined bits are not compared."""
    assert golden_main(["vectors", write(SMALLEST), "-o", str(tmp_path / "out"), "--name", "mine"]) == 0
    texts = {path.name: path.read_text() for path in (tmp_path / "out").iterdir()}
    assert texts["store.hex"].split() == ["04000440046004800", "1c0003c0038003400"]
    assert texts["care.hex"].split() == ["1" + 16 * "f"] * 2
    assert texts["load.hex"].split() == ["3c00400042004400", "bc00380034003000"]
    assert [len(line) for line in texts["commands.hex"].split()] == [72] * 3
    testbench = texts["mine_testbench.v"]
    assert "module mine_testbench;" in testbench and not re.search(r"@\w+@", testbench)
    assert texts["parameters.txt"].startswith("n_banks=2 n_lanes=2 simd_lanes=2 vector_lanes=none")
