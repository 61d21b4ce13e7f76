"""Timing repair and static timing are used through their packages only; the flow knows nothing of the command line."""

import ast
import functools
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[2]
SOURCES = sorted(path for folder in ("hw", "verif", "golden") for path in (PROJECT / folder).rglob("*.py"))


@functools.cache
def imports(path):
    """The modules that a file imports, as ``package.module``."""
    found = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            found += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    return found


def importers(inside, allowed):
    """The files that import something of a package's inside, but for those in the allowed folders."""
    return [
        str(path.relative_to(PROJECT))
        for path in SOURCES
        if not any(path.relative_to(PROJECT).is_relative_to(folder) for folder in allowed)
        and any(inside(name) for name in imports(path))
    ]


def modules_of(package):
    folder = PROJECT / package.replace(".", "/")
    return {f"{package}.{path.stem}" for path in folder.glob("*.py") if path.stem != "__init__"}


@pytest.mark.parametrize(
    "package, allowed",
    [
        ("hw.synthesis.repair", ["hw/synthesis/repair", "verif/synthesis"]),
        ("hw.synthesis.sta", ["hw/synthesis/sta", "hw/synthesis/repair", "verif/synthesis"]),
    ],
)
def test_the_inside_is_used_inside_only(package, allowed):
    modules = modules_of(package)
    assert len(modules) > 4
    assert importers(lambda name: name in modules, allowed) == []


def test_timing_repair_is_one_function():
    from hw.synthesis import repair

    assert repair.__all__ == ["repair"]


def test_the_flow_imports_nothing_from_above():
    above = ("hw.cli", "verif", "golden")
    files = [path for path in SOURCES if path.is_relative_to(PROJECT / "hw" / "synthesis")]
    assert [str(path) for path in files if any(name.startswith(above) for name in imports(path))] == []
