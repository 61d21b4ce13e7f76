"""docs/bench.md from the figures in docs/bench.json."""

from tabulate import tabulate

from verif.core.benchmark.workloads import WORKLOADS, sizes_of

__all__ = ["report"]

_MOST_CAUSES = 5
_INTRODUCTION = """\
# Benchmark of the core

Made by `make bench` (`python -m verif.core.benchmark`): workloads in the cycle model and, where they are small enough,
on the core's Verilog in Verilator, every stored word compared with the golden model. The figures are in `bench.json`,
in which `areas_mm2` may be given by hand: cell area without memories.

- **bound**: products of the dense workload / multipliers of the array, in clocks; **share**: bound / clocks. The
  engines multiply beside the array, so a share may be above 1; a masked head has the bound of the dense one.
- **needed**: products that the commands compute, without those that masks and token lists skip, / multipliers / clocks.
- **beats**: beats of the array's units / units / clocks: more than needed where rows do not fill the lanes, and less
  where the engines do a part.
- **Verilog**: empty where it was not run; shares are of its clocks where it was.
"""


def _table(rows):
    return tabulate(rows, headers="keys", tablefmt="github", disable_numparse=True)


def report(figures):
    """The text."""
    known = [(workload, figures["workloads"][workload.name]) for workload in WORKLOADS]
    parts = [_INTRODUCTION, "## Clocks", "", _table([_clocks(*pair, figures["areas_mm2"]) for pair in known])]
    parts += ["", "## Targets", "", _table(_targets(figures["workloads"]))]
    parts += ["", "## Waits", "", _WAITS, "", _table([_waits(*pair) for pair in known])]
    parts += ["", "## Memories", "", _MEMORIES, "", _table([_words(*pair) for pair in known])]
    return "\n".join(parts) + "\n"


_WAITS = """\
Where the array's clocks are, in the model, as shares of all clocks. **work**: beats of the fullest unit; **in
commands**: filling and draining, and rows that it follows; then why it had no command: the unit whose command it waited
for (operands: until it was done; rows: until it had started), or the entries of the scoreboard (window)."""

_MEMORIES = """\
Thousands of words read and written in the model: of IMEM a word of all lanes; of weight and value banks, scores,
probabilities and partial sums a word of one bank."""


def _clocks(workload, found, areas):
    model, verilog = found["model"], found.get("verilog")
    clocks, sizes = (verilog or model)["clocks"], sizes_of(workload)
    area = areas.get(workload.config)
    bus = "" if workload.bytes_a_clock is None else f"{workload.bytes_a_clock} bytes"
    return {
        "workload": workload.name,
        "core": workload.config + "".join(f" {name}={value}" for name, value in workload.parameters),
        "loads a clock": bus or f"{2 * sizes.row_word} bytes",
        "model": f"{model['clocks']:,}",
        "Verilog": f"{verilog['clocks']:,}" if verilog else "",
        "model is": f"{model['clocks'] / verilog['clocks'] - 1:+.2%}" if verilog else "",
        "bound": f"{model['bound']:,.0f}",
        "share": f"{model['bound'] / clocks:.3f}",
        "needed": f"{model['needed'] / clocks:.3f}",
        "beats": f"{model['beats'] / clocks:.3f}",
        "array busy": f"{model['busy']['array'] / model['clocks']:.3f}",
        "loads busy": f"{model['busy']['load'] / model['clocks']:.3f}",
        "mm² × kclk": f"{area * clocks / 1000:.1f}" if area else "",
    }


def _targets(found):
    def clocks(name):
        return found[name].get("verilog", found[name]["model"])["clocks"]

    def share(name):
        return found[name]["model"]["bound"] / clocks(name)

    dense, masked, many = "head, dense", "head, masked", "4 heads, {}, loads and stores"
    alone, block = "head, {}", "dit_small block, dense"
    rows = [("masked head: times as fast as the dense one", "≥ 2.5", f"{clocks(dense) / clocks(masked):.2f}")]
    for kind in ("dense", "masked"):
        # Of four heads, three have all their loads and stores beside them.
        ratio = clocks(many.format(kind)) / (4 * clocks(alone.format(kind)))
        rows.append(
            (f"4 heads with loads and stores, {kind}: clocks over those of 4 heads alone", "≤ 1.05", f"{ratio:.3f}")
        )
    rows.append(
        (
            "dit_small block, dense, loads at 32 bytes a clock: clocks over products / 256",
            "≤ 1.10",
            f"{1 / share(block):.3f}",
        )
    )
    for n_tokens, least in (("256", ""), ("1,024", "≥ 85 %"), ("4,096", "≥ 80 %")):
        value = share(f"DiT-XL/2 block, {n_tokens} tokens")
        rows.append((f"disc, DiT-XL/2 block, {n_tokens} tokens, loads at 64 bytes: share", least, f"{value:.1%}"))
    return [dict(zip(("measure", "target", "found"), row, strict=True)) for row in rows]


def _waits(workload, found):
    model = found["model"]
    clocks = model["clocks"]
    causes = [(cause, count) for cause, count in model["waits"].items() if count >= clocks / 1000]
    text = "; ".join(f"{cause} {count / clocks:.1%}" for cause, count in causes[:_MOST_CAUSES])
    return {
        "workload": workload.name,
        "work": f"{model['array_work'] / clocks:.1%}",
        "in commands": f"{(model['busy']['array'] - model['array_work']) / clocks:.1%}",
        "no command, because of": text,
    }


def _words(workload, found):
    model = found["model"]
    row = {"workload": workload.name}
    for memory in ("imem", "wmem", "vmem", "scores", "probabilities", "partial"):
        reads, writes = (model[kind].get(memory, 0) / 1000 for kind in ("reads", "writes"))
        row[f"{memory} r / w"] = f"{reads:,.0f} / {writes:,.0f}"
    return row
