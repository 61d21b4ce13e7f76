// Runs a program on the core and compares what it stores, in any simulator of Verilog-2005. With FILES, those of
// `python -m hw verilog core` with the parameters in parameters.txt, where the .hex files are:
//
// in Icarus: iverilog -g2005 -s @top@_testbench -o run @top@_testbench.v FILES && vvp run
// in Verilator: --binary -Wno-fatal --top-module @top@_testbench @top@_testbench.v FILES, then obj_dir/V@top@_testbench
//
// The last line that it prints begins with PASSED or FAILED.

module @top@_testbench;
  localparam BEAT = @beat_width@;
  localparam COMMANDS = @n_commands@;
  localparam LOADS = @n_loads@;
  localparam STORES = @n_stores@;
  localparam PATIENCE = 100000;  // clocks in which nothing moves

  // One word more than there are: what is offered behind the last one is not valid.
  reg [@command_width@ - 1:0] commands [0:COMMANDS];
  reg [BEAT - 1:0] loads [0:LOADS];
  reg [BEAT:0] stores [0:STORES];  // with the bit `last` on top
  reg [BEAT:0] care [0:STORES];  // the bits that are defined

  reg clk, rst;
  integer command, loaded, stored, wrong, clocks, idle;
  wire commands_ready, load_ready, store_valid;
  wire commands_valid = !rst && command < COMMANDS;
  wire load_valid = !rst && loaded < LOADS;
  wire [BEAT:0] store_payload;
  wire [3:0] error;
  wire [31:0] error_command;
  wire is_wrong = ((store_payload ^ stores[stored]) & care[stored]) !== {BEAT + 1{1'b0}};

  @top@ dut (
    .clk(clk),
    .rst(rst),
    .commands__payload(commands[command]),
    .commands__valid(commands_valid),
    .commands__ready(commands_ready),
    .load__payload(loads[loaded]),
    .load__valid(load_valid),
    .load__ready(load_ready),
    .store__payload(store_payload),
    .store__valid(store_valid),
    .store__ready(!rst),
    .error(error),
    .error_command(error_command),
    .busy(),
    .completed()
  );

  always @(posedge clk)
    if (rst) begin
      command <= 0;
      loaded <= 0;
      stored <= 0;
      wrong <= 0;
      clocks <= 0;
      idle <= 0;
    end else begin
      clocks <= clocks + 1;
      idle <= idle + 1;
      if (commands_valid && commands_ready) begin
        command <= command + 1;
        idle <= 0;
      end
      if (load_valid && load_ready) begin
        loaded <= loaded + 1;
        idle <= 0;
      end
      if (store_valid && stored < STORES) begin
        stored <= stored + 1;
        idle <= 0;
        if (is_wrong) begin
          wrong <= wrong + 1;
          if (wrong == 0)
            $display("first wrong beat: %0d is %h, should be %h in the bits %h", stored, store_payload, stores[stored],
                     care[stored]);
        end
      end
    end

  initial begin
    $readmemh("commands.hex", commands, 0, COMMANDS - 1);
    if (LOADS > 0) $readmemh("load.hex", loads, 0, LOADS - 1);
    if (STORES > 0) $readmemh("store.hex", stores, 0, STORES - 1);
    if (STORES > 0) $readmemh("care.hex", care, 0, STORES - 1);
    clk = 0;
    rst = 1;
    repeat (10) #5 clk = !clk;
    rst = 0;
    while ((command < COMMANDS || stored < STORES) && idle < PATIENCE && error == 0) begin
      #5 clk = 1;
      #5 clk = 0;
    end
    if (error != 0)
      $display("FAILED: command %0d was refused with error %0d", error_command, error);
    else if (command < COMMANDS || stored < STORES)
      $display("FAILED: nothing moved in %0d clocks; %0d of %0d beats were stored", PATIENCE, stored, STORES);
    else if (wrong != 0)
      $display("FAILED: %0d of %0d stored beats are wrong", wrong, STORES);
    else
      $display("PASSED: %0d beats stored in %0d clocks", STORES, clocks);
    $finish;
  end
endmodule
