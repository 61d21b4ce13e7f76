"""Named synthesis recipes: what is done to a design from Verilog to cells, as Yosys commands."""

from dataclasses import dataclass

from hw.synthesis.adders import FOLD, RIPPLE, STUBS, library_rules

SEARCH = "search"
SMALLEST_GATED_SET = 8
GATES = "cmos"  # Yosys' own gates for which it knows transistor counts


@dataclass(frozen=True)
class Mapping:
    """A script of ABC, ``{D}`` standing for the wanted delay, and what it begins with.

    With ``ripple`` the carries of additions and comparisons are chains when ABC gets them, else prefix trees.
    """

    script: str
    ripple: bool = False


@dataclass(frozen=True)
class Recipe:
    """One way from RTL to cells.

    ``mappings`` are ways to map plain logic, of which the best is taken; ``adder_cells`` maps rows of adders to the
    library's own adder cells; ``clock_gates`` gives flip-flops that share an enable one clock gate in place of a
    multiplexer each; ``timing_repair`` works on the mapped netlist (:mod:`hw.synthesis.repair`); ``period_ps``, a
    number or "search", and ``flatten`` are what is used unless something else is asked for. A search ends where a
    percent less of the period costs more than ``period_weight`` percent of area. ``synth`` is a command of Yosys that
    does all up to the flip-flops, in place of the flow.
    """

    name: str
    doc: str
    mappings: tuple[Mapping, ...]
    adder_cells: bool = True
    clock_gates: bool = True
    timing_repair: bool = True
    period_weight: float = 0.5
    period_ps: float | str = 1000
    booth: bool = False
    synth: str | None = None
    flatten: str = "auto"
    whole: int = 120_000
    part: int = 3_000
    most: int = 20_000


# What is mapped is a better start for mapping it again.
_AREA_SCRIPT = (
    "strash; {way}; amap -F 10 -A 20; strash; dch -f; amap -F 20 -A 20; strash; dch; amap -F 20 -A 20; "
    "topo; buffer -c -N 20; topo; upsize {D}; dnsize {D}; stime -p"
)
_PEERS_SCRIPT = "&get -n; &st; &dch; &nf; &put; buffer -c; topo; upsize {D}; dnsize {D}; stime -p"
RECIPES = {
    recipe.name: recipe
    for recipe in (
        Recipe(
            "area",
            "small area at the wanted period: structural choices, exact-area mapping, buffering, sizing",
            tuple(
                Mapping(_AREA_SCRIPT.format(way=way, D="{D}"), chains)
                for way, chains in (("dch -f", False), ("dch", False), ("dch -f", True))
            ),
        ),
        Recipe(
            "speed",
            "short delay: the structure of the RTL, fast gates, then the shortest period that justifies its area",
            (Mapping("strash; map -a -B 0.9; topo; buffer -c; upsize {D}; dnsize {D}; stime -p"),),
            period_ps=SEARCH,
            period_weight=1.5,
        ),
        *(
            Recipe(
                name,
                f"what a user's own script does: Yosys' {synth}, flip-flops, ABC once",
                (Mapping(_PEERS_SCRIPT),),
                adder_cells=False,
                clock_gates=False,
                timing_repair=False,
                flatten="flat",
                synth=synth,
            )
            for name, synth in (("plain", "synth -flatten"), ("plain-noabc", "synth -flatten -noabc"))
        ),
        Recipe(
            "A",
            "the recipe under which the published peers were measured; flat, adders as plain logic",
            (Mapping(_PEERS_SCRIPT),),
            adder_cells=False,
            clock_gates=False,
            timing_repair=False,
            flatten="flat",
        ),
    )
}


def abc(script, period_ps):
    """The Yosys command that maps all plain logic with a script of ABC."""
    script = script.replace(" ", ",")
    return f"abc -liberty cells.lib -constr constraints -D {period_ps:g} -script +{script}"


def coarse(booth):
    """What Yosys' ``synth`` does between ``coarse`` and ``fine``, but that tables stay logic: boxes have no area."""
    return [
        "opt_expr",
        "opt_clean",
        "opt -nodffe -nosdff",
        "fsm",
        "opt",
        "wreduce",
        "peepopt",
        "opt_clean",
        *["booth"] * booth,
        "alumacc",
        "share",
        "opt",
        "memory -nomap -norom",
        "opt_clean",
    ]


def commands(recipe, files, top, library, folder, flatten, period_ps, mapping):
    """The job for :mod:`hw.synthesis.worker`: Yosys commands and steps, from Verilog files to a mapped netlist.

    ``mapping`` is one of the recipe's.

    Without a library the design is mapped to Yosys' own gates. The job runs inside ``folder``, which has the files and
    the unpacked library as ``cells.lib``, so that commands name files without a path.
    """
    adder_cells = recipe.adder_cells and library is not None and library.full_adder is not None
    job = ["# reading", *(f"read_verilog {file}" for file in files), f"hierarchy -check -top {top}"]
    if recipe.synth:
        job += ["# synthesis", "blackbox A:role=memory", f"{recipe.synth} -top {top}"]
        job += [["box_memories", "memories.json"]]
    else:
        job += _logic(recipe, top, library, folder, flatten, mapping, adder_cells)
    if library is None:
        job += ["dfflegalize -cell $_DFF_P_ x", "# mapping to Yosys' gates", f"abc -g {GATES}"]
    else:
        (folder / "constraints").write_text(
            f"set_driving_cell {library.buffer.name}\nset_load {library.output_load:.3f}\n"
        )
        if recipe.clock_gates:
            job += [f"clockgate -liberty cells.lib -min_net_size {SMALLEST_GATED_SET}"]
        job += ["dfflibmap -liberty cells.lib", "opt -fast"]
        if adder_cells:
            job += ["techmap -map cells.v", "techmap", "opt -fast"]
        job += [f"# mapping to {library.name}", abc(mapping.script, period_ps)]
    job += ["# counting", "opt_clean -purge", "rename -enumerate -pattern _g%_", "write_json -noscopeinfo mapped.json"]
    if library is None:
        # Depth is counted in gates: not through what is below a module, whose paths are its own.
        job += [
            "tee -q -o transistors.json stat -tech cmos -json",
            "delete t:* t:$* %d",
            "tee -q -o depth.txt ltp -noff",
        ]
    return job


def _logic(recipe, top, library, folder, flatten, mapping, adder_cells):
    """From a hierarchy to gates of Yosys and one-bit adders."""
    job = ["proc -norom", ["black_boxes"], ["plain_adders", "additions.v"]]
    if adder_cells:
        (folder / "stubs.v").write_text(STUBS)
        (folder / "fold.v").write_text(FOLD)
        (folder / "cells.v").write_text(library_rules(library.full_adder, library.half_adder))
        job += ["read_verilog -lib stubs.v", ["adder_rows", "rows.v"]]
    job += [
        "# flattening",
        ["flatten", top, flatten, recipe.whole, recipe.part, recipe.most],
        "# coarse synthesis",
        *coarse(recipe.booth),
        ["box_memories", "memories.json"],
        "# fine synthesis",
        "opt -fast -full",
        "opt -full",
    ]
    if adder_cells:
        job += ["techmap -map fold.v", "opt -fast"] * 2
        job += [["half_used_adders", "half_used"]]
    if mapping.ripple:
        (folder / "ripple.v").write_text(RIPPLE)
        job += ["techmap -map +/techmap.v -max_iter 1 t:$alu", "techmap -map ripple.v"]
    return [*job, "techmap", "opt -fast"]
