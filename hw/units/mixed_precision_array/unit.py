"""MixedPrecisionArray: rows and columns of elements that multiply 2-bit slices by 8-bit weights, tile by tile."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out, connect, flipped

from golden.spec.formats import FP16, FP32
from golden.spec.mixed_precision import GROUP
from golden.spec.mixed_precision_array import ArrayParameters, MixedPrecisionArrayParameters
from hw.lib.block import Block
from hw.lib.memory import MemoryBank
from hw.lib.pipeline import Pipeline
from hw.units.mixed_precision_array.element import CONTROL, SELECTS, ProcessingElement
from hw.units.mixed_precision_array.layouts import EXPONENT, MULTIPLES, WEIGHT, group_layout, weight_layout
from hw.units.mixed_precision_array.output_lane import OutputLane
from hw.units.mixed_precision_array.sequencer import GroupSequencer

__all__ = ["MixedPrecisionArray", "MixedPrecisionArrayParameters"]

_STEPS = 3
"""Clocks from the entry of a group to the addition of its products to the sums."""


class MixedPrecisionArray(Block):
    """``result[r][c] = previous[r][c] + scale[c] * sum(value[k][r] * weight[k][c]) / 2**exponent``, k over channels.

    Values come as slices of 2 bits, sorted by key (see :mod:`golden.spec.mixed_precision`), in groups of up to four
    slices of one key, each with the address of its channel's row of weights. A group enters a clock after another;
    where its key is ``shift`` above the one before, the sums are first doubled that many times, a clock each. The sum
    over a tile is exact. After the group marked ``last`` the sums leave row by row, columns in beats of n_output_lanes,
    while the next tile is computed; each beat takes a beat of ``previous``. The product of sum and scale is rounded
    once to FP32, ties to even, and so is its addition.

    Members: see the table; ``digits`` of a lane are the codes of a slice, row 0 in the lowest bits, ``is_top`` says
    that code 2 stands for -2 and 3 for -1; lanes without ``is_used`` are zeros. ``exponent`` is used with the last
    group. ``scales`` must not change while results of a tile are outstanding.

    Timing: a group a clock and a clock for each bit of a shift; the last group of a tile waits until the results of
    the tile before have left the array, n_rows * n_columns / n_output_lanes beats.

    Defined by :func:`golden.units.mixed_precision_array.multiply`. It is DSTAR's MPU (section 4.2, figures 9 to 11).
    """

    Parameters = MixedPrecisionArrayParameters
    members_doc = {
        "weight": "a row of weights into the bank",
        "weight.address": "number of the row",
        "weight.weights": "INT8 numbers, two's complement, one a column",
        "group": "one to four slices of one key",
        "group.lanes.digits": "codes of 2 bits, one a row",
        "group.lanes.address": "row of weights of the slice's channel",
        "group.lanes.is_top": "code 2 stands for -2 and 3 for -1",
        "group.lanes.is_used": "0: the lane is zero",
        "group.shift": "how far the key is above that of the group before: the sums are doubled so many times",
        "group.exponent": "exponent of the sums, two's complement; used with last",
        "group.last": "the last group of the tile",
        "scales": "scale of each column's weights; constant while results of a tile are outstanding",
        "scales.elements": "FP16 numbers",
        "previous": "outputs so far, row by row, n_output_lanes columns a beat",
        "previous.elements": "FP32 numbers",
        "result": "the new outputs, in the same order",
        "result.elements": "FP32 numbers",
    }

    @staticmethod
    def members(p):
        outputs = stream.Signature(data.ArrayLayout(FP32.width, p.lanes))
        return {
            "weight": In(stream.Signature(weight_layout(p))),
            "group": In(stream.Signature(group_layout(p))),
            "scales": In(data.ArrayLayout(FP16.width, p.n_columns)),
            "previous": In(outputs),
            "result": Out(outputs),
        }

    output_latency = OutputLane.latency
    """Clocks from a beat of sums and ``previous`` to its result."""

    def circuit(self):
        m = Module()
        shared = {name: getattr(self, name) for name in ArrayParameters.__dataclass_fields__}
        m.submodules.sequencer = sequencer = GroupSequencer(**shared)
        connect(m, flipped(self.group), sequencer.group)
        step, group = sequencer.step, self.group.payload
        multiples = self._multiples(m, group.lanes, step)
        selects = self._selects(m, group.lanes, step)
        control, captures = self._control(m, step)
        exponent = Signal(EXPONENT, reset_less=True)
        with m.If(step.adds & step.is_last):
            m.d.sync += exponent.eq(group.exponent)
        out, drained = self._drain(m, captures, exponent)
        m.d.comb += sequencer.drained.eq(drained)
        self._elements(m, selects, multiples, control, captures, out)
        return m

    def _multiples(self, m, lanes, step):
        """The multiples of every column's weights, two clocks after a group's entry."""
        p = self.parameters
        m.d.comb += self.weight.ready.eq(1)
        columns = [Signal(MULTIPLES, name=f"multiples_{column}", reset_less=True) for column in range(p.n_columns)]
        for index in range(GROUP):
            m.submodules[f"weights_{index}"] = bank = MemoryBank(depth=p.weight_depth, width=p.n_columns * WEIGHT.width)
            m.d.comb += [
                bank.write_enable.eq(self.weight.valid),
                bank.write_address.eq(self.weight.payload.address),
                bank.write_data.eq(self.weight.payload.weights),
                bank.read_enable.eq(step.adds),
                bank.read_address.eq(lanes[index].address),
            ]
            is_top = Signal(name=f"is_top_{index}", reset_less=True)
            m.d.sync += is_top.eq(lanes[index].is_top)
            for column, found in enumerate(columns):
                weight = bank.read_data.word_select(column, WEIGHT.width).as_signed()
                m.d.sync += [
                    found[index].once.eq(weight),
                    found[index].twice.eq(Mux(is_top, -weight, weight) << 1),
                    found[index].triple.eq(Mux(is_top, -weight, weight + (weight << 1))),
                ]
        return columns

    def _selects(self, m, lanes, step):
        """What every row's digits select, two clocks after a group's entry; nothing where none entered."""
        rows = []
        entered = Signal(GROUP)
        m.d.sync += entered.eq(Cat(lane.is_used & step.adds for lane in lanes))
        for row in range(self.n_rows):
            digits = Signal(data.ArrayLayout(2, GROUP), name=f"digits_{row}", reset_less=True)
            selects = Signal(SELECTS, name=f"selects_{row}")
            for index in range(GROUP):
                digit = digits[index]
                m.d.sync += [
                    digit.eq(lanes[index].digits[row]),
                    selects[index].eq(
                        Cat(digit[0] & ~digit[1], digit[1] & ~digit[0], digit.all()) & entered[index].replicate(3)
                    ),
                ]
            rows.append(selects)
        return rows

    def _control(self, m, step):
        """Control of the sums, aligned with the products, and whether they are complete, a clock later."""
        control, captures = Signal(CONTROL, name="control_0"), step.adds & step.is_last
        m.d.comb += [control.clears.eq(step.adds & step.is_first), control.doubles.eq(step.doubles)]
        for stage in range(1, _STEPS + 1):
            delayed, delayed_captures = Signal(CONTROL, name=f"control_{stage}"), Signal(name=f"captures_{stage}")
            m.d.sync += [delayed.eq(control), delayed_captures.eq(captures)]
            control, captures = delayed, delayed_captures
        finished = Signal(name="finished")
        m.d.sync += finished.eq(captures)
        return control, finished

    def _drain(self, m, captures, exponent):
        """The results of a tile, beat by beat: the outgoing registers of the first row and whether they move on; and
        whether the last beat leaves."""
        p = self.parameters
        per_row = p.n_columns // p.lanes
        is_full = Signal()
        row = Signal(range(p.n_rows))
        part = Signal(range(per_row))
        leaves = Signal()
        ends_row = Signal()
        drained = Signal()
        latency = OutputLane.latency
        pipe = Pipeline(m, source=_Joined(m, self.previous, is_full, leaves), sink=self.result)
        pipe.valid_chain(latency)
        m.d.comb += [ends_row.eq(leaves & (part == per_row - 1)), drained.eq(ends_row & (row == p.n_rows - 1))]
        m.d.sync += is_full.eq((is_full & ~drained) | captures)
        with m.If(leaves):
            m.d.sync += part.eq(Mux(ends_row, 0, part + 1))
        with m.If(ends_row):
            m.d.sync += row.eq(Mux(drained, 0, row + 1))
        first_row = Signal(data.ArrayLayout(p.sum_width, p.n_columns))
        for lane in range(p.lanes):
            m.submodules[f"output_{lane}"] = output = OutputLane(sum_width=p.sum_width)
            columns = range(lane, p.n_columns, p.lanes)
            m.d.comb += [
                output.advance.eq(pipe.advance),
                output.exponent.eq(exponent),
                output.previous.eq(self.previous.payload[lane]),
                self.result.payload[lane].eq(output.result),
            ]
            with m.Switch(part):
                for index, column in enumerate(columns):
                    with m.Case(index):
                        m.d.comb += [output.sum.eq(first_row[column]), output.scale.eq(self.scales[column])]
        return (first_row, ends_row), drained

    def _elements(self, m, selects, multiples, control, captures, out):
        """The array itself. The sums of a column leave by its first element."""
        first_row, moves = out
        for column in range(self.n_columns):
            below = 0
            for row in reversed(range(self.n_rows)):
                m.submodules[f"element_{row}_{column}"] = element = ProcessingElement(
                    sum_width=self.parameters.sum_width
                )
                m.d.comb += [
                    element.selects.eq(selects[row]),
                    element.multiples.eq(multiples[column]),
                    element.control.eq(control),
                    element.captures.eq(captures),
                    element.moves.eq(moves),
                    element.next_out.eq(below),
                ]
                below = element.out
            m.d.comb += first_row[column].eq(below)


class _Joined:
    """Join of beats of ``previous`` and of sums, as the source of a pipeline."""

    def __init__(self, m, previous, is_full, leaves):
        self.valid = Signal(name="beat_valid")
        self.ready = Signal(name="beat_ready")
        self.payload = previous.payload
        m.d.comb += [
            self.valid.eq(previous.valid & is_full),
            leaves.eq(self.valid & self.ready),
            previous.ready.eq(leaves),
        ]
