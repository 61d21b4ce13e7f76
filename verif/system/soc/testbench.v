`timescale 1ns/1ps
// Clock and reset for the system; ends when its program does.

module testbench;
  parameter DATA_WIDTH = 64;
  parameter ADDRESS_WIDTH = 32;
  parameter MEMORY_BYTES = 1 << 22;
  parameter LATENCY = 20;
  parameter MOST_CLOCKS = 100000000;

  reg clk = 0, rst = 1;
  wire ends;
  wire [31:0] exit_code;
  integer clocks = 0;

  soc #(
    .DATA_WIDTH(DATA_WIDTH), .ADDRESS_WIDTH(ADDRESS_WIDTH), .MEMORY_BYTES(MEMORY_BYTES), .LATENCY(LATENCY)
  ) system (
    .clk(clk), .rst(rst), .ends(ends), .exit_code(exit_code)
  );

  always #5 clk = ~clk;

  always @(posedge clk) begin
    clocks <= clocks + 1;
    if (clocks == 10) rst <= 0;
    if (ends) begin
      $display("exit code %0d after %0d clocks", exit_code, clocks);
      $finish;
    end
    if (clocks == MOST_CLOCKS) begin
      $display("no end after %0d clocks", clocks);
      $finish;
    end
  end
endmodule
