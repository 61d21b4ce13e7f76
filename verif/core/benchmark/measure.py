"""A workload in the cycle model and on the Verilog: plain data for docs/bench.json.

Both measure from the start of the measured part's first command to the end of its last one, STORE COUNTERS left out.
"""

import numpy as np

from golden.core.core import Core
from golden.spec.commands import Memory, Opcode, Unit, form_of
from golden.timing.program_model import estimate, load_interval
from hw.top.core import Core as CoreBlock
from verif.core.benchmark.workloads import sizes_of
from verif.core.session import run_program

__all__ = ["intervals_of", "model_result", "verilog_result"]


def _interval(workload, sizes):
    return 1 if workload.bytes_a_clock is None else load_interval(sizes, workload.bytes_a_clock)


def _is_counted(command):
    return not (command.opcode == Opcode.STORE and command.function == Memory.COUNTERS)


def model_result(workload, made=None):
    """Clocks, waits of the array by cause, words read and written, as the model has them."""
    sizes = sizes_of(workload)
    program, products, first = made or workload.make(sizes)
    found = estimate(sizes, program.commands, program.beats_of_loads, _interval(workload, sizes))
    part = [item for item in found.intervals if item.number >= first and _is_counted(item.command)]
    begin, end = min(item.begin for item in part), max(item.end for item in part)
    usage = found.usage(first)
    return {
        "commands": len(part),
        "clocks": end - begin,
        "bound": products / (sizes.n_banks * sizes.n_lanes),
        "needed": usage.products / (sizes.n_banks * sizes.n_lanes),
        "beats": usage.array_beats / sizes.n_banks,
        "busy": {unit.name.lower(): sum(i.end - i.begin for i in part if i.unit == unit) for unit in Unit},
        "array_work": sum(item.work for item in part if item.unit == Unit.ARRAY),
        "waits": dict(sorted(found.idle(Unit.ARRAY, begin, end).items(), key=lambda pair: -pair[1])),
        "reads": dict(sorted(usage.reads.items())),
        "writes": dict(sorted(usage.writes.items())),
    }


def intervals_of(program, session):
    """``{command's number: (begin, end)}`` on the Verilog; a unit is idle for a clock between two commands."""
    edges = np.diff(np.pad(session.busy.astype(np.int8), ((1, 1), (0, 0))), axis=0)
    found = {}
    for unit in Unit:
        numbers = [
            number
            for number, command in enumerate(program.commands)
            if command.opcode != Opcode.CLEAR and form_of(command).unit == unit
        ]
        begins, ends = (np.flatnonzero(edges[:, unit] == step) for step in (1, -1))
        # The session ends with its last beat, perhaps in the middle of the command that stores it.
        found |= {number: (int(b), int(e)) for number, b, e in zip(numbers, begins, ends, strict=True)}
    return found


def verilog_result(workload, made=None, sim=None):
    """Clocks and busy clocks on the emitted Verilog; ``ValueError`` if a stored word is wrong."""
    sizes = sizes_of(workload)
    program, _, first = made or workload.make(sizes)
    n_own = len(program.stored)
    if not n_own:
        program.store_counters()
    interval = _interval(workload, sizes)
    if interval != int(interval):
        raise ValueError(
            f"bytes_a_clock must divide a beat of {2 * sizes.row_word} bytes, not {workload.bytes_a_clock}"
        )
    session = run_program(CoreBlock(**sizes.to_dict()), program, load_interval=int(interval), sim=sim)
    store = Core(sizes).execute(program.commands, program.load_beats).store
    assert store is not None and session.values.shape == store.values.shape
    if (session.values != store.values)[store.defined].any():
        raise ValueError(f"{workload.name}: the Verilog stores other words than the golden model")
    part = {
        number: times
        for number, times in intervals_of(program, session).items()
        if number >= first and _is_counted(program.commands[number])
    }
    busy = dict.fromkeys((unit.name.lower() for unit in Unit), 0)
    for number, (begin, end) in part.items():
        busy[form_of(program.commands[number]).unit.name.lower()] += end - begin
    begin, end = min(begin for begin, _ in part.values()), max(end for _, end in part.values())
    return {"clocks": end - begin, "busy": busy}
