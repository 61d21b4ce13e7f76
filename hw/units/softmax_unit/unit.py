"""SoftmaxUnit: softmax of rows whose elements come in banks, a beat a clock, with threshold mask and retained mass."""

from dataclasses import dataclass

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out

from golden.spec import softmax_unit as spec
from golden.spec.formats import FP16
from hw.lib.block import Block
from hw.lib.formats import float_layout
from hw.lib.pipeline import Pipeline
from hw.units.softmax_unit.layouts import MAXIMUM, MULTIPLIER, POWER, SCALE
from hw.units.softmax_unit.power_lane import PowerLane, ScoreFrame
from hw.units.softmax_unit.probability_lane import ProbabilityLane
from hw.units.softmax_unit.retained_mass import RetainedMass
from hw.units.softmax_unit.row_buffer import RowBuffer
from hw.units.softmax_unit.row_maximum import RowMaximum
from hw.units.softmax_unit.row_multiplier import RowMultiplier, RowMultiplierParameters

__all__ = ["SoftmaxUnit", "SoftmaxUnitParameters"]


@dataclass(frozen=True, kw_only=True)
class SoftmaxUnitParameters(spec.SoftmaxUnitParameters, RowMultiplierParameters):
    def row_multiplier(self):
        return {"n_banks": self.n_banks, "n_slots": self.n_slots}


