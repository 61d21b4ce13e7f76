"""The synthesis flow: from Verilog to cell counts, area and delay, with everything that a figure depends on."""

import hashlib
import re
import tempfile
from pathlib import Path

from tabulate import tabulate

from hw.emit.package import write_files
from hw.synthesis import delay_tables, engine, figures, recipes, timing
from hw.synthesis import liberty as liberty_reader
from hw.synthesis import timing_repair as recovery
from hw.synthesis.netlist import Netlist

FLATTEN = ("auto", "flat", "hierarchy")
SCHEMA = 1
MAXIMUM_PERIOD_PS = 1_000_000
FAST_PS = 300  # what ABC aims at before a search
ABC_PERIODS_PS = (1000, 700, 450, 250)  # what it aims at in the search of a recipe that leaves all to ABC
MAPPED_ONCE = 60_000  # cells from which on a design is mapped in the first way only
JOB_FILES = ("stubs.v", "fold.v", "rows.v", "ripple.v", "cells.v", "constraints")


def check_options(recipe, period_ps, flatten):
    """Raise ``ValueError``, naming the option and what is legal, for a bad one."""
    if recipe not in recipes.RECIPES:
        raise ValueError(f"unknown recipe {recipe!r}: legal are {', '.join(recipes.RECIPES)}")
    if flatten not in (None, *FLATTEN):
        raise ValueError(f"flatten must be one of {', '.join(FLATTEN)}, not {flatten!r}")
    is_number = isinstance(period_ps, (int, float)) and 0 < period_ps < MAXIMUM_PERIOD_PS
    if period_ps not in (None, recipes.SEARCH) and not is_number:
        raise ValueError(
            f"period must be a number of picoseconds above 0 and below {MAXIMUM_PERIOD_PS}, "
            f"or {recipes.SEARCH!r}, not {period_ps!r}"
        )


