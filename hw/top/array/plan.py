"""ArrayPlan: constants of a command of the array, decoded once for all of its rows."""

from dataclasses import dataclass

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data
from amaranth.lib.wiring import In, Out
from amaranth.utils import bits_for, ceil_log2

from golden.spec.commands import FLAGS, Opcode, Product, Projection
from golden.spec.sizes import words_for
from hw.lib.division import quotient, remainder
from hw.top.command_layout import COMMAND_LAYOUT
from hw.top.interfaces import address_width
from hw.top.parameters import CorePart, HeadDim, ImemDepth, KeyMask, Lanes, RowDim, RunAhead, SimdLanes, WmemDepth
from hw.top.rows.mask_scanner import used_slots

__all__ = [
    "ArrayPlan",
    "ArrayPlanParameters",
    "group_width",
    "item_layout",
    "mask_layout",
    "plan_layout",
    "query_layout",
]


KINDS = {
    "dense": "a product of rows or of probabilities",
    "weighted": "of probabilities",
    "adds": "to partial sums",
    "sums": "partial sums, which are kept",
    "gives": "partial sums, which are rounded and written",
    "sddmm": "scores",
    "project": "a product into banks",
    "to_values": "as values",
    "to_columns": "as columns of values",
}
"""What a command is."""


@dataclass(frozen=True, kw_only=True)
class ArrayPlanParameters(WmemDepth, ImemDepth, RunAhead, RowDim, HeadDim, SimdLanes, Lanes, KeyMask):
    """The parameters of the plan."""


