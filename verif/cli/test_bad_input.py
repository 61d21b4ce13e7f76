"""Bad input on the command lines: one sentence that names it and what is legal, exit code 2, nothing half-written."""

import contextlib
import gzip
import io
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from golden.spec.parameters import kind_of
from hw import __main__ as hw_command_line
from hw.cli.arguments import reporting_errors
from hw.registry import IN_ALL, PRESETS, unit_class
from verif import __main__ as verif_command_line
from verif.synthesis import mini_liberty

PROJECT = Path(__file__).parents[2]


def run(*arguments, path=None, **variables):
    """Run a command line in a process of its own."""
    environment = {**os.environ, "PYTHONPATH": str(PROJECT), **variables}
    if "SIM" not in variables:
        environment.pop("SIM", None)
    if path is not None:
        environment["PATH"] = path
    words = [sys.executable, "-m", *map(str, arguments)]
    return subprocess.run(words, capture_output=True, text=True, env=environment, cwd=PROJECT)


def call(module, *arguments):
    """The same in this process, which is quicker."""
    main = {"hw": hw_command_line, "verif": verif_command_line}[module].main
    output, errors = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(errors):
        try:
            code = reporting_errors(lambda: main([str(word) for word in arguments]))
        except SystemExit as stop:
            code = stop.code
    return subprocess.CompletedProcess(arguments, code, output.getvalue(), errors.getvalue())


def refused(result, *words):
    """The run ended with exit code 2 and one sentence that holds the words."""
    assert result.returncode == 2, (result.returncode, result.stdout, result.stderr)
    lines = [line for line in result.stderr.splitlines() if "error: " in line]
    assert len(lines) == 1, result.stderr
    for word in words:
        assert word in lines[0], lines[0]
    assert "Traceback" not in result.stdout + result.stderr
    return result


def output_of(command, folder):
    return [] if command == "verif" else ["-o", folder / "out"]


def invoke(command, folder, unit, *arguments, how=call):
    words = ["verif"] if command == "verif" else ["hw", command]
    result = how(*words, unit, *arguments, *output_of(command, folder))
    assert not list(folder.glob("out/**/*")), "something was written"
    return result


@pytest.fixture(params=["verilog", "synth", "verif"])
def command(request):
    return request.param


def test_unknown_block(command, tmp_path):
    refused(invoke(command, tmp_path, "sorter", how=run), "'sorter'", *IN_ALL)


def test_unknown_config(command, tmp_path):
    refused(invoke(command, tmp_path, "bitonic_sorter", "--config", "huge"), "'huge'", *PRESETS)


def test_unknown_parameter(command, tmp_path):
    legal = [name for name in unit_class("bitonic_sorter").Parameters.__dataclass_fields__]
    refused(invoke(command, tmp_path, "bitonic_sorter", "-p", "width=8"), "'width'", *legal)


@pytest.mark.parametrize("text", ["n", "=4", "n:4"])
def test_parameter_without_a_value(command, tmp_path, text):
    refused(invoke(command, tmp_path, "bitonic_sorter", "-p", text), repr(text), "name=value")


@pytest.mark.parametrize(
    "unit, text, words",
    [
        ("bitonic_sorter", "n=12", ["n", "12", "power of two"]),
        ("bitonic_sorter", "n=4096", ["n", "4096", "power of two from 2 to"]),
        ("bitonic_sorter", "key_width=0", ["key_width", "0", "1"]),
        ("bitonic_sorter", "n=-4", ["n", "-4"]),
        ("bitonic_sorter", "network=merge", ["network", "merge", "bitonic", "odd_even"]),
        ("dot_product_unit", "n_lanes=0", ["n_lanes", "0", "1"]),
        ("dot_product_unit", "format=fp8", ["format", "fp8", "fp16", "bf16", "int8"]),
        ("vector_unit", "n_engines=0", ["n_engines", "0"]),
        ("token_selector", "patch=0", ["patch", "0"]),
        ("hash_bank_mapper", "n_banks=3", ["n_banks", "3", "power of two"]),
        ("hash_bank_mapper", "n_columns=0", ["n_columns", "0", "1"]),
    ],
)
def test_value_out_of_range(tmp_path, unit, text, words):
    refused(invoke("verilog", tmp_path, unit, "-p", text), *words)


