// A top written by hand around three packages: two configurations of dot_product_unit, one of softmax_unit.
module user_top (
  input  wire        clk,
  input  wire        rst,
  input  wire [65:0] pair,
  input  wire        pair_valid,
  output wire        pair_ready,
  output wire [31:0] pair_score,
  output wire        pair_done,
  input  wire [33:0] bytes,
  input  wire        bytes_valid,
  output wire        bytes_ready,
  output wire [31:0] bytes_score,
  output wire        bytes_done,
  output wire        row_ready,
  output wire [31:0] row_values,
  output wire        row_done
);
  wire [47:0] narrow_and_wide;
  wire narrow_valid;
  wire [52:0] probability;
  dot_fp16 dot_fp16 (
    .clk(clk), .rst(rst),
    .operands__payload(pair), .operands__valid(pair_valid), .operands__ready(pair_ready),
    .score__payload(narrow_and_wide), .score__valid(narrow_valid), .score__ready(row_ready)
  );
  assign pair_score = narrow_and_wide[31:0];
  assign pair_done = narrow_valid & row_ready;
  dot_int8 dot_int8 (
    .clk(clk), .rst(rst),
    .operands__payload(bytes), .operands__valid(bytes_valid), .operands__ready(bytes_ready),
    .score__payload(bytes_score), .score__valid(bytes_done), .score__ready(1'b1)
  );
  // Both elements of a row are the FP16 score; factor 1, scale * log2(e) = 1, theta 0.
  softmax_unit softmax_unit (
    .clk(clk), .rst(rst), .scale({4'd12, 15'd0}), .theta(16'd0),
    .score__payload({16'h3c00, 1'b1, 2'b11, {2{narrow_and_wide[47:32]}}}),
    .score__valid(narrow_valid), .score__ready(row_ready),
    .probability__payload(probability), .probability__valid(row_done), .probability__ready(1'b1)
  );
  assign row_values = probability[31:0];
  wire unused = ^probability[52:32];
endmodule
