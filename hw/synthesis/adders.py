"""Rows of full and half adders: cells until mapping, with constants propagated, then library cells.

Yosys does not find compressor trees in plain logic, and a heap as plain logic is slow to map and larger; so the
arithmetic library makes its rows as modules with a role, which are followed here from row to library cell.
"""

ROW_INPUTS = {"full_adder_row": 3, "half_adder_row": 2}
"""How many addends a module of each role has."""

# Adder cells between the two ends. Ports are the same for all, so that a cell's type can be changed in place.
STUBS = """
(* blackbox *) module full_adder_bit(input a, b, c, output sum, carry); endmodule
(* blackbox *) module full_adder_sum(input a, b, c, output sum, carry); endmodule
(* blackbox *) module full_adder_carry(input a, b, c, output sum, carry); endmodule
(* blackbox *) module half_adder_bit(input a, b, output sum, carry); endmodule
(* blackbox *) module half_adder_sum(input a, b, output sum, carry); endmodule
(* blackbox *) module half_adder_carry(input a, b, output sum, carry); endmodule
"""

# Rules for adders with a constant input.
FOLD = """
module full_adder_bit(input a, b, c, output sum, carry);
  parameter _TECHMAP_CONSTMSK_a_ = 0;
  parameter _TECHMAP_CONSTVAL_a_ = 0;
  parameter _TECHMAP_CONSTMSK_b_ = 0;
  parameter _TECHMAP_CONSTVAL_b_ = 0;
  parameter _TECHMAP_CONSTMSK_c_ = 0;
  parameter _TECHMAP_CONSTVAL_c_ = 0;
  wire x, y;
  generate
    if (_TECHMAP_CONSTMSK_c_) begin
      assign x = a;
      assign y = b;
    end else if (_TECHMAP_CONSTMSK_b_) begin
      assign x = a;
      assign y = c;
    end else if (_TECHMAP_CONSTMSK_a_) begin
      assign x = b;
      assign y = c;
    end else
      wire _TECHMAP_FAIL_ = 1;
    if (_TECHMAP_CONSTMSK_c_ ? _TECHMAP_CONSTVAL_c_ :
        _TECHMAP_CONSTMSK_b_ ? _TECHMAP_CONSTVAL_b_ : _TECHMAP_CONSTVAL_a_)
    begin
      assign sum = ~(x ^ y);
      assign carry = x | y;
    end else
      half_adder_bit _TECHMAP_REPLACE_(.a(x), .b(y), .sum(sum), .carry(carry));
  endgenerate
endmodule

module half_adder_bit(input a, b, output sum, carry);
  parameter _TECHMAP_CONSTMSK_a_ = 0;
  parameter _TECHMAP_CONSTMSK_b_ = 0;
  wire _TECHMAP_FAIL_ = !(_TECHMAP_CONSTMSK_a_ || _TECHMAP_CONSTMSK_b_);
  assign sum = a ^ b;
  assign carry = a & b;
endmodule
"""

# Carries one after the other, in place of Yosys' own prefix trees.
RIPPLE = """
(* techmap_celltype = "$lcu" *)
module ripple(P, G, CI, CO);
  parameter WIDTH = 2;
  input [WIDTH-1:0] P, G;
  input CI;
  output [WIDTH-1:0] CO;
  genvar i;
  generate
    assign CO[0] = G[0] | (P[0] & CI);
    for (i = 1; i < WIDTH; i = i + 1) assign CO[i] = G[i] | (P[i] & CO[i-1]);
  endgenerate
endmodule
"""

_PLAIN = {
    "full_adder_sum": "assign sum = a ^ b ^ c; assign carry = 1'bx;",
    "full_adder_carry": "assign sum = 1'bx; assign carry = (a & b) | (c & (a | b));",
    "half_adder_sum": "assign sum = a ^ b; assign carry = 1'bx;",
    "half_adder_carry": "assign sum = 1'bx; assign carry = a & b;",
}


def row_rules(rows):
    """Verilog rules that split row modules into one-bit adders; ``rows`` maps a module to (input ports, width)."""
    rules = []
    for name, (inputs, width) in sorted(rows.items()):
        kind = "full_adder_bit" if len(inputs) == 3 else "half_adder_bit"
        operands = ", ".join(f".{role}({port}[n])" for role, port in zip("abc", inputs, strict=False))
        rules.append(
            f"module {name}(input [{width - 1}:0] {', '.join(inputs)}, output [{width - 1}:0] sum, carry);\n"
            f"  genvar n;\n"
            f"  generate for (n = 0; n < {width}; n = n + 1) begin : bits\n"
            f"    {kind} adder({operands}, .sum(sum[n]), .carry(carry[n]));\n"
            f"  end endgenerate\n"
            f"endmodule\n"
        )
    return "".join(rules)


def addition_rules(adders):
    """Verilog rules that make additions of adder modules; ``adders`` maps a module to its width."""
    return "".join(
        f"module {name}(input [{width - 1}:0] a, b, output [{width - 1}:0] sum);\n  assign sum = a + b;\nendmodule\n"
        for name, width in sorted(adders.items())
    )


def library_rules(full_adder, half_adder):
    """Verilog rules from one-bit adders to a library's (:class:`hw.synthesis.liberty.Adder`), or to logic for None."""
    rules = []
    for kind, roles, cell, logic in (
        ("full_adder", "abc", full_adder, "assign sum = a ^ b ^ c; assign carry = (a & b) | (c & (a | b));"),
        ("half_adder", "ab", half_adder, "assign sum = a ^ b; assign carry = a & b;"),
    ):
        body = _instance(cell, roles) if cell else logic
        rules.append(_module(f"{kind}_bit", roles, body))
        rules += [_module(name, roles, plain) for name, plain in _PLAIN.items() if name.startswith(kind)]
    return "".join(rules)


def _module(name, roles, body):
    return f"module {name}(input {', '.join(roles)}, output sum, carry);\n  {body}\nendmodule\n"


def _instance(cell, roles):
    pins = [f".{pin}({role})" for role, pin in zip(roles, cell.inputs, strict=True)]
    lines = []
    for role, pin in (("sum", cell.sum), ("carry", cell.carry)):
        if pin in cell.inverted:
            lines.append(f"wire {role}_n; assign {role} = ~{role}_n;")
        pins.append(f".{pin}({role}_n)" if pin in cell.inverted else f".{pin}({role})")
    return " ".join([*lines, f"{cell.name} _TECHMAP_REPLACE_({', '.join(pins)});"])
