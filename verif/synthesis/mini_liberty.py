"""A made-up cell library in Liberty format for the tests of the synthesis flow: small and complete.

And netlists of its cells, which the tests of single steps begin with.
"""

import json

from hw.synthesis import liberty, sta
from hw.synthesis.netlist import Netlist

# name: (area, {input: fF}, {output: function}); a strength "X2" drives twice the load
CELLS = {
    "INV": (1.0, {"A": 1.0}, {"Y": "!A"}),
    "BUF": (1.5, {"A": 1.0}, {"Y": "A"}),
    "INVX2": (1.4, {"A": 2.0}, {"Y": "!A"}),
    "BUFX2": (2.0, {"A": 2.0}, {"Y": "A"}),
    "NAND2X2": (2.8, {"A": 2.0, "B": 2.0}, {"Y": "!(A & B)"}),
    "NAND2": (2.0, {"A": 1.0, "B": 1.0}, {"Y": "!(A & B)"}),
    "NOR2": (2.0, {"A": 1.0, "B": 1.0}, {"Y": "(A + B)'"}),
    "XOR2": (4.0, {"A": 2.0, "B": 2.0}, {"Y": "A ^ B"}),
    "FULL": (8.0, {"A": 3.0, "B": 3.0, "CI": 2.5}, {"S": "A ^ B ^ CI", "CO": "(A B) | (CI (A | B))"}),
    "HALF": (5.0, {"A": 2.0, "B": 2.0}, {"S": "A ^ B", "CO": "A * B"}),
}

_TABLE = 'values ("{0}, {1}", "{2}, {3}");'


def _timing(pin, delay, kind=""):
    rows = []
    for table in ("cell_rise", "cell_fall", "rise_transition", "fall_transition"):
        # The load of 60 fF makes a gate five times slower, a slew of half a ns twice as slow.
        values = _TABLE.format(*(f"{delay * scale:.4f}" for scale in (1, 5, 2, 6)))
        rows.append(f"        {table} (grid) {{ {values} }}")
    body = "\n".join(rows)
    return f'      timing () {{\n        related_pin : "{pin}";\n{kind}{body}\n      }}\n'


def _cell(name, area, inputs, outputs):
    text = f"  cell ({name}) {{\n    area : {area};\n"
    for pin, load in inputs.items():
        text += f"    pin ({pin}) {{\n      direction : input;\n      capacitance : {load};\n    }}\n"
    for pin, function in outputs.items():
        arcs = "".join(_timing(related, 0.02 * (0.6 if name.endswith("X2") else 1) * area) for related in inputs)
        text += f"    pin ({pin}) {{\n      direction : output;\n      max_capacitance : 60;\n"
        text += f'      function : "{function}";\n'
        text += f"{arcs}    }}\n"
    return text + "  }\n"


def _constraint(kind, time):
    values = _TABLE.format(*[f"{time:.4f}"] * 4)
    tables = "".join(f"        {edge} (slews) {{ {values} }}\n" for edge in ("rise_constraint", "fall_constraint"))
    return f'      timing () {{\n        related_pin : "CK";\n        timing_type : {kind}_rising;\n{tables}      }}\n'


def _flip_flop():
    clock_to_output = _timing("CK", 0.05, "        timing_type : rising_edge;\n")
    return (
        "  cell (DFF) {\n    area : 6.0;\n"
        '    ff (IQ, IQN) {\n      clocked_on : "CK";\n      next_state : "D";\n    }\n'
        "    pin (CK) {\n      direction : input;\n      clock : true;\n      capacitance : 1.0;\n    }\n"
        "    pin (D) {\n      direction : input;\n      capacitance : 1.0;\n"
        f"{_constraint('setup', 0.03)}{_constraint('hold', 0.0)}    }}\n"
        + "".join(
            f"    pin ({pin}) {{\n      direction : output;\n      max_capacitance : 60;\n"
            f'      function : "{function}";\n{clock_to_output}    }}\n'
            for pin, function in (("Q", "IQ"), ("QN", "IQN"))
        )
        + "  }\n"
    )


def text(cells=CELLS):
    """The library's text."""
    head = (
        '/* made up for tests */\nlibrary (mini) {\n  time_unit : "1ns";\n  capacitive_load_unit (1, ff);\n'
        '  voltage_unit : "1V";\n  current_unit : "1mA";\n  pulling_resistance_unit : "1kohm";\n'
        "  nom_process : 1;\n  nom_voltage : 1.1;\n  nom_temperature : 25;\n  delay_model : table_lookup;\n"
        "  slew_lower_threshold_pct_rise : 20;\n  slew_lower_threshold_pct_fall : 20;\n"
        "  slew_upper_threshold_pct_rise : 80;\n  slew_upper_threshold_pct_fall : 80;\n"
        "  input_threshold_pct_rise : 50;\n  input_threshold_pct_fall : 50;\n"
        "  output_threshold_pct_rise : 50;\n  output_threshold_pct_fall : 50;\n"
        "  lu_table_template (grid) {\n    variable_1 : input_net_transition;\n"
        "    variable_2 : total_output_net_capacitance;\n"
        '    index_1 ("0.001, 0.5");\n    index_2 ("0.1, 60");\n  }\n'
        "  lu_table_template (slews) {\n    variable_1 : related_pin_transition;\n"
        "    variable_2 : constrained_pin_transition;\n"
        '    index_1 ("0.001, 0.5");\n    index_2 ("0.001, 0.5");\n  }\n'
    )
    return head + "".join(_cell(name, *cell) for name, cell in cells.items()) + _flip_flop() + "}\n"


def read(folder):
    """``(library, its tables)``, by way of a file in a folder."""
    path = folder / "mini.lib"
    path.write_text(text())
    return liberty.read(path), sta.read_delay_tables(path, path.read_text())


def module(ports, cells):
    """A mapped module: ports are ``{name: (direction, nets)}``, cells ``{name: (kind, {pin: net or nets})}``."""
    return {
        "attributes": {},
        "ports": {name: {"direction": direction, "bits": bits} for name, (direction, bits) in ports.items()},
        "cells": {
            name: {
                "type": kind,
                "connections": {pin: net if isinstance(net, list) else [net] for pin, net in pins.items()},
            }
            for name, (kind, pins) in cells.items()
        },
        "netnames": {},
    }


def netlist(library, ports, cells, **others):
    """A design whose mapped module ``top`` is made of :func:`module`'s arguments; ``others`` are modules below it."""
    return Netlist(json.dumps({"modules": {**others, "top": module(ports, cells)}}), library)


def cells_of(netlist):
    """The cells of such a module, in the form that they were given in."""
    return {
        name: (cell["type"], {pin: bits[0] for pin, bits in cell["connections"].items()})
        for name, cell in netlist.modules["top"]["cells"].items()
    }
