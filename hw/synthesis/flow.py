"""The synthesis flow: from Verilog to cell counts, area and delay, with everything that a figure depends on."""

import hashlib
import re
import tempfile
from dataclasses import dataclass
from pathlib import Path

from hw.emit.package import write_files
from hw.synthesis import engine, figures, recipes, sta, timing
from hw.synthesis import liberty as liberty_reader
from hw.synthesis.netlist import Netlist
from hw.synthesis.repair import repair

FLATTEN = ("auto", "flat", "hierarchy")
SCHEMA = 1
MAXIMUM_PERIOD_PS = 1_000_000
FAST_PS = 300  # the period that ABC is given before a search
ABC_PERIODS_PS = (1000, 700, 450, 250)  # those that it is given in the search of a recipe that leaves all to ABC
LARGE_CELLS = 60_000  # above this number a design is mapped in the first way only
JOB_FILES = ("additions.v", "stubs.v", "fold.v", "rows.v", "ripple.v", "cells.v", "constraints")


def check_options(recipe, period_ps, flatten):
    """Raise ``ValueError``, naming the option and what is legal, for a bad one."""
    if recipe not in recipes.RECIPES:
        raise ValueError(f"unknown recipe {recipe!r}: legal are {', '.join(recipes.RECIPES)}")
    if flatten not in (None, *FLATTEN):
        raise ValueError(f"flatten must be one of {', '.join(FLATTEN)}, not {flatten!r}")
    if recipes.RECIPES[recipe].synth and flatten not in (None, "flat"):
        raise ValueError(f"flatten must be flat with recipe {recipe}, whose synth flattens, not {flatten!r}")
    is_number = isinstance(period_ps, (int, float)) and 0 < period_ps < MAXIMUM_PERIOD_PS
    if period_ps not in (None, recipes.SEARCH) and not is_number:
        raise ValueError(
            f"period must be a number of picoseconds above 0 and below {MAXIMUM_PERIOD_PS}, "
            f"or {recipes.SEARCH!r}, not {period_ps!r}"
        )


def synthesise(files, top, **options):
    """The report of :func:`synthesise_netlist`, which has the options."""
    return synthesise_netlist(files, top, **options)[0]


def synthesise_netlist(
    files,
    top,
    liberty=None,
    recipe="area",
    period_ps=None,
    flatten=None,
    memory="model",
    name=None,
    parameters=None,
    clock="clk",
    keep=None,
    progress=lambda text: None,
):
    """Synthesise a design and return its report and its :class:`hw.synthesis.netlist.Netlist`.

    Parameters
    ----------
    files : paths of Verilog files
    top : name of the top module
    liberty : path of a Liberty file (.lib, .lib.gz), or None for Yosys' own gates and estimates
    recipe : a name of :data:`hw.synthesis.recipes.RECIPES`
    period_ps : the wanted period, "search" for the one that justifies its area, or None for the recipe's own
    flatten : "auto" (all but large modules that repeat), "flat", "hierarchy", or None for the recipe's own
    memory : how the memories were emitted, for the report; they are black boxes here in any case
    name, parameters : for the report
    clock : the clock port; a design without it is timed from inputs to outputs
    keep : a folder that receives the netlist, the log and what it takes to repeat the job
    progress : called with a few words at each stage
    """
    check_options(recipe, period_ps, flatten)
    recipe = recipes.RECIPES[recipe]
    library = liberty_reader.read(liberty) if liberty is not None else None
    if library and (library.nand2 is None or library.buffer is None):
        raise ValueError(f"library {liberty} has no two-input NAND or no buffer, which the flow needs")
    with tempfile.TemporaryDirectory(prefix="synth-") as scratch:
        folder = Path(scratch)
        mode = flatten or recipe.flatten
        period_ps = period_ps or recipe.period_ps
        tables = None
        if library:
            text = liberty_reader.read_text(liberty)
            (folder / "cells.lib").write_text(text)
            tables = sta.read_delay_tables(liberty, text)
        sources = _copy(files, folder)
        goal_ps = None if period_ps == recipes.SEARCH else period_ps
        design = Design(folder, list(sources), top, library, tables, clock, goal_ps, mode, progress)
        versions = engine.tool_versions()
        netlist, repaired, mapped = _repaired(recipe, design, _mapped(recipe, design))
        (folder / "yosys.log").write_text(mapped.log)
        (folder / "yosys.ys").write_text("".join(f"{command}\n" for command in mapped.commands))
        numbers, rows = figures.count(netlist, top, folder)
        path = None
        if library is None:
            numbers |= figures.estimates(folder)
            delay = {"method": None, "label": "none: delay needs a library"}
        elif (version := timing.opensta_version()) and numbers["cells"] <= timing.MAXIMUM_CELLS:
            versions["opensta"] = version
            delay, path = timing.opensta(folder, netlist, top, clock, progress)
        else:
            delay = timing.own(netlist, top, tables, clock)
        if keep is not None:
            _keep(folder, Path(keep), netlist, path)
        return {
            "schema": SCHEMA,
            "name": name or top,
            "top": top,
            "parameters": parameters or {},
            "tools": versions,
            "recipe": {
                "name": recipe.name,
                "doc": recipe.doc,
                "period_ps": period_ps,
                "booth": recipe.booth,
                "adder_cells": _adder_cells(recipe, library),
                "commands": mapped.commands,
            },
            "library": library.describe() if library else None,
            "sources": sources,
            "flattening": {
                "mode": mode,
                "preserved_modules": sorted(row["module"] for row in rows if row["module"] != top),
            },
            "memory": {"emitted_as": memory, "counted": "in bits, as black boxes; not in cells, area or delay"},
            "timing_repair": repaired,
            "figures": numbers,
            "delay": delay,
            "critical_path": path,
            "modules": rows,
        }, netlist


