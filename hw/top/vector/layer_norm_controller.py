"""LayerNormController: the LAYER_NORM command, words of IMEM to normalised words."""

from dataclasses import dataclass

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from golden.spec.formats import FP16
from hw.top.parameters import Banks, CorePart, Lanes, RowDim, SimdLanes
from hw.top.vector.row_reader import last_word_range
from hw.units.layer_norm_unit.unit import LayerNormUnit

__all__ = ["LayerNormController"]


@dataclass(frozen=True, kw_only=True)
class LayerNormControllerParameters(RowDim, SimdLanes, Lanes, Banks):
    pass


class LayerNormController(CorePart):
    """Passes the words of gamma and beta, then those of the rows, to the layer-norm unit.

    After ``start`` the words come in pairs, gamma to the left and beta to the right, until there is one of each for
    every word of a row; ``loads`` is 1 until these are taken. Then come the rows. Elements after a row's last one
    are disabled; their results are 0. Timing: as the layer-norm unit.
    """

    Parameters = LayerNormControllerParameters
    members_doc = {
        "start": "begin with gamma and beta; only while empty",
        "last_word": "constant from start on: words a row, less one",
        "last_lane": "constant from start on: index of a row's last element in its last word",
        "epsilon": "constant from start on: added to the variance",
        "words": "gamma and beta, then a word of a row on the left",
        "loads": "gamma and beta are not complete",
        "results": "words of the normalised rows",
    }

    def prepare(self):
        self._unit = self._make_unit(self.parameters)

    @staticmethod
    def _make_unit(p):
        return LayerNormUnit(n_lanes=p.row_word, n_slots=-(-p.max_dim // p.row_word))

    @classmethod
    def members(cls, p):
        word = data.ArrayLayout(FP16.width, p.row_word)
        return {
            "start": In(1),
            "last_word": In(last_word_range(p)),
            "last_lane": In(ceil_log2(p.row_word)),
            "epsilon": In(cls._make_unit(p).epsilon.shape()),
            "words": In(stream.Signature(data.StructLayout({"left": word, "right": word}))),
            "loads": Out(1),
            "results": Out(stream.Signature(word)),
        }

    @property
    def latency(self):
        """Clocks from a row of one word to its result, when nothing else is in the unit."""
        return self._unit.latency

    @property
    def words_inside(self):
        """Largest number of words in flight: each buffer of the unit can hold a row."""
        return self.latency + 2 * self._unit.n_slots

    def circuit(self):
        m = Module()
        m.submodules.unit = unit = self._unit
        words, element, coefficient = self.words.payload, unit.element, unit.coefficient
        loads = Signal(name="loads_register")
        index = Signal.like(self.last_word, name="index")
        # The end of a row is computed from the command in registers; no word comes in the clock of start.
        last_word = Signal.like(self.last_word, name="last_word_register")
        last_lane = Signal.like(self.last_lane, name="last_lane_register")
        m.d.sync += [last_word.eq(self.last_word), last_lane.eq(self.last_lane)]
        is_last = Signal()
        taken = Signal()
        m.d.comb += [
            self.loads.eq(loads),
            is_last.eq(index == last_word),
            self.words.ready.eq(Mux(loads, coefficient.ready, element.ready)),
            taken.eq(self.words.valid & self.words.ready),
            coefficient.valid.eq(self.words.valid & loads),
            coefficient.payload.gamma.eq(words.left),
            coefficient.payload.beta.eq(words.right),
            coefficient.payload.slot.eq(index),
            element.valid.eq(self.words.valid & ~loads),
            element.payload["values"].eq(words.left),
            # A row's last word has at least one element.
            element.payload.enable.eq(Cat(1, *(~is_last | (lane <= last_lane) for lane in range(1, len(words.left))))),
            element.payload.last.eq(is_last),
            unit.epsilon.eq(self.epsilon),
            self.results.payload.eq(unit.normalised.payload["values"]),
            self.results.valid.eq(unit.normalised.valid),
            unit.normalised.ready.eq(self.results.ready),
        ]
        with m.If(taken):
            m.d.sync += index.eq(Mux(is_last, 0, index + 1))
        with m.If(self.start):
            m.d.sync += loads.eq(1)
        with m.Elif(taken & is_last):
            m.d.sync += loads.eq(0)
        return m
