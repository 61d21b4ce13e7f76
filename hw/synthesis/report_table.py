"""Reports of the synthesis flow as tables for people, with the conditions that the figures hold under."""

from tabulate import tabulate

from hw.synthesis import timing

__all__ = ["notes", "table"]


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
    if report["timing_repair"] is not None:
        yield "timing repair: sizing, buffering, resynthesis of slow regions"
    if library and report["delay"]["method"] == "own":
        if report["figures"]["cells"] > timing.MAXIMUM_CELLS:
            yield f"not timed by OpenSTA: more than {timing.MAXIMUM_CELLS:,} cells"
        else:
            yield f"wire load and a second opinion on delay need OpenSTA ({timing.HOW_TO_GET})"
    preserved = len(report["flattening"]["preserved_modules"])
    yield f"flattening {report['flattening']['mode']}, modules preserved: {preserved or 'none'}"
    yield f"memories are counted {report['memory']['counted']}"
    yield f"delay: {report['delay']['label']}"
