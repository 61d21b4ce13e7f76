// A RISC-V, a memory, a console and the accelerator, which is on the memory's AXI4 port.
//
// 0x0000_0000  memory: program, data and ring
// 0x4000_0000  registers of the accelerator
// 0x8000_0000  console: a character; 0x8000_0004: the program ends, with an exit code

module soc #(
  parameter DATA_WIDTH = 64,
  parameter ADDRESS_WIDTH = 32,
  parameter MEMORY_BYTES = 1 << 22,
  parameter LATENCY = 20,
  parameter PROGRAM = "program.hex"
) (
  input  wire clk,
  input  wire rst,
  output reg  ends,
  output reg  [31:0] exit_code
);
  localparam BYTES = DATA_WIDTH / 8;
  localparam OFFSET = $clog2(BYTES);

  // The processor, whose accesses wait for their answer.
  wire        cpu_valid, cpu_instruction, trap;
  wire [31:0] cpu_address, cpu_write_data;
  wire [3:0]  cpu_strobe;
  reg         cpu_ready;
  reg  [31:0] cpu_read_data;
  wire        interrupt;

  picorv32 #(
    .ENABLE_MUL(1), .ENABLE_DIV(1), .COMPRESSED_ISA(0), .BARREL_SHIFTER(1), .PROGADDR_RESET(32'h0), .STACKADDR(32'h20000)
  ) cpu (
    .clk(clk), .resetn(~rst), .trap(trap),
    .mem_valid(cpu_valid), .mem_instr(cpu_instruction), .mem_ready(cpu_ready), .mem_addr(cpu_address),
    .mem_wdata(cpu_write_data), .mem_wstrb(cpu_strobe), .mem_rdata(cpu_read_data),
    .mem_la_read(), .mem_la_write(), .mem_la_addr(), .mem_la_wdata(), .mem_la_wstrb(),
    .pcpi_valid(), .pcpi_insn(), .pcpi_rs1(), .pcpi_rs2(), .pcpi_wr(1'b0), .pcpi_rd(32'h0), .pcpi_wait(1'b0),
    .pcpi_ready(1'b0), .irq(32'h0), .eoi(), .trace_valid(), .trace_data()
  );

  wire in_memory   = cpu_address[31:28] == 4'h0;
  wire in_registers = cpu_address[31:28] == 4'h4;
  wire in_console  = cpu_address[31:28] == 4'h8;

  // Memory, for the processor and for the accelerator.
  wire [ADDRESS_WIDTH-1:0] awaddr, araddr;
  wire [7:0] awlen, arlen;
  wire awvalid, awready, wvalid, wready, wlast, bvalid, bready, arvalid, arready, rvalid, rready, rlast;
  wire awid, arid, bid, rid;
  wire [1:0] bresp, rresp;
  wire [DATA_WIDTH-1:0] wdata, rdata;
  wire [BYTES-1:0] wstrb;
  wire [31:0] memory_word;
  wire memory_request = cpu_valid & in_memory & ~cpu_ready;

  axi_memory #(
    .DATA_WIDTH(DATA_WIDTH), .ADDRESS_WIDTH(ADDRESS_WIDTH), .MEMORY_BYTES(MEMORY_BYTES), .LATENCY(LATENCY),
    .CONTENTS(PROGRAM)
  ) memory (
    .clk(clk), .rst(rst),
    .port_address(cpu_address), .port_data(cpu_write_data), .port_strobe(cpu_strobe & {4{memory_request}}),
    .port_word(memory_word),
    .awid(awid), .awaddr(awaddr), .awlen(awlen), .awvalid(awvalid), .awready(awready),
    .wdata(wdata), .wstrb(wstrb), .wlast(wlast), .wvalid(wvalid), .wready(wready),
    .bid(bid), .bresp(bresp), .bvalid(bvalid), .bready(bready),
    .arid(arid), .araddr(araddr), .arlen(arlen), .arvalid(arvalid), .arready(arready),
    .rid(rid), .rdata(rdata), .rresp(rresp), .rlast(rlast), .rvalid(rvalid), .rready(rready)
  );

  // Registers: an access of the processor becomes one on AXI4-Lite.
  reg  aw_sent, w_sent, ar_sent;
  wire is_write = cpu_strobe != 4'h0;
  wire register_request = cpu_valid & in_registers & ~cpu_ready;
  wire s_awready, s_wready, s_bvalid, s_arready, s_rvalid;
  wire [31:0] s_rdata;
  wire s_awvalid = register_request & is_write & ~aw_sent;
  wire s_wvalid = register_request & is_write & ~w_sent;
  wire s_arvalid = register_request & ~is_write & ~ar_sent;

  always @(posedge clk) begin
    cpu_ready <= 1'b0;
    ends <= 1'b0;
    if (rst) begin
      {aw_sent, w_sent, ar_sent} <= 3'b000;
      exit_code <= 32'h0;
    end else begin
      if (s_awvalid & s_awready) aw_sent <= 1'b1;
      if (s_wvalid & s_wready) w_sent <= 1'b1;
      if (s_arvalid & s_arready) ar_sent <= 1'b1;
      if (memory_request) begin
        cpu_ready <= 1'b1;
        cpu_read_data <= memory_word;
      end
      if (register_request & (s_bvalid | s_rvalid)) begin
        cpu_ready <= 1'b1;
        cpu_read_data <= s_rdata;
        {aw_sent, w_sent, ar_sent} <= 3'b000;
      end
      if (cpu_valid & in_console & ~cpu_ready) begin
        cpu_ready <= 1'b1;
        cpu_read_data <= 32'h0;
        if (cpu_strobe[0] & ~cpu_address[2]) $write("%c", cpu_write_data[7:0]);
        if (cpu_strobe[0] & cpu_address[2]) begin
          ends <= 1'b1;
          exit_code <= cpu_write_data;
        end
      end
      if (trap) begin
        ends <= 1'b1;
        exit_code <= 32'hffff_ffff;
      end
    end
  end

  accelerator accelerator (
    .clk(clk), .rst(rst), .interrupt(interrupt),
    .s_axi_awaddr(cpu_address[9:0]), .s_axi_awprot(3'b000), .s_axi_awvalid(s_awvalid), .s_axi_awready(s_awready),
    .s_axi_wdata(cpu_write_data), .s_axi_wstrb(cpu_strobe), .s_axi_wvalid(s_wvalid), .s_axi_wready(s_wready),
    .s_axi_bresp(), .s_axi_bvalid(s_bvalid), .s_axi_bready(1'b1),
    .s_axi_araddr(cpu_address[9:0]), .s_axi_arprot(3'b000), .s_axi_arvalid(s_arvalid), .s_axi_arready(s_arready),
    .s_axi_rdata(s_rdata), .s_axi_rresp(), .s_axi_rvalid(s_rvalid), .s_axi_rready(1'b1),
    .m_axi_awid(awid), .m_axi_awaddr(awaddr), .m_axi_awlen(awlen), .m_axi_awsize(), .m_axi_awburst(),
    .m_axi_awlock(), .m_axi_awcache(), .m_axi_awprot(), .m_axi_awqos(), .m_axi_awvalid(awvalid),
    .m_axi_awready(awready),
    .m_axi_wdata(wdata), .m_axi_wstrb(wstrb), .m_axi_wlast(wlast), .m_axi_wvalid(wvalid), .m_axi_wready(wready),
    .m_axi_bid(bid), .m_axi_bresp(bresp), .m_axi_bvalid(bvalid), .m_axi_bready(bready),
    .m_axi_arid(arid), .m_axi_araddr(araddr), .m_axi_arlen(arlen), .m_axi_arsize(), .m_axi_arburst(),
    .m_axi_arlock(), .m_axi_arcache(), .m_axi_arprot(), .m_axi_arqos(), .m_axi_arvalid(arvalid),
    .m_axi_arready(arready),
    .m_axi_rid(rid), .m_axi_rdata(rdata), .m_axi_rresp(rresp), .m_axi_rlast(rlast), .m_axi_rvalid(rvalid),
    .m_axi_rready(rready)
  );
endmodule