def group_width(p):
    """Bits of the number of a group: n_banks columns, of a product or of the whole words that PROJECT writes."""
    columns = max(p.max_dim + 1, *(words_for(p.max_head_dim, lanes) * lanes for lanes in (p.n_lanes, p.simd_lanes)))
    return bits_for((columns - 1) // p.n_banks)


def item_layout(p):
    """Work item of the array: a row, or one group of a row; is_empty if the row or its columns do not exist."""
    return data.StructLayout({"row": address_width(p.max_tokens), "group": group_width(p), "is_empty": 1})


def query_layout(p):
    """The part of the plan that defines the end of a row and of its bias."""
    n_beats = p.query_beats
    return data.StructLayout(
        {
            "last_word": range(max(2, words_for(p.max_dim, p.row_word))),  # words a row, minus one
            "elements": n_beats * p.n_lanes - 1,  # those of the last word that belong to the row, from 1 on
            "last": n_beats,  # the last word's beat that ends the dot product
            "bias": n_beats - 1,  # the last word's beat that is the bias, from 1 on
            "bias_follows": 1,  # the bias is a transfer of its own
        }
    )


def mask_layout(p):
    """The part of the plan that says which rows of the mask memory are read, and how much of them."""
    return data.StructLayout(
        {
            "is_common": 1,  # one row serves all
            "first": address_width(p.mask_rows),
            "slots": p.key_slots - 1,  # those with keys, from 1 on
        }
    )


def plan_layout(p):
    """The plan; fields of several bits that are not numbers have one bit for each element, beat, slot or unit.

    Constant bits of these fields (of the first or the last item) are omitted.
    """
    wmem_width = address_width(p.wmem_depth)
    slot_width = ceil_log2(p.key_slots)
    return data.StructLayout(
        {
            "kind": data.StructLayout(dict.fromkeys(KINDS, 1)),
            "query": query_layout(p),
            "ring": data.StructLayout(
                {"row_words": range(words_for(p.max_beats, p.query_beats) + 1), "max_rows": range(p.run_ahead + 3)}
            ),
            "weight_base": wmem_width,
            "weight_stride": wmem_width,
            "mask": mask_layout(p),
            "columns": data.StructLayout(
                {
                    "full": p.array_slots,  # slots used by all units
                    "partial": p.array_slots,  # the next slot, used by some units only
                    "units": p.n_banks - 1,  # those units, the last one omitted
                    "n_full": group_width(p),
                    "last": group_width(p),  # last group with columns
                    # Of IMEM, for a row of the product: words before it, its first part, its last word.
                    "skipped": address_width(p.imem_depth),
                    "offset": range(p.row_parts),
                    "last_word": range(words_for(p.max_dim, p.row_word) + 1),
                }
            ),
            "last_group": group_width(p),  # last group that is written
            "hash": data.StructLayout(
                {
                    "last_slot": slot_width,
                    "shift": range(slot_width + 1),  # width of the largest hashed index minus that of this one
                }
            ),
            "last_chunk": range(max(2, p.max_head_dim)),  # words of each key or value, minus one
            "last_lane": ceil_log2(max(p.n_lanes, p.simd_lanes)),
        }
    )


class ArrayPlan(CorePart):
    """Registers with the plan, valid from the clock after the command on."""

    Parameters = ArrayPlanParameters
    latency = 1
    members_doc = {"command": "a command of the array, or anything while there is none", "plan": "the decoded plan"}

    @staticmethod
    def members(p):
        return {"command": In(COMMAND_LAYOUT), "plan": Out(plan_layout(p))}

    def circuit(self):
        m = Module()
        self._next = Signal(plan_layout(self.parameters), name="next_plan")
        self._is(m)
        self._n_columns = Signal(16, name="n_columns")
        m.d.comb += self._n_columns.eq(Mux(self._next.kind.weighted, self.command.n_in, self.command.n_out))
        self._last_column = Signal(16, name="last_column")
        m.d.comb += self._last_column.eq(self._n_columns - 1)
        self._query(m)
        self._ring(m)
        self._weights(m)
        self._columns(m)
        self._projection(m)
        self._keep(m, self._next, self.plan)
        return m

    def _keep(self, m, found, kept, name=""):
        """A register for each field; only those that identify the command need a reset value."""
        for field in found.shape().members:
            if isinstance(found[field], data.View):
                self._keep(m, found[field], kept[field], f"{name}{field}_")
                continue
            register = Signal(len(found[field]), name=f"{name}{field}", reset_less=name != "kind_")
            m.d.sync += register.eq(found[field])
            m.d.comb += kept[field].eq(register)

    def _less_one(self, m, name):
        """A size of the command, minus one."""
        value = Signal(16, name=f"{name}_less_one")
        m.d.comb += value.eq(self.command[name] - 1)
        return value

    def _is(self, m):
        kind, command = self._next.kind, self.command
        m.d.comb += [
            kind.dense.eq((command.opcode == Opcode.MATMUL) | kind.weighted),
            kind.weighted.eq(command.opcode == Opcode.WEIGHTED_SUM),
            kind.adds.eq(kind.dense & ((command.function == Product.NEXT) | (command.function == Product.LAST))),
            kind.sums.eq(kind.dense & ((command.function == Product.FIRST) | (command.function == Product.NEXT))),
            kind.gives.eq(kind.dense & (command.function == Product.LAST)),
            kind.sddmm.eq(command.opcode == Opcode.SDDMM),
            kind.project.eq(command.opcode == Opcode.PROJECT),
            kind.to_values.eq(command.function == Projection.VALUES),
            kind.to_columns.eq(command.function == Projection.COLUMNS),
        ]

    def _query(self, m):
        """The end of a row and of its bias."""
        p, query = self.parameters, self._next.query
        last_element = self._less_one(m, "n_in")
        in_word = Signal(ceil_log2(p.row_word), name="last_in_word")
        last_beat = quotient(in_word, p.n_lanes)
        ends = Cat(last_beat == beat for beat in range(len(query.last)))
        behind = Cat(0, ends)  # the beat after the last one, possibly in the next word
        has_bias = (self.command.flags & FLAGS["bias"]).any()
        with_bias = has_bias.replicate(len(ends))
        m.d.comb += [
            in_word.eq(remainder(last_element, p.row_word)),
            query.last_word.eq(quotient(last_element, p.row_word)),
            query.elements.eq(Cat(in_word > element for element in range(len(query.elements)))),
            query.bias.eq(behind[1:-1] & with_bias),
            query.bias_follows.eq(behind[-1] & has_bias),
            query.last.eq((behind[:-1] & with_bias) | (ends & ~with_bias)),
        ]

    def _ring(self, m):
        """The words of a row in the ring of queries, one a transfer, and how many rows fit."""
        p, ring, query = self.parameters, self._next.ring, self._next.query
        slots_a_transfer = p.query_beats // p.column_beats
        last_slot = _last_of(used_slots(p, self.command.n_out))
        row_words = Signal.like(ring.row_words, name="row_words")
        m.d.comb += [
            row_words.eq(
                Mux(
                    self._next.kind.weighted,
                    quotient(last_slot, slots_a_transfer) + 1,
                    query.last_word + 1 + query.bias_follows,
                )
            ),
            ring.row_words.eq(row_words),
            ring.max_rows.eq(1),
        ]
        most = (1 << len(row_words)) - 1
        for rows in range(2, p.run_ahead + 3):
            # A comparison that is always true would be one with a constant.
            fits = row_words <= p.query_depth // rows if p.query_depth // rows < most else 1
            with m.If(fits):
                m.d.comb += ring.max_rows.eq(rows)

    def _weights(self, m):
        """Weights have a slot for every n_banks columns, keys one for every n_banks keys, as a power of two."""
        p, plan, command = self.parameters, self._next, self.command
        used = used_slots(p, command.n_out)
        is_gated = (command.flags & FLAGS["gated"]).any()
        m.d.comb += [
            plan.weight_base.eq(command.bank_address),
            plan.weight_stride.eq(Mux(plan.kind.sddmm, _last_of(used), self._last_column >> ceil_log2(p.n_banks)) + 1),
            plan.mask.is_common.eq(command.mask == 0),
            plan.mask.first.eq(p.mask_base(command.mask) + Mux(is_gated, 0, command.first_row)),
            plan.mask.slots.eq(used[1:]),
        ]

    def _columns(self, m):
        """Column c is slot c // n_banks of unit c % n_banks."""
        p, columns, n_out = self.parameters, self._next.columns, self._n_columns
        banks_log2 = ceil_log2(p.n_banks)
        n_full, n_more = n_out[banks_log2:], n_out[:banks_log2]
        skipped = Signal(16, name="words_skipped")
        m.d.comb += skipped.eq(quotient(self.command.column, p.row_word))
        m.d.comb += [
            columns.full.eq(Cat(n_full > slot for slot in range(p.array_slots))),
            columns.partial.eq(Cat(n_full == slot for slot in range(p.array_slots))),
            columns.units.eq(Cat(n_more > unit for unit in range(p.n_banks - 1))),
            columns.n_full.eq(n_full),
            columns.last.eq(self._last_column >> banks_log2),
            columns.last_word.eq(quotient((self._last_column + self.command.column)[:17], p.row_word) - skipped),
            columns.skipped.eq(skipped),
            columns.offset.eq(quotient(remainder(self.command.column, p.row_word), p.row_part)),
        ]

    def _projection(self, m):
        """Writes to banks: whole words of each slot, padded beyond the row."""
        p, plan, column = self.parameters, self._next, self._last_column
        lanes = [p.simd_lanes, p.n_lanes]
        chunk, end = Signal(16, name="chunk"), Signal(17, name="end_of_chunk")
        used = used_slots(p, self.command.n_rows)
        last_slot = Signal(len(plan.hash.last_slot), name="last_slot")
        pads = plan.kind.project & ~plan.kind.to_columns
        m.d.comb += [
            plan.last_lane.eq(Mux(plan.kind.to_values, *(each - 1 for each in lanes))),
            chunk.eq(Mux(plan.kind.to_values, *(quotient(column, each) for each in lanes))),
            end.eq(Mux(plan.kind.to_values, *(chunk * each + each - 1 for each in lanes))),
            plan.last_chunk.eq(chunk),
            last_slot.eq(_last_of(used)),
            plan.last_group.eq(Mux(pads, end, column) >> ceil_log2(p.n_banks)),
            plan.hash.last_slot.eq(last_slot),
            plan.hash.shift.eq(sum((~bit for bit in last_slot), 0)),
        ]


def _last_of(used):
    """The highest of the slots that are used, a power of two of them: ones as far as half of them go."""
    return Cat(used[1 << bit] for bit in range(ceil_log2(len(used))))
