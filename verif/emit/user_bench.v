// Plain Verilog: sends one dot product to each unit and says what comes out.
`timescale 1ns / 1ps
module bench;
  reg clk = 0, rst = 1, go = 0;
  always #5 clk = ~clk;
  wire pair_ready, pair_done, bytes_ready, bytes_done, row_ready, row_done;
  wire [31:0] pair_score, bytes_score, row_values;
  reg pair_valid = 0, bytes_valid = 0;
  integer left = 3;
  // 1.5 * 2 + 0.5 * 4 in FP16; -3 * 5 + 100 * 7 in bytes.
  user_top user_top (
    .clk(clk), .rst(rst),
    .pair({2'b11, 16'h4400, 16'h4000, 16'h3800, 16'h3e00}), .pair_valid(pair_valid), .pair_ready(pair_ready),
    .pair_score(pair_score), .pair_done(pair_done),
    .bytes({2'b11, 8'd7, 8'd5, 8'd100, 8'hfd}), .bytes_valid(bytes_valid), .bytes_ready(bytes_ready),
    .bytes_score(bytes_score), .bytes_done(bytes_done),
    .row_ready(row_ready), .row_values(row_values), .row_done(row_done)
  );
  initial begin
    repeat (4) @(posedge clk);
    #1 rst = 0; pair_valid = 1; bytes_valid = 1;
    repeat (500) @(posedge clk);
    $display("too late");
    $finish;
  end
  always @(posedge clk) begin
    if (!rst) begin
      if (pair_valid && pair_ready) pair_valid <= #1 0;
      if (bytes_valid && bytes_ready) bytes_valid <= #1 0;
      if (pair_done) $display("fp16 %h", pair_score);
      if (bytes_done) $display("int8 %0d", $signed(bytes_score));
      if (row_done) $display("row %h", row_values);
      left = left - pair_done - bytes_done - row_done;
      if (left == 0) $finish;
    end
  end
endmodule
