"""Bugs made by hand in the emitted Verilog, and who notices them: a formal property of the block, its unit's testbench.

``python -m verif.campaigns.fault_injection`` makes them one by one and exits with 1 if one of them goes unnoticed by
both. The properties of units with long pipelines do not look at values; bugs there are for the testbench alone.
"""

import argparse
import dataclasses
import re
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from tabulate import tabulate

from hw.registry import PRESETS
from verif.bench import simulator
from verif.bench.batch import load_bench
from verif.bench.harness import run_job
from verif.core.properties import SMALLEST
from verif.formal import registry
from verif.formal.run import run

__all__ = ["BUGS", "Bug", "by_formal", "by_testbench"]


@dataclass(frozen=True)
class Bug:
    """``pattern`` becomes ``replacement`` in the Verilog of a ``block`` of a ``size``, or of whatever contains it.

    ``unit`` and ``block`` say which formal property looks at it, the first one unless ``place`` names another;
    ``bench``, ``parameters``: which testbench runs on the whole unit, if there is one.
    """

    name: str
    unit: str
    block: str
    size: dict
    pattern: str
    replacement: str
    bench: str = ""
    parameters: dict = field(default_factory=dict)
    place: int = 0
    for_bench: bool = False
    """No property looks at it, or the bounded check not as late: only the testbench finds it."""

    def make(self, text):
        """The text with the bug, and in how many places."""
        return re.subn(self.pattern, self.replacement, text)


def _not_reset(name, unit, block, size, reset, goes_on=""):
    """A register without its reset, for the testbench; ``goes_on`` tells it from others that begin alike."""
    pattern = rf"if \(rst\) {reset};\n\s*else if(?={goes_on})"
    return Bug(name, unit, block, size, pattern, "if", unit, size, for_bench=True)


_PAIRS = {"n": 4, "key_width": 3, "payload_width": 6}
_KEYS = {"n": 8, "key_width": 3, "payload_width": 3, "stable": True}
_CORE = PRESETS["tiny"]["core"]
_SOFTMAX = {"n_banks": 2, "n_slots": 4}
_NORM = {"n_lanes": 2, "n_slots": 16}
_VECTOR = {"n_engines": 2, "n_lanes": 2, "bank_depth": 4}
_ARRAY = {"n_units": 2, "n_lanes": 1, "n_slots": 4, "max_beats": 1, "weight_depth": 4}
_LATENT = {"width": 4, "height": 3, "channels": 1, "patch": 2, "n_values": 2}

