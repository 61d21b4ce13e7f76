"""The engines of ABC, the model checker that comes with Yosys: unbounded and bounded proofs, counterexamples."""

import re
import subprocess
from dataclasses import dataclass

from hw.emit.yosys import abc_program
from verif.formal.aig import Aig

__all__ = ["Answer", "prove", "search"]


@dataclass(frozen=True)
class Answer:
    """``holds`` is True, False (a counterexample exists) or None (the engine gave up); ``depth`` is in clocks."""

    holds: bool | None
    depth: int
    log: str


def _run(path, commands, timeout):
    command = f"read_aiger {path.name}; {commands}; print_status"
    try:
        run = subprocess.run(
            [abc_program(), "-c", command],
            capture_output=True,
            text=True,
            cwd=path.parent,
            timeout=timeout + 30,
            check=False,
        )
        log = run.stdout + run.stderr
    except subprocess.TimeoutExpired:
        return Answer(None, 0, "timeout")
    status = re.search(r"Status = (-?\d+) +Frames = (-?\d+)", log)
    holds = {"1": True, "0": False}.get(status[1]) if status else None
    frame = re.search(r"asserted in frame (\d+)", log)
    return Answer(holds, int(frame[1]) if frame else int(status[2]) if status else 0, log)


def prove(path, timeout):
    """Whether no output is ever 1, by property-directed reachability, after merging signals that are always equal."""
    merged = path.with_suffix(".merged.aig")
    answer = _run(path, f"strash; scorr; orpos; write_aiger {merged.name}; pdr -T {timeout}", timeout)
    if answer.holds is None and merged.exists() and Aig.read(merged).outputs == [0]:
        return Answer(True, 1, answer.log)  # the merging has proved it: pdr says nothing about a constant
    return answer


def search(path, depth, timeout, witness=None, merge=False):
    """Whether no output is 1 in the first ``depth`` clocks; a counterexample is written to ``witness``.

    With ``merge`` signals that are always equal are merged first, which pays for deep searches.
    """
    write = f"; write_cex -a {witness}" if witness else ""
    merged = path.with_suffix(".merged.aig")
    first = f"scorr; orpos; write_aiger {merged.name}" if merge else "orpos"
    answer = _run(path, f"strash; {first}; bmc3 -F {depth} -T {timeout}{write}", timeout)
    if merge and answer.holds is None and merged.exists() and Aig.read(merged).outputs == [0]:
        return Answer(True, depth, answer.log)
    looked_at = re.search(r"No output asserted in (\d+) frames", answer.log)
    if answer.holds is None and looked_at and int(looked_at[1]) >= depth:
        return Answer(True, depth, answer.log)
    return answer
