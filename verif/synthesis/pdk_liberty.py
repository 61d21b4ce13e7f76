"""The made-up library of :mod:`verif.synthesis.mini_liberty`, written in the style of an open PDK.

Names and values are quoted, tables have axes of their own and lines that go on behind a backslash, capacitances are in
pF; there are definitions of attributes, supply pins, leakage and internal power, and cells with buses and bundles.
"""

from verif.synthesis.mini_liberty import CELLS

__all__ = ["EXTRA", "text"]

_HEAD = """/* made up for tests */
library ("mini") {
    define(def_sim_opt,library,string);
    define ("driver_model", "library", "string");
    technology("cmos");
    delay_model : "table_lookup";
    bus_naming_style : "%s[%d]";
    time_unit : "1ns"; voltage_unit : "1V"; current_unit : "1mA"; pulling_resistance_unit : "1kohm";
    capacitive_load_unit(1.0000000000, "pf");
    revision : 1.0000000000;
    def_sim_opt : "-threads 4";
    nom_process : 1.0000000000; nom_temperature : 25.0000000000; nom_voltage : 1.1000000000;
    slew_lower_threshold_pct_rise : 20.0; slew_lower_threshold_pct_fall : 20.0;
    slew_upper_threshold_pct_rise : 80.0; slew_upper_threshold_pct_fall : 80.0;
    input_threshold_pct_rise : 50.0; input_threshold_pct_fall : 50.0;
    output_threshold_pct_rise : 50.0; output_threshold_pct_fall : 50.0;
    voltage_map("VPWR", 1.1000000000);
    library_features("report_delay_calculation");
    operating_conditions ("tt") { voltage : 1.1; process : 1.0; temperature : 25.0; tree_type : "balanced_tree"; }
    lu_table_template ("del_1_2_2") {
        variable_1 : "input_net_transition";
        variable_2 : "total_output_net_capacitance";
        index_1("1, 2");
        index_2("1, 2");
    }
    lu_table_template ("constraint_1_2_2") {
        variable_1 : "related_pin_transition";
        variable_2 : "constrained_pin_transition";
        index_1("1, 2");
        index_2("1, 2");
    }
    power_lut_template ("power_1_2") { variable_1 : "input_transition_time"; index_1("1, 2"); }
    type ("bus4") { base_type : "array"; data_type : "bit"; bit_width : 4; bit_from : 3; bit_to : 0; downto : "true"; }
"""

EXTRA = """
    cell ("mini__dfrtp") {
        area : 9.5000000000;
        ff ("IQ","IQ_N") {
            clear : "!RESET_B"; clocked_on : "CLK"; next_state : "D"; power_down_function : "(!VPWR + VGND)";
        }
        pin ("CLK") { clock : "true"; direction : "input"; capacitance : 0.0018; }
        pin ("D") { direction : "input"; capacitance : 0.0017; nextstate_type : "data"; }
        pin ("RESET_B") { direction : "input"; capacitance : 0.0035; }
        pin ("Q") { direction : "output"; function : "IQ"; max_capacitance : 0.06; }
    }
    cell ("mini__dlclkp") {
        area : 7.0; clock_gating_integrated_cell : "latch_posedge";
        statetable ("CLK GATE", "M0") { table : "L L : - : L, \\
                                                 L H : - : H"; }
        pin ("CLK") { clock_gate_clock_pin : "true"; direction : "input"; capacitance : 0.002; }
        pin ("GATE") { clock_gate_enable_pin : "true"; direction : "input"; capacitance : 0.001; }
        pin ("GCLK") { clock_gate_out_pin : "true"; direction : "output"; state_function : "CLK & M0"; }
        pin ("M0") { direction : "internal"; internal_node : "M0"; }
    }
    cell ("mini__unused") { area : 3.0; dont_use : "true"; pin ("A") { direction : "input"; } }
    cell (mini__ram4) {
        area : 1e3
        bus (A) { bus_type : bus4 ; direction : input ; capacitance : 0.01 ; pin (A[3:0]) { } }
        bundle (Q) { members (Q0, Q1) ; direction : output; pin (Q0) { capacitance : 0.0 ; } }
    }
"""


def text(cells=CELLS, extra=EXTRA):
    """The library's text."""
    return _HEAD + "".join(_cell(name, *cell) for name, cell in cells.items()) + _flip_flop() + extra + "}\n"


def _table(kind, template, index_2, values):
    rows = (",  \\\n" + " " * 24).join(f'"{row}"' for row in values)
    return (
        f'                {kind} ("{template}") {{\n                    index_1 ("0.0010000000, 0.5000000000");\n'
        f'                    index_2 ("{index_2}");\n                    values ({rows});\n                }}\n'
    )


def _timing(pin, delay, kind="combinational"):
    values = [", ".join(f"{delay * scale:.10f}" for scale in row) for row in ((1, 5), (2, 6))]
    tables = ("cell_fall", "cell_rise", "fall_transition", "rise_transition")
    body = "".join(_table(table, "del_1_2_2", "0.0001000000, 0.0600000000", values) for table in tables)
    tail = f'                related_pin : "{pin}"; timing_type : "{kind}";\n'
    return f"            timing () {{\n{body}{tail}            }}\n"


def _constraint(kind, time):
    values = [f"{time:.10f}, {time:.10f}"] * 2
    tables = ("fall_constraint", "rise_constraint")
    body = "".join(_table(table, "constraint_1_2_2", "0.0010000000, 0.5000000000", values) for table in tables)
    tail = f'                related_pin : "CK"; timing_type : "{kind}_rising";\n'
    return f"            timing () {{\n{body}{tail}            }}\n"


def _input(pin, load, more=""):
    return (
        f'        pin ("{pin}") {{\n            capacitance : {load / 1000:.10f};\n            clock : "false";\n'
        '            direction : "input";\n            related_ground_pin : "VGND";\n'
        '            internal_power () { rise_power ("power_1_2") { index_1 ("0.01, 1.5"); values ("1e-3, 2e-3"); } }\n'
        f"{more}        }}\n"
    )


def _output(pin, function, arcs):
    return (
        f'        pin ("{pin}") {{\n            direction : "output";\n            function : "{function}";\n'
        '            power_down_function : "(!VPWR + VGND)";\n            max_capacitance : 0.0600000000;\n'
        f"{arcs}        }}\n"
    )


def _cell(name, area, inputs, outputs):
    delay = 0.02 * (0.6 if name.endswith("X2") else 1) * area
    arcs = "".join(_timing(pin, round(delay, 6)) for pin in inputs)
    return (
        f'    cell ("{name}") {{\n        leakage_power () {{ value : 0.0017; when : "!A&B"; }}\n'
        '        pg_pin ("VGND") { pg_type : "primary_ground"; related_bias_pin : "VPB"; voltage_name : "VGND"; }\n'
        f'        area : {area:.10f};\n        cell_footprint : "mini__{name}";\n'
        + "".join(_input(pin, load) for pin, load in inputs.items())
        + "".join(_output(pin, function, arcs) for pin, function in outputs.items())
        + "    }\n"
    )


def _flip_flop():
    arcs = _timing("CK", 0.05, "rising_edge")
    return (
        '    cell ("DFF") {\n        area : 6.0000000000;\n'
        '        ff ("IQ","IQN") { clocked_on : "CK"; next_state : "D"; }\n'
        + _input("CK", 1.0)
        + _input("D", 1.0, _constraint("hold", 0.0) + _constraint("setup", 0.03))
        + _output("Q", "IQ", arcs)
        + _output("QN", "IQN", arcs)
        + "    }\n"
    )
