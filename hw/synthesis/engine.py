"""Runs Yosys in a process of its own and turns its errors into one sentence."""

import json
import os
import subprocess
import sys
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]


class SynthesisError(ValueError):
    """A design, library or tool that the flow cannot work with, in one sentence."""


def run(commands, folder, progress, name="yosys"):
    """Run a job of :mod:`hw.synthesis.worker`; returns the list of Yosys commands that were run.

    ``progress`` is called with a few words at each stage; the log goes to ``NAME.log`` in ``folder``, the commands to
    ``NAME.ys``.
    """
    job = folder / f"{name}.json"
    trace = folder / f"{name}.ys"
    job.write_text(json.dumps({"commands": commands, "trace": trace.name, "peek": "peek.json"}))
    environment = dict(os.environ)
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, [f"{PROJECT}", environment.get("PYTHONPATH")]))
    environment["TMPDIR"] = "."  # Yosys starts ABC with the path of its temporary folder, which must hold no space
    complaints = []
    with (folder / f"{name}.log").open("w") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "hw.synthesis.worker", job.name],
            cwd=folder,
            stdout=log,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
        )
        try:
            for line in process.stderr:
                if line.startswith("progress "):
                    progress(line.split(maxsplit=1)[1].strip())
                else:
                    complaints.append(line.strip())
        except BaseException:
            process.kill()
            raise
        finally:
            process.stderr.close()
            code = process.wait()
    if code:
        raise SynthesisError(f"Yosys stopped: {_sentence(complaints, code)}")
    return trace.read_text().splitlines()


def _sentence(complaints, code):
    errors = [line for line in complaints if "ERROR" in line or "Error" in line] or [
        line for line in complaints if line
    ]
    return errors[-1].replace("ERROR: ", "") if errors else f"exit code {code}"


def tool_versions():
    """Versions of the tools that make a netlist."""
    from importlib.metadata import PackageNotFoundError, version

    versions = {}
    for package in ("pyosys", "amaranth"):
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            versions[package] = "not installed"
    return versions