class SoftmaxUnit(Block):
    """``P = factor * softmax(scale * x)`` over the enabled elements of each row, in FP16; error below 3 ulp.

    Members (element 0 in the lowest bits; ``scale`` and ``theta`` may change while the unit is empty):

    * ``score``: ``values`` (n_banks FP16 words), ``enable`` (which of them are elements of the row), ``last`` (the row
      ends; after n_slots beats at most), ``factor`` (FP16, used where last is set: a multiplier of the row, such as
      the mass retained by an earlier step, or 1; below 2, sign and the exponent's top bit are ignored).
    * ``scale``: ``scale * log2(e)`` as ``(1 + fraction / 2**15) * 2**(exponent - 12)``, ``fraction`` (15 bits) below
      ``exponent`` (4 bits).
    * ``theta``: FP16.
    * ``probability``: a beat for each beat: ``values`` (0 where not enabled), ``keep`` (enabled, and the value is theta
      or more), ``enable``, ``last``, ``retained_mass`` (FP16: the exact sum of the row's values with ``keep`` up to
      this beat, rounded once; with last, that of the row).

    -Inf gives 0, also in rows without any larger score. If the maximum is +Inf, the +Inf elements share the row equally
    and all others are 0. An enabled NaN makes all values of its row NaN, with ``keep`` 0. A row without enabled
    elements gives zeros.

    Three pipelined phases work on different rows: the maximum, while the scores are buffered; the exponentials, in
    fixed point from the exact maximum, and their exact sum, while they are buffered; reciprocal, products and rounding.
    Timing: a score beat is accepted every clock, for rows of any lengths, unless the output stalls. A row enters each
    of the last two phases when it is complete and the previous row has left it. So a beat is output at most latency + 2
    * (b - 1) clocks after it was accepted, b being the beats of the longest row; exactly then if all rows have the same
    length and the input never idles.

    Defined by :func:`golden.units.softmax_unit.softmax`. DiSC's vector unit does the same in four passes.
    """

    role = "softmax"
    Parameters = SoftmaxUnitParameters
    members_doc = {
        "score": "one score of each bank, row after row",
        "score.values": "FP16 numbers",
        "score.enable": "which of them are elements of the row",
        "score.last": "the row ends; after n_slots beats at most",
        "score.factor": "FP16, below 2, its sign ignored: what the row is multiplied with; counts where last is 1; "
        "not used, hold it at 1 (0x3c00)",
        "scale": f"multiplier of the scores, times log2(e), as {spec.SCALE.text}; changes while the unit is empty",
        "scale.fraction": "unsigned",
        "scale.exponent": "unsigned",
        "theta": "FP16: threshold of the mask; changes while the unit is empty; not used, hold it at 0",
        "probability": "a beat for each beat",
        "probability.values": "FP16 numbers, 0 where not enabled",
        "probability.keep": "the mask: enabled, and the value is theta or more",
        "probability.enable": "as it came",
        "probability.last": "as it came",
        "probability.retained_mass": "FP16: sum of the row's retained values up to this beat; with last, of the row",
    }

    def prepare(self):
        self._maximum = RowMaximum(n_banks=self.n_banks)
        self._multiplier = RowMultiplier(**self.parameters.row_multiplier())
        self._mass = RetainedMass(n_banks=self.n_banks)
        self._scores = RowBuffer(
            width=self.n_banks * (FP16.width + 1), statistic_width=MAXIMUM.size, depth=self._depth(self._maximum)
        )
        self._powers = RowBuffer(
            width=self.n_banks * (POWER.size + 1), statistic_width=MULTIPLIER.size, depth=self._depth(self._multiplier)
        )

    @staticmethod
    def members(p):
        words = data.ArrayLayout(FP16.width, p.n_banks)
        return {
            "score": In(
                stream.Signature(
                    data.StructLayout({"values": words, "enable": p.n_banks, "last": 1, "factor": FP16.width})
                )
            ),
            "scale": In(SCALE),
            "theta": In(FP16.width),
            "probability": Out(
                stream.Signature(
                    data.StructLayout(
                        {
                            "values": words,
                            "keep": p.n_banks,
                            "enable": p.n_banks,
                            "last": 1,
                            "retained_mass": FP16.width,
                        }
                    )
                )
            ),
        }

    def _depth(self, statistic):
        """Depth of a buffer that never stalls: the beats of a row, plus those until its statistic is valid."""
        return self.n_slots + statistic.latency + RowBuffer.latency

    @property
    def latency(self):
        """Clocks from a row of one beat to its probabilities, in an empty unit with a sink that is ready."""
        buffers = self._maximum.latency + self._multiplier.latency + 2 * RowBuffer.latency
        return buffers + PowerLane.latency + ProbabilityLane.latency + self._mass.latency

    def circuit(self):
        m = Module()
        m.submodules.score_buffer = scores = self._scores
        m.submodules.power_buffer = powers = self._powers
        self._take_scores(m, scores)
        self._raise(m, scores.row, powers)
        self._divide(m, powers.row)
        return m

    def _take_scores(self, m, buffer):
        """Write scores to their buffer and compute their maximum."""
        m.submodules.largest_score = maximum = self._maximum
        score = self.score.payload
        m.d.comb += [
            buffer.source.payload.beat.eq(Cat(score.values, score.enable)),
            buffer.source.payload.last.eq(score.last),
            buffer.source.valid.eq(self.score.valid),
            self.score.ready.eq(buffer.source.ready),
            maximum.valid.eq(self.score.valid & self.score.ready),
            maximum.last.eq(score.last),
            maximum.scores.eq(score.values),
            maximum.enable.eq(score.enable),
            maximum.factor.eq(score.factor[: spec.FACTOR_WIDTH]),
            buffer.statistic.eq(maximum.row),
            buffer.statistic_valid.eq(maximum.row_valid),
        ]

    def _raise(self, m, row, buffer):
        """Write powers to their buffer and compute the row multiplier."""
        pipe = Pipeline(m, source=row, sink=buffer.source)
        pipe.valid_chain(PowerLane.latency)
        words = Signal(data.ArrayLayout(FP16.width, self.n_banks))
        enable = Signal(self.n_banks, name="score_enable")
        statistic = Signal(MAXIMUM)
        is_infinite = Signal()
        m.d.comb += [
            Cat(words, enable).eq(row.payload.beat),
            statistic.eq(row.payload.statistic),
            is_infinite.eq(statistic.maximum == FP16.infinity),
        ]
        m.submodules.maximum_frame = frame = ScoreFrame()
        m.d.comb += [frame.score.eq(statistic.maximum), frame.scale_exponent.eq(self.scale.exponent)]
        framed = pipe.register(frame.framed, name="framed_maximum")
        m.submodules.row_multiplier = multiplier = self._multiplier
        for bank in range(self.n_banks):
            lane = m.submodules[f"power_{bank}"] = PowerLane()
            m.d.comb += [
                lane.advance.eq(pipe.advance),
                lane.score.eq(words[bank]),
                lane.enable.eq(enable[bank]),
                lane.maximum.eq(framed),
                lane.maximum_is_infinite.eq(is_infinite),
                lane.scale.eq(self.scale),
                multiplier.powers[bank].eq(lane.power),
            ]
        delayed = {
            name: pipe.register(value, name=f"power_{name}", stages=PowerLane.latency)
            for name, value in {
                "enable": enable,
                "last": row.payload.last,
                "factor": statistic.factor,
                "has_nan": statistic.has_nan,
            }.items()
        }
        m.d.comb += [
            buffer.source.payload.beat.eq(Cat(multiplier.powers, delayed["enable"])),
            buffer.source.payload.last.eq(delayed["last"]),
            multiplier.valid.eq(buffer.source.valid & buffer.source.ready),
            multiplier.last.eq(delayed["last"]),
            multiplier.factor.eq(delayed["factor"]),
            multiplier.has_nan.eq(delayed["has_nan"]),
            buffer.statistic.eq(multiplier.row),
            buffer.statistic_valid.eq(multiplier.row_valid),
        ]

    def _divide(self, m, row):
        """Compute probabilities, delayed until the mass is available."""
        pipe = Pipeline(m, source=row, sink=self.probability)
        m.submodules.retained_mass = mass = self._mass
        valid = pipe.valid_chain(ProbabilityLane.latency + mass.latency)
        power = Signal(data.ArrayLayout(POWER, self.n_banks))
        enable = Signal(self.n_banks, name="buffered_enable")
        m.d.comb += Cat(power, enable).eq(row.payload.beat)
        theta = float_layout(FP16)(self.theta)
        bound = Signal(FP16.width - 1)
        is_nan = Signal(name="theta_is_nan")
        m.d.comb += [
            is_nan.eq((theta.exponent == FP16.max_exponent) & theta.fraction.any()),
            bound.eq(Mux(is_nan, FP16.nan, Mux(theta.sign, 0, self.theta))),
        ]
        result = Signal(data.StructLayout({"values": data.ArrayLayout(FP16.width, self.n_banks), "keep": self.n_banks}))
        for bank in range(self.n_banks):
            lane = m.submodules[f"probability_{bank}"] = ProbabilityLane()
            m.d.comb += [
                lane.advance.eq(pipe.advance),
                lane.power.eq(power[bank]),
                lane.enable.eq(enable[bank]),
                lane.multiplier.eq(row.payload.statistic),
                lane.bound.eq(bound),
                result.values[bank].eq(lane.value),
                result.keep[bank].eq(lane.keep),
                mass.units[bank].eq(lane.units),
            ]
        last = pipe.register(row.payload.last, name="last_with_value", stages=ProbabilityLane.latency)
        m.d.comb += [
            mass.advance.eq(pipe.advance),
            mass.valid.eq(valid[ProbabilityLane.latency - 1]),
            mass.last.eq(last),
        ]
        result = pipe.register(result, name="result", stages=mass.latency)
        stages = ProbabilityLane.latency + mass.latency
        payload = self.probability.payload
        m.d.comb += [
            payload.values.eq(result.values),
            payload.keep.eq(result.keep),
            payload.enable.eq(pipe.register(enable, name="enable_out", stages=stages)),
            payload.last.eq(pipe.register(last, name="last_out", stages=mass.latency)),
            payload.retained_mass.eq(mass.mass),
        ]
