"""Runs a property: builds its checker for each size, sees that its covers are reached, asks its engine."""

import hashlib
import json
import math
import re
import resource
import shutil
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from verif.formal import exhaustive, netlist, registry, solver
from verif.formal.checker import Checker

__all__ = ["Result", "run", "run_numbered"]

_CASES_AT_ONCE = 1 << 20
"""Combinations that the golden model gets in one call, so that memory does not grow with them."""


@dataclass(frozen=True)
class Result:
    """``holds`` is True, False or None (unknown); ``verdict`` says it in words; seconds of processor time."""

    holds: bool | None
    verdict: str
    depth: int
    seconds: float


@dataclass(frozen=True)
class Outcome:
    """Of one size: a ``problem`` in words, if there is one, with ``holds`` False or None; what was looked at."""

    holds: bool | None = True
    problem: str = ""
    depth: int = 0
    cases: int = 0


def run(prop, folder, edit=str, keep=False):
    """The :class:`Result` of a property; files are left in ``folder``. ``edit`` may change the Verilog.

    With ``keep`` a size that held before is not looked at again as long as its circuit and engine are the same, and its
    time is that of then.
    """
    depth = cases = seconds = 0
    for name, blocks in _groups(prop):
        start = _processor_time()
        checker = Checker(**blocks)
        for block in blocks.values():
            checker.prefix = f"{block.module_name}: " if len(blocks) > 1 else ""
            prop.check(checker, block)
        size_folder = folder / name
        kept = _kept(size_folder) if keep else {}
        if not keep:
            shutil.rmtree(size_folder, ignore_errors=True)
        emission = netlist.emit(checker, size_folder, edit)
        digest = _digest(prop, checker, size_folder)
        if kept.get("digest") == digest:
            outcome, spent = Outcome(**kept["outcome"]), kept["seconds"]
        else:
            graph = netlist.build(size_folder, emission.modules_of(prop.free))
            outcome = _ENGINES[prop.engine](prop, checker, graph, size_folder)
            spent = _processor_time() - start
            if outcome.holds is True and prop.expected is None:
                text = json.dumps({"digest": digest, "outcome": asdict(outcome), "seconds": spent})
                (size_folder / _KEPT).write_text(text)
        depth, cases, seconds = max(depth, outcome.depth), cases + outcome.cases, seconds + spent
        if outcome.problem:
            return Result(outcome.holds, f"{outcome.problem} ({name})", depth, seconds)
    return Result(True, _VERDICTS[prop.engine].format(depth=depth, cases=cases), depth, seconds)


def run_numbered(index, chosen, folder, keep=False):
    """:func:`run` for a process of its own: the property by its number in ``registry.properties(*chosen)``."""
    prop = registry.properties(*chosen)[index]
    place = registry.properties((prop.unit,)).index(prop)
    return run(prop, folder / f"{prop.unit}-{place:02}", keep=keep)


_KEPT = "outcome.json"


def _kept(folder):
    path = folder / _KEPT
    return json.loads(path.read_text()) if path.exists() else {}


def _digest(prop, checker, folder):
    """Of all that the outcome depends on: the circuit, what is enumerated, the engine and the code that runs it."""
    digest = hashlib.sha256(
        repr(
            (
                prop.engine,
                prop.depth,
                prop.reach,
                [each.__name__ for each in prop.free],
                [(name, width, words) for name, (width, words) in checker.enumerated.items()],
                list(checker.claims),
                list(checker.covers),
            )
        ).encode()
    )
    here = Path(__file__).parent
    sources = [here / name for name in ("run.py", "solver.py", "netlist.py", "aig.py", "exhaustive.py", "simulation.c")]
    for path in (folder / "design.v", folder / "checker.il", *sources):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _processor_time():
    usage = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in usage)


def _groups(prop):
    """``(name, {instance: block})`` of each checker: combinational blocks of all sizes share one."""
    blocks = {}
    for parameters in prop.sizes:
        words = [prop.block.__name__, *(f"{name}={value}" for name, value in parameters.items())]
        blocks[re.sub(r"\W+", "-", "-".join(words))[:100]] = prop.block(**parameters)
    if prop.engine == "sat":
        return [(prop.block.__name__, {f"dut_{index}": block for index, block in enumerate(blocks.values())})]
    return [(name, {"dut": block}) for name, block in blocks.items()]


def _outputs(checker, kind):
    names = checker.claims if kind == "fails" else checker.covers
    return {f"{kind}_{index}": name for index, name in enumerate(names)}


def _missed_cover(prop, checker, graph, folder):
    """A sentence about the first cover that is not reached, or None."""
    for output, name in _outputs(checker, "reaches").items():
        graph.write(folder / "cover.aig", [output])
        if solver.search(folder / "cover.aig", prop.reach or prop.depth, prop.timeout).holds is not False:
            return f"not reached within {prop.reach or prop.depth} clocks: {name}"
    return None


