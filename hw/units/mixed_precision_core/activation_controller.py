"""ActivationController: executes ACTIVATE, outputs of a tile to activations, row by row to channel by channel."""

from itertools import pairwise

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data
from amaranth.lib.wiring import In, Out
from amaranth.utils import bits_for, ceil_log2

from golden.spec.formats import FP16, FP32
from golden.spec.mixed_precision_core import Activation, MixedPrecisionCoreParameters
from hw.lib.block import Block
from hw.units.mixed_precision_core.activation_lane import ActivationLane
from hw.units.mixed_precision_core.layouts import COMMAND, place_of

__all__ = ["ActivationController"]


class ActivationController(Block):
    """Reads the beats of a tile, n_output_lanes columns of a row each, and writes each to a bank of activations.

    Bank i has the channels whose number leaves i when divided by n_output_lanes, a word a channel with one write enable
    a token: that transposes the tile. A beat that was read is written ``latency`` clocks later, whatever happens, so
    reads may be held back and nothing else needs to be.
    """

    Parameters = MixedPrecisionCoreParameters
    members_doc = {
        "start": "begin with the command",
        "command": "constant from start to done",
        "is_blocked": "the memory of outputs must not be read",
        "read_output": "read a beat of outputs",
        "output_address": "the beat",
        "output_data": "its values, a clock later",
        "write": "write a word of every bank of activations",
        "word": "the word",
        "rows": "the token that is written, one bit",
        "values": "of each bank",
        "done": "the last beat is written in this clock",
    }

    @staticmethod
    def members(p):
        return {
            "start": In(1),
            "command": In(COMMAND),
            "is_blocked": In(1),
            "read_output": Out(1),
            "output_address": Out(bits_for(max(1, p.n_tiles * p.tile_beats - 1))),
            "output_data": In(data.ArrayLayout(FP32.width, p.n_output_lanes)),
            "write": Out(1),
            "word": Out(bits_for(max(1, p.activation_depth // p.n_output_lanes - 1))),
            "rows": Out(p.n_rows),
            "values": Out(data.ArrayLayout(FP16.width, p.n_output_lanes)),
            "done": Out(1),
        }

    def circuit(self):
        m = Module()
        p, command = self.parameters, self.command
        n_read = Signal(bits_for(p.tile_beats))
        is_running = Signal()
        valid = [Signal(name=f"valid_{stage}") for stage in range(1 + ActivationLane.latency)]
        m.d.comb += [
            self.read_output.eq(is_running & (n_read != p.tile_beats) & ~self.is_blocked),
            self.output_address.eq(place_of(command.source[: bits_for(max(1, p.n_tiles - 1))], p.tile_beats, n_read)),
        ]
        m.d.sync += [valid[0].eq(self.read_output), *(late.eq(early) for early, late in pairwise(valid))]
        with m.If(self.start):
            m.d.sync += n_read.eq(0)
        with m.Else():
            m.d.sync += n_read.eq(n_read + self.read_output)
        m.d.sync += is_running.eq((is_running & ~self.done) | self.start)

        parts = p.n_columns // p.n_output_lanes
        part, row = Signal(range(max(2, parts))), Signal(range(max(2, p.n_rows)))
        ends_row = Signal()
        m.d.comb += [
            self.write.eq(valid[-1]),
            ends_row.eq(self.write & (part == parts - 1)),
            self.done.eq(ends_row & (row == p.n_rows - 1)),
            self.word.eq((command.destination >> ceil_log2(p.n_output_lanes)) + part),
            self.rows.eq(1 << row),
        ]
        with m.If(self.start):
            m.d.sync += [part.eq(0), row.eq(0)]
        with m.Elif(self.write):
            m.d.sync += [part.eq(Mux(ends_row, 0, part + 1)), row.eq(row + ends_row)]
        for index in range(p.n_output_lanes):
            m.submodules[f"lane_{index}"] = lane = ActivationLane()
            m.d.comb += [
                lane.output.eq(self.output_data[index]),
                lane.is_gelu.eq(command.function == Activation.GELU),
                self.values[index].eq(lane.activation),
            ]
        return m
