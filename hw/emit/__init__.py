"""From blocks to Verilog packages."""