@pytest.mark.parametrize(
    "unit, text, words",
    [
        ("bitonic_sorter", "n=many", ["n", "many", "power of two"]),
        ("bitonic_sorter", "n=4.5", ["n", "4.5", "power of two"]),
        ("bitonic_sorter", "n=", ["n", "''", "power of two"]),
        ("bitonic_sorter", "n=1e1", ["n", "'1e1'", "power of two"]),
        ("bitonic_sorter", "n=1_6", ["n", "'1_6'", "power of two"]),
        ("bitonic_sorter", "n=\uff14", ["n", "'\uff14'", "power of two"]),
        ("bitonic_sorter", "n=0x" + "1" * 9000, ["n", "'0x111", "power of two"]),
        ("bitonic_sorter", "signed=perhaps", ["signed", "perhaps", "true", "false"]),
        ("dot_product_unit", "n_lanes=none", ["n_lanes", "none", "integer"]),
    ],
)
def test_value_of_the_wrong_type(tmp_path, unit, text, words):
    refused(invoke("verilog", tmp_path, unit, "-p", text), *words)


def test_parameter_given_twice(command, tmp_path):
    refused(invoke(command, tmp_path, "bitonic_sorter", "-p", "n=4", "n=8"), "'n'", "twice", "'4'", "'8'")


@pytest.mark.parametrize("multiplier", ["2", "64", "0"])
def test_even_multiplier(command, tmp_path, multiplier):
    result = invoke(command, tmp_path, "hash_bank_mapper", "-p", f"multiplier={multiplier}")
    refused(result, "multiplier", multiplier, "odd")


def test_every_parameter_says_what_is_legal():
    for unit in IN_ALL:
        for item in unit_class(unit).Parameters.__dataclass_fields__.values():
            assert kind_of(item).legal, f"{unit}: {item.name}"


MINI = mini_liberty.text()


@pytest.mark.parametrize(
    "name, content, words",
    [
        ("missing.lib", None, ["does not exist", ".lib"]),
        ("text.lib", b"this is no library\n", ["is not a Liberty file"]),
        ("empty.lib", b"", ["is not a Liberty file"]),
        ("short.lib", MINI[:3000].encode(), ["is truncated or malformed"]),
        ("short.lib.gz", gzip.compress(MINI.encode())[:-300], ["is a truncated or damaged gzip file"]),
    ],
)
def test_bad_library(tmp_path, name, content, words):
    library = tmp_path / name
    if content is not None:
        library.write_bytes(content)
    refused(invoke("synth", tmp_path, "bitonic_sorter", "--config", "tiny", "--liberty", library), str(library), *words)


def test_library_that_is_a_folder(tmp_path):
    result = invoke("synth", tmp_path, "bitonic_sorter", "--config", "tiny", "--liberty", tmp_path)
    refused(result, str(tmp_path), "cannot be read")


@pytest.mark.parametrize(
    "option, value, words",
    [
        ("--recipe", "fast", ["recipe", "'fast'", "area"]),
        ("--period", "soon", ["period", "'soon'", "picoseconds"]),
        ("--period", "-5", ["period", "-5", "picoseconds"]),
        ("--flatten", "maybe", ["flatten", "'maybe'", "auto", "flat", "hierarchy"]),
    ],
)
def test_bad_option_of_the_flow(tmp_path, option, value, words):
    refused(invoke("synth", tmp_path, "bitonic_sorter", f"{option}={value}"), *words)


def test_unknown_simulator(tmp_path):
    refused(call("verif", "bitonic_sorter", "--sim", "modelsim"), "'modelsim'", "icarus", "verilator")
    refused(run("verif", "bitonic_sorter", SIM="modelsim"), "'modelsim'", "icarus", "verilator")


def test_missing_simulator(tmp_path):
    refused(run("verif", "bitonic_sorter", "--sim", "icarus", path=str(tmp_path)), "icarus", "install", "SIM=verilator")


def broken_tools(folder):
    """A folder of simulator programs that only fail."""
    for name in ("iverilog", "vvp"):
        program = folder / name
        program.write_text("#!/bin/sh\necho 'cannot load' >&2\nexit 3\n")
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return f"{folder}{os.pathsep}{os.environ['PATH']}"


