"""Small hand-written designs that the tests of the synthesis flow share."""

DESIGN = """
(* role = "full_adder_row" *)
module full_adder_row_4(input [3:0] a, b, c, output [3:0] sum, carry);
  assign sum = a ^ b ^ c;
  assign carry = (a & b) | (c & (a | b));
endmodule
(* role = "half_adder_row" *)
module half_adder_row_4(input [3:0] a, b, output [3:0] sum, carry);
  assign sum = a ^ b;
  assign carry = a & b;
endmodule
(* role = "memory", bits = 32 *)
module memory_1r1w_8x4(input clk, write_enable, input [2:0] write_address, read_address, input [3:0] write_data,
                       output reg [3:0] read_data);
  reg [3:0] words [7:0];
  always @(posedge clk) begin
    if (write_enable) words[write_address] <= write_data;
    read_data <= words[read_address];
  end
endmodule
module top(input clk, rst, enable, input [3:0] x, y, z, output reg [4:0] total, output reg [3:0] word);
  wire [3:0] sum_1, carry_1, sum_2, carry_2, stored;
  reg [2:0] inferred [15:0];
  full_adder_row_4 row_1(.a(x), .b(y), .c({z[3:1], 1'b0}), .sum(sum_1), .carry(carry_1));
  half_adder_row_4 row_2(.a(sum_1), .b({carry_1[2:0], 1'b0}), .sum(sum_2), .carry(carry_2));
  memory_1r1w_8x4 bank(.clk(clk), .write_enable(enable), .write_address(x[2:0]), .read_address(y[2:0]),
                       .write_data(z), .read_data(stored));
  always @(posedge clk) begin
    if (rst) total <= 0;
    else if (enable) total <= sum_2 + {carry_2, 1'b0};
    inferred[x] <= y[2:0];
    word <= stored ^ inferred[z];
  end
endmodule
"""

# Every pattern of constants at a full and a half adder, and adders of which one output is unused.
ADDERS = """
(* role = "full_adder_row" *)
module full_adder_row_9(input [8:0] a, b, c, output [8:0] sum, carry);
  assign sum = a ^ b ^ c;
  assign carry = (a & b) | (c & (a | b));
endmodule
(* role = "half_adder_row" *)
module half_adder_row_3(input [2:0] a, b, output [2:0] sum, carry);
  assign sum = a ^ b;
  assign carry = a & b;
endmodule
(* role = "full_adder_row" *)
module full_adder_row_1(input a, b, c, output sum, carry);
  assign sum = a ^ b ^ c;
  assign carry = (a & b) | (c & (a | b));
endmodule
module adders(input [8:0] p, q, r, output [8:0] sum, carry, output [2:0] half_sum, half_carry,
              output only_sum, only_carry);
  full_adder_row_9 full(.a({p[8:6], 1'b0, 1'b1, p[3:2], 2'b10}), .b({q[8:5], 1'b1, q[3], 2'b01, q[0]}),
                        .c({r[8], 2'b10, r[5:4], 2'b10, r[1:0]}), .sum(sum), .carry(carry));
  half_adder_row_3 half(.a({p[2:1], 1'b1}), .b({q[2], 1'b0, r[0]}), .sum(half_sum), .carry(half_carry));
  full_adder_row_1 summing(.a(p[0]), .b(q[1]), .c(r[2]), .sum(only_sum), .carry());
  full_adder_row_1 carrying(.a(p[3]), .b(q[4]), .c(r[5]), .sum(), .carry(only_carry));
endmodule
"""

TWINS = """
module leaf(input clk, input [7:0] a, output reg [7:0] b);
  always @(posedge clk) b <= b ^ {a[0], a[7:1]};
endmodule
module twins(input clk, input [7:0] a, output [7:0] b);
  wire [7:0] c, d;
  leaf one(.clk(clk), .a(a), .b(c));
  leaf two(.clk(clk), .a(c), .b(d));
  leaf three(.clk(clk), .a(d), .b(b));
endmodule
"""