BUGS = [
    Bug(
        "a sticky bit is dropped",
        "building_blocks",
        "LogShifter",
        {"width": 13, "amount_width": 4, "sticky": True},
        r"lost_8, lost_4",
        "lost_4",
        "dot_product_unit",
        {"n_lanes": 2},
    ),
    Bug(
        "ties are rounded away from zero",
        "building_blocks",
        "RoundPack",
        {"format": "fp16", "width": 12, "exponent_width": 7},
        r"& \(sticky \| significand\[1\]\)",
        "",
        "dot_product_unit",
        {"n_lanes": 2},
    ),
    Bug(
        "a bank's address is off by one",
        "hash_bank_mapper",
        "HashBankMapper",
        {"n_columns": 100, "n_banks": 8, "hash": "modular"},
        r"location__payload <= index__payload;",
        "location__payload <= index__payload + 7'h08;",
        "hash_bank_mapper",
        {"n_columns": 100, "n_banks": 8, "hash": "modular"},
    ),
    Bug(
        "valid is held a clock too long",
        "bitonic_sorter",
        "BitonicSorter",
        _PAIRS,
        r"sorted__valid <= (valid_\d);",
        r"sorted__valid <= \1 | (sorted__valid & sorted__payload[0]);",
        "bitonic_sorter",
        _PAIRS,
    ),
    Bug(
        "payloads are swapped",
        "bitonic_sorter",
        "BitonicSorter",
        _KEYS,
        r"leading\[8:0\] = exchange_0 \? second\[8:0\] : first\[8:0\];",
        "leading[8:0] = { exchange_0 ? second[8:3] : first[8:3], first[2:0] };",
        "bitonic_sorter",
        _KEYS,
        1,
    ),
    Bug(
        "a comparator is turned round",
        "bitonic_sorter",
        "BitonicSorter",
        _KEYS,
        r"exchange_1 = (\S+) < ",
        r"exchange_1 = \1 > ",
        "bitonic_sorter",
        _KEYS,
        1,
    ),
    Bug(
        "a reset is lost",
        "token_selector",
        "IndexScanner",
        {"n_bits": 2, "n_tokens": 4},
        r"if \(rst\) closes <= 1'h0;\n\s*else if",
        "if",
        "token_selector",
        _LATENT,
    ),
    Bug(
        "a count is off by one",
        "token_selector",
        "IndexScanner",
        {"n_bits": 2, "n_tokens": 4},
        r"= count \+ \{(\d'h0), has_index\};",
        r"= count + {\1, has_index & ~closes};",
        "token_selector",
        _LATENT,
    ),
    Bug(
        "a stall is ignored",
        "data_aligner",
        "DataAligner",
        {"n": 4, "width": 1},
        r"assign advance = ~columns__valid \| columns__ready;",
        "assign advance = 1'h1;",
        "data_aligner",
        {"n": 4, "width": 1},
    ),
    Bug(
        "a write is not forwarded",
        "memory",
        "MemoryBank",
        {"depth": 4, "width": 3, "read_during_write": "new"},
        r"read_data <= forwarded",
        "read_data <= read_port__data",
        place=1,
    ),
    Bug(
        "a slice holds valid too long",
        "stream_helpers",
        "RegisterSlice",
        {"width": 8},
        r"sink__valid <= source__valid;",
        "sink__valid <= source__valid | (sink__valid & sink__payload[0]);",
        "stream_helper",
        {"block": "RegisterSlice", "width": 8},
    ),
    Bug(
        "a full skid buffer takes another beat",
        "stream_helpers",
        "SkidBuffer",
        {"width": 8},
        r"if \(!is_full\) waiting <=",
        "waiting <=",
        "stream_helper",
        {"block": "SkidBuffer", "width": 8},
    ),
    Bug(
        "a queue wraps a word late",
        "stream_helpers",
        "StreamQueue",
        {"width": 2, "depth": 4, "storage": "memory"},
        r"ring_write_address == 2'h2",
        "1'h0",
        "stream_helper",
        {"block": "StreamQueue", "width": 2, "depth": 4, "storage": "memory"},
        1,
    ),
    Bug(
        "a fork forgets who has the beat",
        "stream_helpers",
        "StreamFork",
        {"width": 4, "n": 2},
        r"served <= source__ready \? 2'h0 : satisfied",
        "served <= 2'h0",
        "stream_helper",
        {"block": "StreamFork", "width": 4, "n": 2},
    ),
    Bug(
        "a row gets the statistic of another one",
        "softmax_unit",
        "RowBuffer",
        {"width": 1, "statistic_width": 2, "depth": 3},
        r"statistics_sink__ready = beats_sink__ready & beats_sink__payload\[\d+\]",
        "statistics_sink__ready = beats_sink__ready",
        "softmax_unit",
        {"n_banks": 1, "n_slots": 4},
    ),
    Bug(
        "a beat is lost behind a stalled pipeline",
        "softmax_unit",
        "SoftmaxUnit",
        {"n_banks": 1, "n_slots": 1},
        r"assign advance = ~power_buffer_source__valid \| power_buffer_source__ready;",
        "assign advance = 1'h1;",
        "softmax_unit",
        {"n_banks": 1, "n_slots": 1},
        for_bench=True,
    ),
    Bug(
        "a result changes while it waits",
        "layer_norm_unit",
        "LayerNormUnit",
        {"n_lanes": 1, "n_slots": 1},
        r"assign (\w*advance) = ~normalised__valid \| normalised__ready;",
        r"assign \1 = 1'h1;",
        "layer_norm_unit",
        {"n_lanes": 1, "n_slots": 1},
    ),
    Bug(
        "a disabled lane is written",
        "vector_unit",
        "VectorUnit",
        {"n_engines": 1, "n_lanes": 1, "bank_depth": 1},
        r"bank_write_enable = lane_enable(_0)? & ",
        "bank_write_enable = ",
        "vector_unit",
        {"n_engines": 1, "n_lanes": 1, "bank_depth": 1},
        1,
    ),
    _not_reset(
        "a row's maximum survives a reset",
        "softmax_unit",
        "SoftmaxUnit",
        _SOFTMAX,
        "begun <= 1'h0",
        r" \(valid_1\) begun <= ~tree_beat",
    ),
    _not_reset(
        "a sum of retained values survives a reset",
        "softmax_unit",
        "SoftmaxUnit",
        _SOFTMAX,
        "begun <= 1'h0",
        r" \(\w+\) begun <= ~last_1;",
    ),
    Bug(
        "what equals the threshold is dropped",
        "softmax_unit",
        "SoftmaxUnit",
        _SOFTMAX,
        r"\(value_3 >= bound\)",
        "(value_3 > bound)",
        "softmax_unit",
        _SOFTMAX,
        for_bench=True,
    ),
    Bug(
        "a negative threshold is taken for its magnitude",
        "softmax_unit",
        "SoftmaxUnit",
        _SOFTMAX,
        r"theta\[15\] \? 15'h0000 : (theta\[14:0\])",
        r"\1",
        "softmax_unit",
        _SOFTMAX,
        for_bench=True,
    ),
    _not_reset(
        "the next row's coefficients begin where a reset left off",
        "layer_norm_unit",
        "LayerNormUnit",
        _NORM,
        r"slot <= \d+'h0+",
    ),
    _not_reset("a sum of squares survives a reset", "layer_norm_unit", "LayerNormUnit", _NORM, "begun <= 1'h0"),
    _not_reset("an open sum survives a reset", "vector_unit", "VectorUnit", _VECTOR, "sum_fresh <= 1'h1"),
    _not_reset("an open maximum survives a reset", "vector_unit", "VectorUnit", _VECTOR, "maximum_fresh <= 1'h1"),
    _not_reset(
        "an open dot product survives a reset", "dot_product_unit", "DotProductUnit", {"n_lanes": 2}, "open_sum <= 1'h0"
    ),
    _not_reset(
        "a beat before the units survives a reset", "dot_product_array", "DotProductArray", _ARRAY, "beat_valid <= 1'h0"
    ),
    Bug(
        "a loop gives a row too early",
        "core",
        "RowSequencer",
        {"max_tokens": 2},
        r"position < limit",
        "position <= limit",
    ),
    Bug(
        "a row's last one is not marked",
        "core",
        "BitmapScanner",
        {"n_banks": 1, "n_slots": 2, "max_turns": 2},
        r"scanned__payload_last = ~finder_0_several",
        "scanned__payload_last = 1'h0",
        "bitmap_scanner",
        {"n_banks": 1, "n_slots": 2, "max_turns": 2},
    ),
    Bug(
        "a row passes before it is worked at",
        "dot_product_array",
        "SlotScanner",
        {"n_slots": 2, "max_beats": 2, "weight_depth": 4, "n_places": 2, "row_width": 2},
        r"offered_passes = .*;",
        "offered_passes = 1'h1;",
        "dot_product_array",
        {"n_units": 2, "n_lanes": 1, "n_slots": 2, "max_beats": 1},
    ),
    Bug(
        "a command waits for ever",
        "core",
        "Controller",
        SMALLEST,
        r"assign checker_net_start = .*;",
        "assign checker_net_start = 1'h0;",
        place=1,
    ),
    Bug(
        "a row is read before it is written",
        "core",
        "Scoreboard",
        {"max_tokens": 2, "n_masks": 1, "in_flight": 2},
        r"= array_follows \? (\w+) : (\w+);",
        r"= \2;",
        "core",
        _CORE,
        1,
    ),
    Bug(
        "an error is overwritten by a later one",
        "core",
        "Controller",
        SMALLEST,
        r"= &\{fsm_state_is_2, checker_net_done, error_is_zero, (\w+)\};",
        r"= &{fsm_state_is_2, checker_net_done, \1};",
        "core",
        _CORE,
    ),
]