def _solve(engine):
    def solve(prop, checker, graph, folder):
        path = folder / "claims.aig"
        graph.write(path, list(_outputs(checker, "fails")))
        answer = engine(path, prop)
        unless_it_holds = _unless_it_holds(answer, prop, checker, graph, folder)
        return unless_it_holds or _if_covered(answer.depth, prop, checker, graph, folder)

    return solve


def _search(prop, checker, graph, folder):
    """Runs up to a depth, claim by claim: that is much faster than all at once."""
    for output, name in _outputs(checker, "fails").items():
        path = folder / "claim.aig"
        graph.write(path, [output])
        answer = solver.search(path, prop.depth, prop.timeout, merge=True)
        unless_it_holds = _unless_it_holds(answer, prop, checker, graph, folder, f": {name}")
        if unless_it_holds:
            return unless_it_holds
    return _if_covered(prop.depth, prop, checker, graph, folder)


def _unless_it_holds(answer, prop, checker, graph, folder, what=""):
    """The outcome that an engine's answer is, None if the claims hold."""
    (folder / "abc.log").write_text(answer.log)
    if answer.holds is None:
        return Outcome(None, f"unknown after {prop.timeout} s{what}", answer.depth)
    if not answer.holds:
        return Outcome(False, _counterexample(prop, checker, graph, folder, answer.depth), answer.depth)
    return None


def _if_covered(depth, prop, checker, graph, folder):
    """The outcome of claims that hold."""
    missed = _missed_cover(prop, checker, graph, folder)
    return Outcome(False, missed) if missed else Outcome(depth=depth)


def _counterexample(prop, checker, graph, folder, depth):
    """Which claim fails first; a waveform is left in the folder."""
    for output, name in _outputs(checker, "fails").items():
        graph.write(folder / "failing.aig", [output])
        answer = solver.search(folder / "failing.aig", depth + 2, prop.timeout, witness="failing.aiw")
        if answer.holds is False:
            netlist.waveform(folder, "failing.aiw", "failing.vcd")
            return f"fails in clock {answer.depth}: {name}"
    return f"fails in clock {depth}"


def _evaluate(prop, checker, graph, folder):
    """Every combination of the enumerated inputs."""
    tally = exhaustive.evaluate(graph, checker.enumerated, folder, prop.timeout)
    if tally.failing:
        output, bits = tally.failing
        inputs = "".join(f"{name} = {bit}\n" for name, bit in zip(graph.inputs, bits, strict=False) if name)
        (folder / "failing.txt").write_text(inputs)
        return Outcome(False, f"fails: {_outputs(checker, 'fails')[output]}")
    for name, reached in zip(checker.covers, tally.reached, strict=True):
        if not reached:
            return Outcome(False, f"not reached: {name}")
    if prop.expected is not None:
        problem = _wrong_results(prop, checker, tally)
        if problem:
            return Outcome(False, problem)
    return Outcome(cases=tally.cases)


def _wrong_results(prop, checker, tally):
    """A sentence about the results that are not the model's, or None."""
    *others, last = [np.asarray(words) for _, words in checker.enumerated.values()]
    shape = [len(words) for words in others] or [1]
    n_rows, step = math.prod(shape), max(1, _CASES_AT_ONCE // len(last))
    block, mask = next(iter(checker.blocks.values())), np.uint64((1 << tally.results.width) - 1)
    n_wrong, first = 0, ""
    for start in range(0, n_rows, step):
        stop = min(start + step, n_rows)
        places = np.unravel_index(np.arange(start, stop), shape)
        words = [np.repeat(axis[place], len(last)) for axis, place in zip(others, places, strict=False)]
        words.append(np.tile(last, stop - start))
        expected = np.asarray(prop.expected(block, *words)).astype(np.uint64) & mask
        wrong = np.flatnonzero(tally.results.words(start, stop) != expected)
        if len(wrong) and not n_wrong:
            first = ", ".join(
                f"{name} {word[wrong[0]]:#x}" for name, word in zip(checker.enumerated, words, strict=False)
            )
        n_wrong += len(wrong)
    return f"{n_wrong} results differ from the model's, the first for {first}" if n_wrong else None


_ENGINES = {
    "pdr": _solve(lambda path, prop: solver.prove(path, prop.timeout)),
    "bmc": _search,
    "sat": _solve(lambda path, prop: solver.prove(path, prop.timeout)),
    "exhaustive": _evaluate,
    "class": _evaluate,
}
_VERDICTS = {
    "pdr": "proved",
    "bmc": "bounded: holds for {depth} clocks",
    "sat": "proved for all inputs",
    "exhaustive": "holds for all {cases:,} inputs",
    "class": "by class: holds for {cases:,} inputs",
}
