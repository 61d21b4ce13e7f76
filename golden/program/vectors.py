"""``python -m golden vectors``: a program file as hex files with a testbench in plain Verilog."""

import re
from pathlib import Path

import numpy as np

from golden.core.core import Core
from golden.program.files import read_program
from golden.spec.commands import COMMAND_WIDTH

__all__ = ["add_arguments", "golden_run", "run", "vector_files"]

TESTBENCH = Path(__file__).with_name("testbench.v")


def add_arguments(parser):
    """The options of the command."""
    parser.add_argument("file", metavar="FILE", help="a program, see golden/program/files.py")
    parser.add_argument("-o", "--output", default="build/vectors", metavar="DIR", help="folder (default build/vectors)")
    parser.add_argument("--name", default="core", metavar="TOP", help="the core's top module (default core)")


def run(options):
    """Write the files; raises ``ValueError`` for a program that cannot be used."""
    if not re.fullmatch(r"[A-Za-z_]\w*", options.name, re.ASCII):
        raise ValueError(f"--name must be the name of a Verilog module, not {options.name!r}")
    try:
        program = read_program(options.file)
    except OSError as error:
        raise ValueError(f"cannot read the program {options.file!r}: {error.strerror or error}") from None
    files = vector_files(program, options.name)
    folder, written = Path(options.output), []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            written.append(folder / name)
            written[-1].write_text(text)
    except OSError as error:
        for path in written:
            path.unlink(missing_ok=True)
        raise ValueError(f"cannot write to the output folder {str(folder)!r}: {error.strerror or error}") from None
    for name, text in files.items():
        print(f"{folder / name}  {len(text):,} bytes")
    return 0


def golden_run(program):
    """What the core stores, a :class:`golden.core.core.StoreBeats`, and its counters; ``ValueError`` if it refuses."""
    core = Core(program.sizes)
    found = core.execute(program.commands, program.load_beats)
    for refusal in found.refusals:
        code = refusal.code
        raise ValueError(f"command {refusal.command} of the program is refused: {code.name}: {code.doc}")
    assert found.store is not None
    return found.store, core.counters


def vector_files(program, top="core"):
    """``{name: text}`` of commands, loads, expected stores, the bits of these that are defined, and the testbench."""
    store, _ = golden_run(program)
    word, n_commands = program.sizes.row_word, len(program.commands)
    care = np.where(store.defined, 0xFFFF, 0).astype(np.uint16)
    values = {
        "top": top,
        "beat_width": 16 * word,
        "command_width": COMMAND_WIDTH,
        "n_commands": n_commands,
        "n_loads": len(program.load_beats),
        "n_stores": len(store.values),
    }
    text = TESTBENCH.read_text()
    for name, value in values.items():
        text = text.replace(f"@{name}@", str(value))
    parameters = program.sizes.to_dict()
    return {
        "commands.hex": _lines(f"{command.encode():0{COMMAND_WIDTH // 4}x}" for command in program.commands),
        "load.hex": _lines(map(_hex, program.load_beats)),
        "store.hex": _lines(
            f"{int(last)}{_hex(beat)}" for last, beat in zip(store.last, store.values & care, strict=True)
        ),
        "care.hex": _lines(f"1{_hex(beat)}" for beat in care),
        f"{top}_testbench.v": text,
        "parameters.txt": " ".join(f"{name}={'none' if value is None else value}" for name, value in parameters.items())
        + "\n",
    }


def _hex(beat):
    return beat.astype("<u2").tobytes()[::-1].hex()


def _lines(texts):
    return "".join(f"{text}\n" for text in texts)
