"""Dispatcher: checks descriptors and gives each to the core and, where data move, to a DMA."""

from dataclasses import dataclass

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out

from golden.spec.accelerator.descriptor import DESCRIPTOR_FIELDS, DESCRIPTOR_FLAGS
from golden.spec.accelerator.errors import AcceleratorError
from golden.spec.accelerator.parameters import DESCRIPTOR_BYTES, DerivedLatent
from golden.spec.accelerator.transfers import mask_elements, piece_elements
from golden.spec.commands import COMMANDS, Memory, Opcode
from golden.spec.counters import COUNTERS
from hw.top.command_layout import COMMAND_LAYOUT
from hw.top.parameters import Latent
from hw.top.system.command_fetch import fetched_layout
from hw.top.system.command_table import entry_layout
from hw.top.system.layouts import job
from hw.top.system.parameters import SystemPart, SystemSizes

__all__ = ["DESCRIPTOR_LAYOUT", "Dispatcher", "DispatcherParameters"]

DESCRIPTOR_LAYOUT = data.FlexibleLayout(
    8 * DESCRIPTOR_BYTES,
    {
        item.name: data.Field(COMMAND_LAYOUT if item.name == "command" else item.width, item.offset)
        for item in DESCRIPTOR_FIELDS
    },
)


@dataclass(frozen=True, kw_only=True)
class DispatcherParameters(DerivedLatent, Latent, SystemSizes):
    pass


