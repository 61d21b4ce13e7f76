"""QuantizerUnit: differences of activations to 2, 4, 6 or 8 bits, split into slices that are output in array order."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out
from amaranth.utils import bits_for

from golden.spec.formats import FP16
from golden.spec.mixed_precision import CEILINGS, MAX_SLICES, SLICE_WIDTH
from golden.spec.quantizer_unit import QuantizerUnitParameters, TileParameters
from hw.arith.trees import MaximumTree
from hw.lib.block import Block
from hw.lib.pipeline import Pipeline
from hw.units.quantizer_unit.entry_sorter import EntrySorter
from hw.units.quantizer_unit.layouts import EXPONENT, MAGNITUDE_WIDTH, entry_layout
from hw.units.quantizer_unit.reconstruction import Reconstruction
from hw.units.quantizer_unit.scale import ScaleSelector
from hw.units.quantizer_unit.value_lane import QuantiserLane

__all__ = ["QuantizerUnit", "QuantizerUnitParameters"]


class QuantizerUnit(Block):
    """value[i] = round(x[i] * 2**exponent), one exponent and 2, 4, 6 or 8 bits a vector by its largest magnitude.

    A tile is a sequence of vectors, each of a channel, the last one marked. The exponent is the largest one
    without clipping, between ``finest_exponent - n_levels + 1`` and ``finest_exponent``, for a precision of 2 bits up
    to a magnitude of ``threshold`` (FP16, positive and normal), 4 up to 4 times, 6 up to 16 times that, and 8 above, or
    always 8 with ``full_precision``; values are rounded to nearest, ties to even, and clipped to 127 in magnitude.

    Each vector's beat of ``quantised`` has its values as slices of two bits, slice m of value i in bits
    ``2 * (m * n_values + i)``, of which the first ``n_slices`` are valid (none if all values are zero); ``address`` is
    that of its lowest slice in the tile, counted over the slices of all vectors. A vector with a NaN or an infinity has
    ``error`` set and no slices. ``level`` numbers its exponent from the smallest one of the tile. With ``reconstruct``
    the beat also has the values as FP16 words. ``entry`` gives the tile's slices sorted for the array, see
    :class:`hw.units.quantizer_unit.entry_sorter.EntrySorter`: ``shift`` is the difference of keys to the entry before,
    ``exponent``, valid with ``last``, that of the sums. ``threshold``,
    ``finest_exponent`` and ``full_precision`` must not change while a vector is inside; the entries of its tile may be.

    Timing: a vector a clock, ``latency`` clocks to ``quantised``; the entries of a tile follow when all its vectors
    have arrived, one a clock without gaps. Either output can stall the unit; up to two tiles are buffered in front of
    each step of the sort.

    Defined by :func:`golden.units.quantizer_unit.quantise` and :func:`golden.units.quantizer_unit.encode`. It is
    DSTAR's QPU (section 4.2, figure 12) with a sort by counting in place of the bitonic network.
    """

    Parameters = QuantizerUnitParameters
    members_doc = {
        "vector": "the values of one channel",
        "vector.values": "FP16 numbers",
        "vector.channel": "number of the channel, unsigned",
        "vector.last": "the last vector of the tile",
        "threshold": "largest magnitude with 2 bits: FP16, positive, normal; constant while a vector is inside",
        "finest_exponent": "largest exponent, -15 to 24, two's complement; constant while a vector is inside",
        "full_precision": "8 bits for all vectors; constant while a vector is inside; not used, hold it at 0",
        "quantised": "slices of each vector",
        "quantised.slices": "slices of 2 bits, by slice, then by value, the lowest slice first",
        "quantised.n_slices": "number of valid slices; 0 if all values are zero",
        "quantised.level": "number of the exponent of its scale, 0 the smallest of the tile's; with error the largest",
        "quantised.address": "number of the lowest slice, counted over the slices of the tile",
        "quantised.channel": "as it came",
        "quantised.error": "the vector has a NaN or an infinity, and no slices",
        "quantised.last": "as it came",
        "quantised.reconstructed": "the quantised values as FP16 numbers",
        "entry": "slices of the tile in the order for the array",
        "entry.address": "number of the slice in the tile",
        "entry.channel": "of its vector",
        "entry.shift": "difference of its key to that of the entry before",
        "entry.exponent": "exponent of the tile's sums, two's complement; valid with last",
        "entry.is_top": "highest slice of its vector: code 2 stands for -2 and 3 for -1",
        "entry.is_used": "0 in the one entry of a tile without slices",
        "entry.last": "the last entry of the tile",
    }

    @staticmethod
    def members(p):
        quantised = {
            "slices": data.ArrayLayout(data.ArrayLayout(SLICE_WIDTH, p.n_values), MAX_SLICES),
            "n_slices": bits_for(MAX_SLICES),
            "level": p.level_width,
            "address": p.address_width,
            "channel": p.channel_width,
            "error": 1,
            "last": 1,
            **({"reconstructed": data.ArrayLayout(FP16.width, p.n_values)} if p.reconstruct else {}),
        }
        vector = {"values": data.ArrayLayout(FP16.width, p.n_values), "channel": p.channel_width, "last": 1}
        return {
            "vector": In(stream.Signature(data.StructLayout(vector))),
            "threshold": In(FP16.width),
            "finest_exponent": In(EXPONENT),
            "full_precision": In(1),
            "quantised": Out(stream.Signature(data.StructLayout(quantised))),
            "entry": Out(stream.Signature(entry_layout(p))),
        }

    @property
    def latency(self):
        """Clocks from a vector to its slices."""
        return 1 + self.parameters.maximum_stages + ScaleSelector.latency + 1 + self._reconstruct_stages

    @property
    def _reconstruct_stages(self):
        return Reconstruction.latency if self.reconstruct else 0

    def circuit(self):
        m = Module()
        p = self.parameters
        tile = {name: getattr(self, name) for name in TileParameters.__dataclass_fields__}
        m.submodules.sorter = sorter = EntrySorter(**tile)
        result = self.quantised.payload
        stage = _Stage(m, self.vector, self.quantised, sorter.vector)
        pipe = stage.pipe
        stage.chain(self.latency)
        vector = pipe.register(self.vector.payload, name="vector_1")

        m.submodules.maximum = maximum = MaximumTree(
            n_inputs=p.n_values, width=MAGNITUDE_WIDTH, n_stages=p.maximum_stages
        )
        m.submodules.scale = scale = ScaleSelector(**tile)
        m.d.comb += [
            maximum.advance.eq(pipe.advance),
            *(maximum.values[index].eq(word[:MAGNITUDE_WIDTH]) for index, word in enumerate(vector.values)),
            scale.advance.eq(pipe.advance),
            scale.largest.eq(maximum.largest),
            scale.threshold.eq(self.threshold),
            scale.finest_exponent.eq(self.finest_exponent),
            scale.full_precision.eq(self.full_precision),
        ]
        vector = pipe.register(vector, name="vector", stages=p.maximum_stages + ScaleSelector.latency)
        largest = pipe.register(maximum.largest, name="largest", stages=ScaleSelector.latency)

        error = largest >= FP16.infinity
        distance = FP16.bias + FP16.fraction_width - scale.exponent
        words = [Mux(error, 0, word) for word in (*vector.values, largest)]
        lanes = []
        for index, word in enumerate(words):
            lane = m.submodules[f"lane_{index}"] = QuantiserLane()
            m.d.comb += [lane.word.eq(word), lane.distance.eq(distance)]
            lanes.append(lane.value)
        peak = lanes.pop()
        n_slices = Signal(bits_for(MAX_SLICES))
        with m.If(self.full_precision):
            m.d.comb += n_slices.eq(Mux(peak > 0, MAX_SLICES, 0))
        with m.Else():
            m.d.comb += n_slices.eq(sum(peak > bound for bound in (0, *CEILINGS[:-1])))

        values = [pipe.register(value, name=f"value_{index}") for index, value in enumerate(lanes)]
        state = {"n_slices": n_slices, "channel": vector.channel, "error": error, "last": vector.last}
        state = {name: pipe.register(value, name=f"{name}_register") for name, value in state.items()}
        level = pipe.register(scale.level, name="level")
        if self.reconstruct:
            exponent = pipe.register(scale.exponent, name="exponent")
            for index, value in enumerate(values):
                lane = m.submodules[f"reconstruction_{index}"] = Reconstruction()
                m.d.comb += [
                    lane.advance.eq(pipe.advance),
                    lane.value.eq(value),
                    lane.exponent.eq(exponent),
                    result.reconstructed[index].eq(lane.word),
                ]
            late = self._reconstruct_stages
            values = [pipe.register(value, name=f"late_{index}", stages=late) for index, value in enumerate(values)]
            state = {name: pipe.register(value, name=f"late_{name}", stages=late) for name, value in state.items()}
            level = pipe.register(level, name="late_level", stages=late)
        address = self._address(m, stage, state)
        m.d.comb += [
            *(result[name].eq(value) for name, value in state.items()),
            result.address.eq(address),
            result.level.eq(Mux(state["error"], p.n_levels - 1, level)),
            *(
                result.slices[place][index].eq(value.as_unsigned()[SLICE_WIDTH * place :][:SLICE_WIDTH])
                for place in range(MAX_SLICES)
                for index, value in enumerate(values)
            ),
            sorter.vector.payload.level.eq(level),
            *(sorter.vector.payload[name].eq(state[name]) for name in ("n_slices", "channel", "last")),
            sorter.finest_exponent.eq(self.finest_exponent),
            self.entry.payload.eq(sorter.entry.payload),
            self.entry.valid.eq(sorter.entry.valid),
            sorter.entry.ready.eq(self.entry.ready),
        ]
        return m

    def _address(self, m, stage, state):
        """The number of slices in the vectors of the tile before."""
        address = Signal(self.parameters.address_width)
        with m.If(stage.leaves):
            m.d.sync += address.eq(Mux(state["last"], 0, address + state["n_slices"]))
        return address


class _Stage:
    """A pipeline whose beats fork to the user and the sorter, which accept them independently."""

    def __init__(self, m, source, sink, second):
        self._m, self._sink, self._second = m, sink, second
        self.valid, self.ready = Signal(name="result_valid"), Signal(name="result_ready")
        self.leaves = Signal(name="result_leaves")
        served = Signal(2, name="result_served")
        ready = Cat(sink.ready, second.ready)
        m.d.comb += [
            sink.valid.eq(self.valid & ~served[0]),
            second.valid.eq(self.valid & ~served[1]),
            self.ready.eq((served | ready).all()),
            self.leaves.eq(self.valid & self.ready),
        ]
        with m.If(self.valid):
            m.d.sync += served.eq(Mux(self.ready, 0, served | ready))
        self.pipe = Pipeline(m, source=source, sink=self)

    def chain(self, n_stages):
        """The valid bits of the stages."""
        self.pipe.valid_chain(n_stages)
