"""``python -m verif.system.soc``: a RISC-V in Verilog runs an attention head on the accelerator with the C driver."""

import argparse
import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np

from hw.cli import command_documents, register_documents
from hw.cli.arguments import reporting_errors
from hw.emit.package import build_package, write_files
from hw.lib.errors import UsageError
from hw.registry import PRESETS, make_block
from verif.bench import datasets, simulator
from verif.core.demo.program import head_of
from verif.system.soc.workload import DESCRIPTORS, head_program, make_workload

COMPILER, OBJCOPY = "riscv64-unknown-elf-gcc", "riscv64-unknown-elf-objcopy"
_HERE = Path(__file__).parent
_DRIVER = Path("hw/software").resolve()
_FLAGS = ("-march=rv32im", "-mabi=ilp32", "-std=c99", "-O2", "-Wall", "-Wextra", "-ffreestanding", "-nostdlib")


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="python -m verif.system.soc", description=__doc__.split(": ")[1])
    parser.add_argument("--config", default="small", metavar="|".join(PRESETS), help="preset (default small)")
    parser.add_argument("--latency", type=int, default=20, help="clocks of the memory (default 20)")
    parser.add_argument("--sim", metavar="|".join(simulator.SIMULATORS), help="simulator (default Verilator)")
    parser.add_argument("-o", "--output", default="build/soc", metavar="DIR", help="where everything is built")
    options = parser.parse_args(arguments)
    if not 0 <= options.latency < 1 << 16:
        raise UsageError(f"--latency must be from 0 to 65535, not {options.latency}")
    cpu = _cpu()
    for program in (COMPILER, OBJCOPY):
        if shutil.which(program) is None:
            raise UsageError(f"{program} is not found (on Debian and Ubuntu: apt install gcc-riscv64-unknown-elf)")
    try:
        block = make_block("accelerator", options.config)
        sim = simulator.choose(options.sim, "verilator")
    except (ValueError, simulator.SimulatorError) as error:
        raise UsageError(str(error)) from None
    sizes, folder = block.parameters, Path(options.output) / options.config
    folder.mkdir(parents=True, exist_ok=True)
    print("golden model", flush=True)
    program = head_program(sizes, head_of(datasets.workload(), 0, 1))
    workload = make_workload(program, sizes)
    print("program", flush=True)
    binary = _compile(folder, workload)
    size = 1 << int(DESCRIPTORS + len(workload.data) - 1).bit_length()
    _write_memory(folder / "program.hex", binary, workload, size, sizes.bus_bytes)
    print("Verilog: building the simulation takes some minutes the first time, then it runs", flush=True)
    texts = {name: text for name, text in build_package({"accelerator": block}).items() if name.endswith(".v")}
    write_files(folder, texts)
    files = [
        *(folder / name for name in texts),
        cpu,
        *(_HERE / name for name in ("soc.v", "axi_memory.v", "testbench.v")),
    ]
    parameters = {
        "DATA_WIDTH": sizes.data_width,
        "ADDRESS_WIDTH": sizes.address_width,
        "MEMORY_BYTES": size,
        "LATENCY": options.latency,
    }
    return _simulate(sim, folder, files, parameters)


def _cpu():
    found = importlib.util.find_spec("pythondata_cpu_picorv32")
    if found is None or found.origin is None:
        raise UsageError("the processor is not installed: pip install pythondata-cpu-picorv32 (make soc does)")
    return Path(found.origin).parent / "verilog/picorv32.v"


def _compile(folder, workload):
    """The program's bytes, from address 0 on."""
    write_files(
        folder,
        {
            command_documents.HEADER: command_documents.c_header(),
            register_documents.HEADER: register_documents.c_header(),
            "workload.h": workload.header,
        },
    )
    elf, binary = folder / "program.elf", folder / "program.bin"
    sources = [_HERE / "start.S", _HERE / "main.c", _DRIVER / "sparse_dit.c"]
    include = ["-I", str(folder), "-I", str(_DRIVER)]
    _run([COMPILER, *_FLAGS, *include, *sources, "-T", _HERE / "link.ld", "-lgcc", "-o", elf])
    _run([OBJCOPY, "-O", "binary", elf, binary])
    return binary.read_bytes()


def _write_memory(path, binary, workload, size, bus_bytes):
    """The memory's contents for $readmemh, a word of the bus a line."""
    memory = np.zeros(size, np.uint8)
    memory[: len(binary)] = np.frombuffer(binary, np.uint8)
    memory[DESCRIPTORS : DESCRIPTORS + len(workload.data)] = workload.data
    words = memory.reshape(-1, bus_bytes)[:, ::-1]
    path.write_text("\n".join(row.tobytes().hex() for row in words) + "\n")


def _simulate(sim, folder, files, parameters):
    """Build and run; the program's output is shown as it comes. 0 if it found all as expected."""
    if sim == "icarus":
        values = [f"-Ptestbench.{name}={value}" for name, value in parameters.items()]
        _run(["iverilog", "-g2012", "-s", "testbench", *values, "-o", folder / "soc.vvp", *files])
        command = ["vvp", "soc.vvp"]
    else:
        values = [f"-G{name}={value}" for name, value in parameters.items()]
        options = ["--binary", "--timing", "-Wno-fatal", "-Wno-lint", "-Wno-style", "--top-module", "testbench"]
        # The rules of the Python package's Verilator for precompiled headers work with one C++ file only.
        options += ["--output-split", "0", "-MAKEFLAGS", "VM_PARALLEL_BUILDS=0", "-CFLAGS", "-std=c++20 -O1"]
        built = folder / "verilator"
        environment = os.environ | simulator.verilator_environment()
        tool = shutil.which("verilator", path=environment["PATH"]) or "verilator"
        _run([tool, *options, *values, "--Mdir", built, "-o", "soc", *files], environment)
        command = [(built / "soc").resolve()]
    last = ""
    with subprocess.Popen(list(map(str, command)), cwd=folder, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            print(line, end="", flush=True)
            last = line if line.startswith(("exit code", "no end")) else last
    return 0 if last.startswith("exit code 0 ") else 1


def _run(command, environment=None):
    result = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False, env=environment)
    if result.returncode:
        raise UsageError(f"{Path(str(command[0])).name} failed: {(result.stderr or result.stdout).strip()[-2000:]}")


if __name__ == "__main__":
    sys.exit(reporting_errors(main))
