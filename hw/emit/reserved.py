"""Words that mean something in the languages and tools that read emitted Verilog, so that no name is one of them."""

import re

# Keywords of Verilog (IEEE 1364-2005) and SystemVerilog (IEEE 1800-2017 and 1800-2023).
_VERILOG = frozenset(
    """
    accept_on alias always always_comb always_ff always_latch and assert assign assume automatic before begin bind
    bins binsof bit break buf bufif0 bufif1 byte case casex casez cell chandle checker class clocking cmos config
    const constraint context continue cover covergroup coverpoint cross deassign default defparam design disable
    dist do edge else end endcase endchecker endclass endclocking endconfig endfunction endgenerate endgroup
    endinterface endmodule endpackage endprimitive endprogram endproperty endsequence endspecify endtable endtask
    enum event eventually expect export extends extern final first_match for force foreach forever fork forkjoin
    function generate genvar global highz0 highz1 if iff ifnone ignore_bins illegal_bins implements implies import
    incdir include initial inout input inside instance int integer interconnect interface intersect join join_any
    join_none large let liblist library local localparam logic longint macromodule matches medium modport module
    nand negedge nettype new nexttime nmos nor noshowcancelled not notif0 notif1 null or output package packed
    parameter pmos posedge primitive priority program property protected pull0 pull1 pulldown pullup
    pulsestyle_ondetect pulsestyle_onevent pure rand randc randcase randsequence rcmos real realtime ref reg
    reject_on release repeat restrict return rnmos rpmos rtran rtranif0 rtranif1 s_always s_eventually s_nexttime
    s_until s_until_with scalared sequence shortint shortreal showcancelled signed small soft solve specify
    specparam static string strong strong0 strong1 struct super supply0 supply1 sync_accept_on sync_reject_on table
    tagged task this throughout time timeprecision timeunit tran tranif0 tranif1 tri tri0 tri1 triand trior trireg
    type typedef union unique unique0 unsigned until until_with untyped use uwire var vectored virtual void wait
    wait_order wand weak weak0 weak1 while wildcard wire with within wor xnor xor
    """.split()
)

# Further keywords and functions of Verilog-AMS 2.4.
_AMS = frozenset(
    """
    above abs absdelay absdelta abstol ac_stim access acos acosh aliasparam analog analysis asin asinh atan atan2
    atanh branch ceil connect connectmodule connectrules continuous cos cosh ddt ddt_nature ddx discipline discrete
    domain driver_update endconnectrules enddiscipline endnature endparamset exclude exp final_step flicker_noise
    floor flow from ground hypot idt idt_nature idtmod inf initial_step laplace_nd laplace_np laplace_zd laplace_zp
    last_crossing limexp ln log max merged min nature net_resolution noise_table noise_table_log paramset potential
    pow resolveto sin sinh slew split sqrt tan tanh timer transition units white_noise wreal zi_nd zi_np zi_zd zi_zp
    """.split()
)

# Further reserved words of VHDL (IEEE 1076-2008 and 1076-2019), for netlists and instances of mixed languages.
_VHDL = frozenset(
    """
    after all architecture array assume_guarantee attribute block body buffer bus component configuration constant
    disconnect downto elsif entity exit fairness file generic group guarded impure in inertial is label linkage
    literal loop map mod next of on open others out port postponed private procedure process range record register
    reject rem report restrict_guarantee rol ror select severity shared signal sla sll sra srl subtype then to
    transport unaffected variable view vmode vpkg vprop vunit when
    """.split()
)

# Primitives of Quartus; those of the other vendors are told by their form.
_LOWER_CASE_PRIMITIVES = frozenset(
    """
    and2 and3 and4 carry carry_sum cascade clklock dff dffe dffea dffeas dlatch jkff jkffe latch lcell lut_input
    lut_output opndrn or2 or3 or4 srff srffe tff tffe
    """.split()
)

RESERVED = _VERILOG | _AMS | _VHDL

# Such as ALU, RAM64x12 and rPLL; cyclonev_lcell_comb.
_PRIMITIVE = re.compile(
    r"[a-z]?[A-Z][A-Z0-9_x]+|(cyclone|arria|stratix|max(ii|v|10)|fiftyfivenm|twentynm|fourteennm|tennm)\w*_\w+"
)


def is_identifier(name):
    """Whether Verilog and SystemVerilog take a name as it is."""
    return re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII) is not None and name not in _VERILOG


def why_no_module(name):
    """Why a module cannot be called so, as the end of a sentence; None if it can."""
    if re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII) is None:
        return "is no plain Verilog identifier"
    if name.lower() in RESERVED:
        return "is a reserved word of Verilog, SystemVerilog, Verilog-AMS or VHDL"
    if _PRIMITIVE.fullmatch(name) or name.lower() in _LOWER_CASE_PRIMITIVES:
        return "may be the name of an FPGA vendor's primitive"
    return None
