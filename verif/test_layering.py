"""The floors of the packages, read from the import statements of every file: nothing imports from a floor above.

golden.spec < golden.arith < golden.units < golden.core < golden.program, golden.timing, golden.system
                            golden.units < golden.differential
golden.spec < hw.lib < hw.arith < hw.units < hw.top < hw.registry, which has hw.presets beside it
              hw.lib < hw.emit < hw.synthesis, which takes blocks from hw.registry by name
everything < hw.cli, golden.__main__, hw.__main__, verif
"""

import ast
import sys
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

MAY_IMPORT = {
    "golden.spec": set(),
    "golden.arith": {"golden.spec"},
    "golden.units": {"golden.spec", "golden.arith"},
    "golden.core": {"golden.spec", "golden.arith", "golden.units"},
    "golden.program": {"golden.spec", "golden.arith", "golden.units", "golden.core"},
    "golden.timing": {"golden.spec", "golden.arith", "golden.units", "golden.core"},
    "golden.system": {"golden.spec", "golden.arith", "golden.units", "golden.core"},
    "golden.differential": {"golden.spec", "golden.arith", "golden.units"},
    "golden.__main__": {"golden.program"},
    "hw.lib": {"golden.spec"},
    "hw.arith": {"golden.spec", "hw.lib"},
    "hw.units": {"golden.spec", "hw.lib", "hw.arith"},
    "hw.top": {"golden.spec", "hw.lib", "hw.arith", "hw.units"},
    "hw.presets": {"golden.spec"},
    "hw.registry": {"hw.lib", "hw.units", "hw.top", "hw.presets"},
    "hw.emit": {"golden.spec", "hw.lib"},
    "hw.synthesis": {"golden.spec", "hw.lib", "hw.emit", "hw.registry"},
    "hw.cli": {"golden.spec", "hw.lib", "hw.emit", "hw.synthesis", "hw.registry", "hw.top", "hw.units"},
    "hw.software": {"golden.spec", "hw.emit", "hw.cli"},
    "hw.__main__": {"golden.spec", "hw.lib", "hw.emit", "hw.registry", "hw.cli"},
}
"""What each folder of the models and of the generator may import of the project, besides itself."""


def folder_of(module):
    """The folder of a module, two names deep: that is where a floor is."""
    return ".".join(module.split(".")[:2])


def imports_of(path):
    """The modules that a file imports, wherever in it the statement is."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports name their package"
            # What is imported may be a module or a name in one; a folder of its own is a module.
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def module_of(path):
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def edges(*packages):
    """``(file, folder of the file, imported name)`` of every import of the packages' files."""
    for package in packages:
        for path in sorted((ROOT / package).rglob("*.py")):
            for name in imports_of(path):
                yield path.relative_to(ROOT), folder_of(module_of(path)), name


def is_ours(name):
    return name.split(".")[0] in ("golden", "hw", "verif")


def test_no_import_runs_against_the_floors():
    wrong = [
        f"{path} imports {name}"
        for path, folder, name in edges("golden", "hw")
        if is_ours(name) and folder_of(name) != folder and folder_of(name) not in MAY_IMPORT.get(folder, ())
    ]
    assert not wrong, "\n".join(wrong)


def test_the_floors_have_no_circle():
    tuple(TopologicalSorter(MAY_IMPORT).static_order())
    with pytest.raises(CycleError):
        tuple(TopologicalSorter(MAY_IMPORT | {"golden.spec": {"golden.core"}}).static_order())


def test_every_folder_has_a_floor():
    folders = {folder for _, folder, _ in edges("golden", "hw")}
    assert folders <= set(MAY_IMPORT), f"no floor for {folders - set(MAY_IMPORT)}"


def test_the_generator_knows_definitions_only():
    used = {folder_of(name) for _, _, name in edges("hw") if name.split(".")[0] == "golden"}
    assert used == {"golden.spec"}


def test_definitions_depend_on_nothing():
    for path, _, name in edges("golden/spec"):
        package = name.split(".")[0]
        assert package in sys.stdlib_module_names or folder_of(name) == "golden.spec", f"{path} imports {name}"


def test_benches_are_at_the_bottom_of_verification():
    wrong = [
        f"{path} imports {name}"
        for path, _, name in edges("verif/bench")
        if name.startswith("verif.") and folder_of(name) != "verif.bench"
    ]
    assert not wrong, "\n".join(wrong)


def test_an_import_is_found_wherever_it_stands(tmp_path):
    (tmp_path / "a.py").write_text(
        "def f():\n    from golden.core import core, checks\n    import hw.top.core as top\n"
    )
    found = set(imports_of(tmp_path / "a.py"))
    assert found == {"golden.core.core", "golden.core.checks", "hw.top.core"}
