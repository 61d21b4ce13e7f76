"""Exhaustive evaluation: the circuit as C code that works on 512 sets of inputs at once, for all sets there are.

Four thousand million pairs of 16-bit words through a floating-point adder and its reference take minutes.
"""

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import numpy as np

__all__ = ["Tally", "evaluate"]

LANES = 512
_CHUNK = 400
"""Gates a C function."""


@dataclass(frozen=True)
class Results:
    """The outputs ``result_<n>`` of all combinations, as they lie in the file."""

    planes: np.ndarray
    last: int

    @property
    def width(self):
        return self.planes.shape[1]

    def words(self, start, stop):
        """Those of some rows, all words of the last port for one combination of the others: one integer each."""
        per_row = -(-self.last // LANES)
        bits = np.unpackbits(self.planes[start * per_row : stop * per_row], axis=-1, bitorder="little")
        words = np.zeros((len(bits), LANES), np.uint64)
        for place in range(self.width):
            words |= bits[:, place].astype(np.uint64) << np.uint64(place)
        return words.reshape(stop - start, -1)[:, : self.last].ravel()


@dataclass(frozen=True)
class Tally:
    """``failing``: the output that was 1 and the inputs' bits then, or None. ``reached`` has a flag a cover."""

    cases: int
    failing: tuple[str, str] | None
    reached: list[bool]
    results: Results | None


def evaluate(graph, ports, folder, timeout):
    """Evaluate a graph for every combination of words of the enumerated ``ports``, ``{name: (width, words)}``.

    In every clock the output ``is_taken`` says whether the next combination follows, ``is_checked`` whether a
    combination's result is there (the first accepted, the first checked). Other inputs are random, mostly 1. Outputs
    ``result_<n>``, if there are any, come back in order of combinations.
    """
    compile_circuit(graph, ports, folder)
    tables = [np.asarray(words, dtype=np.uint64) for _, words in ports.values()]
    width = list(ports.values())[-1][0]
    with (folder / "tables.bin").open("wb") as file:
        for table in tables[:-1]:
            table.tofile(file)
        _planes(tables[-1], width).tofile(file)
    run = subprocess.run(
        [folder / "simulation", "tables.bin", "results.bin"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    cases = int(np.prod([len(table) for table in tables], dtype=object))
    lines = run.stdout.splitlines()
    if run.returncode == 1:
        return Tally(0, (f"fails_{lines[0].split()[1]}", lines[1]), [], None)
    words = lines[-1].split() if lines else []
    if run.returncode or not words or words[0] != "checked" or int(words[1]) != int(words[3].rstrip(",")):
        raise RuntimeError(f"the evaluation in {folder} ended with {run.returncode}: {run.stdout[-200:]}")
    reached = [word == "1" for word in words[words.index("reached") + 1 :]]
    results = None
    n_results = sum(name.startswith("result_") for name in graph.output_names)
    if n_results:
        planes = np.memmap(folder / "results.bin", dtype=np.uint8, mode="r").reshape(-1, n_results, LANES // 8)
        results = Results(planes, len(tables[-1]))
    return Tally(cases, None, reached, results)


def _planes(words, width):
    """Bit planes of blocks of 512 words; the last block is filled up with its last word."""
    missing = -len(words) % LANES
    words = np.concatenate([words, np.repeat(words[-1:], missing)]).reshape(-1, LANES)
    bits = (words[:, None, :] >> np.arange(width, dtype=np.uint64)[:, None]) & np.uint64(1)
    return np.packbits(bits.astype(np.uint8), axis=-1, bitorder="little")


def compile_circuit(graph, ports, folder):
    """Write and compile the C program of a graph."""
    outputs = {
        kind: [index for index, name in enumerate(graph.output_names) if name.startswith(kind)]
        for kind in ("fails_", "reaches_", "result_", "is_taken", "is_checked")
    }
    index_of = {name: index for index, name in enumerate(graph.inputs) if name}
    port_inputs = [
        [index_of.get(name if width == 1 else f"{name}[{bit}]", -1) for bit in range(width)]
        for name, (width, _) in ports.items()
    ]
    enumerated = {index for bits in port_inputs for index in bits}
    fixed = {index_of.get("reset_request"), index_of.get("clk")}
    free = [index for index in range(len(graph.inputs)) if index not in enumerated | fixed]
    widest = max(len(bits) for bits in port_inputs)
    sizes = {
        "N_INPUTS": len(graph.inputs),
        "N_LATCHES": len(graph.latches),
        "N_FAILS": len(outputs["fails_"]),
        "N_REACHES": len(outputs["reaches_"]),
        "N_RESULTS": len(outputs["result_"]),
        "N_PORTS": len(ports),
        "N_FREE": len(free),
    }
    resets = [reset if reset < 2 else 0 for _, reset in graph.latches]
    lines = [f"#define {name} {value}" for name, value in sizes.items()]
    lines += [
        "typedef unsigned long long W __attribute__((vector_size(64)));",
        "static W inputs[N_INPUTS + 1], latches[N_LATCHES + 1], following[N_LATCHES + 1];",
        "static W fails[N_FAILS + 1], reaches[N_REACHES + 1], result[N_RESULTS + 1], is_taken, is_checked;",
        f"static const int latch_reset[] = {{{_list(resets)}}};",
        f"static const int free_input[] = {{{_list(free)}}};",
        f"static const int port_width[] = {{{_list(len(bits) for bits in port_inputs)}}};",
        f"static const unsigned long long port_size[] = {{{_list(len(words) for _, words in ports.values())}}};",
        f"static const int port_input[][{widest}] = {{{_list('{' + _list(bits) + '}' for bits in port_inputs)}}};",
    ]
    lines += _gates(graph, outputs)
    (folder / "simulation.c").write_text("\n".join(lines) + "\n" + Path(__file__).with_name("simulation.c").read_text())
    compiler = os.environ.get("CC", "gcc")
    if shutil.which(compiler) is None:
        raise RuntimeError(f"the C compiler {compiler!r} is not found: install it, or name another one with CC=")
    command = [compiler, "-O1", "-march=native", "-Wno-psabi", "-o", "simulation", "simulation.c"]
    run = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if run.returncode:
        raise RuntimeError(f"{compiler} refused {folder / 'simulation.c'}: {run.stderr[-500:]}")


def _list(values):
    return ", ".join(map(str, values)) or "0"


def _gates(graph, outputs):
    """The gates that the outputs and latches need, in functions of a moderate length."""
    first_gate = graph.first_gate
    expressions = _expressions(graph)
    roots = [literal for literal, _ in graph.latches]
    roots += [graph.outputs[index] for indices in outputs.values() for index in indices]
    needed, stack = set(), [literal >> 1 for literal in roots]
    while stack:
        variable = stack.pop()
        if variable >= first_gate and variable not in needed:
            needed.add(variable)
            stack += [operand >> 1 for operand in expressions[variable][1]]
    order = sorted(needed)
    chunk_of = {variable: place // _CHUNK for place, variable in enumerate(order)}
    crossing = {literal >> 1 for literal in roots if literal >> 1 >= first_gate}
    for variable in order:
        for operand in expressions[variable][1]:
            if operand >> 1 >= first_gate and chunk_of[operand >> 1] != chunk_of[variable]:
                crossing.add(operand >> 1)
    place_of = {variable: place for place, variable in enumerate(sorted(crossing))}

    def text(literal, chunk=None):
        variable = literal >> 1
        if variable == 0:
            name = "((W){})"
        elif variable < graph.first_latch:
            name = f"inputs[{variable - 1}]"
        elif variable < first_gate:
            name = f"latches[{variable - graph.first_latch}]"
        else:
            name = f"v{variable}" if chunk_of[variable] == chunk else f"kept[{place_of[variable]}]"
        return f"~{name}" if literal & 1 else name

    lines = [f"static W kept[{len(crossing) + 1}];"]
    n_chunks = -(-len(order) // _CHUNK)
    for chunk in range(n_chunks):
        lines.append(f"static void gates_{chunk}(void)\n{{")
        for variable in order[chunk * _CHUNK : (chunk + 1) * _CHUNK]:
            form, operands = expressions[variable]
            lines.append(f"    W v{variable} = {form.format(*(text(operand, chunk) for operand in operands))};")
            if variable in place_of:
                lines.append(f"    kept[{place_of[variable]}] = v{variable};")
        lines.append("}")
    lines.append("static void evaluate(void)\n{")
    lines += [f"    gates_{chunk}();" for chunk in range(n_chunks)]
    lines += [f"    following[{index}] = {text(literal)};" for index, (literal, _) in enumerate(graph.latches)]
    for kind, array in (("fails_", "fails"), ("reaches_", "reaches"), ("result_", "result")):
        lines += [f"    {array}[{place}] = {text(graph.outputs[index])};" for place, index in enumerate(outputs[kind])]
    for name in ("is_taken", "is_checked"):
        lines += [f"    {name} = {text(graph.outputs[index])};" for index in outputs[name]]
    return [*lines, "}"]


def _expressions(graph):
    """``{variable: (C expression, operands)}`` of every gate, with exclusive ors and multiplexers put together."""
    found = {}
    for index, (left, right) in enumerate(graph.gates):
        variable = graph.first_gate + index
        found[variable] = ("{} & {}", (left, right))
        if left & 1 and right & 1 and min(left, right) >> 1 >= graph.first_gate:
            first, second = (graph.gates[(literal >> 1) - graph.first_gate] for literal in (left, right))
            for select, when_one in (first, first[::-1]):
                for other, when_zero in (second, second[::-1]):
                    if other == select ^ 1:
                        if when_zero == when_one ^ 1:  # not (s and a or not s and not a)
                            found[variable] = ("{} ^ {}", (select, when_one))
                        else:
                            found[variable] = ("~(({0} & {1}) | (~({0}) & {2}))", (select, when_one, when_zero))
    return found
