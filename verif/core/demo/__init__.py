"""One attention head of a real diffusion transformer on the core's Verilog: figures and a picture."""
