"""What the user gets: one Verilog file a block, a file list and a manifest, written all at once or not at all."""

import errno
import hashlib
import importlib.metadata
import json
import os
import re
import shutil
import tempfile
from pathlib import Path
from typing import NamedTuple

from hw.emit.contract import contract_of
from hw.emit.emission import Emission, fewer_collections
from hw.emit.header import comment, file_header
from hw.emit.verilog import as_file

__all__ = ["COMMON_FILE", "MACRO_FILE", "MANIFEST", "Package", "build_package", "emit_package", "write_files"]

TOOLS = ("amaranth", "pyosys")
COMMON_FILE = "common.v"
MACRO_FILE = "macros.v"
MANIFEST = "manifest.json"


class Package(NamedTuple):
    """``{file name: text}``, and the emission that the texts are of."""

    files: dict[str, str]
    emission: Emission


def build_package(components, memory="model", progress=lambda stage: None, target="asic", prefix=""):
    """The files of :func:`emit_package`."""
    return emit_package(components, memory, progress, target, prefix).files


@fewer_collections()
def emit_package(components, memory="model", progress=lambda stage: None, target="asic", prefix=""):
    """Emit ``{top name: component}``, blocks or any other Amaranth components.

    A module that several tops use goes to ``common.v``, a memory macro's black box to ``macros.v``; every other module
    goes to the file of the top that needs it. ``files.f`` lists the files, ``manifest.json`` describes them. ``prefix``
    stands before the names of these two files and of all modules but the tops.
    """
    common, macros = prefix + COMMON_FILE, prefix + MACRO_FILE
    for name in components:
        if f"{name}.v" in (common, macros):
            raise ValueError(f"a top must have another name than {name!r}, whose file holds what the blocks share")
    contracts = {name: contract_of(component) for name, component in components.items()}
    emission = Emission(memory, target, prefix)
    for name, component in components.items():
        progress(name)
        emission.add_top(component, name)
    progress("writing Verilog")
    texts = emission.verilog()
    place = _placement(emission, components, common, macros)
    headers = {f"{name}.v": file_header(name, contracts[name], emission.modules[name].clocking) for name in components}
    headers[common] = comment(["Modules that several blocks share."])
    headers[macros] = comment(["Black boxes to be replaced by a memory compiler's macros; see manifest.json."])
    order = sorted(set(place.values()), key=lambda file: (file not in (macros, common), file))
    guarded = {name: text if name in components else _guarded(name, text) for name, text in texts.items()}
    files = {file: as_file(headers[file], [guarded[name] for name in texts if place[name] == file]) for file in order}
    manifest = {
        "tools": {tool: importlib.metadata.version(tool) for tool in TOOLS},
        "memory": memory,
        "target": target,
        "prefix": prefix,
        "files": {file: {"sha256": _digest(text)} for file, text in files.items()},
        "blocks": [_describe(name, contracts[name], emission.modules[name].clocking) for name in components],
        "modules": {
            name: {"file": place[name], "sha256": _digest(text), **emission.modules[name].attributes}
            for name, text in texts.items()
        },
        "macros": {name: module.macro for name, module in emission.modules.items() if module.macro},
    }
    files["files.f"] = "".join(f"{file}\n" for file in order)
    files[MANIFEST] = json.dumps(manifest, indent=2) + "\n"
    return Package(files, emission)


def _placement(emission, tops, common, macros):
    """``{module: file}``."""
    below = {name: emission.below(name) for name in tops}
    place = {}
    for name, module in emission.modules.items():
        owners = [top for top in tops if name in below[top]]
        place[name] = macros if module.macro else common if len(owners) > 1 else f"{owners[0]}.v"
    return place


def _digest(text):
    return hashlib.sha256(text.encode()).hexdigest()


def _guarded(name, text):
    """A shared module, read once however many packages bring it.

    The macro's name says the module's text: what has the same name and is not the same is a second definition, which
    tools refuse, and never taken for it.
    """
    macro = f"{name}_{_digest(text)[:8]}_defined"
    return f"`ifndef {macro}\n`define {macro}\n{text}`endif\n"


def _describe(name, contract, clocking):
    """A top's entry in the manifest."""
    entry = {"top": name, "block": contract.block, "file": f"{name}.v", "parameters": contract.parameters}
    entry |= {"latency": contract.latency, "interval": contract.interval}
    return entry | {"ports": contract.with_clocking(clocking), "members": contract.members}


def write_files(folder, files):
    """Put ``{name: text}`` into a folder; on any error nothing half-written is left behind.

    A package replaces the one that was there: files that the old manifest lists and the new package has not are
    removed. Returns the names of those.
    """
    folder = Path(folder)
    old = _listed(folder) - set(files) if MANIFEST in files else set()
    made = [path for path in (folder, *folder.parents) if not path.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    try:
        for name in files:
            if (folder / name).is_dir():  # else found out when other files are in place
                raise IsADirectoryError(errno.EISDIR, f"{name} is a directory there")
        staging = Path(tempfile.mkdtemp(prefix=".writing-", dir=folder))
        try:
            for name, text in files.items():
                (staging / name).write_text(text)
            for name in files:
                os.replace(staging / name, folder / name)
            for name in old:
                (folder / name).unlink(missing_ok=True)
        finally:
            shutil.rmtree(staging, ignore_errors=True)
    except OSError:
        for path in made:
            if not any(path.iterdir()):
                path.rmdir()
        raise
    return old


def _listed(folder):
    """The Verilog files in a folder that its manifest lists; none if that is no manifest."""
    try:
        names = json.loads((folder / MANIFEST).read_text())["files"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return set()
    names = {name for name in names if isinstance(name, str) and re.fullmatch(r"\w+\.v", name)}
    return {name for name in names if (folder / name).exists()}
