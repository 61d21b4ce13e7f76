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

from hw.emit import contract
from hw.emit.emission import Emission, comment, summary
from hw.emit.verilog import as_file
from hw.lib.block import Block

TOOLS = ("amaranth", "pyosys")
COMMON_FILE = "common.v"
MACRO_FILE = "macros.v"
MANIFEST = "manifest.json"


def build_package(blocks, memory="model", progress=lambda stage: None, target="asic"):
    """Emit ``{top name: block}`` and return ``{file name: text}``; a block may be any Amaranth component.

    A module that several blocks use goes to ``common.v``, a memory macro's black box to ``macros.v``; every other
    module goes to the file of the block that needs it. ``files.f`` lists the files, ``manifest.json`` describes them.
    """
    emission = Emission(memory, target)
    for name, block in blocks.items():
        if f"{name}.v" in (COMMON_FILE, MACRO_FILE):
            raise ValueError(f"a top must have another name than {name!r}, whose file holds what the blocks share")
        progress(name)
        emission.add_top(block, name)
    progress("writing Verilog")
    modules = emission.verilog()
    below = {name: emission.below(name) for name in blocks}

    sources = {}
    for module, text in modules.items():
        owners = [name for name in blocks if module in below[name]]
        if module in emission.macros:
            file = MACRO_FILE
        elif len(owners) > 1:
            file = COMMON_FILE
        else:
            file = f"{owners[0]}.v"
        sources.setdefault(file, []).append(text)
    headers = {f"{name}.v": block_header(name, block, emission.clocking[name]) for name, block in blocks.items()}
    headers[COMMON_FILE] = comment(["Modules that several blocks share."])
    headers[MACRO_FILE] = comment(["Black boxes to be replaced by a memory compiler's macros; see manifest.json."])
    order = sorted(sources, key=lambda file: (file not in (MACRO_FILE, COMMON_FILE), file))
    files = {file: as_file(headers[file], sources[file]) for file in order}
    manifest = {
        "tools": {tool: importlib.metadata.version(tool) for tool in TOOLS},
        "memory": memory,
        "target": target,
        "files": {file: {"sha256": hashlib.sha256(text.encode()).hexdigest()} for file, text in files.items()},
        "blocks": [describe(name, block, emission.clocking[name]) for name, block in blocks.items()],
        "modules": {name: emission.attributes[name] for name in modules if name in emission.attributes},
        "macros": emission.macros,
    }
    files["files.f"] = "".join(f"{file}\n" for file in order)
    files[MANIFEST] = json.dumps(manifest, indent=2) + "\n"
    return files


def describe(name, block, clocking):
    """A block's entry in the manifest; of a component that is no block, what is known of it."""
    if not isinstance(block, Block):
        return {"top": name, "file": f"{name}.v", "ports": contract.ports(block, clocking)}
    return {
        "top": name,
        "block": block.base_name,
        "file": f"{name}.v",
        "parameters": block.parameters.to_dict(),
        "latency": block.latency,
        "interval": block.interval,
        "ports": contract.ports(block, clocking),
        "members": contract.members(block),
    }


def block_header(name, block, clocking):
    """The comment at the top of a block's file: what it does, its configuration and its port contract."""
    if not isinstance(block, Block):
        return comment([f"{name}: a design around blocks of the generator."])
    lines = [f"{name}: {summary(block)}", "", "Configuration"]
    lines += [f"  {key} = {_text(value)}" for key, value in block.parameters.to_dict().items()]
    lines += ["", "Timing"]
    if block.latency is not None:
        lines += [f"  latency {block.latency} clocks, one beat every {block.interval} clock(s)"]
    if clocking:
        lines += ["  clk rising edge; rst synchronous, active high"]
    lines += [
        "",
        "Ports (a stream is name__payload, name__valid, name__ready; a beat moves when valid and ready are 1;",
    ]
    lines += ["while valid is 1 and ready is 0 the payload does not change; arrays have element 0 in the lowest bits)"]
    for member in contract.members(block):
        lines += [
            f"  {member['name']}: {member['direction']} {member['kind']}, {member['width']} bits. {member['doc']}"
        ]
        for field in member["fields"]:
            span = f"[{field['high']}:{field['low']}]"
            lines += [f"    {span:>12} {field['name']} ({field['lanes']} bits)"]
    return comment(lines)


def _text(value):
    return str(value).lower() if isinstance(value, bool) or value is None else str(value)


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