def by_formal(bug, folder):
    """What the property says: a :class:`verif.formal.run.Result`."""
    of_block = [prop for prop in registry.properties((bug.unit,)) if prop.block.__name__ == bug.block]

    def edit(text):
        changed, count = bug.make(text)
        if not count:
            raise ValueError(f"{bug.name}: nothing in the Verilog looks like {bug.pattern}")
        return changed

    return run(dataclasses.replace(of_block[bug.place], sizes=[bug.size]), folder, edit)


def by_testbench(bug, seed=1, count=200, sim=None):
    """How many checks of the unit's testbench fail, and how many there were; None without a testbench."""
    if not bug.bench:
        return None
    block = load_bench(bug.bench, bug.parameters, seed).block

    def edit(files):
        made = {name: bug.make(text) for name, text in files.items()}
        if not any(count for _, count in made.values()):
            raise ValueError(f"{bug.name}: nothing in {block.base_name} looks like {bug.pattern}")
        return {name: text for name, (text, _) in made.items()}

    job = {"unit": bug.bench, "parameters": bug.parameters, "seed": seed, "count": count}
    result = run_job(block, "verif.bench.testbench:run_standard", job, sim=sim, edit=edit)
    return result["failed"], result["checked"]


_HEAD = """# Bugs made by hand

Generated by `python -m verif.campaigns.fault_injection --report docs/bugs.md`. Each bug is a change of the emitted
Verilog ([verif/campaigns/fault_injection.py](../verif/campaigns/fault_injection.py) has them all); the table says who
notices it: the formal property of the block, and the testbench of the unit that contains it (200 beats, seed 1).
"""


