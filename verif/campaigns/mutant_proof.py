"""Proofs that a mutant answers as the right circuit does, from one graph of the block with all its mutants.

Registers start at zero, reset comes first and again at will, inputs are free. Several claims are tried; each of them
is enough:

1. in one clock, from any state at all, the mutant does what the right circuit does (a combinational claim);
2. run beside the right circuit, the mutant never gives another ready, valid or plain output, nor another payload while
   it is valid, whatever the registers hold that the mutant cannot reach;
3. the first claim for every state that the right circuit can reach;
4. the second one with these registers as they are: one set, which both circuits read.
"""

import re

from verif.formal import solver
from verif.formal.aig import Aig
from verif.formal.netlist import run_yosys

__all__ = ["MutantGraph"]

_MOST_LATCHES = 3000
"""Of claims that are tried: larger ones were never proved in a minute."""

_PASSES = [
    "proc",
    "flatten",
    "opt_expr",
    "opt_clean",
    "memory -nordff",
    "opt_clean",
    "setundef -zero -init",
    "opt",
    "techmap",
    "simplemap",
    "opt -fast",
    "setundef -zero",
    "dffunmap",
    "aigmap",
    "opt_clean",
    "write_aiger -zinit -symbols mutants.aig",
]


class MutantGraph:
    """The flat circuit of ``mutated.il`` in a folder, in which the input mutsel chooses the mutant."""

    def __init__(self, folder, top):
        self.folder = folder
        run_yosys(folder, ["read_rtlil mutated.il", f"hierarchy -check -top {top}", *_PASSES])
        self.graph = Aig.read(folder / "mutants.aig")

    def steps_alike(self, number, timeout):
        """Whether the first claim, which takes no time, is proved."""
        return self._prove(self._one_step(number, True), timeout) is True

    def answers_alike(self, number, timeout):
        """Whether one of the others is proved; False if outputs are seen to differ, None if that is unknown."""
        for claim, free in ((self._side_by_side, True), (self._one_step, False), (self._side_by_side, False)):
            holds = self._prove(claim(number, free), timeout)
            if holds is True:
                return True
        return holds

    def _prove(self, claim, timeout):
        graph, fails = claim
        if fails == 0:
            return True
        path = self.folder / "claim.aig"
        cone = graph.cone(fails)
        if len(cone.latches) > _MOST_LATCHES:
            return None
        cone.write(path, ["fails"])
        return solver.prove(path, timeout).holds

    def _inputs(self, build, number):
        """Literals of the inputs for the right circuit and the mutant, and of reset."""
        started = build.latch(1)
        right, mutant, reset = [], [], 1
        for name in self.graph.inputs:
            match = re.fullmatch(r"mutsel(?:\[(\d+)\])?", name)
            if match:
                right.append(0)
                mutant.append(number >> int(match[1] or 0) & 1)
                continue
            literal = build.input(name)
            if name == "rst":
                literal = reset = build.either(literal, started ^ 1)
            right.append(literal)
            mutant.append(literal)
        return right, mutant, reset

    def _gates(self, build, left, right):
        """Evaluate all gates for two lists of literals of inputs and latches, which become those of all variables."""
        for first, second in self.graph.gates:
            for side in (left, right):
                side.append(build.both(side[first >> 1] ^ first & 1, side[second >> 1] ^ second & 1))

    def _outputs_differ(self, build, left, right, reset):
        value = {
            name: left[literal >> 1] ^ literal & 1
            for name, literal in zip(self.graph.output_names, self.graph.outputs, strict=True)
        }
        differ = []
        for name, literal in zip(self.graph.output_names, self.graph.outputs, strict=True):
            one, other = (side[literal >> 1] ^ literal & 1 for side in (left, right))
            if one == other:
                continue
            stream = re.match(r"(\w+)__payload", name)
            shown = value[f"{stream[1]}__valid"] if stream else 1
            differ.append(build.both(shown, build.differ(one, other)))
        return build.both(reset ^ 1 if reset != 1 else 1, build.any(differ))

    def _one_step(self, number, free):
        build = _Builder()
        left, right, reset = self._inputs(build, number)
        states = [build.input("") if free else build.latch() for _ in self.graph.latches]
        left, right = [0, *left, *states], [0, *right, *states]
        self._gates(build, left, right)
        differ = [self._outputs_differ(build, left, right, reset)]
        for state, (following, _) in zip(states, self.graph.latches, strict=True):
            one, other = (side[following >> 1] ^ following & 1 for side in (left, right))
            if not free:
                build.follow(state, one)
            if one != other:
                differ.append(build.differ(one, other))
        return build, build.any(differ)

    def _side_by_side(self, number, free):
        reached = self._reached(number)
        build = _Builder()
        left, right, reset = self._inputs(build, number)
        states = [build.latch() if is_reached or not free else build.input("") for is_reached in reached]
        others = [build.latch() if is_reached else state for state, is_reached in zip(states, reached, strict=True)]
        left, right = [0, *left, *states], [0, *right, *others]
        self._gates(build, left, right)
        for side, places in ((left, states), (right, others)):
            for state, is_reached, (following, _) in zip(places, reached, self.graph.latches, strict=True):
                if is_reached or not free:
                    build.follow(state, side[following >> 1] ^ following & 1)
        return build, self._outputs_differ(build, left, right, reset)

    def _reached(self, number):
        """Which registers the mutant may change, in any number of clocks."""
        reached = [False] * len(self.graph.latches)
        while True:
            build = _Builder()
            left, right, _ = self._inputs(build, number)
            states = [build.input("") for _ in reached]
            others = [build.input("") if changes else state for state, changes in zip(states, reached, strict=True)]
            left, right = [0, *left, *states], [0, *right, *others]
            self._gates(build, left, right)
            now = [
                is_reached or left[following >> 1] != right[following >> 1]
                for is_reached, (following, _) in zip(reached, self.graph.latches, strict=True)
            ]
            if now == reached:
                return reached
            reached = now