@dataclass(frozen=True)
class Design:
    """What is synthesised, and what for."""

    folder: Path
    sources: list
    top: str
    library: liberty_reader.Library | None
    tables: object
    clock: str
    goal_ps: float | None
    flatten: str
    progress: object


@dataclass(frozen=True)
class Mapped:
    """A mapped netlist, the commands that made it and their log."""

    netlist: Netlist
    commands: list
    log: str


def _mapped(recipe, design):
    """The results of a recipe's mappings, or of the periods tried in their place, as :class:`Mapped`; best first.

    They are compared before timing repair: area, and what the period is missed by in percent as percent of area. A
    large design is mapped once.
    """
    library, goal_ps, top = design.library, design.goal_ps, design.top
    searching = goal_ps is None and library is not None and not recipe.timing_repair
    attempts = [(mapping, goal_ps or FAST_PS) for mapping in recipe.mappings[: None if goal_ps and library else 1]]
    if searching:
        attempts = [(recipe.mappings[0], period_ps) for period_ps in ABC_PERIODS_PS]
    found = []
    for number, (mapping, period_ps) in enumerate(attempts):
        job = recipes.commands(recipe, design.sources, top, library, design.folder, design.flatten, period_ps, mapping)
        trace = engine.run(job, design.folder, design.progress)
        netlist = Netlist((design.folder / "mapped.json").read_text(), library)
        mapped = Mapped(netlist, trace, (design.folder / "yosys.log").read_text())
        if len(attempts) == 1 or not searching and _is_large(netlist, top):
            return [mapped]
        area = figures.count(netlist, top, design.folder)[0]["area_um2"]
        longest = sta.worst_path(netlist, top, design.tables, design.clock) or 1
        cost = area * (longest**recipe.period_weight if searching else max(1, longest / goal_ps))
        found.append((cost, number, mapped))
    return [mapped for _, _, mapped in sorted(found, key=lambda item: item[:2])]


def _repaired(recipe, design, mapped):
    """``(netlist, rows of the report, Mapped)``: the result of timing repair, or the best mapping as it is."""
    if design.library is None or not recipe.timing_repair:
        return mapped[0].netlist, None, mapped[0]
    chosen, netlist, rows = repair(
        [item.netlist for item in mapped],
        design.folder,
        design.top,
        design.tables,
        design.clock,
        design.goal_ps,
        recipe.period_weight,
        design.progress,
    )
    return netlist, rows, mapped[chosen]


def _is_large(netlist, top):
    """Whether a second mapping would take too long: modules are preserved, or there are many cells."""
    modules = netlist.modules_below(top)
    return len(modules) > 1 or len(netlist.modules[top]["cells"]) > LARGE_CELLS


def _copy(files, folder):
    """Copy the design to ``source/`` where the job runs; returns ``{path there: SHA-256}``."""
    (folder / "source").mkdir()
    sources = {}
    for index, file in enumerate(map(Path, files)):
        name = "source/" + re.sub(r"[^\w.]", "_", file.name)
        if name in sources:
            name = name.replace("/", f"/{index}_")
        try:
            content = file.read_bytes()
        except OSError as error:
            raise ValueError(f"Verilog file {str(file)!r} cannot be read: {error.strerror}") from None
        (folder / name).write_bytes(content)
        sources[name] = hashlib.sha256(content).hexdigest()
    return sources


def _adder_cells(recipe, library):
    """The library cells that rows of adders are mapped to, in words."""
    if library is None or not recipe.adder_cells or library.full_adder is None:
        return "none: adders are plain logic"
    return ", ".join(cell.name for cell in (library.full_adder, library.half_adder) if cell)


def _keep(folder, target, netlist, path):
    """Put the netlist and what it takes to repeat the job (but for the library) into a folder."""
    inputs = [item.name for item in folder.glob("half_used.*")]
    inputs += [name for name in JOB_FILES if (folder / name).exists()]
    files = {name: (folder / name).read_text() for name in ("yosys.log", "yosys.ys", *inputs)}
    files["mapped.v"] = netlist.verilog()
    if path:
        files["critical_path.txt"] = path + "\n"
    write_files(target, files)
