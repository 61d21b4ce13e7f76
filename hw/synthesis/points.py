"""The points of the synthesis baseline: blocks and parts of them in chosen configurations, and how one is measured."""

import importlib
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from hw.emit.package import build_package, write_files
from hw.registry import make_block
from hw.synthesis import flow

__all__ = ["POINTS", "Point", "measure", "report_of"]


@dataclass(frozen=True)
class Point:
    """A block in one configuration: a unit's name, or the class of a part of the arithmetic library."""

    name: str
    unit: str
    parameters: dict = field(default_factory=dict)
    period_ps: float = 1000
    quick: bool = False
    recipes: tuple = ("area",)

    def block(self):
        if ":" not in self.unit:
            return make_block(self.unit, None, self.parameters)
        module, name = self.unit.split(":")
        return getattr(importlib.import_module(f"hw.arith.{module}"), name)(**self.parameters)

    @property
    def top(self):
        return self.name.replace("-", "_")


_MAPPER = {"n_columns": 4096, "n_banks": 32, "direction": "forward"}
_SELECTOR = {"width": 64, "height": 64, "channels": 1, "patch": 2, "n_values": 64}
_ALL = ("area", "speed", "A")
POINTS = (
    Point("hash-constant", "hash_bank_mapper", {**_MAPPER, "multiplier": 577}, 500, quick=True, recipes=_ALL),
    Point("hash-runtime", "hash_bank_mapper", {**_MAPPER, "multiplier": "runtime"}, 850, quick=True),
    Point("exponential", "exponential:Exponential", quick=True, recipes=_ALL),
    Point("reciprocal", "reciprocal:Reciprocal", period_ps=950, quick=True),
    Point("reciprocal-root", "reciprocal_root:ReciprocalRoot", period_ps=950, quick=True),
    Point("gelu", "gelu:Gelu", period_ps=1050),
    Point("fma", "fma:FusedMultiplyAdd", quick=True, recipes=_ALL),
    Point("sorter-16", "bitonic_sorter", {"n": 16, "network": "odd_even"}, 900, recipes=_ALL),
    Point("sorter-16-fast", "bitonic_sorter", {"n": 16, "network": "odd_even", "layers_per_stage": 1}, 460),
    Point("sorter-64", "bitonic_sorter", {"n": 64, "network": "odd_even"}, 910),
    Point("selector-64", "token_selector", {**_SELECTOR, "reference": "last", "bounds": 2}, 900),
    Point("selector-64-previous", "token_selector", _SELECTOR, 900),
    Point("dot-int8-16", "dot_product_unit", {"n_lanes": 16, "format": "int8"}, 950),
    Point("dot-bf16-16", "dot_product_unit", {"n_lanes": 16, "format": "bf16"}),
    Point("dot-fp16-4", "dot_product_unit", {"n_lanes": 4}),
    Point("dot-fp16-16", "dot_product_unit", {"n_lanes": 16}, recipes=("area", "A")),
    Point("dot-fp16-64", "dot_product_unit", {"n_lanes": 64}, 1050),
)


def report_of(point, recipe, library):
    """The report of a point's synthesis; how long it took goes to standard error."""
    begin = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="check-") as scratch:
        texts = build_package({point.top: point.block()})
        files = {name: text for name, text in texts.items() if name.endswith(".v")}
        write_files(scratch, files)
        period = None if recipe == "speed" else point.period_ps
        paths = [Path(scratch, name) for name in files]
        try:
            report = flow.synthesise(paths, point.top, liberty=library, recipe=recipe, period_ps=period)
        except ValueError as error:
            raise ValueError(f"{point.name} cannot be synthesised: {error}") from None
    print(f"{point.name} {recipe} ({time.monotonic() - begin:.0f} s)", file=sys.stderr, flush=True)
    return report


def measure(point, recipe, library):
    """``{cells, flip_flops, area, delay}`` of a point; area and delay in µm² and ps, or in transistors and gates."""
    report = report_of(point, recipe, library)
    counts, delay = report["figures"], report["delay"]
    area, worst_path = counts.get("area_um2"), delay.get("worst_path_ps")
    if library is None:
        area, worst_path = counts["transistors_estimate"], counts["logic_depth_estimate"]
    return {"cells": counts["cells"], "flip_flops": counts["flip_flops"], "area": area, "delay": worst_path}
