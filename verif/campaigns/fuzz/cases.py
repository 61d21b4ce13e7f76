"""Cases of the fuzzer: a good command line with good files, of which something is then spoilt."""

import random
from dataclasses import dataclass, field
from pathlib import Path

from hw.registry import BLOCKS, PRESETS, unit_class
from verif.campaigns.fuzz import files
from verif.campaigns.fuzz.files import NUMBERS, TEXTS

__all__ = ["OUTPUT", "Case", "make_case"]

OUTPUT = "out"
_LIGHT = ("hash_bank_mapper", "bitonic_sorter", "data_aligner")
"""Blocks that are emitted in an instant."""

_SIZES = {"hash_bank_mapper": "n_columns", "bitonic_sorter": "n", "data_aligner": "n"}
_SETTINGS = (
    "multiplier=runtime",
    "hash=modular",
    "network=odd_even",
    "stable=true",
    "key_width=7",
    "width=3",
    "n_banks=2",
)


@dataclass
class Case:
    """``words`` are the module and its arguments; ``files`` lie in the folder where it runs before it starts."""

    words: list[str]
    environment: dict[str, str] = field(default_factory=dict)
    files: dict[str, bytes] = field(default_factory=dict)
    output: str = "absent"
    """What is at the place of the output folder: absent, folder, file, blocked, loop, dangling."""
    carry_out: bool = False
    """Whether the work itself is done too where the request is legal and small."""

    def prepare(self, folder):
        """Lay out the files in an empty folder."""
        place = folder / OUTPUT
        if self.output == "file":
            place.write_text("mine\n")
        elif self.output == "loop":
            place.symlink_to(OUTPUT)
        elif self.output == "dangling":
            place.symlink_to("nowhere/at/all")
        elif self.output in ("folder", "blocked"):
            place.mkdir()
            (place / "old.v").write_text("mine\n")
        if self.output == "blocked":  # a folder where a file is to be written
            for name in ("files.f", "commands.md", "result.json"):
                (place / name).mkdir()
        for name, data in self.files.items():
            path = folder / name
            if self.output not in ("file", "loop", "dangling") or not name.startswith(f"{OUTPUT}/"):
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(data)


def make_case(seed, index):
    """The case of this number: the same one whenever it is asked for."""
    rng = random.Random(f"{seed} {index}")
    words, case = _TEMPLATES[rng.choices(range(len(_TEMPLATES)), _WEIGHTS)[0]](rng)
    for _ in range(rng.choice((0, 0, 0, 0, 1) if case.files else (0, 1, 1, 1, 2, 3))):
        _spoil(rng, words)
    case.words = [_contained(word) for word in words]
    case.output = rng.choice(["absent"] * 6 + ["folder", "file", "blocked", "loop", "dangling"])
    if rng.random() < 0.1:
        case.files[f"{OUTPUT}/manifest.json"] = files.manifest(rng)
    if words[0] == "verif" and rng.random() < 0.2:
        case.environment["SIM"] = rng.choice([*TEXTS, "icarus"])
    return case


def _block(rng, light=True):
    unit = rng.choice(_LIGHT if light else BLOCKS)
    if rng.random() < 0.3:
        return [unit, "--config", rng.choice(("tiny", "small") if light else list(PRESETS))]
    if not light and rng.random() < 0.7:
        name = rng.choice([*unit_class(unit).Parameters.__dataclass_fields__])
        return [unit, "-p", f"{name}={rng.choice(TEXTS)}"]
    settings = [f"{_SIZES.get(unit, 'n_lanes')}={rng.choice((2, 4, 8))}"]
    return [unit, "-p", *settings, *([rng.choice(_SETTINGS)] if rng.random() < 0.3 else [])]


def _verilog(rng):
    words = ["hw", "verilog", *_block(rng, rng.random() < 0.5), "-o", OUTPUT]
    if rng.random() < 0.3:
        named = (["--name", "top"], ["--name", rng.choice(TEXTS)], ["--prefix", "p_"], ["--prefix", rng.choice(TEXTS)])
        words += rng.choice((["--memory", "macro"], ["--verify"], *named))
    return words, Case([], carry_out=rng.random() < 0.4)


def _synth(rng):
    words = ["hw", "synth", *_block(rng, rng.random() < 0.7), "-o", OUTPUT]
    case = Case([], carry_out=rng.random() < 0.1)
    for option in (
        ["--recipe", "area"],
        ["--period", "500"],
        ["--period", rng.choice(NUMBERS)],
        ["--flatten", "flat"],
        ["--keep"],
    ):
        if rng.random() < 0.2:
            words += option
    if rng.random() < 0.3:
        name = rng.choice(("cells.lib", "cells.lib.gz", "c ells.lib", "c\u00e9lls.lib"))
        words += ["--liberty", name]
        case.files[name] = files.library(rng)
    return words, case


