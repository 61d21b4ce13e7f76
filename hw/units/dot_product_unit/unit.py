"""DotProductUnit: n products a clock, summed exactly inside a window, accumulated over beats and rounded once."""

from dataclasses import dataclass

from amaranth.hdl import Module, unsigned
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out

from golden.spec import dot_product_unit as spec
from hw.lib.block import Block
from hw.units.dot_product_unit.float_datapath import FloatDatapath, FloatPlan
from hw.units.dot_product_unit.integer_datapath import IntegerDatapath, IntegerPlan

__all__ = ["DotProductUnit", "DotProductUnitParameters"]


@dataclass(frozen=True, kw_only=True)
class DotProductUnitParameters(spec.DotProductUnitParameters):
    @property
    def plan(self):
        """Widths and stages of the pipeline."""
        if self.format == "int8":
            return IntegerPlan(self.n_lanes)
        return FloatPlan(self.format, self.n_lanes, self.window_width, self.term_limit, self.wide_score)


class DotProductUnit(Block):
    """``score = sum(query[i] * key[i])`` over a dot product's lanes and beats, each product cut below align_width
    bits of the largest, rounded once.

    FP16 and BF16: products are exact; they are aligned to the largest effective exponent in this beat and those before
    it, with its two lowest bits set, in a window of W = align_width bits and 3 more, truncated as magnitudes and summed
    as integers; when that exponent grows, the running sum is shifted to it. The sum is rounded to nearest, ties to
    even, to FP32 and, from the same unrounded value, to the input format. For every finite input, subnormals included,
    ``|wide - exact| <= n * 2**(3 - W) * max|query[i] * key[i]| + ulp/2`` with n terms: n * 2**-24 with FP16's default
    W = 27, n * 2**-17 with BF16's, W = 20, whose FP32 scores have an error of FP32's size only with a larger W. With
    W = 27, ``2**26 - 2**26 + 1`` gives 0, from W = 29 on it gives 1; FP16 products range over 80 bits, which no legal W
    covers.
    A dot product of more than max_terms terms may wrap. NaN, infinity times zero, and infinities of both signs give the
    canonical NaN; otherwise an infinity wins. Overflow gives infinity, a sum of zero +0, subnormal results are not
    flushed.

    INT8: two's complement bytes; the score is the exact sum modulo 2**32, which n <= 131071 terms never exceed.

    A dot product begins with the first beat after reset, with the beat after one with ``last``, and with a beat with
    ``first``, which discards an unfinished sum. The beat with ``last`` ends it and gives one score.

    Members: ``operands`` carries ``query`` and ``key`` (n_lanes words each, lane 0 in the lowest bits), then ``first``
    and ``last``; ``score`` carries ``wide`` (FP32, or INT32) in the low 32 bits and ``narrow`` (FP16 or BF16) above;
    without wide_score it is narrow alone.

    Timing: one beat a clock, without a bubble between dot products of any length; the score is valid ``latency``
    clocks after its last beat was accepted. The pipeline stalls while a score is not accepted.

    Defined by :func:`golden.units.dot_product_unit.dot_product_stream`. It is the DPU of the DiSC paper, with the fused
    multi-term arithmetic of tensor cores.
    """

    role = "dot_product"
    Parameters = DotProductUnitParameters
    members_doc = {
        "operands": "one beat of a dot product: n_lanes pairs of numbers, lane 0 first",
        "operands.query": "{format} numbers (int8: two's complement)",
        "operands.key": "{format} numbers, multiplied with those of query lane by lane",
        "operands.first": "1 in the first beat of a dot product",
        "operands.last": "1 in its last beat, which gives the score; both are 1 where one beat is all",
        "score": "one beat a dot product",
        "score.wide": "the dot product in FP32; error at most n * 2**(3 - align_width) * max|product| + 1/2 ulp, "
        "n being the number of products; for int8 in INT32, exact modulo 2**32",
        "score.narrow": "the same sum rounded to {format}",
    }

    @staticmethod
    def members(p):
        word = unsigned(8 if p.format == "int8" else 16)
        vector = data.ArrayLayout(word, p.n_lanes)
        operands = {"query": vector, "key": vector, "first": 1, "last": 1}
        score = {"wide": 32} if p.wide_score else {}
        score |= {} if p.format == "int8" else {"narrow": 16}
        return {
            "operands": In(stream.Signature(data.StructLayout(operands))),
            "score": Out(stream.Signature(data.StructLayout(score))),
        }

    @property
    def latency(self):
        """Clocks from an accepted last beat to its score."""
        return self.parameters.plan.latency

    def circuit(self):
        m = Module()
        datapath = IntegerDatapath if self.format == "int8" else FloatDatapath
        datapath(m, self.parameters.plan, self.operands, self.score)
        return m
