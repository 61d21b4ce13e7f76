"""QuantiserController: activations less references through the quantiser; slices to a memory, references updated."""

from amaranth.hdl import Cat, Module, Mux, Signal, signed
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out
from amaranth.utils import bits_for

from golden.spec.formats import FP16
from golden.spec.mixed_precision import MAX_SLICES, REFERENCE_WIDTH, SLICE_WIDTH
from golden.spec.mixed_precision_core import FLAGS, MixedPrecisionCoreParameters
from golden.spec.quantizer_unit import QuantizerUnitParameters
from hw.lib.block import Block
from hw.lib.pipeline import Pipeline
from hw.units.mixed_precision_core.difference_lane import DifferenceLane
from hw.units.mixed_precision_core.layouts import COMMAND
from hw.units.quantizer_unit.layouts import entry_layout
from hw.units.quantizer_unit.unit import QuantizerUnit

__all__ = ["QuantiserController", "quantizer_parameters"]


def quantizer_parameters(p):
    """Of the core's quantiser; channels are numbered in their tile."""
    return QuantizerUnitParameters(
        n_values=p.n_rows, n_channels=p.n_channels, n_levels=p.n_levels, channel_width=p.channel_width
    )


class QuantiserController(Block):
    """Executes QUANTISE: reads a channel of activations and references, and writes slices and references back.

    A channel is read every other clock at most, for the memory of references has one read port: the update reads the
    reference again, in the first clock of a quantised vector, and writes it in the second one. The slices are written
    one a clock meanwhile. When all are written the tile is handed over to the builder of groups, to which its entries
    then go, and the next command may start: slices have two places in turn.
    """

    Parameters = MixedPrecisionCoreParameters
    members_doc = {
        "start": "begin with the command",
        "command": "constant from start to handover",
        "is_building": "the tile before is being built",
        "hands_over": "all is written, and no other tile is being built",
        "read_activation": "read a channel of the activations",
        "activation": "the channel",
        "activation_data": "its values, a clock later",
        "read_reference": "read a channel of the references",
        "reference": "the channel",
        "reference_data": "its values, a clock later",
        "write_reference": "write a channel of the references",
        "written_reference": "the channel",
        "written_data": "its values",
        "write_slice": "write a slice",
        "slice_place": "where the slices of this command go",
        "slice_address": "number of the slice in the tile",
        "slice_data": "its digits",
        "entry": "sorted entries of the tile that is being built",
        "is_invalid": "a vector has a NaN or an infinity",
    }

    @staticmethod
    def members(p):
        references = data.ArrayLayout(signed(REFERENCE_WIDTH), p.n_rows)
        channel = {name: bits_for(depth - 1) for name, depth in (("a", p.activation_depth), ("r", p.reference_depth))}
        tile = quantizer_parameters(p)
        return {
            "start": In(1),
            "command": In(COMMAND),
            "is_building": In(1),
            "hands_over": Out(1),
            "read_activation": Out(1),
            "activation": Out(channel["a"]),
            "activation_data": In(data.ArrayLayout(FP16.width, p.n_rows)),
            "read_reference": Out(1),
            "reference": Out(channel["r"]),
            "reference_data": In(references),
            "write_reference": Out(1),
            "written_reference": Out(channel["r"]),
            "written_data": Out(references),
            "write_slice": Out(1),
            "slice_place": Out(1),
            "slice_address": Out(tile.address_width),
            "slice_data": Out(data.ArrayLayout(SLICE_WIDTH, p.n_rows)),
            "entry": Out(stream.Signature(entry_layout(tile))),
            "is_invalid": Out(1),
        }

    def circuit(self):
        m = Module()
        p, command = self.parameters, self.command
        m.submodules.quantizer = quantizer = QuantizerUnit(**quantizer_parameters(p).to_dict())
        m.d.comb += [
            quantizer.threshold.eq(command.threshold),
            quantizer.finest_exponent.eq(command.finest_exponent),
            quantizer.full_precision.eq((command.flags & FLAGS["full_precision"]).any()),
        ]
        restarts = Signal()
        m.d.comb += restarts.eq((command.flags & FLAGS["restart"]).any())
        rereads = self._update(m, quantizer, restarts)
        self._fetch(m, quantizer, restarts, rereads)
        return m

    def _fetch(self, m, quantizer, restarts, rereads):
        """Channels from the memories to registers, and through the lanes to the quantiser."""
        p, command = self.parameters, self.command
        index = Signal(bits_for(p.n_channels))
        fetches, is_fetched = Signal(name="fetches"), Signal(name="is_fetched")
        source = _Held(p)
        pipe = Pipeline(m, source=source, sink=quantizer.vector)
        m.d.comb += fetches.eq((index < command.count) & ~is_fetched & ~rereads & (~source.valid | source.ready))
        with m.If(self.start):
            m.d.sync += index.eq(0)
        with m.Elif(fetches):
            m.d.sync += index.eq(index + 1)
        m.d.sync += [is_fetched.eq(fetches & ~self.start), source.valid.eq(is_fetched | source.valid & ~source.ready)]
        number = Signal(p.channel_width, name="fetched_number")
        is_last = Signal(name="fetched_last")
        with m.If(fetches):
            m.d.sync += [number.eq(index), is_last.eq(index + 1 == command.count)]
        zero = restarts.replicate(REFERENCE_WIDTH)
        with m.If(is_fetched):
            m.d.sync += [
                source.words.eq(self.activation_data),
                *(
                    kept.eq((word.as_unsigned() & ~zero).as_signed())
                    for kept, word in zip(source.references, self.reference_data, strict=True)
                ),
                source.number.eq(number),
                source.last.eq(is_last),
            ]
        m.d.comb += [
            self.read_activation.eq(fetches),
            self.activation.eq(command.source + index),
            self.read_reference.eq(fetches | rereads),
        ]
        with m.If(~rereads):
            m.d.comb += self.reference.eq(command.reference + index)
        pipe.valid_chain(DifferenceLane.latency)
        vector = quantizer.vector.payload
        for row in range(p.n_rows):
            m.submodules[f"lane_{row}"] = lane = DifferenceLane(n_levels=p.n_levels)
            m.d.comb += [
                lane.advance.eq(pipe.advance),
                lane.word.eq(source.words[row]),
                lane.reference.eq(source.references[row]),
                lane.finest_exponent.eq(command.finest_exponent),
                vector["values"][row].eq(lane.difference),
            ]
        m.d.comb += [
            vector.channel.eq(pipe.register(source.number, name="number", stages=DifferenceLane.latency)),
            vector.last.eq(pipe.register(source.last, name="last", stages=DifferenceLane.latency)),
        ]

    def _update(self, m, quantizer, restarts):
        """Slices to their memory, references with the quantised values added; gives whether a reference is read."""
        p, command = self.parameters, self.command
        valid, result = quantizer.quantised.valid, quantizer.quantised.payload
        step = Signal(range(MAX_SLICES))
        ends = Signal(name="ends_vector")
        rereads = Signal()
        m.d.comb += [
            rereads.eq(valid & (step == 0)),
            ends.eq(valid & (step != 0) & (step + 1 >= result.n_slices)),
            quantizer.quantised.ready.eq(ends),
            self.is_invalid.eq(ends & result.error),
            self.write_slice.eq(valid & (step < result.n_slices)),
            self.slice_address.eq(result.address + step),
            self.write_reference.eq(valid & (step == 1)),
            self.written_reference.eq(command.reference + result.channel),
        ]
        with m.If(rereads):
            m.d.comb += self.reference.eq(command.reference + result.channel)
        with m.If(valid):
            m.d.sync += step.eq(Mux(ends, 0, step + 1))
        with m.Switch(step):
            for place in range(MAX_SLICES):
                with m.Case(place):
                    m.d.comb += self.slice_data.eq(result.slices[place])
        zero = restarts.replicate(REFERENCE_WIDTH)
        left = Signal.like(result.level, name="levels_below_finest")
        m.d.comb += left.eq(p.n_levels - 1 - result.level)
        for row in range(p.n_rows):
            value = Cat(result.slices[place][row] for place in range(MAX_SLICES)).as_signed()
            added = Signal(signed(REFERENCE_WIDTH), name=f"added_{row}")
            m.d.comb += [
                added.eq(value << left),
                self.written_data[row].eq((self.reference_data[row].as_unsigned() & ~zero).as_signed() + added),
            ]
        is_complete = Signal()
        m.d.comb += self.hands_over.eq(is_complete & ~self.is_building)
        m.d.sync += [
            is_complete.eq((is_complete | (ends & result.last)) & ~self.hands_over),
            self.slice_place.eq(self.slice_place ^ self.hands_over),
        ]
        m.d.comb += [
            self.entry.payload.eq(quantizer.entry.payload),
            self.entry.valid.eq(quantizer.entry.valid & self.is_building),
            quantizer.entry.ready.eq(self.entry.ready & self.is_building),  # not before its slices are written
        ]
        return rereads


class _Held:
    """A channel that was read, as the source of a pipeline."""

    def __init__(self, p):
        self.valid, self.ready = Signal(name="held_valid"), Signal(name="held_ready")
        self.words = Signal(data.ArrayLayout(FP16.width, p.n_rows), name="held_words", reset_less=True)
        references = data.ArrayLayout(signed(REFERENCE_WIDTH), p.n_rows)
        self.references = Signal(references, name="held_references", reset_less=True)
        self.number = Signal(p.channel_width, name="held_number", reset_less=True)
        self.last = Signal(name="held_last", reset_less=True)