def _library(rng):
    """A damaged library is read, and sometimes used, for the smallest block."""
    name = rng.choice(("cells.lib", "cells.lib.gz"))
    words = ["hw", "synth", "hash_bank_mapper", "-p", "n_columns=4", "n_banks=2", "-o", OUTPUT, "--liberty", name]
    return words, Case([], files={name: files.library(rng)}, carry_out=rng.random() < 0.25)


def _list(rng):
    return ["hw", "list", *(["--json"] if rng.random() < 0.5 else [])], Case([])


def _commands(rng):
    return ["hw", "commands", "-o", OUTPUT], Case([])


def _readme(rng):
    case = Case([], files={"README.md": rng.choice((b"", b"# x\n", b"\xff\xfe", Path("README.md").read_bytes()))})
    for unit in ("dot_product_unit", "token_selector"):
        case.files[f"reports/{unit}_small_area_1000ps_auto_mini-12345678.json"] = files.report(rng)
    return ["hw", "readme", "--reports", "reports"], case


def _balance(rng):
    words = ["golden", "balance", "masks.npz", "--key", "masks", "--banks", rng.choice(("1", "2", "4", "16"))]
    for option in (
        ["--packed"],
        ["--run-ahead", "2"],
        ["--run-ahead", rng.choice(NUMBERS)],
        ["--banks", rng.choice(NUMBERS)],
        ["--best", rng.choice(NUMBERS)],
    ):
        if rng.random() < 0.2:
            words += option
    return words, Case([], files={"masks.npz": files.masks(rng)}, carry_out=True)


def _verif(rng):
    words = ["verif", *_block(rng, rng.random() < 0.7), "-n", "9"]
    for option in (
        ["--seed", "3"],
        ["--seed", rng.choice(NUMBERS)],
        ["--count", rng.choice(NUMBERS)],
        ["--sim", "icarus"],
        ["--sim", rng.choice(TEXTS)],
        ["--waves", OUTPUT],
    ):
        if rng.random() < 0.2:
            words += option
    return words, Case([], carry_out=rng.random() < 0.05)


def _demo(rng):
    words = ["verif.core.demo", "-o", OUTPUT]
    for option in ("--config", "--head", "--theta", "--step", "--tau", "--sim"):
        if rng.random() < 0.3:
            words += [option, rng.choice(TEXTS)]
    case = Case([])
    if rng.random() < 0.6:
        case.files["workload.npz"] = files.masks(rng)
        case.environment["WORKLOAD"] = rng.choice(["workload.npz"] * 5 + TEXTS)
    return words, case


def _formal(rng):
    words = ["verif.formal", rng.choice(("hash_bank_mapper", *TEXTS)), "-o", OUTPUT]
    for option in (["--quick"], ["--jobs", rng.choice(NUMBERS)], ["--table", "table.md"], ["--list"]):
        if rng.random() < 0.3:
            words += option
    return words, Case([])


_TEMPLATES = [_verilog, _synth, _library, _list, _commands, _readme, _balance, _verif, _demo, _formal]
_WEIGHTS = [6, 5, 8, 1, 1, 2, 6, 5, 2, 2]


def _spoil(rng, words):
    """Change the arguments, but for the module."""
    at = rng.randrange(1, len(words))
    kind = rng.choice((0, 1, 2, 3, 4, 5, 5, 5, 6, 7))
    if kind == 5:
        at = rng.choice([number for number, word in enumerate(words) if "=" in word and number] or [at])
    if kind == 0:
        del words[at]
        if len(words) == 1:
            words.append(rng.choice(TEXTS))
    elif kind == 1:
        words[at] = rng.choice(TEXTS)
    elif kind == 2:
        words.insert(at, rng.choice(TEXTS))
    elif kind == 3:
        words.insert(at, words[at])
    elif kind == 4:
        other = rng.randrange(1, len(words))
        words[at], words[other] = words[other], words[at]
    elif kind == 5:
        name, equals, _ = words[at].partition("=")
        words[at] = f"{name}={rng.choice(TEXTS)}"
    elif kind == 6:
        options = ("--help", "--conf", "--bogus", "-x", "-p", "-o", "--output", "--json", "--param", "-pn=2")
        words.insert(at, rng.choice(options))
    else:
        place = rng.randrange(len(words[at]) + 1)
        words[at] = words[at][:place] + rng.choice(TEXTS)[:4] + words[at][place + rng.randrange(2) :]


def _contained(word):
    """No argument names a place outside the folder of the case, since what is legal is done."""
    if word.startswith("/dev/null"):
        return word
    return word.replace("..", ".").replace("/", ":").replace("\0", "")