class _Builder:
    """An and-inverter graph that grows; equal gates become one. Literals are ``2 * variable + inverted``."""

    def __init__(self):
        self._nodes = [None]  # of each variable: ("input", name), ["latch", next] or the operands of a gate
        self._known = {}

    def _add(self, node):
        self._nodes.append(node)
        return 2 * (len(self._nodes) - 1)

    def input(self, name):
        return self._add(("input", name))

    def latch(self, following=0):
        return self._add(["latch", following])

    def follow(self, latch, following):
        self._nodes[latch >> 1][1] = following

    def both(self, first, second):
        if first > second:
            first, second = second, first
        if first == 0 or first == second ^ 1:
            return 0
        if first == 1 or first == second:
            return second
        key = first, second
        if key not in self._known:
            self._known[key] = self._add(key)
        return self._known[key]

    def either(self, first, second):
        return self.both(first ^ 1, second ^ 1) ^ 1

    def differ(self, first, second):
        return self.either(self.both(first, second ^ 1), self.both(first ^ 1, second))

    def any(self, literals):
        found = 0
        for literal in literals:
            found = self.either(found, literal)
        return found

    def cone(self, fails):
        """The :class:`Aig` of all that a literal depends on, which becomes its output "fails"."""
        needed, stack = set(), [fails >> 1]
        while stack:
            variable = stack.pop()
            if variable in needed or variable == 0:
                continue
            needed.add(variable)
            node = self._nodes[variable]
            if node[0] == "latch":
                stack.append(node[1] >> 1)
            elif node[0] != "input":
                stack += [operand >> 1 for operand in node]
        kinds = {"input": [], "latch": []}
        gates = []
        for variable in sorted(needed):
            kinds.get(self._nodes[variable][0], gates).append(variable)
        new = {variable: place for place, variable in enumerate([0, *kinds["input"], *kinds["latch"], *gates])}

        def literal(old):
            return 2 * new[old >> 1] | old & 1

        return Aig(
            inputs=[self._nodes[variable][1] for variable in kinds["input"]],
            latches=[(literal(self._nodes[variable][1]), 0) for variable in kinds["latch"]],
            outputs=[literal(fails)],
            gates=[tuple(sorted(map(literal, self._nodes[variable]), reverse=True)) for variable in gates],
            output_names=["fails"],
        )
