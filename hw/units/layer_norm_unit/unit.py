"""LayerNormUnit: layer normalisation of rows, one beat a clock."""

from dataclasses import dataclass

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from golden.spec import layer_norm_unit as spec
from golden.spec.formats import FP16
from hw.lib.block import Block
from hw.lib.memory import MemoryBank
from hw.lib.pipeline import Pipeline
from hw.units.layer_norm_unit.deviation_lane import DeviationLane
from hw.units.layer_norm_unit.layouts import DEVIATION, EPSILON, ROOT, RowParameters
from hw.units.layer_norm_unit.output_lane import OutputLane
from hw.units.layer_norm_unit.row_root import RowRoot
from hw.units.layer_norm_unit.row_sum import RowSum
from hw.units.softmax_unit.row_buffer import RowBuffer

__all__ = ["LayerNormUnit", "LayerNormUnitParameters"]


@dataclass(frozen=True, kw_only=True)
class LayerNormUnitParameters(spec.LayerNormUnitParameters):
    @property
    def row(self):
        return RowParameters(n_elements=self.n_lanes * self.n_slots)

    @property
    def coefficients(self):
        words = data.ArrayLayout(FP16.width, self.n_lanes)
        return data.StructLayout({"gamma": words, "beta": words})


class LayerNormUnit(Block):
    """``y = gamma * (x - mean) / sqrt(variance + epsilon) + beta`` over each row's enabled elements, in FP16.

    Members (lane 0 in the lowest bits):

    * ``element``: ``values`` (n_lanes FP16 words), ``enable`` (which of them are elements of the row), ``last`` (the
      row ends; after n_slots beats at most). Beat s of a row has its elements s * n_lanes and following.
    * ``coefficient``: ``gamma`` and ``beta`` of the elements of beat ``slot``, for all rows; always taken. They may be
      written while the unit is empty.
    * ``epsilon``: ``(1 + fraction / 2**12) * 2**(exponent - 48)``, ``fraction`` (12 bits) below ``exponent`` (6 bits).
      It may change while the unit is empty.
    * ``normalised``: a beat for each beat: ``values`` (0 where not enabled), ``enable``, ``last``.

    Mean and variance are those of the enabled elements, any number n of them: they are counted. There is no
    cancellation error: the row's sum is exact, and each deviation, times n, is the difference of two integers that are
    exact in a frame 2**30 times finer than the row's range. Only the sum of their squares is divided by n, by a
    reciprocal from linear segments. An infinity or NaN among the elements makes the row's results NaN. With z the
    normalised element before gamma, the error is at most ``|gamma| * (1.5 ulp of z + 2**-21) + 1/2 ulp of y``; if beta
    is 0, 4 ulp or ``|gamma| * 2**-21``. A row without elements gives zeros, one whose elements are all the same gives
    beta.

    Three phases work on different rows: sum, number and range, while the elements are buffered; deviations and the sum
    of their squares, while these are buffered; the reciprocal root, products and rounding. Timing: ``element`` is
    accepted every clock, for rows of any lengths, unless the output stalls. A row enters each of the last two phases
    when it is complete and the previous row has left it. So a beat is output at most latency + 2 * (b - 1) clocks after
    it was accepted, b being the beats of the longest row; exactly then if all rows have the same length and the input
    never idles.

    Defined by :func:`golden.units.layer_norm_unit.layer_norm`. DiSC's vector unit does the same in several passes.
    """

    role = "layer_norm"
    Parameters = LayerNormUnitParameters
    members_doc = {
        "element": "n_lanes elements of a row, beat after beat",
        "element.values": "FP16 numbers",
        "element.enable": "which of them are elements of the row",
        "element.last": "the row ends; after n_slots beats at most",
        "coefficient": "gamma and beta of the elements of one beat, for all rows; always ready; written while the unit "
        "is empty",
        "coefficient.gamma": "FP16 numbers",
        "coefficient.beta": "FP16 numbers",
        "coefficient.slot": "which beat of a row has these elements",
        "epsilon": f"added to the variance, as {spec.EPSILON.text}; changes while the unit is empty",
        "epsilon.fraction": "unsigned",
        "epsilon.exponent": "unsigned",
        "normalised": "a beat for each beat",
        "normalised.values": "FP16 numbers, 0 where not enabled",
        "normalised.enable": "as it came",
        "normalised.last": "as it came",
    }

    def prepare(self):
        self._row = self.parameters.row
        self._sum = RowSum(n_lanes=self.n_lanes, n_elements=self._row.n_elements)
        self._root = RowRoot(n_lanes=self.n_lanes, n_elements=self._row.n_elements)
        self._elements = RowBuffer(
            width=self.n_lanes * (FP16.width + 1),
            statistic_width=self._row.statistic.size,
            depth=self._depth(self._sum),
        )
        self._deviations = RowBuffer(
            width=self.n_lanes * (DEVIATION.size + 1), statistic_width=ROOT.size, depth=self._depth(self._root)
        )

    @staticmethod
    def members(p):
        words = data.ArrayLayout(FP16.width, p.n_lanes)
        beat = data.StructLayout({"values": words, "enable": p.n_lanes, "last": 1})
        return {
            "element": In(stream.Signature(beat)),
            "coefficient": In(
                stream.Signature(
                    data.StructLayout({"gamma": words, "beta": words, "slot": max(1, ceil_log2(p.n_slots))})
                )
            ),
            "epsilon": In(EPSILON),
            "normalised": Out(stream.Signature(beat)),
        }

    def _depth(self, statistic):
        """Depth of a buffer that never stalls: the beats of a row, plus those until its statistic is valid."""
        return self.n_slots + statistic.latency + RowBuffer.latency

    @property
    def latency(self):
        """Clocks from a row of one beat to its results, in an empty unit with a sink that is ready."""
        buffers = self._sum.latency + self._root.latency + 2 * RowBuffer.latency
        return buffers + DeviationLane.latency + OutputLane.latency

    def circuit(self):
        m = Module()
        m.submodules.element_buffer = elements = self._elements
        m.submodules.deviation_buffer = deviations = self._deviations
        self._take(m, elements)
        self._deviate(m, elements.row, deviations)
        self._normalise(m, deviations.row)
        return m

    def _take(self, m, buffer):
        """Write elements to their buffer and compute the row sum."""
        m.submodules.row_sum = row_sum = self._sum
        element = self.element.payload
        m.d.comb += [
            buffer.source.payload.beat.eq(Cat(element.values, element.enable)),
            buffer.source.payload.last.eq(element.last),
            buffer.source.valid.eq(self.element.valid),
            self.element.ready.eq(buffer.source.ready),
            row_sum.valid.eq(self.element.valid & self.element.ready),
            row_sum.last.eq(element.last),
            row_sum.elements.eq(element.values),
            row_sum.enable.eq(element.enable),
            buffer.statistic.eq(row_sum.row),
            buffer.statistic_valid.eq(row_sum.row_valid),
        ]

    def _deviate(self, m, row, buffer):
        """Write deviations to their buffer and compute the row root."""
        pipe = Pipeline(m, source=row, sink=buffer.source)
        pipe.valid_chain(DeviationLane.latency)
        words = Signal(data.ArrayLayout(FP16.width, self.n_lanes))
        enable = Signal(self.n_lanes, name="element_enable")
        statistic = Signal(self._row.statistic)
        m.d.comb += [Cat(words, enable).eq(row.payload.beat), statistic.eq(row.payload.statistic)]
        mean = pipe.register(statistic.mean, name="mean_2", stages=2)
        m.submodules.row_root = root = self._root
        for index in range(self.n_lanes):
            lane = m.submodules[f"deviation_{index}"] = DeviationLane(n_elements=self._row.n_elements)
            m.d.comb += [
                lane.advance.eq(pipe.advance),
                lane.element.eq(words[index]),
                lane.enable.eq(enable[index]),
                lane.count.eq(statistic.count),
                lane.scale.eq(statistic.scale),
                lane.mean.eq(mean),
                root.deviations[index].eq(lane.deviation),
            ]
        delayed = {
            name: pipe.register(value, name=f"deviation_{name}", stages=DeviationLane.latency)
            for name, value in {
                "enable": enable,
                "last": row.payload.last,
                **{name: statistic[name] for name in ("count", "octave", "scale", "has_special")},
            }.items()
        }
        m.d.comb += [
            buffer.source.payload.beat.eq(Cat(root.deviations, delayed.pop("enable"))),
            buffer.source.payload.last.eq(delayed["last"]),
            root.valid.eq(buffer.source.valid & buffer.source.ready),
            *(getattr(root, name).eq(value) for name, value in delayed.items()),
            root.epsilon.eq(self.epsilon),
            buffer.statistic.eq(root.row),
            buffer.statistic_valid.eq(root.row_valid),
        ]

    def _normalise(self, m, row):
        """Results, with the coefficients of their slot."""
        pipe = Pipeline(m, source=row, sink=self.normalised)
        pipe.valid_chain(OutputLane.latency)
        coefficients = self._coefficients(m, pipe, row)
        deviations = Signal(data.ArrayLayout(DEVIATION, self.n_lanes))
        enable = Signal(self.n_lanes, name="deviation_enable")
        m.d.comb += Cat(deviations, enable).eq(row.payload.beat)
        enable = pipe.register(enable, name="enable_out", stages=OutputLane.latency)
        payload = self.normalised.payload
        m.d.comb += [
            payload.enable.eq(enable),
            payload.last.eq(pipe.register(row.payload.last, name="last_out", stages=OutputLane.latency)),
        ]
        for index in range(self.n_lanes):
            lane = m.submodules[f"output_{index}"] = OutputLane()
            m.d.comb += [
                lane.advance.eq(pipe.advance),
                lane.deviation.eq(deviations[index]),
                lane.root.eq(row.payload.statistic),
                lane.gamma.eq(coefficients.gamma[index]),
                lane.beta.eq(coefficients.beta[index]),
                payload["values"][index].eq(lane.result & enable[index].replicate(FP16.width)),
            ]

    def _coefficients(self, m, pipe, row):
        """Gamma and beta of the beat at the lanes' coefficient stage; counts the slots."""
        m.submodules.coefficients = memory = MemoryBank(
            depth=self.n_slots, width=self.parameters.coefficients.size, ports="read_write"
        )
        slot = Signal(range(self.n_slots))
        with m.If(row.valid & row.ready):
            m.d.sync += slot.eq(Mux(row.payload.last, 0, slot + 1))
        written = self.coefficient.payload
        m.d.comb += [
            self.coefficient.ready.eq(1),
            memory.write_enable.eq(self.coefficient.valid),
            memory.write_address.eq(written.slot),
            memory.write_data.eq(Cat(written.gamma, written.beta)),
            memory.read_enable.eq(pipe.advance),
            memory.read_address.eq(pipe.register(slot, name="slot_late", stages=OutputLane.coefficient_stage - 1)),
        ]
        return data.View(self.parameters.coefficients, memory.read_data)
