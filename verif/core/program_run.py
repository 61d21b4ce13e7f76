"""``python -m verif core --program FILE``: a user's program on the core's emitted Verilog, with a report."""

import numpy as np
from tabulate import tabulate

from golden.program.files import read_program
from golden.program.vectors import golden_run
from golden.spec.commands import Unit, form_of
from golden.spec.counters import COUNTERS
from hw.lib.errors import UsageError
from hw.registry import make_block
from verif.core.session import run_program

__all__ = ["first_difference", "program_report", "run_file"]


LONG = 20_000
"""Clocks, roughly, from which on a faster simulation pays for the time to build it."""


def run_file(path, block=None, *, load_interval=1, sim=None):
    """Run a program's file on its own core, or on ``block``: the lines of a report, how many words were checked and how
    many are wrong. ``UsageError`` for a file that is no legal program."""
    try:
        program = read_program(path, block and block.parameters)
        counters = program.store_counters()
        expected, counted = golden_run(program)
    except OSError as error:
        raise UsageError(f"cannot read the program {str(path)!r}: {error.strerror or error}") from None
    except ValueError as error:
        raise UsageError(str(error)) from None
    block = block or make_block("core", assignments=program.sizes.to_dict())
    clocks = counted["array_beats"] // program.sizes.n_banks + load_interval * counted["load_beats"]
    is_long = clocks >= LONG
    session = run_program(block, program, load_interval=load_interval, sim=sim, is_long=is_long)
    return program_report(program, expected, session, counters.command)


def program_report(program, expected, session, counters_command):
    """Lines of the report, how many words were checked, how many are wrong."""
    is_result = expected.command != counters_command
    same_length = len(session.values) == len(expected.values)
    wrong = np.zeros(expected.values.shape, bool)
    if same_length:
        wrong = (session.values != expected.values) & expected.defined & is_result[:, None]
    n_wrong = int(wrong.sum()) + (not same_length)
    words = session.values[-len(COUNTERS) :]
    counts = {name: int(low) | int(high) << 16 for name, (low, high) in zip(COUNTERS, words[:, :2], strict=True)}
    n_commands = len(program.commands) - 1
    last = session.ends[-2] + 1 if len(session.ends) > 1 else session.ends[-1] + 1
    lines = [
        f"{n_commands} commands, {len(program.load_beats)} beats loaded, {int(is_result.sum())} beats stored",
        f"{last:,} clocks from the first command to the last stored beat",
        "",
        _units(session, last),
        "",
        _waits(counts),
    ]
    if not same_length:
        lines += ["", f"{len(session.values)} beats were stored, and {len(expected.values)} are expected"]
    elif n_wrong:
        lines += ["", first_difference(program, expected, session, wrong)]
    return lines, int((expected.defined & is_result[:, None]).sum()), n_wrong


def _units(session, last):
    rows = []
    for unit in Unit:
        busy = int(session.busy[:last, unit].sum())
        rows.append([unit.name.lower(), unit.doc, f"{busy:,}", f"{busy / last:.1%}"])
    return tabulate(
        rows, headers=["unit", "which is", "busy clocks", "share"], tablefmt="github", disable_numparse=True
    )


def _waits(counts):
    """The counters, since reset or the last CLEAR of them."""
    rows = [[name, f"{count:,}"] for name, count in counts.items()]
    headers = ["counter (docs/commands.md)", "value"]
    return tabulate(rows, headers=headers, tablefmt="github", disable_numparse=True)


def first_difference(program, expected, session, wrong):
    """One sentence on the first wrong word."""
    beat, element = (int(index[0]) for index in np.nonzero(wrong))
    command = int(expected.command[beat])
    name = form_of(program.commands[command]).name
    within = beat - int(np.flatnonzero(expected.command == command)[0])
    return (
        f"first wrong word: element {element} of beat {within} of command {command}, {name}: "
        f"{session.values[beat, element]:04x}, and {expected.values[beat, element]:04x} is right"
    )
