"""The core: memories, dot-product units, softmax and vector engines under one controller."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out, connect, flipped

from golden.spec.commands import FIELDS, ErrorCode, Memory, Opcode
from hw.lib.block import Block
from hw.lib.memory import MemoryBank
from hw.top.array.controller import ArrayController
from hw.top.command_layout import COMMAND_LAYOUT
from hw.top.controller.controller import Controller, Unit
from hw.top.controller.counters import COUNTERS, CoreCounters
from hw.top.host.load_store import LoadStore
from hw.top.memories.score_memory import ScoreMemory
from hw.top.memories.shared_memory import SharedMemory
from hw.top.parameters import CoreSizes
from hw.top.rows.mask_scanner import mask_address
from hw.top.softmax.controller import SoftmaxController
from hw.top.vector.controller import VectorController

__all__ = ["Core"]


class Core(Block):
    """Runs sparse attention and dense layers on N banks: a command stream, a load and a store stream.

    N dot-product units with a weight bank each (WMEM) share the rows of IMEM; their scores, and the probabilities
    computed from them, are in N banks (OMEM); N SIMD engines have banks of value rows. docs/commands.md defines the
    commands and the layout of data. The results are those of one command after the other; units work in
    parallel, row by row, where a command reads the rows of the one before
    (:class:`hw.top.controller.chaining.ChainingChecker`).

    Members: ``commands``, one command a beat; ``load``, beats of W elements that LOAD and CTR take, and ``store``,
    those that STORE sends, W = max(n_banks, 2 * n_lanes, simd_lanes), ``last`` with the last one of a command;
    ``error`` and ``error_command``, see :class:`hw.top.controller.controller.Controller`; ``busy``, which units work.

    Defined by :func:`golden.core.core.Core`. It is DiSC's core (section IV, figure 11); run-ahead, retained mass, the
    chains and the addresses of the hash are this project's.
    """

    Parameters = CoreSizes
    members_doc = {
        "commands": "what to do, in order; fields that the opcode does not use are ignored",
        **{f"commands.{field.name}": field.doc for field in FIELDS},
        "commands.opcode": ", ".join(f"{code.value} {code.name}" for code in Opcode),
        "load": "data for LOAD and CTR, in the order of the commands: FP16 numbers, element 0 in the lowest bits",
        "store": "data of STORE, in the order of the commands",
        "store.data": "FP16 numbers, element 0 in the lowest bits",
        "store.last": "1 with the last beat of a command",
        "error": "why a command was refused, until CLEAR: "
        + ", ".join(f"{code.value} {code.name}" for code in ErrorCode),
        "error_command": "which one, counted from reset; counts while error is not 0",
        "busy": "units at work: " + ", ".join(f"bit {unit.value} {unit.name.lower()}" for unit in Unit),
    }

    @staticmethod
    def members(p):
        beat = 16 * p.row_word
        return {
            "commands": In(stream.Signature(COMMAND_LAYOUT)),
            "load": In(stream.Signature(beat)),
            "store": Out(stream.Signature(data.StructLayout({"data": beat, "last": 1}))),
            "error": Out(4),
            "error_command": Out(32),
            "busy": Out(len(Unit)),
        }

    def circuit(self):
        m = Module()
        p = self.parameters
        m.submodules.controller = self._controller = controller = Controller.for_core(p)
        m.submodules.array = array = ArrayController.for_core(p)
        m.submodules.softmax = softmax = SoftmaxController.for_core(p)
        m.submodules.vector = vector = VectorController.for_core(p)
        m.submodules.load_store = self._load_store = load_store = LoadStore.for_core(p)
        connect(m, flipped(self.commands), controller.commands)
        connect(m, flipped(self.load), load_store.load)
        connect(m, flipped(self.store), load_store.store)
        m.d.comb += [
            self.error.eq(controller.error),
            self.error_command.eq(controller.error_command),
            self.busy.eq(controller.busy),
            *(
                getattr(controller, name).eq(getattr(load_store, name))
                for name in ("tokens_valid", "token_count", "token_largest", "tokens_ascending")
            ),
        ]
        for index, unit in ((Unit.ARRAY, array), (Unit.SOFTMAX, softmax), (Unit.VECTOR, vector)):
            self._control(m, index, unit.control)
        m.d.comb += [
            load_store.start.eq(controller.start[Unit.LOAD_STORE]),
            load_store.command.eq(controller.command[Unit.LOAD_STORE]),
            controller.done[Unit.LOAD_STORE].eq(load_store.done),
        ]
        self._wants = {item: self._selected(m, item) for item in Memory}
        self._rows(m, array, vector)
        self._masks(m, array, softmax, vector)
        self._score_memories(m, array, softmax, vector)
        self._retained_mass(m, softmax)
        self._banks(m, array, vector)
        self._count(m, array, vector)
        return m

    def _control(self, m, index, unit):
        """A unit's interface to the controller, which has a bit or a word for each of them."""
        controller = self._controller
        m.d.comb += [
            unit.start.eq(controller.start[index]),
            unit.command.eq(controller.command[index]),
            unit.n_active.eq(controller.n_active[index]),
            unit.limit.eq(controller.limit[index]),
            unit.token.eq(self._load_store.token),
            controller.rows_done[index].eq(unit.rows_done),
            controller.done[index].eq(unit.done),
        ]

    def _selected(self, m, memory):
        """Whether load and store access this memory."""
        selected = Signal(name=f"load_store_{memory.name.lower()}")
        m.d.comb += selected.eq(self._load_store.which == memory)
        return selected

    def _rows(self, m, array, vector):
        """IMEM."""
        p, load_store = self.parameters, self._load_store
        m.submodules.imem = imem = SharedMemory(
            depth=self.imem_depth, part_width=16 * p.row_part, n_parts=p.row_parts, n_readers=2, n_writers=3
        )
        connect(m, array.imem, imem.readers[0])
        connect(m, vector.imem, imem.readers[1])
        loads = imem.writers[0]
        connect(m, vector.imem_write, imem.writers[1])
        connect(m, array.imem_write, imem.writers[2])
        m.d.comb += [
            loads.payload.address.eq(load_store.write_address),
            loads.payload.data.eq(load_store.write_data),
            loads.payload.enable.eq(~0),
            loads.valid.eq(load_store.write & self._wants[Memory.ROWS]),
            imem.direct_enable.eq(load_store.read & self._wants[Memory.ROWS]),
            imem.direct_address.eq(load_store.read_address),
            load_store.read_rows.eq(imem.direct_word),
        ]

    def _masks(self, m, array, softmax, vector):
        """Mask rows, bank by bank, in the order of the hash."""
        p, load_store = self.parameters, self._load_store
        width = self.n_banks * p.key_slots
        m.submodules.masks = masks = SharedMemory(
            depth=p.mask_rows, part_width=width // p.mask_pieces, n_parts=p.mask_pieces, n_readers=3, n_writers=2
        )
        for reader, unit in zip(masks.readers, (array, vector, softmax), strict=True):
            connect(m, unit.mask, reader)
        loads, made = masks.writers
        command = load_store.command
        mask = Mux(command.opcode == Opcode.LOAD, command.mask_out, command.mask)
        m.d.comb += [
            load_store.mask_base.eq(mask_address(p, mask, 0)),
            loads.payload.address.eq(load_store.write_address),
            loads.payload.data.eq(load_store.write_data[: width // p.mask_pieces].replicate(p.mask_pieces)),
            loads.payload.enable.eq(1 << load_store.write_part),
            loads.valid.eq(load_store.write & self._wants[Memory.MASK]),
            masks.direct_enable.eq(load_store.read & self._wants[Memory.MASK]),
            masks.direct_address.eq(load_store.read_address),
            load_store.read_mask.eq(masks.direct_word),
            made.payload.address.eq(softmax.mask_write.payload.address),
            made.payload.data.eq(softmax.mask_write.payload.row),
            made.payload.enable.eq(~0),
            made.valid.eq(softmax.mask_write.valid),
            softmax.mask_write.ready.eq(made.ready),
        ]

    def _score_memories(self, m, array, softmax, vector):
        """OMEM: scores from the array to softmax, probabilities from there to the vector unit."""
        load_store = self._load_store
        words = Cat(load_store.write_data)[: 16 * self.n_banks]
        for item, writes, reads, peeked in (
            (Memory.SCORES, array.score_write, softmax.scores, load_store.read_scores),
            (Memory.PROBABILITIES, softmax.probability_write, vector.probabilities, load_store.read_probabilities),
        ):
            m.submodules[item.name.lower()] = memory = ScoreMemory(n_banks=self.n_banks, depth=self.omem_depth)
            connect(m, reads, memory.reader)
            m.d.comb += [
                memory.write.eq(writes),
                peeked.eq(memory.reader.word),
                memory.load.valid.eq(load_store.write & self._wants[item]),
                memory.load.address.eq(load_store.write_address),
                memory.load.words.eq(words),
                memory.peek.enable.eq(load_store.read & self._wants[item]),
                memory.peek.address.eq(load_store.read_address),
            ]

    def _retained_mass(self, m, softmax):
        """The retained mass of each row."""
        load_store = self._load_store
        loads = Signal(name="loads_mass")
        peeks = Signal(name="stores_mass")
        m.submodules.masses = masses = MemoryBank(depth=self.max_tokens, width=16)
        m.d.comb += [
            loads.eq(load_store.write & self._wants[Memory.MASS]),
            peeks.eq(load_store.read & self._wants[Memory.MASS]),
            masses.write_enable.eq(loads | softmax.mass_write[0].valid),
            masses.write_address.eq(Mux(loads, load_store.write_address, softmax.mass_write[0].address)),
            masses.write_data.eq(Mux(loads, load_store.write_data, softmax.mass_write[0].value)),
            masses.read_enable.eq(peeks | softmax.mass.enable),
            masses.read_address.eq(Mux(peeks, load_store.read_address, softmax.mass.address[0])),
            softmax.mass.word[0].eq(masses.read_data),
            load_store.read_mass.eq(masses.read_data),
        ]

    def _banks(self, m, array, vector):
        """Writes of LOAD to the units' banks, and projected values to the engines' banks."""
        load_store = self._load_store
        for port, item in ((array.weight_write, Memory.WEIGHTS), (vector.word_write, Memory.VALUES)):
            m.d.comb += [
                port.valid.eq(load_store.write & self._wants[item]),
                port.bank.eq(load_store.write_part),
                port.address.eq(load_store.write_address),
                port.words.eq(load_store.write_data),
            ]
        m.d.comb += load_store.write_ready.eq(~self._wants[Memory.VALUES] | vector.word_ready)
        connect(m, array.value_write, vector.value_write)

    def _count(self, m, array, vector):
        """The counters, and their path to the store stream."""
        controller, load_store = self._controller, self._load_store
        m.submodules.counters = counters = CoreCounters()
        is_sddmm = controller.command[Unit.ARRAY].opcode == Opcode.SDDMM
        n_keys = controller.command[Unit.ARRAY].n_out
        is_counted = ~self._wants[Memory.COUNTERS]
        steps = {
            "cycles": ~controller.is_idle,
            **{
                name: controller.busy[unit]
                for name, unit in (
                    ("array_busy", Unit.ARRAY),
                    ("softmax_busy", Unit.SOFTMAX),
                    ("vector_busy", Unit.VECTOR),
                    ("load_store_busy", Unit.LOAD_STORE),
                )
            },
            "commands": controller.executes,
            "array_beats": array.counters.beats,
            "array_waits_for_sink": array.counters.waits_for_sink,
            "array_waits_for_rows": array.counters.waits_for_rows,
            "array_waits_for_query": array.counters.waits_for_query,
            "vector_issues": vector.counters.issues,
            "spmm_terms": vector.counters.spmm_terms,
            "vector_waits": vector.counters.waits_for_write,
            "scores": array.counters.scores,
            "skipped_scores": Mux(array.counters.rows & is_sddmm, n_keys, 0) - array.counters.scores,
            "skipped_rows": controller.skipped_rows,
            "load_beats": self.load.valid & self.load.ready,
            # When they are read, for the last ones may be taken only when the next command counts.
            "store_beats": load_store.read & is_counted,
        }
        m.d.comb += [counters.steps[name].eq(steps[name]) for name in COUNTERS]
        m.d.comb += [counters.clear.eq(controller.clear_counters), load_store.counters.eq(counters.totals)]