def test_broken_simulator(tmp_path):
    # A build folder of its own: a design that was built before is not built again.
    result = run(
        "verif",
        "bitonic_sorter",
        "-p",
        "n=2",
        "--sim",
        "icarus",
        path=broken_tools(tmp_path),
        BUILD_ROOT=str(tmp_path / "b"),
    )
    refused(result, "icarus")
    assert not list((tmp_path / "b").glob("sim/icarus/*/*"))


@pytest.fixture
def read_only(tmp_path):
    """A folder that cannot be written, even by root where that is possible."""
    folder = tmp_path / "locked"
    folder.mkdir()
    folder.chmod(0o555)
    if os.access(folder, os.W_OK):  # root ignores the mode
        folder = Path("/proc/sys/kernel")
        if not folder.is_dir():
            pytest.skip("no folder here that this user cannot write")
    yield folder
    (tmp_path / "locked").chmod(0o755)


@pytest.mark.parametrize("command", ["verilog", "synth"])
@pytest.mark.parametrize("below", ["", "deeper/still"])
def test_read_only_output_folder(command, below, read_only):
    target = read_only / below if below else read_only
    refused(call("hw", command, "bitonic_sorter", "--config", "tiny", "-o", target), str(target), "cannot write")


@pytest.mark.parametrize("command", ["verilog", "synth"])
def test_output_folder_that_is_a_file(command, tmp_path):
    target = tmp_path / "file"
    target.write_text("mine\n")
    refused(call("hw", command, "bitonic_sorter", "--config", "tiny", "-o", target), str(target), "cannot write")
    assert target.read_text() == "mine\n"


def test_build_folder_that_is_a_file(tmp_path):
    (tmp_path / "file").write_text("mine\n")
    result = run("verif", "bitonic_sorter", "-p", "n=2", BUILD_ROOT=str(tmp_path / "file"))
    refused(result, str(tmp_path / "file"), "cannot write")


def test_folder_of_waveforms_that_is_a_file(tmp_path):
    (tmp_path / "file").write_text("mine\n")
    result = call("verif", "bitonic_sorter", "-p", "n=2", f"--waves={tmp_path / 'file'}")
    refused(result, str(tmp_path / "file"), "cannot write")


@pytest.mark.parametrize("name", ["1sorter", "a-b", "", "caf\u00e9", "module", "small"])
def test_bad_top_name(tmp_path, name):
    refused(invoke("verilog", tmp_path, "bitonic_sorter", f"--name={name}"), "--name", repr(name))


@pytest.mark.parametrize("prefix", ["1", "a-b", "caf\u00e9", "a b", "../", "$"])
def test_bad_prefix(tmp_path, prefix):
    refused(invoke("verilog", tmp_path, "bitonic_sorter", f"--prefix={prefix}"), "--prefix", repr(prefix + "x"))


@pytest.mark.parametrize("option, value", [("--count", "0"), ("--seed", "-1")])
def test_bad_counts(option, value):
    refused(call("verif", "bitonic_sorter", f"{option}={value}"), option, value)


@pytest.mark.parametrize("name", ["common", "macros"])
def test_top_name_of_a_shared_file(tmp_path, name):
    refused(invoke("verilog", tmp_path, "bitonic_sorter", "-p", "n=2", f"--name={name}"), "name", repr(name))


def test_unknown_memory_form(tmp_path):
    refused(invoke("verilog", tmp_path, "vector_unit", "--memory", "sram"), "'sram'", "model", "macro")


def test_no_command():
    refused(run("hw"), "COMMAND")


def test_no_packages_for_simulation(tmp_path):
    """As after ``pip install .`` without extras: the sentence names the extra."""
    code = (
        "import importlib.util as util, runpy, sys; find = util.find_spec\n"
        "util.find_spec = lambda name, *more: None if name.startswith('cocotb') else find(name, *more)\n"
        "sys.argv = ['verif', '--help']; runpy.run_module('verif', run_name='__main__', alter_sys=True)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=PROJECT)
    refused(run, "cocotb", "extra 'test'", "pip install")
