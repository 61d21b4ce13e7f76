"""The bus that reduces over lanes or engines: four trees."""

from dataclasses import dataclass

from amaranth.hdl import Module, Signal, signed
from amaranth.lib import data
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from golden.spec.parameters import Parameters, flag, integer
from hw.arith.trees import MaximumTree, SumTree, tree_latency
from hw.lib.block import Block
from hw.lib.pipeline import Pipeline
from hw.units.vector_unit.arithmetic import SPECIALS

__all__ = ["ReductionBus"]


@dataclass(frozen=True, kw_only=True)
class ReductionBusParameters(Parameters):
    n_inputs: int = integer(4, low=1, high=128, doc="accumulators on the bus")
    width: int = integer(47, low=1, high=64, doc="bits of an aligned accumulator")
    exponent_width: int = integer(7, low=1, high=16, doc="bits of an accumulator's exponent code")
    key_width: int = integer(16, low=1, high=32, doc="bits of a maximum's key")
    has_sums: bool = flag(True, doc="whether there are sums")
    has_maximum: bool = flag(True, doc="whether there are maxima")


class ReductionBus(Block):
    """The inter-engine (or inter-lane) bus: largest exponent, sum, specials and largest key of n accumulators.

    Each of the four paths has its own latency, in advances: ``exponents`` to ``largest_exponent`` 2, ``specials`` to
    ``any_special`` 1, ``sums`` to ``total`` and ``keys`` to ``largest_key`` :func:`tree_latency`. The accumulators are
    aligned to ``largest_exponent`` outside, on their way from the first path to the third.
    """

    Parameters = ReductionBusParameters
    members_doc = {
        "advance": "lock-step enable of the registers",
        "exponents": "exponent codes of the accumulators",
        "largest_exponent": "the largest of them",
        "specials": "specials of the accumulators",
        "any_special": "their union",
        "sums": "aligned accumulators, in two's complement",
        "total": "their sum",
        "keys": "keys of the lanes' maxima",
        "largest_key": "the largest of them",
    }

    @staticmethod
    def members(p):
        sums = {
            "exponents": In(data.ArrayLayout(p.exponent_width, p.n_inputs)),
            "largest_exponent": Out(p.exponent_width),
            "specials": In(data.ArrayLayout(SPECIALS, p.n_inputs)),
            "any_special": Out(SPECIALS),
            "sums": In(data.ArrayLayout(signed(p.width), p.n_inputs)),
            "total": Out(signed(p.width + ceil_log2(p.n_inputs))),
        }
        maximum = {"keys": In(data.ArrayLayout(p.key_width, p.n_inputs)), "largest_key": Out(p.key_width)}
        return {"advance": In(1), **(sums if p.has_sums else {}), **(maximum if p.has_maximum else {})}

    exponent_latency = 2
    special_latency = 1

    @property
    def latency(self):
        """Of the sums and of the keys."""
        return tree_latency(self.n_inputs)

    def circuit(self):
        m = Module()
        if self.has_sums:
            self._sums(m)
        if self.has_maximum:
            m.submodules.key_tree = keys = MaximumTree(
                n_inputs=self.n_inputs, width=self.key_width, n_stages=self.latency
            )
            m.d.comb += [keys.advance.eq(self.advance), keys.values.eq(self.keys), self.largest_key.eq(keys.largest)]
        return m

    def _sums(self, m):
        pipe = Pipeline(m, advance=self.advance)
        m.submodules.exponent_tree = exponents = MaximumTree(
            n_inputs=self.n_inputs, width=self.exponent_width, n_stages=self.exponent_latency
        )
        m.submodules.sum_tree = sums = SumTree(n_inputs=self.n_inputs, width=self.width)
        m.d.comb += [
            exponents.advance.eq(self.advance),
            exponents.values.eq(self.exponents),
            self.largest_exponent.eq(exponents.largest),
            sums.advance.eq(self.advance),
            sums.addends.eq(self.sums),
            self.total.eq(sums.total),
        ]
        union = Signal(SPECIALS)
        for name in SPECIALS.members:
            m.d.comb += union[name].eq(_any(special[name] for special in self.specials))
        m.d.comb += self.any_special.eq(pipe.register(union, name="union"))


def _any(bits):
    result = 0
    for bit in bits:
        result = result | bit
    return result
