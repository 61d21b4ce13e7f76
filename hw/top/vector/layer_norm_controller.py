"""LayerNormController: the LAYER_NORM command, pieces of words of IMEM to normalised pieces."""

from dataclasses import dataclass

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from golden.spec.formats import FP16
from golden.spec.sizes import words_for
from hw.top.parameters import CorePart, RowDim, VectorLanes, WordLanes
from hw.top.vector.row_reader import last_word_range
from hw.units.layer_norm_unit.unit import LayerNormUnit

__all__ = ["LayerNormController"]


@dataclass(frozen=True, kw_only=True)
class LayerNormControllerParameters(VectorLanes, RowDim, WordLanes):
    pass


class LayerNormController(CorePart):
    """Passes the pieces of gamma and beta, then those of the rows, to the layer-norm unit.

    After ``start`` the pieces come in pairs, gamma to the left and beta to the right, until there is one of each for
    every piece of a row; ``loads`` is 1 until these are taken. Then come the rows, in whole words. Elements after a
    row's last one are disabled; their results are 0. Timing: as the layer-norm unit.
    """

    Parameters = LayerNormControllerParameters
    members_doc = {
        "start": "begin with gamma and beta; only while empty",
        "last_word": "constant from start on: words a row, less one",
        "last_lane": "constant from start on: index of a row's last element in its last word",
        "epsilon": "constant from start on: added to the variance",
        "pieces": "gamma and beta, then a piece of a row on the left; the number of the piece in its word",
        "loads": "gamma and beta are not complete",
        "results": "pieces of the normalised rows",
    }

    def prepare(self):
        self._unit = self._make_unit(self.parameters)

    @staticmethod
    def _make_unit(p):
        pieces = p.row_word // p.n_vector_lanes
        return LayerNormUnit(n_lanes=p.n_vector_lanes, n_slots=words_for(p.max_norm_dim, p.row_word) * pieces)

    @classmethod
    def members(cls, p):
        piece = data.ArrayLayout(FP16.width, p.n_vector_lanes)
        index = range(max(2, p.row_word // p.n_vector_lanes))
        return {
            "start": In(1),
            "last_word": In(last_word_range(p)),
            "last_lane": In(ceil_log2(p.row_word)),
            "epsilon": In(cls._make_unit(p).epsilon.shape()),
            "pieces": In(stream.Signature(data.StructLayout({"left": piece, "right": piece, "index": index}))),
            "loads": Out(1),
            "results": Out(stream.Signature(piece)),
        }

    @property
    def latency(self):
        """Clocks from a row of one piece to its result, when nothing else is in the unit."""
        return self._unit.latency

    @property
    def pieces_inside(self):
        """Largest number of pieces in flight: each buffer of the unit can hold a row."""
        return self.latency + 2 * self._unit.n_slots

    def circuit(self):
        m = Module()
        p = self.parameters
        m.submodules.unit = unit = self._unit
        pieces, element, coefficient = self.pieces.payload, unit.element, unit.coefficient
        n_pieces, lanes = p.row_word // p.n_vector_lanes, p.n_vector_lanes
        loads = Signal(name="loads_register")
        slot, word = Signal.like(coefficient.payload.slot, name="slot"), Signal.like(self.last_word, name="word")
        # The end of a row is computed from the command in registers; no piece comes in the clock of start.
        last_word = Signal.like(self.last_word, name="last_word_register", reset_less=True)
        last_lane = Signal.like(self.last_lane, name="last_lane_register", reset_less=True)
        m.d.sync += [last_word.eq(self.last_word), last_lane.eq(self.last_lane)]
        in_last_word, is_last, taken, ends_word = Signal(), Signal(), Signal(), Signal()
        place = pieces.index if n_pieces > 1 else 0
        m.d.comb += [
            self.loads.eq(loads),
            in_last_word.eq(word == last_word),
            ends_word.eq(place == n_pieces - 1),
            is_last.eq(in_last_word & ends_word),
            self.pieces.ready.eq(Mux(loads, coefficient.ready, element.ready)),
            taken.eq(self.pieces.valid & self.pieces.ready),
            coefficient.valid.eq(self.pieces.valid & loads),
            coefficient.payload.gamma.eq(pieces.left),
            coefficient.payload.beta.eq(pieces.right),
            coefficient.payload.slot.eq(slot),
            element.valid.eq(self.pieces.valid & ~loads),
            element.payload["values"].eq(pieces.left),
            element.payload.enable.eq(
                Cat(
                    # Element 0 of a word is always one of the row's.
                    ~in_last_word | (place * lanes + lane <= last_lane) if n_pieces > 1 or lane else 1
                    for lane in range(lanes)
                )
            ),
            element.payload.last.eq(is_last),
            unit.epsilon.eq(self.epsilon),
            self.results.payload.eq(unit.normalised.payload["values"]),
            self.results.valid.eq(unit.normalised.valid),
            unit.normalised.ready.eq(self.results.ready),
        ]
        with m.If(taken):
            m.d.sync += [slot.eq(Mux(is_last, 0, slot + 1)), word.eq(Mux(is_last, 0, word + ends_word))]
        with m.If(self.start):
            m.d.sync += loads.eq(1)
        with m.Elif(taken & is_last):
            m.d.sync += loads.eq(0)
        return m
