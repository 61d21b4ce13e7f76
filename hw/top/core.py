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
from hw.top.engines.controller import EnginesController
from hw.top.host.load import LoadUnit
from hw.top.host.store import StoreUnit
from hw.top.memories.score_memory import ScoreMemory
from hw.top.memories.shared_memory import SharedMemory
from hw.top.parameters import CoreSizes
from hw.top.softmax.controller import SoftmaxController
from hw.top.vector.controller import VectorController

__all__ = ["Core"]


class Core(Block):
    """Runs sparse attention and dense layers on N banks: a command stream, a load and a store stream.

    N dot-product units with a weight bank each (WMEM) share the rows of IMEM; their scores, and the probabilities
    computed from them, are in N banks (OMEM); N SIMD engines have banks of value rows. docs/commands.md defines the
    commands and the layout of data. The results are those of one command after the other; units, loads and stores
    work in parallel where commands do not touch the same words, and row by row where one takes the rows of another
    (:class:`hw.top.controller.scoreboard.Scoreboard`).

    Members: ``commands``, one command a beat; ``load``, beats of W elements that LOAD and CTR take, and ``store``,
    those that STORE sends, W = max(n_banks, 2 * n_lanes, simd_lanes), ``last`` with the last one of a command;
    ``error`` and ``error_command``, see :class:`hw.top.controller.controller.Controller`; ``busy``, which units work;
    ``completed``, an event for each command but CLEAR.

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
        "completed": "a command is done, each in a clock of its own, not necessarily in order; CLEAR is not reported",
        "completed.valid": "a command was completed",
        "completed.number": "its number, counted from reset, as error_command",
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
            "completed": Out(data.StructLayout({"valid": 1, "number": 32})),
        }

    def circuit(self):
        m = Module()
        p = self.parameters
        m.submodules.controller = self._controller = controller = Controller.for_core(p)
        m.submodules.array = array = ArrayController.for_core(p)
        m.submodules.softmax = softmax = SoftmaxController.for_core(p)
        m.submodules.vector = vector = VectorController.for_core(p)
        m.submodules.engines = engines = EnginesController.for_core(p)
        m.submodules.load_unit = self._load = load = LoadUnit.for_core(p)
        m.submodules.store_unit = self._store = store = StoreUnit.for_core(p)
        connect(m, flipped(self.commands), controller.commands)
        connect(m, flipped(self.load), load.load)
        connect(m, flipped(self.store), store.store)
        m.d.comb += [
            self.error.eq(controller.error),
            self.error_command.eq(controller.error_command),
            self.busy.eq(controller.busy),
            self.completed.eq(controller.completed),
            *(
                getattr(controller, name).eq(getattr(load, name))
                for name in ("tokens_valid", "token_count", "token_largest", "tokens_ascending")
            ),
            load.list_enable.eq(store.list_enable),
            load.list_address.eq(store.list_address),
            store.list_row.eq(load.list_row),
            store.token_count.eq(load.token_count),
        ]
        units = {
            Unit.ARRAY: array,
            Unit.SOFTMAX: softmax,
            Unit.VECTOR: vector,
            Unit.ENGINES: engines,
            Unit.LOAD: load,
            Unit.STORE: store,
        }
        for index, unit in units.items():
            self._control(m, index, unit.control)
        # What LOAD may write in this clock; memories that are not arbitrated take every write.
        self._can_load = {}
        self._rows(m, array, vector, engines)
        self._masks(m, array, softmax, engines)
        self._score_memories(m, array, softmax, engines)
        self._retained_mass(m, softmax)
        self._banks(m, array, engines)
        ready = 1
        for item, is_ready in self._can_load.items():
            ready = ready & (is_ready | (load.which != item))
        m.d.comb += load.write_ready.eq(ready)
        self._count(m, array, vector, engines)
        return m

    def _control(self, m, index, unit):
        """A unit's interface to the controller, which has a bit or a word for each of them."""
        controller = self._controller
        m.d.comb += [
            unit.start.eq(controller.start[index]),
            unit.command.eq(controller.command[index]),
            unit.n_active.eq(controller.n_active[index]),
            unit.limit.eq(controller.limit[index]),
            unit.token.eq(self._load.token),
            controller.rows_done[index].eq(unit.rows_done),
            controller.done[index].eq(unit.done),
        ]

    def _loads(self, m, memory):
        """Whether LOAD writes this memory, unless the write has to wait."""
        selected = Signal(name=f"loads_{memory.name.lower()}")
        m.d.comb += selected.eq(self._load.write & (self._load.which == memory))
        return selected

    def _stores(self, m, memory):
        """Whether STORE reads this memory."""
        selected = Signal(name=f"stores_{memory.name.lower()}")
        m.d.comb += selected.eq(self._store.read & (self._store.which == memory))
        return selected

    def _rows(self, m, array, vector, engines):
        """IMEM. Loads wait for results, which hold up a unit."""
        p, load = self.parameters, self._load
        m.submodules.imem = imem = SharedMemory(
            depth=self.imem_depth,
            width=16 * p.row_word,
            part_width=16 * p.row_part,
            n_readers=3,
            n_writers=4,
            has_next=p.groups_straddle,
        )
        for reader, port in zip(imem.readers, (array.imem, vector.imem, self._store.rows), strict=True):
            connect(m, port, reader)
        *results, loads = imem.writers
        for unit, port in zip((array, engines, vector), results, strict=True):
            connect(m, unit.imem_write, port)
        m.d.comb += [
            loads.payload.address.eq(load.write_address),
            loads.payload.data.eq(load.write_data),
            loads.payload.enable.eq(~0),
            loads.valid.eq(self._loads(m, Memory.ROWS)),
        ]
        self._can_load[Memory.ROWS] = loads.ready

    def _masks(self, m, array, softmax, engines):
        """Mask rows, bank by bank, in the order of the hash."""
        p, load = self.parameters, self._load
        width, beat = self.n_banks * p.key_slots, 16 * p.row_word
        m.submodules.masks = masks = SharedMemory(
            depth=p.mask_rows, width=width, part_width=min(width, beat), n_readers=4, n_writers=2
        )
        for reader, port in zip(
            masks.readers, (array.mask, engines.mask, softmax.mask, self._store.masks), strict=True
        ):
            connect(m, port, reader)
        made, loads = masks.writers
        m.d.comb += [
            loads.payload.address.eq(load.write_address),
            loads.payload.data.eq(load.write_data[:beat].replicate(p.mask_pieces)),
            loads.payload.enable.eq(1 << load.write_part),
            loads.valid.eq(self._loads(m, Memory.MASK)),
            made.payload.address.eq(softmax.mask_write.payload.address),
            made.payload.data.eq(softmax.mask_write.payload.row),
            made.payload.enable.eq(~0),
            made.valid.eq(softmax.mask_write.valid),
            softmax.mask_write.ready.eq(made.ready),
        ]
        self._can_load[Memory.MASK] = loads.ready

    def _score_memories(self, m, array, softmax, engines):
        """OMEM: scores from the array to softmax, probabilities from there to the engines or back to the array."""
        load, store = self._load, self._store
        words = Cat(load.write_data)[: 16 * self.n_banks]
        for item, writes, reads, stored in (
            (Memory.SCORES, array.score_write, softmax.scores, store.read_scores),
            (Memory.PROBABILITIES, softmax.probability_write, array.probabilities, store.read_probabilities),
        ):
            is_shared = item == Memory.PROBABILITIES
            m.submodules[item.name.lower()] = memory = ScoreMemory(
                n_banks=self.n_banks, is_shared=is_shared, depth=self.omem_depth
            )
            connect(m, reads, memory.reader)
            if is_shared:
                connect(m, engines.probabilities, memory.second)
            m.d.comb += [
                memory.write.eq(writes),
                stored.eq(memory.reader.word),
                memory.load.valid.eq(self._loads(m, item)),
                memory.load.address.eq(load.write_address),
                memory.load.words.eq(words),
                memory.peek.enable.eq(self._stores(m, item)),
                memory.peek.address.eq(store.read_address),
            ]

    def _retained_mass(self, m, softmax):
        """The retained mass of each row."""
        load, store = self._load, self._store
        loads, stores = self._loads(m, Memory.MASS), self._stores(m, Memory.MASS)
        m.submodules.retained_mass = retained_mass = MemoryBank(depth=self.max_tokens, width=16)
        m.d.comb += [
            retained_mass.write_enable.eq(loads | softmax.mass_write[0].valid),
            retained_mass.write_address.eq(Mux(loads, load.write_address, softmax.mass_write[0].address)),
            retained_mass.write_data.eq(Mux(loads, load.write_data, softmax.mass_write[0].value)),
            retained_mass.read_enable.eq(stores | softmax.mass.enable),
            retained_mass.read_address.eq(Mux(stores, store.read_address, softmax.mass.address[0])),
            softmax.mass.word[0].eq(retained_mass.read_data),
            store.read_mass.eq(retained_mass.read_data),
        ]

    def _banks(self, m, array, engines):
        """Writes of LOAD to the units' banks, and projected values to the engines' banks."""
        load = self._load
        for port, item in ((array.weight_write, Memory.WEIGHTS), (engines.word_write, Memory.VALUES)):
            m.d.comb += [
                port.valid.eq(self._loads(m, item)),
                port.bank.eq(load.write_part),
                port.address.eq(load.write_address),
                port.words.eq(load.write_data),
            ]
        connect(m, array.value_write, engines.value_write)

    def _count(self, m, array, vector, engines):
        """The counters, and their path to the store stream."""
        controller, store = self._controller, self._store
        m.submodules.counters = counters = CoreCounters()
        is_sddmm = controller.command[Unit.ARRAY].opcode == Opcode.SDDMM
        n_keys = controller.command[Unit.ARRAY].n_out
        steps = {
            "cycles": ~controller.is_idle,
            **{f"{unit.name.lower()}_busy": controller.busy[unit] for unit in Unit},
            "commands": controller.executes,
            "array_beats": array.counters.beats,
            "array_waits_for_sink": array.counters.waits_for_sink,
            "array_waits_for_rows": array.counters.waits_for_rows,
            "array_waits_for_query": array.counters.waits_for_query,
            "vector_issues": vector.counters.issues,
            "vector_waits": vector.counters.waits_for_write,
            "spmm_terms": engines.counters.terms,
            "engines_wait_for_rows": engines.counters.waits_for_engines,
            "engines_wait_for_sink": engines.counters.waits_for_sink,
            "scores": array.counters.scores,
            "skipped_scores": Mux(array.counters.rows & is_sddmm, n_keys, 0) - array.counters.scores,
            "skipped_rows": controller.skipped_rows,
            "load_beats": self.load.valid & self.load.ready,
            # When they are read, for the last ones may be taken only when the next command counts.
            "store_beats": store.beats & (store.which != Memory.COUNTERS),
        }
        m.d.comb += [counters.steps[name].eq(steps[name]) for name in COUNTERS]
        m.d.comb += [counters.clear.eq(controller.clear_counters), store.counters.eq(counters.totals)]