def main(arguments=None):
    parser = argparse.ArgumentParser(
        prog="python -m verif.campaigns.fault_injection", description=__doc__.split("\n\n")[0]
    )
    parser.add_argument("words", nargs="*", metavar="WORD", help="only bugs with these words in their names")
    parser.add_argument("--report", metavar="FILE", help="write the table; only with all bugs")
    options = parser.parse_args(arguments)
    if options.report and options.words:
        parser.error("--report needs all bugs: leave out the words")
    bugs = [bug for bug in BUGS if all(word in bug.name for word in options.words)]
    if not bugs:
        parser.error(f"no bug has {' and '.join(options.words)} in its name")
    rows, unnoticed = [], []
    for bug in bugs:
        if bug.for_bench:
            formal, is_found = "does not look at it", False
        else:
            with tempfile.TemporaryDirectory(prefix="bug-") as folder:
                proof = by_formal(bug, Path(folder))
            formal, is_found = re.sub(r" \([^()]*\)$", "", proof.verdict), proof.holds is False
        try:
            found = by_testbench(bug)
        except simulator.SimulatorError as error:
            parser.exit(2, f"{error}\n")
        bench = "no unit uses it" if found is None else f"{found[0]} failures in {found[1]} checks"
        rows.append([bug.name, f"`{bug.block}`", formal, bug.bench or "-", bench])
        print(": ".join([bug.name, formal, bench]), flush=True)
        if not is_found and not (found and found[0]):
            unnoticed.append(bug.name)
    if options.report:
        headers = ["bug", "block", "formal", "testbench", "what it says"]
        Path(options.report).write_text(f"{_HEAD}\n{tabulate(rows, headers=headers, tablefmt='github')}\n")
    for name in unnoticed:
        print(f"UNNOTICED: {name}")
    return 1 if unnoticed else 0


if __name__ == "__main__":
    sys.exit(main())
