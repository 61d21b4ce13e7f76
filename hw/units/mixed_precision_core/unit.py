"""MixedPrecisionCore: quantiser, array and activation under one stream of commands, with their memories."""

from amaranth.hdl import Array, Module, Mux, Signal
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out, connect, flipped
from amaranth.utils import bits_for, ceil_log2

from golden.spec.formats import FP16, FP32
from golden.spec.mixed_precision import GROUP, MAX_SLICES, REFERENCE_WIDTH, SLICE_WIDTH
from golden.spec.mixed_precision_core import FIELDS, Code, Error, Memory, MixedPrecisionCoreParameters, Unit
from hw.lib.block import Block
from hw.lib.memory import MemoryBank
from hw.units.mixed_precision_core.activation_controller import ActivationController
from hw.units.mixed_precision_core.array_controller import ArrayController
from hw.units.mixed_precision_core.group_builder import GroupBuilder
from hw.units.mixed_precision_core.issuer import CommandIssuer
from hw.units.mixed_precision_core.layouts import COMMAND, buffer_layout, place_of
from hw.units.mixed_precision_core.quantiser import QuantiserController
from hw.units.mixed_precision_core.transfer import TransferController

__all__ = ["MixedPrecisionCore", "MixedPrecisionCoreParameters"]


class MixedPrecisionCore(Block):
    """outputs += (activations - references) * weights, in 2 to 8 bits by channel, and activations from outputs.

    A linear layer step after step: QUANTISE takes the differences of a tile's activations (n_rows tokens, up to
    n_channels channels) to their references, quantises each channel for itself, and adds the quantised values to the
    references, which so are what the outputs were computed with (closed loop): errors of quantisation do not add up
    from step to step. MULTIPLY adds the product of such a tile and a region of weights to a tile of outputs, and
    ACTIVATE makes activations of the next layer from one. With the flags ``full_precision`` and ``restart`` of QUANTISE
    the same is an INT8 product of the activations themselves.

    Results are those of one command after the other. Units work at the same time where commands use different memories,
    buffers, regions and tiles: activations and references are one memory each. A wrong command is refused, with an
    error that says why, and everything up to CLEAR is dropped. Memories have anything in them until they are written.

    Beats have their elements in the lowest bits, element 0 first; the other bits are ignored, or 0.

    Defined by :class:`golden.units.mixed_precision_core.MixedPrecisionCore`. It is DSTAR's MPC (section 4.2, figure 9),
    with references in fixed point and groups packed when they are stored in place of four reads a clock.
    """

    Parameters = MixedPrecisionCoreParameters
    members_doc = {
        "commands": "what to do, in order; fields that a command does not use are ignored",
        **{f"commands.{field.name}": field.doc for field in FIELDS},
        "commands.opcode": ", ".join(f"{code.value} {code.name}" for code in Code),
        "load": "data of LOAD, in the order of the commands",
        "store": "data of STORE, in the order of the commands",
        "store.data": "elements from the lowest bits on",
        "store.last": "1 with the last beat of a command",
        "busy": "units at work: " + ", ".join(f"bit {unit.value} {unit.name.lower()}" for unit in Unit),
        "error": "why a command was refused, until CLEAR: " + ", ".join(f"{code.value} {code.name}" for code in Error),
        "error_command": "which one, counted from reset; counts while error is not 0",
        "invalid_vectors": "channels of activations with a NaN or an infinity, since CLEAR: their differences were 0",
    }

    @staticmethod
    def members(p):
        return {
            "commands": In(stream.Signature(COMMAND)),
            "load": In(stream.Signature(p.beat_width)),
            "store": Out(stream.Signature(data.StructLayout({"data": p.beat_width, "last": 1}))),
            "busy": Out(len(Unit)),
            "error": Out(range(max(Error) + 1)),
            "error_command": Out(32),
            "invalid_vectors": Out(32),
        }

    def circuit(self):
        m = Module()
        sizes = self.parameters.to_dict()
        m.submodules.issuer = self._issuer = issuer = CommandIssuer(**sizes)
        m.submodules.transfer = transfer = TransferController(**sizes)
        m.submodules.quantiser = quantiser = QuantiserController(**sizes)
        m.submodules.builder = builder = GroupBuilder(**sizes)
        m.submodules.array = array = ArrayController(**sizes)
        m.submodules.activation = activation = ActivationController(**sizes)
        connect(m, flipped(self.commands), issuer.commands)
        connect(m, flipped(self.load), transfer.load)
        units = {
            Unit.TRANSFER: (transfer, transfer.done),
            Unit.QUANTISER: (quantiser, quantiser.hands_over),
            Unit.ARRAY: (array, array.hands_over),
            Unit.ACTIVATION: (activation, activation.done),
        }
        for unit, (controller, done) in units.items():
            m.d.comb += [
                controller.start.eq(issuer.start[unit]),
                controller.command.eq(issuer.command[unit]),
                issuer.done[unit].eq(done),
            ]
        m.d.comb += [
            issuer.drained.eq(array.done),
            issuer.built.eq(builder.done),
            self.busy.eq(issuer.busy),
            self.error.eq(issuer.error),
            self.error_command.eq(issuer.error_command),
        ]
        with m.If(issuer.clears):
            m.d.sync += self.invalid_vectors.eq(0)
        with m.Elif(quantiser.is_invalid):
            m.d.sync += self.invalid_vectors.eq(self.invalid_vectors + 1)
        self._buffers(m, quantiser, builder, array)
        self._weights(m, transfer, array)
        stored = {
            Memory.ACTIVATIONS: self._activations(m, transfer, quantiser, activation),
            Memory.REFERENCES: self._references(m, transfer, quantiser),
            Memory.OUTPUTS: self._outputs(m, transfer, array, activation),
        }
        m.d.comb += [
            self.store.valid.eq(transfer.store.valid),
            self.store.payload.last.eq(transfer.store.payload.last),
            transfer.store.ready.eq(self.store.ready),
        ]
        with m.Switch(transfer.memory):
            for memory, word in stored.items():
                with m.Case(memory):
                    m.d.comb += self.store.payload.data.eq(word)
        return m

    def _loads(self, m, transfer, memory, kind="writes"):
        """Whether a transfer writes, or reads, a memory in this clock."""
        signal = Signal(name=f"transfer_{kind}_{memory.name.lower()}")
        m.d.comb += signal.eq(getattr(transfer, kind) & (transfer.memory == memory))
        return signal

    def _buffers(self, m, quantiser, builder, array):
        """Slices in the order of arrival, of two tiles, and groups in buffers, one memory a lane."""
        p = self.parameters
        depth = MAX_SLICES * p.n_channels
        m.submodules.slices = slices = MemoryBank(depth=2 * depth, width=SLICE_WIDTH * p.n_rows)
        connect(m, quantiser.entry, builder.entry)
        tiles = [Signal(buffer_layout(p), name=f"tile_{index}", reset_less=True) for index in range(p.n_buffers)]
        m.d.comb += [
            slices.write_enable.eq(quantiser.write_slice),
            slices.write_address.eq(quantiser.slice_address + Mux(quantiser.slice_place, depth, 0)),
            slices.write_data.eq(quantiser.slice_data),
            slices.read_enable.eq(builder.read_slice),
            slices.read_address.eq(builder.slice_address + Mux(builder.built_place, depth, 0)),
            builder.slice_data.eq(slices.read_data),
            builder.start.eq(quantiser.hands_over),
            builder.buffer.eq(self._issuer.command[Unit.QUANTISER].buffer),
            builder.place.eq(quantiser.slice_place),
            quantiser.is_building.eq(builder.is_running),
            array.tile.eq(Array(tiles)[self._issuer.command[Unit.ARRAY].buffer]),
        ]
        for index, each in enumerate(tiles):
            with m.If(builder.done & (builder.built_buffer == index)):
                m.d.sync += each.eq(builder.tile)
        width = len(builder.lane_data[0].as_value())
        for lane in range(GROUP):
            m.submodules[f"lane_{lane}"] = bank = MemoryBank(depth=p.n_buffers * p.buffer_rows, width=width)
            m.d.comb += [
                bank.write_enable.eq(builder.write_lane[lane]),
                bank.write_address.eq(builder.lane_address),
                bank.write_data.eq(builder.lane_data[lane]),
                bank.read_enable.eq(array.read_lanes),
                bank.read_address.eq(array.lane_address),
                array.lanes[lane].eq(bank.read_data),
            ]

    def _weights(self, m, transfer, array):
        """Rows of weights into the array's bank, and the scales."""
        p = self.parameters
        region = self._issuer.command[Unit.TRANSFER].region[: bits_for(max(1, p.n_regions - 1))]
        m.d.comb += [
            array.weight.valid.eq(self._loads(m, transfer, Memory.WEIGHTS)),
            array.weight.payload.address.eq(place_of(region, p.n_channels, transfer.row)),
            array.weight.payload.weights.eq(self.load.payload[: 8 * p.n_columns]),
        ]
        scales = Signal(array.scales.shape(), reset_less=True)
        loads = self._loads(m, transfer, Memory.SCALES)
        for index in range(p.n_regions):
            with m.If(loads & (region == index)):
                m.d.sync += scales[index].eq(self.load.payload[: FP16.width * p.n_columns])
        m.d.comb += array.scales.eq(scales)

    def _activations(self, m, transfer, quantiser, activation):
        """Banks of channels; returns the channel that a transfer has read."""
        p = self.parameters
        low = ceil_log2(p.n_output_lanes)
        loads, stores = (self._loads(m, transfer, Memory.ACTIVATIONS, kind) for kind in ("writes", "reads"))
        channel = Signal(16, name="read_channel")
        reads = Signal(name="reads_activation")
        m.d.comb += [
            channel.eq(Mux(stores, transfer.channel, quantiser.activation)),
            reads.eq(stores | quantiser.read_activation),
        ]
        chosen = Signal(max(1, low), name="read_bank")
        with m.If(reads):
            m.d.sync += chosen.eq(channel[:low])
        words = []
        for index in range(p.n_output_lanes):
            m.submodules[f"activations_{index}"] = bank = MemoryBank(
                depth=p.activation_depth // p.n_output_lanes, width=FP16.width * p.n_rows, granularity=FP16.width
            )
            is_loaded = loads & (transfer.channel[:low] == index)
            is_read = reads & (channel[:low] == index)
            m.d.comb += [
                bank.write_enable.eq(
                    is_loaded.replicate(p.n_rows) | (activation.rows & activation.write.replicate(p.n_rows))
                ),
                bank.write_address.eq(Mux(activation.write, activation.word, transfer.channel >> low)),
                bank.write_data.eq(
                    Mux(
                        activation.write,
                        activation.values[index].replicate(p.n_rows),
                        self.load.payload[: FP16.width * p.n_rows],
                    )
                ),
                bank.read_enable.eq(is_read),
                bank.read_address.eq(channel >> low),
            ]
            words.append(bank.read_data)
        word = Array(words)[chosen] if low else words[0]
        m.d.comb += quantiser.activation_data.eq(word)
        return word

    def _references(self, m, transfer, quantiser):
        """References; returns the channel that a transfer has read."""
        p = self.parameters
        width = REFERENCE_WIDTH * p.n_rows
        m.submodules.references = bank = MemoryBank(depth=p.reference_depth, width=width)
        loads, stores = (self._loads(m, transfer, Memory.REFERENCES, kind) for kind in ("writes", "reads"))
        m.d.comb += [
            bank.write_enable.eq(loads | quantiser.write_reference),
            bank.write_address.eq(Mux(loads, transfer.channel, quantiser.written_reference)),
            bank.write_data.eq(Mux(loads, self.load.payload[:width], quantiser.written_data.as_value())),
            bank.read_enable.eq(stores | quantiser.read_reference),
            bank.read_address.eq(Mux(stores, transfer.channel, quantiser.reference)),
            quantiser.reference_data.eq(bank.read_data),
        ]
        return bank.read_data

    def _outputs(self, m, transfer, array, activation):
        """Tiles of outputs: the array's reads and writes go first; returns the beat that a transfer has read."""
        p = self.parameters
        width = FP32.width * p.n_output_lanes
        m.submodules.outputs = bank = MemoryBank(depth=p.n_tiles * p.tile_beats, width=width)
        loads, stores = (self._loads(m, transfer, Memory.OUTPUTS, kind) for kind in ("writes", "reads"))
        m.d.comb += [
            transfer.write_blocked.eq(array.write_output),
            transfer.read_blocked.eq(array.blocks_reads),
            activation.is_blocked.eq(array.blocks_reads),
            array.is_blocked.eq(transfer.holds_output),
            bank.write_enable.eq(loads | array.write_output),
            bank.write_address.eq(Mux(array.write_output, array.written_address, transfer.output_address)),
            bank.write_data.eq(Mux(array.write_output, array.written_data.as_value(), self.load.payload[:width])),
            bank.read_enable.eq(stores | array.read_output | activation.read_output),
            bank.read_address.eq(
                Mux(
                    array.read_output,
                    array.output_address,
                    Mux(stores, transfer.output_address, activation.output_address),
                )
            ),
            array.output_data.eq(bank.read_data),
            activation.output_data.eq(bank.read_data),
        ]
        return bank.read_data
