"""Runs a case in a process of its own, forked from one that has imported everything, and checks what came of it."""

import hashlib
import importlib
import json
import os
import re
import resource
import runpy
import signal
import subprocess
import sys
import tempfile
import time
from concurrent import futures
from pathlib import Path

from hw.emit.emission import Emission
from verif.bench import simulator
from verif.campaigns.fuzz.cases import OUTPUT
from verif.core.demo import program
from verif.formal import run as formal_run

__all__ = ["LIMIT_S", "Outcome", "check_outcome", "run_case"]

LIMIT_S = 10
"""Of processor time, for a command line to refuse or to get to the work that it is asked for."""

_WORK_S = 90
"""Of processor time, for the work itself, where a case is carried out."""

_PATIENCE = 6
"""So many times the limit may pass by the clock on the wall, since others may keep the machine busy."""

_MEMORY = 6 << 30
_ACCEPTED = 77
_COMMAND_LINES = ("hw", "golden", "verif", "verif.core.demo", "verif.formal")
_FEW = 16
"""The largest number among the parameters of a block that is small enough to be emitted here."""


class Outcome:
    """``code`` is the exit code, ``None`` for a legal request that was not carried out, or the text "hang".

    ``seconds`` are of processor time.
    """

    def __init__(self, code, output, errors, seconds):
        self.code, self.output, self.errors, self.seconds = code, output, errors, seconds


def run_case(case, as_command=False):
    """The problem of a case, or None, and its :class:`Outcome`; ``as_command`` starts a new Python, as a user does."""
    with tempfile.TemporaryDirectory(prefix="fuzz-") as scratch:
        folder = Path(scratch, "work")
        folder.mkdir()
        case.prepare(folder)
        before = _tree(folder)
        outcome = (_command if as_command else _forked)(case, folder, Path(scratch))
        return check_outcome(outcome, before, _tree(folder), folder), outcome


def _forked(case, folder, scratch):
    for name in _COMMAND_LINES:
        importlib.import_module(f"{name}.__main__")
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        try:
            _become(case, folder, scratch)
        finally:
            os._exit(70)
    return _await(child, scratch, _WORK_S if case.carry_out else LIMIT_S)


def _become(case, folder, scratch):
    """The child: what ``python -m`` would be, with its output in files."""
    os.setpgid(0, 0)
    for number, name in ((1, "output"), (2, "errors")):
        os.dup2(os.open(scratch / name, os.O_WRONLY | os.O_CREAT), number)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    project = os.getcwd()
    os.environ.update(case.environment, PYTHONPATH=project)
    os.chdir(folder)
    sys.argv = [f"{case.words[0]}.__main__", *case.words[1:]]
    _shorten(case)
    try:
        del sys.modules[f"{case.words[0]}.__main__"]
        runpy.run_module(f"{case.words[0]}.__main__", run_name="__main__")
        code = 0
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else 0 if stop.code is None else 1
    except _Accepted:
        code = _ACCEPTED
    except BaseException:
        sys.excepthook(*sys.exc_info())
        code = 1
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except ValueError:
        pass
    os._exit(code)


def _await(child, scratch, limit):
    """The outcome of a forked case, which is stopped where it takes too long."""
    code, begin, before = "hang", time.monotonic(), _spent()
    while time.monotonic() - begin < _PATIENCE * limit and _spent_by(child) < limit:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            code = os.waitstatus_to_exitcode(status)
            break
        time.sleep(0.002)
    else:
        os.killpg(child, signal.SIGKILL)
        os.waitpid(child, 0)
    seconds = _spent() - before
    if seconds > limit:
        code = "hang"
    paths = [scratch / name for name in ("output", "errors")]
    texts = [path.read_text(errors="replace") if path.exists() else "" for path in paths]
    return Outcome(None if code == _ACCEPTED else code, *texts, seconds)


def _spent():
    """Processor time of all children that have ended, with theirs."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _spent_by(child):
    """Processor time of a child that runs, with its own that have ended; 0 where the system does not tell."""
    try:
        numbers = Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0
    return sum(map(int, numbers[11:15])) / os.sysconf("SC_CLK_TCK")


def _command(case, folder, scratch):
    before = _spent()
    environment = {**os.environ, **case.environment, "PYTHONPATH": os.getcwd()}
    words = [sys.executable, "-m", *case.words]
    try:
        run = subprocess.run(
            words,
            cwd=folder,
            env=environment,
            capture_output=True,
            stdin=subprocess.DEVNULL,
            timeout=_PATIENCE * LIMIT_S,
        )
    except subprocess.TimeoutExpired:
        return Outcome("hang", "", "", _spent() - before)
    texts = [text.decode(errors="replace") for text in (run.stdout, run.stderr)]
    return Outcome(run.returncode, *texts, _spent() - before)


# What is legal and long ---------------------------------------------------------------------------------------------


class _Accepted(BaseException):
    """The request is legal; carrying it out is not what is tested here."""


def _shorten(case):
    """End the process with :class:`_Accepted` where a legal request would become long."""

    def accepted(*_arguments, **_options):
        raise _Accepted

    add_top = Emission.add_top

    def add_small_top(emission, block, name=None):
        if not case.carry_out or not _is_small(block):
            raise _Accepted
        return add_top(emission, block, name)

    Emission.add_top = add_small_top
    program.make_phases = accepted
    futures.ProcessPoolExecutor = accepted
    formal_run.run_numbered = accepted
    if not case.carry_out:
        simulator.build = accepted


def _is_small(block):
    numbers = [value for value in block.parameters.to_dict().values() if type(value) is int]
    return max(numbers, default=0) <= _FEW and block.base_name in ("hash_bank_mapper", "bitonic_sorter", "data_aligner")


# The check ----------------------------------------------------------------------------------------------------------


def check_outcome(outcome, before, after, folder):
    """A sentence about what is wrong, or None."""
    if "Traceback" in outcome.errors + outcome.output:
        return "a traceback"
    if outcome.code == "hang":
        return (
            f"it took more than {LIMIT_S} s of processor time, or its work more than {_WORK_S} s, or it waits for ever"
        )
    if outcome.code not in (0, 2, None):
        return f"exit code {outcome.code}"
    if any(".writing-" in name for name in after):
        return "a staging folder is left"
    if outcome.code == 2:
        sentences = re.findall(r"(?m)^(?:python -m [\w.]+(?: \w+)?: )?error: +(\S.*)", outcome.errors)
        if len(sentences) != 1:
            return f"{len(sentences)} sentences on the standard error stream"
        if {name: kind for name, kind in after.items() if kind != "folder"} != {
            name: kind for name, kind in before.items() if kind != "folder"
        }:
            return "files were written or changed though the request was refused"
    return _incomplete(folder / OUTPUT) if outcome.code == 0 else None


def _incomplete(folder):
    """What a package's manifest says of its files must be true."""
    try:
        files = json.loads((folder / "manifest.json").read_text())["files"]
        wanted = {name: about["sha256"] for name, about in files.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    for name, digest in wanted.items():
        if hashlib.sha256((folder / name).read_bytes()).hexdigest() != digest:
            return f"{name} is not what the manifest says"
    return None


def _tree(folder):
    """``{path: digest of the file, or what else it is}``."""
    found = {}
    for root, folders, names in os.walk(folder):
        for name in (*folders, *names):
            path = Path(root, name)
            is_file = path.is_file() and not path.is_symlink()
            found[str(path.relative_to(folder))] = (
                hashlib.sha256(path.read_bytes()).hexdigest() if is_file else "link" if path.is_symlink() else "folder"
            )
    return found
