"""DotProductArray: dot-product units in lock step, one query broadcast to all, keys from each unit's own weight bank."""

from dataclasses import dataclass

from amaranth.hdl import Module
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from hw.block import Block
from hw.memory import MemoryBank
from hw.params import integer
from hw.pipeline import Pipeline
from hw.units.dot_product_unit import DotProductUnit, DotProductUnitParameters


@dataclass(frozen=True, kw_only=True)
class DotProductArrayParameters(DotProductUnitParameters):
    n_units: int = integer(4, low=1, high=256, doc="dot-product units, each with its weight bank")
    bank_depth: int = integer(64, low=2, high=1 << 20, doc="key vectors a bank")

    def unit(self):
        """The parameters of one dot-product unit."""
        return {name: value for name, value in self.to_dict().items() if name not in ("n_units", "bank_depth")}


class DotProductArray(Block):
    """``scores[u] = sum(query[i] * bank[u][address[u]][i])`` for all units at once, each the sum of a dot-product unit.

    Members (element 0 in the lowest bits):

    * ``weight`` writes one key vector: ``key`` (n_lanes words), ``unit`` and ``address``. It is always ready.
    * ``operands`` carries ``query`` (n_lanes words), ``address`` (one for each unit, below bank_depth), ``first`` and
      ``last``, which mean what they mean for a dot-product unit.
    * ``scores`` carries ``wide`` (n_units words of 32 bits) and, but for int8, ``narrow`` (n_units words of 16 bits).

    Timing: one beat a clock; the latency is that of a dot-product unit and one clock for the bank. A beat sees every
    key vector that was accepted in an earlier clock, and not one accepted in its own clock.

    Defined by :func:`golden.dot_product_unit.dot_product_stream` for each unit. It is the DPU array of the DiSC paper
    with its weight memory: unit u reads bank u only.
    """

    Parameters = DotProductArrayParameters
    members_doc = {
        "weight": "one key vector for one word of one unit's bank",
        "operands": "one beat: a query vector for all units, the word of its bank for each, whether they begin and end",
        "scores": "one score a unit, rounded to FP32 and to the input format; for int8 INT32 values",
    }

    def __init__(self, **parameters):
        super().__init__(parameters, self._members)

    @staticmethod
    def _members(p):
        vector = data.ArrayLayout(8 if p.format == "int8" else 16, p.n_lanes)
        address = ceil_log2(p.bank_depth)
        scores = {"wide": data.ArrayLayout(32, p.n_units)}
        if p.format != "int8":
            scores["narrow"] = data.ArrayLayout(16, p.n_units)
        weight = {"key": vector, "address": address, "unit": ceil_log2(p.n_units)}
        operands = {"query": vector, "address": data.ArrayLayout(address, p.n_units), "first": 1, "last": 1}
        return {
            "weight": In(stream.Signature(data.StructLayout(weight))),
            "operands": In(stream.Signature(data.StructLayout(operands))),
            "scores": Out(stream.Signature(data.StructLayout(scores))),
        }

    @property
    def latency(self):
        """Clocks from an accepted last beat to its scores."""
        return 1 + self.parameters.plan.latency

    def circuit(self):
        m = Module()
        units = [DotProductUnit(**self.parameters.unit()) for _ in range(self.n_units)]
        pipe = Pipeline(m, advance=units[0].operands.ready)  # all units see the same handshakes: one speaks for all
        beat = pipe.register(self.operands.payload, name="beat")
        beat_valid = pipe.control(self.operands.valid, name="beat_valid")
        m.d.comb += [
            self.weight.ready.eq(1),
            self.operands.ready.eq(pipe.advance),
            self.scores.valid.eq(units[0].score.valid),
        ]
        for index, unit in enumerate(units):
            m.submodules[f"unit_{index}"] = unit
            m.submodules[f"bank_{index}"] = bank = MemoryBank(
                depth=self.bank_depth, width=len(self.weight.payload.key.as_value()), read_during_write="old"
            )
            m.d.comb += [
                bank.write_enable.eq(self.weight.valid & (self.weight.payload.unit == index)),
                bank.write_address.eq(self.weight.payload.address),
                bank.write_data.eq(self.weight.payload.key),
                bank.read_enable.eq(pipe.advance),
                bank.read_address.eq(self.operands.payload.address[index]),
                unit.operands.payload.query.eq(beat.query),
                unit.operands.payload.key.as_value().eq(bank.read_data),
                unit.operands.payload.first.eq(beat.first),
                unit.operands.payload.last.eq(beat.last),
                unit.operands.valid.eq(beat_valid),
                unit.score.ready.eq(self.scores.ready),
                self.scores.payload.wide[index].eq(unit.score.payload.wide),
            ]
            if self.format != "int8":
                m.d.comb += self.scores.payload.narrow[index].eq(unit.score.payload.narrow)
        return m
