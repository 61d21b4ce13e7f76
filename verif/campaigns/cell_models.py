"""Behavioural Verilog of library cells, to simulate a mapped netlist with: from what the library says they do."""

from hw.synthesis.liberty_functions import verilog


def cell_models(library, kinds):
    """Verilog of the cells named; a cell whose behaviour the library does not tell raises ``ValueError``."""
    return "".join(_model(library.cells[kind]) for kind in sorted(kinds) if kind in library.cells)


def _model(cell):
    if cell.storage == "clock gate":
        body = _clock_gate(cell)
    elif cell.storage == "flip-flop":
        body = _flip_flop(cell)
    elif cell.storage is None:
        body = "".join(f"  assign {pin} = {_text(cell, text)};\n" for pin, text in sorted(cell.functions.items()))
    else:
        raise _not_plain(cell)
    ports = ", ".join([*(f"input {pin}" for pin in cell.inputs), *(f"output {pin}" for pin in sorted(cell.functions))])
    return f"module {cell.name}({ports});\n{body}endmodule\n"


def _flip_flop(cell):
    """Starts with a value drawn at random, as in silicon: a netlist must not depend on it."""
    rules = dict(cell.state)
    if set(rules) - {"next_state", "clocked_on", "clear", "preset"} or not {"next_state", "clocked_on"} <= set(rules):
        raise _not_plain(cell)
    events, first, wires = ["posedge clock"], "", f"  wire clock = {_text(cell, rules['clocked_on'])};\n"
    for rule, value in (("clear", 0), ("preset", 1)):
        if rule in rules:
            events.append(f"posedge {rule}")
            first += f"if ({rule}) state <= {value}; else "
            wires += f"  wire {rule} = {_text(cell, rules[rule])};\n"
    held, inverse = cell.state_names
    names = {held: "state", inverse: "~state"}
    outputs = "".join(f"  assign {pin} = {_text(cell, text, names)};\n" for pin, text in sorted(cell.functions.items()))
    return (
        f"  reg state;\n  initial state = $random;\n{wires}"
        f"  always @({' or '.join(events)}) {first}state <= {_text(cell, rules['next_state'])};\n{outputs}"
    )


def _clock_gate(cell):
    """A latch that is open while the clock is low, and an AND."""
    pins = cell.clock_gate
    if not {"clock", "enable", "out"} <= set(pins):
        raise _not_plain(cell)
    enable = " | ".join(pins[role] for role in ("enable", "test") if role in pins)
    return (
        f"  reg open;\n  initial open = 0;\n  always @* if (!{pins['clock']}) open = {enable};\n"
        f"  assign {pins['out']} = {pins['clock']} & open;\n"
    )


def _text(cell, expression, more=None):
    text = verilog(expression, {pin: pin for pin in cell.inputs} | (more or {}))
    if text is None:
        raise _not_plain(cell)
    return text


def _not_plain(cell):
    return ValueError(f"cell {cell.name} cannot be simulated: its library does not say in plain functions what it does")
