"""Keeps emitted Verilog inside the subset that every tool takes without a warning: names, selections, reductions."""

import re

# Reserved words of Verilog-2005 and SystemVerilog-2017 that could be names of signals.
RESERVED = frozenset(
    """
    accept_on alias always always_comb always_ff always_latch and assert assign assume automatic before begin bind bins
    binsof bit break buf bufif0 bufif1 byte case casex casez cell chandle checker class clocking cmos config const
    constraint context continue cover covergroup coverpoint cross deassign default defparam design disable dist do edge
    else end endcase endmodule enum event eventually expect export extends extern final first_match for force foreach
    forever fork function generate genvar global highz0 highz1 if iff ifnone ignore_bins illegal_bins implements implies
    import include initial inout input inside instance int integer interconnect interface intersect join large let
    liblist library local localparam logic longint macromodule matches medium modport module nand negedge nettype new
    nexttime nmos nor not notif0 notif1 null or output package packed parameter pmos posedge primitive priority program
    property protected pull0 pull1 pulldown pullup pure rand randc randcase randsequence rcmos real realtime ref reg
    reject_on release repeat restrict return rnmos rpmos rtran scalared sequence shortint shortreal signed small soft
    solve specify specparam static string strong strong0 strong1 struct super supply0 supply1 table tagged task this
    throughout time timeprecision timeunit tran tri tri0 tri1 triand trior trireg type typedef union unique unique0
    unsigned until untyped use uwire var vectored virtual void wait wand weak weak0 weak1 while wildcard wire with
    within wor xnor xor
    """.split()
)

_SELECTION = re.compile(
    r"  function( \[\d+:\d+\])? (_\d+_);\n"
    r"    input(?: \[\d+:\d+\])? a;\n"
    r"    input( \[\d+:\d+\])? b;\n"
    r"    input( \[\d+:\d+\])? s;\n"
    r"    casez \(s\) // synopsys parallel_case\n"
    r"(.*?)"
    r"      default:\n        \2 = a;\n    endcase\n  endfunction\n",
    re.DOTALL,
)
_BRANCH = re.compile(r"      \d+'b(\?*1\?*):\n        (_\d+_) = b(\[\d+(?::\d+)?\])?;\n")
_IS_ZERO = re.compile(r"(?<=[\s(])! (?=[\w({])")


def plain_selections(body):
    """Yosys' one-hot multiplexers with a case on the select bits in place of overlapping wildcards and a pragma."""

    def rewrite(match):
        width, name, values, select, branches = match.groups()
        lines = [
            f"  function{width or ''} {name};",
            f"    input{width or ''} mux_default;",
            f"    input{values or ''} mux_values;",
            f"    input{select or ''} mux_select;",
            "    (* parallel_case *)",
            "    case (1'b1)",
        ]
        for pattern, _, part in _BRANCH.findall(branches):
            index = len(pattern) - 1 - pattern.index("1")
            chosen = f"mux_select[{index}]" if select else "mux_select"
            lines.append(f"      {chosen}: {name} = mux_values{part};")
        lines += [f"      default: {name} = mux_default;", "    endcase", "  endfunction", ""]
        return "\n".join(lines)

    return _SELECTION.sub(rewrite, body)


def plain_reductions(body):
    """``! vector`` as the reduction ``~| vector``: a logical operator wants a single bit."""
    return _IS_ZERO.sub("~| ", body)
