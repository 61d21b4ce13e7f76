// Memory of the system, for simulation: an AXI4 subordinate for INCR bursts of whole beats, one burst of each kind at
// a time, LATENCY clocks from a read request to its first beat; and a port of 32 bits for the processor.

module axi_memory #(
  parameter DATA_WIDTH = 64,
  parameter ADDRESS_WIDTH = 32,
  parameter MEMORY_BYTES = 1 << 22,
  parameter LATENCY = 20,
  parameter CONTENTS = ""
) (
  input  wire clk,
  input  wire rst,
  input  wire [31:0] port_address,
  input  wire [31:0] port_data,
  input  wire [3:0]  port_strobe,
  output wire [31:0] port_word,
  input  wire awid,
  input  wire [ADDRESS_WIDTH-1:0] awaddr,
  input  wire [7:0] awlen,
  input  wire awvalid,
  output wire awready,
  input  wire [DATA_WIDTH-1:0] wdata,
  input  wire [DATA_WIDTH/8-1:0] wstrb,
  input  wire wlast,
  input  wire wvalid,
  output wire wready,
  output reg  bid,
  output wire [1:0] bresp,
  output reg  bvalid,
  input  wire bready,
  input  wire arid,
  input  wire [ADDRESS_WIDTH-1:0] araddr,
  input  wire [7:0] arlen,
  input  wire arvalid,
  output wire arready,
  output reg  rid,
  output wire [DATA_WIDTH-1:0] rdata,
  output wire [1:0] rresp,
  output wire rlast,
  output wire rvalid,
  input  wire rready
);
  localparam BYTES = DATA_WIDTH / 8;
  localparam OFFSET = $clog2(BYTES);
  localparam WORDS = MEMORY_BYTES / BYTES;
  localparam INDEX = $clog2(WORDS);

  reg [DATA_WIDTH-1:0] words [0:WORDS-1];
  initial if (CONTENTS != "") $readmemh(CONTENTS, words);

  // Port of the processor.
  wire [INDEX-1:0] port_index = port_address[OFFSET +: INDEX];
  wire [OFFSET+2:0] port_bit = {port_address[OFFSET-1:2], 5'b00000};
  assign port_word = words[port_index][port_bit +: 32];

  // Writes: a burst is taken when the one before was answered.
  reg writes;
  reg [INDEX-1:0] write_index;
  assign awready = ~writes & ~bvalid;
  assign wready = writes;
  assign bresp = 2'b00;

  integer lane;
  always @(posedge clk) begin
    for (lane = 0; lane < 4; lane = lane + 1)
      if (port_strobe[lane]) words[port_index][port_bit + 8 * lane +: 8] <= port_data[8 * lane +: 8];
    if (rst) begin
      writes <= 1'b0;
      bvalid <= 1'b0;
    end else begin
      if (awvalid & awready) begin
        writes <= 1'b1;
        bid <= awid;
        write_index <= awaddr[OFFSET +: INDEX];
      end
      if (wvalid & wready) begin
        for (lane = 0; lane < BYTES; lane = lane + 1)
          if (wstrb[lane]) words[write_index][8 * lane +: 8] <= wdata[8 * lane +: 8];
        write_index <= write_index + 1;
        if (wlast) begin
          writes <= 1'b0;
          bvalid <= 1'b1;
        end
      end
      if (bvalid & bready) bvalid <= 1'b0;
    end
  end

  // Reads: the next request is taken with the last beat of the one before.
  reg reads;
  reg [INDEX-1:0] read_index;
  reg [7:0] left;
  reg [15:0] wait_clocks;
  assign rvalid = reads & (wait_clocks == 0);
  assign rdata = words[read_index];
  assign rresp = 2'b00;
  assign rlast = left == 0;
  assign arready = ~reads;

  always @(posedge clk) begin
    if (rst) reads <= 1'b0;
    else begin
      if (reads & (wait_clocks != 0)) wait_clocks <= wait_clocks - 1;
      if (rvalid & rready) begin
        read_index <= read_index + 1;
        left <= left - 1;
        if (rlast) reads <= 1'b0;
      end
      if (arvalid & arready) begin
        reads <= 1'b1;
        rid <= arid;
        read_index <= araddr[OFFSET +: INDEX];
        left <= arlen;
        wait_clocks <= LATENCY;
      end
    end
  end
endmodule