class Dispatcher(SystemPart):
    """Takes a descriptor, looks what it moves, checks it, and hands it on when all that it needs is there.

    A descriptor takes four clocks if nothing waits. The core's command, the transfer of the DMA and the entry in the
    table are made at the same time, so that their orders agree. The opcode CLEAR, of which the core reports no end, is
    complete when the core takes the next command.
    """

    Parameters = DispatcherParameters
    members_doc = {
        "descriptor": "descriptors, in order; is_error if the bus could not read it",
        "stop": "begin no further one",
        "clear": "forget the error",
        "commands": "commands for the core",
        "loads": "transfers from memory",
        "stores": "transfers to memory",
        "add": "a command is handed on",
        "in_memory": "it is complete when its data are in memory",
        "entry": "what the table keeps of it",
        "next": "its entry in the table",
        "can_add": "the table has room",
        "is_empty": "all commands before are complete",
        "is_complete": "the core has executed a CLEAR",
        "complete": "its entry",
        "send_clear": "send the core a CLEAR that is no descriptor; only while stopped",
        "clear_sent": "it has executed it",
        "error": "why a descriptor was not handed on, until ``clear``",
        "error_number": "its number",
        "error_address": "its address",
        "takes": "a descriptor of the ring was read and is handed on, or is wrong",
        "is_idle": "no descriptor is under way",
        "waits": "a descriptor waits for the core or a fence",
    }

    @staticmethod
    def members(p):
        return {
            "descriptor": In(stream.Signature(fetched_layout())),
            "stop": In(1),
            "clear": In(1),
            "commands": Out(stream.Signature(COMMAND_LAYOUT)),
            "loads": Out(stream.Signature(job(p, p.load_sizes))),
            "stores": Out(stream.Signature(job(p, p.store_sizes))),
            "add": Out(1),
            "in_memory": Out(1),
            "entry": Out(entry_layout(p)),
            "next": In(p.slot_width),
            "can_add": In(1),
            "is_empty": In(1),
            "is_complete": Out(1),
            "complete": Out(p.slot_width),
            "send_clear": In(1),
            "clear_sent": Out(1),
            "error": Out(8),
            "error_number": Out(32),
            "error_address": Out(64),
            "takes": Out(1),
            "is_idle": Out(1),
            "waits": Out(1),
        }

    def circuit(self):
        m = Module()
        descriptor = data.View(DESCRIPTOR_LAYOUT, self.descriptor.payload.words)
        command = descriptor.command
        found = self._look(m, command)
        code, is_clear, needs_empty = Signal(8), Signal(), Signal()
        m.d.comb += [
            is_clear.eq(command.opcode == Opcode.CLEAR),
            needs_empty.eq((descriptor.flags & DESCRIPTOR_FLAGS["fence"]).any() | is_clear),
        ]
        self._check(m, descriptor, found, code)
        needed = data.StructLayout({"load": 1, "store": 1})
        uses = Signal(needed)
        may_go = Signal()
        has_data = found["rows"].any() & found["elements"].any()
        m.d.comb += [
            uses.load.eq(found["is_load"] & has_data),
            uses.store.eq(found["is_store"] & has_data),
            may_go.eq(
                self.can_add
                & (self.loads.ready | ~uses.load)
                & (self.stores.ready | ~uses.store)
                & (self.is_empty | ~needs_empty)
            ),
            self.in_memory.eq(uses.store),
            self.entry.number.eq(descriptor.number),
            self.entry.address.eq(descriptor.address),
            self.entry.interrupt.eq((descriptor.flags & DESCRIPTOR_FLAGS["interrupt"]).any()),
            self.entry.is_ring.eq(self.descriptor.payload.is_ring),
            self.commands.payload.eq(command),
            self.error.eq(code & self._failed.replicate(8)),
            self.error_number.eq(Mux(code == AcceleratorError.FETCH_RESPONSE, 0, descriptor.number)),
            self.error_address.eq(descriptor.address),
        ]
        for transfers in (self.loads, self.stores):
            m.d.comb += [
                transfers.payload.address.eq(descriptor.address),
                transfers.payload.pitch.eq(found["pitch"]),
                transfers.payload.rows.eq(found["rows"]),
                transfers.payload.elements.eq(found["elements"]),
                transfers.payload.size.eq(found["load_size" if transfers is self.loads else "store_size"]),
                transfers.payload.slot.eq(self.next),
                transfers.payload.is_open.eq(found["is_open"]),
            ]
        cleared = Signal(self.parameters.slot_width)
        m.d.comb += self.complete.eq(cleared)
        with m.FSM():
            with m.State("IDLE"):
                m.d.comb += self.is_idle.eq(~self.descriptor.valid | self.stop)
                with m.If(self.send_clear):
                    m.next = "SEND"
                with m.Elif(self.descriptor.valid & ~self.stop):
                    m.next = "CHECK"
            with m.State("CHECK"):
                m.next = "HAND"
                with m.If(code != AcceleratorError.NONE):
                    m.d.sync += self._failed.eq(1)
                    m.d.comb += self.takes.eq(self.descriptor.payload.is_ring & ~self.descriptor.payload.is_error)
                    m.next = "FAILED"
            with m.State("HAND"):
                m.d.comb += self.waits.eq(1)
                with m.If(self.stop):
                    m.next = "IDLE"
                with m.Elif(may_go):
                    m.d.comb += self.takes.eq(self.descriptor.payload.is_ring)
                    m.d.comb += [self.add.eq(1), self.loads.valid.eq(uses.load), self.stores.valid.eq(uses.store)]
                    m.d.sync += cleared.eq(self.next)
                    m.next = "GIVE"
            with m.State("GIVE"):
                m.d.comb += [self.commands.valid.eq(1), self.waits.eq(1)]
                with m.If(self.commands.ready):
                    m.d.comb += self.descriptor.ready.eq(1)
                    m.next = "IDLE"
                    with m.If(is_clear):
                        m.next = "CLEARS"
            with m.State("CLEARS"):
                with m.If(self.commands.ready):
                    m.d.comb += self.is_complete.eq(1)
                    m.next = "IDLE"
            with m.State("FAILED"):
                m.d.comb += self.is_idle.eq(1)
                with m.If(self.clear | self.send_clear):
                    m.d.sync += self._failed.eq(0)
                    m.next = "IDLE"
            with m.State("SEND"):
                m.d.comb += [self.commands.valid.eq(1), self.commands.payload.as_value().eq(int(Opcode.CLEAR))]
                with m.If(self.commands.ready):
                    m.next = "SENT"
            with m.State("SENT"):
                with m.If(self.commands.ready):
                    m.d.comb += self.clear_sent.eq(1)
                    m.next = "IDLE"
        return m

    def _look(self, m, command):
        """What the command moves, a clock after it is there: the descriptor stays at the output of its queue."""
        p = self.parameters
        self._failed = Signal(name="has_failed")
        widths = {"rows": 16, "elements": 31, "pitch": 32, "length": 32}
        widths |= {"is_load": 1, "is_store": 1, "is_rows": 1, "is_open": 1}
        widths |= {"load_size": range(max(2, len(p.load_sizes))), "store_size": range(max(2, len(p.store_sizes)))}
        found = {name: Signal(width, name=name, reset_less=True) for name, width in widths.items()}
        next_of = {name: Signal.like(signal, name=f"{name}_next") for name, signal in found.items()}
        m.d.sync += [signal.eq(next_of[name]) for name, signal in found.items()]
        e = mask_elements(p)
        m.d.comb += [
            next_of["rows"].eq(1),
            next_of["elements"].eq(next_of["length"] >> 1),
            next_of["pitch"].eq(data.View(DESCRIPTOR_LAYOUT, self.descriptor.payload.words).pitch),
            next_of["load_size"].eq(p.load_sizes.index(p.row_word)),
            next_of["store_size"].eq(p.store_sizes.index(p.row_word)),
        ]
        for form in COMMANDS:
            if not form.is_transfer:
                continue
            (memory,) = form.functions
            size = piece_elements(memory, p)
            pieces = command.n_rows
            if memory in (Memory.WEIGHTS, Memory.VALUES):
                size *= p.n_banks
            is_store = form.opcode == Opcode.STORE
            if memory == Memory.COUNTERS:
                pieces = len(COUNTERS)
            elif memory == Memory.TOKENS and is_store:
                pieces = p.max_tokens + 1
            with m.If((command.opcode == form.opcode) & (command.function == memory)):
                m.d.comb += next_of["is_store" if is_store else "is_load"].eq(1)
                if memory == Memory.ROWS:
                    m.d.comb += [
                        next_of["is_rows"].eq(1),
                        next_of["rows"].eq(command.n_rows),
                        next_of["length"].eq(command.n_in << 1),
                    ]
                else:
                    m.d.comb += next_of["length"].eq(pieces * 2 * size)
                if memory == Memory.MASK and e > p.row_word:
                    m.d.comb += [
                        next_of["rows"].eq(command.n_rows),
                        next_of["elements"].eq(e),
                        next_of["pitch"].eq(2 * e),
                    ]
                if memory == Memory.TOKENS and is_store:
                    m.d.comb += next_of["is_open"].eq(1)
                if is_store and memory != Memory.ROWS:
                    m.d.comb += next_of["store_size"].eq(
                        p.store_sizes.index(min(p.row_word, piece_elements(memory, p)))
                    )
                elif memory in (Memory.SCORES, Memory.PROBABILITIES, Memory.MASK):
                    m.d.comb += next_of["load_size"].eq(p.load_sizes.index(p.whole_pieces(piece_elements(memory, p))))
        with m.If(command.opcode == Opcode.CTR):
            m.d.comb += [
                next_of["is_load"].eq(1),
                next_of["length"].eq(p.latent_length),
                next_of["load_size"].eq(p.load_sizes.index(p.whole_pieces(p.n_banks))),
            ]
        return found

    def _check(self, m, descriptor, found, code):
        """The first error of the descriptor, from what was found."""
        p = self.parameters
        moves, is_shorter = Signal(), Signal()
        m.d.comb += [moves.eq(found["is_load"] | found["is_store"]), is_shorter.eq(descriptor.length < found["length"])]
        is_length_wrong = Mux(found["is_open"], is_shorter, descriptor.length != found["length"])
        is_odd = descriptor.address[0] | (found["is_rows"] & descriptor.pitch[0])
        with m.If(self.descriptor.payload.is_error):
            m.d.comb += code.eq(AcceleratorError.FETCH_RESPONSE)
        with m.Elif(Cat(descriptor.flags & ~sum(DESCRIPTOR_FLAGS.values()) & 0xFFFFFFFF, descriptor.reserved).any()):
            m.d.comb += code.eq(AcceleratorError.FLAGS)
        with m.Elif(moves & is_length_wrong):
            m.d.comb += code.eq(AcceleratorError.LENGTH)
        with m.Elif(moves & is_odd):
            m.d.comb += code.eq(AcceleratorError.ALIGNMENT)
        if p.address_width < 64:
            with m.Elif(moves & descriptor.address[p.address_width :].any()):
                m.d.comb += code.eq(AcceleratorError.ADDRESS)
