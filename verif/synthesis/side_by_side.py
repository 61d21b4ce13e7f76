"""Simulation of RTL beside a netlist of it, with the same random inputs."""

import subprocess

__all__ = ["check_side_by_side"]


def check_side_by_side(sources, top, tmp_path):
    """Simulate the RTL beside ``gates.v``."""
    (tmp_path / "bench.v").write_text(_bench(sources, top))
    files = [str(path) for path in (*sources, tmp_path / "gates.v", tmp_path / "bench.v")]
    subprocess.run(["iverilog", "-g2012", "-s", "bench", "-o", str(tmp_path / "run"), *files], check=True)
    run = subprocess.run(["vvp", "-n", str(tmp_path / "run")], capture_output=True, text=True, check=True)
    assert "3000 clocks, 0 differences" in run.stdout, run.stdout[-500:]
    changes = int(run.stdout.split("outputs changed ")[1].split()[0])
    assert changes > 500, "the outputs hardly move: nothing was compared"


def _bench(sources, top):
    """A bench that clocks the RTL and the netlist with the same random inputs and counts differences."""
    ports = []
    for line in "".join(path.read_text() for path in sources).split(f"module {top} (")[1].split(");")[0].split("\n"):
        words = line.replace(",", "").split("//")[0].split()
        if words and words[0] in ("input", "output"):
            width = next((word for word in words if word.startswith("[")), "[0:0]")
            ports.append((words[0], width, words[-1]))
    inputs = [(width, name) for direction, width, name in ports if direction == "input" and name not in ("clk", "rst")]
    outputs = [(width, name) for direction, width, name in ports if direction == "output"]
    has_reset = any(name == "rst" for _, _, name in ports)
    declare = "".join(f"  reg {width} {name};\n" for width, name in inputs)
    declare += "".join(f"  wire {width} rtl_{name}, net_{name};\n" for width, name in outputs)
    common = [f".{name}({name})" for _, name in inputs] + [".clk(clk)"] + [".rst(rst)"] * has_reset
    instances = ""
    for module, mark in ((top, "rtl"), ("gates", "net")):
        pins = ", ".join(common + [f".{name}({mark}_{name})" for _, name in outputs])
        instances += f"  {module} {mark}({pins});\n"
    # Streams flow more often than not, and always at first, so that every register gets a value.
    flow = [name for _, name in inputs if name.endswith(("valid", "ready")) or name == "advance"]
    draws = "".join(
        f"      {name} = clocks < 60 || $urandom % 4 != 0;\n" if name in flow
        else f"      {name} = {{{', '.join(['$urandom'] * 16)}}};\n" for _, name in inputs
    )  # fmt: skip
    both = [", ".join(f"{mark}_{name}" for _, name in outputs) for mark in ("rtl", "net")]
    return f"""
module bench;
  reg clk = 0, rst = 1;
  integer clocks = 0, differences = 0, changes = 0;
{declare}{instances}
  reg [8191:0] earlier;
  initial begin
    while (clocks < 3000) begin
{draws}      rst = clocks < 3;
      #4;
      if (clocks > 60) begin
        if ({{{both[0]}}} !== {{{both[1]}}}) differences = differences + 1;
        if (earlier !== {{{both[0]}}}) changes = changes + 1;
      end
      earlier = {{{both[0]}}};
      #1 clk = 1;
      #5 clk = 0;
      clocks = clocks + 1;
    end
    $display("%0d clocks, %0d differences, outputs changed %0d times", clocks, differences, changes);
  end
endmodule
"""
