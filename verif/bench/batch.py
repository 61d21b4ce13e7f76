"""The base of every unit's testbench: a source of batches of stimulus with the golden model's answers."""

import importlib
import re
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from amaranth.lib.wiring import In

from hw.lib.ports import leaf_ports
from hw.registry import unit_class


@dataclass
class Batch:
    """Beats for each input stream, the beats expected at each output stream, in order, as packed integers.

    ``bins`` counts the corner cases that the batch contains; ``statics`` are values of plain input ports, set while
    the unit is idle. ``full_rate`` names the input streams that must be accepted every clock while no output stalls
    (by default all). ``causes`` maps an output stream to (input stream, index of the input beat behind each output
    beat): where nothing stalls, each result must be valid exactly ``block.latency`` clocks after that beat was
    accepted, ``None`` for beats with no fixed time (by default beat for beat where there is one input, one output and
    a result for every beat); ``latencies`` says after how many clocks instead, a number for each result of an output.
    ``after``
    maps an input stream to another one that must have been taken completely before it begins. ``gapless`` names the
    outputs whose beats must come in successive clocks where nothing stalls and no input idles.
    """

    inputs: dict[str, list[int]]
    outputs: dict[str, list[int]]
    bins: dict[str, int] = field(default_factory=dict)
    statics: dict[str, int] = field(default_factory=dict)
    full_rate: tuple[str, ...] | None = None
    causes: dict[str, tuple[str, list[int]]] | None = None
    latencies: dict[str, list[int]] = field(default_factory=dict)
    after: dict[str, tuple[str, ...]] = field(default_factory=dict)
    gapless: tuple[str, ...] = ()

    def __post_init__(self):
        if self.full_rate is None:
            self.full_rate = tuple(self.inputs)
        if self.causes is None:
            self.causes = {}
            if len(self.inputs) == len(self.outputs) == 1:
                (source, beats), (sink, results) = *self.inputs.items(), *self.outputs.items()
                if len(beats) == len(results):
                    self.causes = {sink: (source, list(range(len(beats))))}


OTHER_BENCHES = {
    "accelerator": "verif.system.bench",
    "core": "verif.core.bench",
    "bitmap_scanner": "verif.core.bitmap_scanner_bench",
    "stream_helper": "verif.lib.stream_helper_bench",
}
"""Where the benches lie that belong to no folder of ``verif/units``."""


def bench_class(unit):
    """The bench of a unit: class ``UnitNameBench`` in ``verif/units/unit_name/bench.py``."""
    module = importlib.import_module(OTHER_BENCHES.get(unit, f"verif.units.{unit}.bench"))
    return getattr(module, re.sub(r"(?:^|_)([a-z])", lambda match: match[1].upper(), unit) + "Bench")


def load_bench(unit, parameters, seed):
    """The bench for a block with the given parameters (a dictionary)."""
    cls = bench_class(unit)
    bench = cls(cls.make_block(parameters), seed)
    if not bench.required_bins:
        raise ValueError(f"{cls.__name__} names no required bins: a run could miss what it is for")
    return bench


class Bench:
    """A unit's testbench; subclasses define ``unit``, :meth:`batch` and the bins that a run must hit."""

    unit = ""
    required_bins: frozenset[str] = frozenset()
    clocks_a_beat = 1
    """About how many clocks a beat of stimulus takes."""
    longest_silence = 0
    """Clocks for which a unit may move no beat at all while it works, beyond its latency."""
    longest_stall = 0
    """Clocks for which a stalled result may make the input wait after it was taken, beyond the latency."""

    def __init__(self, block, seed):
        self.block = block
        self.parameters = block.parameters
        self.rng = np.random.default_rng(seed)

    @classmethod
    def make_block(cls, parameters):
        """The block under test, from plain data; overridden where it is none of the registered units."""
        return unit_class(cls.unit)(**parameters)

    @cached_property
    def latency(self):
        """Clocks after which nothing is under way any more, beyond those in which beats move."""
        return self.block.latency

    def forget(self):
        """The unit was reset; a bench that knows what the unit remembers forgets it."""

    def endpoints(self, dut, rng):
        """What drives ports that are no streams, as the clock takes it (:class:`verif.bench.clock.Clock`)."""
        return []

    def watch(self, dut, report):
        """Look at plain output ports after every clock; ``report`` takes a sentence on what is wrong."""

    def check_end(self, report):
        """A batch has ended and nothing is under way; ``report`` takes a sentence on what is missing."""

    def streams(self):
        """The names of the unit's input and output streams."""
        names = {"inputs": [], "outputs": []}
        for port in leaf_ports(self.block):
            if port.is_stream:
                names["inputs" if port.flow is In else "outputs"].append(port.name)
        return names

    def idle_statics(self):
        """Values of the plain input ports before the first batch."""
        return {port.name: 0 for port in leaf_ports(self.block) if not port.is_stream and port.flow is In}

    def batch(self, count) -> Batch:
        """About ``count`` beats of stimulus that depend on nothing that was sent before."""
        raise TypeError(f"{type(self).__name__} does not define batch()")