def synthesise(
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
    """Synthesise a design and return its report.

    Parameters
    ----------
    files : paths of Verilog files
    top : name of the top module
    liberty : path of a Liberty file (.lib, .lib.gz), or None for Yosys' own gates and estimates
    recipe : a name of :data:`hw.synthesis.recipes.RECIPES`
    period_ps : the period that is wanted, "search" for the one that is worth its area, or None for the recipe's own
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
        goal_ps = None if period_ps == recipes.SEARCH else period_ps
        tables = None
        if library:
            text = liberty_reader.read_text(liberty)
            (folder / "cells.lib").write_text(text)
            tables = delay_tables.read(liberty, text)
        sources = _copy(files, folder)
        mapped = _mapped(recipe, list(sources), top, library, tables, folder, mode, goal_ps, clock, progress)
        versions = engine.tool_versions()
        netlist, trace, log = mapped[0]
        recovered, path = None, None
        if library is not None and recipe.recovery:
            conditions = (folder, top, tables, clock, goal_ps, recipe.period_worth, progress)
            netlist, recovered, trace, log = _recovered(mapped, conditions)
        (folder / "yosys.log").write_text(log)
        (folder / "yosys.ys").write_text("".join(f"{command}\n" for command in trace))
        numbers, rows = figures.count(netlist, top, folder)
        if library is None:
            numbers |= figures.estimates(folder)
            delay = {"method": None, "label": "none: delay needs a library"}
        elif (sta := timing.opensta_version()) and numbers["cells"] <= timing.MAXIMUM_CELLS:
            versions["opensta"] = sta
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
                "commands": trace,
            },
            "library": library.describe() if library else None,
            "sources": sources,
            "flattening": {"mode": mode, "kept_modules": sorted(row["module"] for row in rows if row["module"] != top)},
            "memory": {"emitted_as": memory, "counted": "in bits, as black boxes; not in cells, area or delay"},
            "recovery": recovered,
            "figures": numbers,
            "delay": delay,
            "critical_path": path,
            "modules": rows,
        }


def _mapped(recipe, sources, top, library, tables, folder, mode, goal_ps, clock, progress):
    """``[(netlist, commands, log)]`` of a recipe's mappings, or of the periods tried in their place; best first.

    They are compared before recovery: area, and what the period is missed by in percent as percent of area. A large
    design is mapped once.
    """
    searching = goal_ps is None and library is not None and not recipe.recovery
    tries = [(mapping, goal_ps or FAST_PS) for mapping in recipe.mappings[: None if goal_ps and library else 1]]
    if searching:
        tries = [(recipe.mappings[0], aim_ps) for aim_ps in ABC_PERIODS_PS]
    found = []
    for number, (mapping, aim_ps) in enumerate(tries):
        job = recipes.commands(recipe, sources, top, library, folder, mode, aim_ps, mapping)
        trace = engine.run(job, folder, progress)
        netlist = Netlist((folder / "mapped.json").read_text(), library)
        log = (folder / "yosys.log").read_text()
        if len(tries) == 1 or not searching and _is_large(netlist, top):
            return [(netlist, trace, log)]
        area = figures.count(netlist, top, folder)[0]["area_um2"]
        longest = timing.own(netlist, top, tables, clock)["worst_path_ps"] or 1
        worth = area * (longest**recipe.period_worth if searching else max(1, longest / goal_ps))
        found.append((worth, number, netlist, trace, log))
    return [what for _, _, *what in sorted(found, key=lambda item: item[:2])]


def _recovered(mapped, conditions):
    """``(netlist, what was reached, commands, log)`` of the first mapping that reaches the period, else of the best."""
    folder, top, tables, clock, goal_ps, *_ = conditions
    best = None
    for netlist, trace, log in mapped:
        netlist, reached = recovery.recover(netlist, *conditions)
        if len(mapped) == 1:
            return netlist, reached, trace, log
        longest = timing.own(netlist, top, tables, clock)["worst_path_ps"] or 1
        aim_ps = goal_ps or longest
        worth = recovery.worth(figures.count(netlist, top, folder)[0]["area_um2"], longest, aim_ps)
        if best is None or worth < best[0]:
            best = worth, netlist, reached, trace, log
        if longest <= aim_ps * recovery.NEAR_ENOUGH:
            break
    return best[1:]


def _is_large(netlist, top):
    """Whether a second mapping would take too long: modules were kept, or there are many cells."""
    modules = netlist.modules_below(top)
    return len(modules) > 1 or len(netlist.modules[top]["cells"]) > MAPPED_ONCE


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


def _number(value, digits=0):
    return "-" if value is None else f"{value:,.{digits}f}"


def table(reports):
    """A table of reports for people, with the conditions that the figures hold under."""
    reports = list(reports)
    mapped = [report for report in reports if report["library"]]
    parts = []
    if mapped:
        parts.append(_library_table(mapped))
    if len(mapped) < len(reports):
        parts.append(_estimate_table([report for report in reports if not report["library"]]))
    return "\n\n".join(parts)


def _common(report):
    counts = report["figures"]
    return [report["name"], *(_number(counts[key]) for key in ("cells", "flip_flops", "memory_bits"))]


def _library_table(reports):
    headers = ["block", "cells", "flip-flops", "memory bits", "µm²", "of it registers", "gate eq."]
    headers += ["period ps", "with wire load", "any path ps"]
    rows = []
    for report in reports:
        counts, delay = report["figures"], report["delay"]
        row = [*_common(report), _number(counts["area_um2"]), _number(counts["sequential_um2"])]
        row.append(_number(counts["gate_equivalents"]))
        keys = ("period_ps", "period_wire_load_ps", "worst_path_ps")
        rows.append(row + [_number(delay.get(key)) for key in keys])
    text = _with_notes(headers, rows, reports)
    divided = [_parts_table(report) for report in reports if "area_by_part_um2" in report["figures"]]
    return "\n\n".join([text, *divided])


def _parts_table(report):
    """How the area of a core divides."""
    counts = report["figures"]
    rows = [
        [part, _number(area), f"{100 * area / counts['area_um2']:.1f}"]
        for part, area in counts["area_by_part_um2"].items()
    ]
    headers = [report["name"], "µm²", "% of the area"]
    return tabulate(rows, headers=headers, colalign=["left", "right", "right"], disable_numparse=True)


def _estimate_table(reports):
    headers = ["block", "cells", "flip-flops", "memory bits", "transistors (est.)", "gate eq. (est.)", "depth (est.)"]
    keys = ("transistors_estimate", "gate_equivalents_estimate", "logic_depth_estimate")
    rows = [_common(report) + [_number(report["figures"][key]) for key in keys] for report in reports]
    return _with_notes(headers, rows, reports)


def _with_notes(headers, rows, reports):
    align = ["left"] + ["right"] * (len(headers) - 1)
    text = tabulate(rows, headers=headers, colalign=align, disable_numparse=True)
    return text + "\n" + "\n".join(dict.fromkeys(note for report in reports for note in notes(report)))


def notes(report):
    """The sentences that a figure must not be quoted without."""
    recipe, library = report["recipe"], report["library"]
    if library:
        yield f"library {library['name']} ({library['corner']}; {library['file']}, sha256 {library['sha256'][:12]})"
    else:
        yield "no library: Yosys' own gates; transistors, gate equivalents (4 transistors) and depth are estimates"
        yield "area and delay need --liberty FILE or make's LIBERTY=FILE; docs/synthesis.md says where to get one"
    tools = ", ".join(f"{tool} {version}" for tool, version in report["tools"].items())
    target = f", period {recipe['period_ps']} ps" if library else ""
    target = target.replace("search ps", "found by a search")
    yield f"recipe {recipe['name']}{target}; adder cells: {recipe['adder_cells']}; {tools}"
    if report["recovery"] is not None:
        yield "sized, buffered and mapped anew where slow, by the timing of whole paths"
    if library and report["delay"]["method"] == "own":
        if report["figures"]["cells"] > timing.MAXIMUM_CELLS:
            yield f"not timed by OpenSTA: more than {timing.MAXIMUM_CELLS:,} cells"
        else:
            yield f"wire load and a second opinion on delay need OpenSTA ({timing.HOW_TO_GET})"
    kept = report["flattening"]["kept_modules"]
    yield f"flattening {report['flattening']['mode']}" + (
        f", modules kept: {len(kept)}" if kept else ", no module kept"
    )
    yield f"memories are counted {report['memory']['counted']}"
    yield f"delay: {report['delay']['label']}"
