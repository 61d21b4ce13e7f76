"""Sum, number of elements and range of a row, and the fixed-point frame of its deviations."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, signed
from amaranth.lib import data
from amaranth.lib.wiring import In, Out
from amaranth.utils import bits_for

from golden.spec import layer_norm_unit as spec
from golden.spec.formats import FP16
from hw.arith.compressor import Heap
from hw.arith.leading_zeros import LeadingZeroCounter
from hw.arith.shifter import LogShifter
from hw.arith.trees import MaximumTree, SumTree
from hw.lib.block import Block
from hw.lib.formats import float_layout
from hw.lib.pipeline import Pipeline
from hw.units.layer_norm_unit.fixed import FixedMagnitude
from hw.units.layer_norm_unit.layouts import FIXED_WIDTH, FRAME_WIDTH, SCALE, RowLanesParameters

__all__ = ["RowSum"]

_SCALE_MAX = max(SCALE)


class RowSum(Block):
    """Row statistics for the deviations, ``latency`` clocks after the row's last beat; never stalls.

    The sum is exact, in units of the smallest FP16 number. The difference of the largest and the
    smallest element is exact, too. Golden: step 1 of :func:`golden.units.layer_norm_unit.normalise`.
    """

    Parameters = RowLanesParameters
    members_doc = {
        "valid": "there is a beat",
        "last": "the beat ends its row",
        "elements": "FP16",
        "enable": "enabled elements",
        "row": "statistics of the row",
        "row_valid": "the statistics are valid",
    }

    @staticmethod
    def members(p):
        return {
            "valid": In(1),
            "last": In(1),
            "elements": In(data.ArrayLayout(FP16.width, p.n_lanes)),
            "enable": In(p.n_lanes),
            "row": Out(p.statistic),
            "row_valid": Out(1),
        }

    def prepare(self):
        self.tree = SumTree(n_inputs=self.n_lanes + 1, width=FIXED_WIDTH + 1)

    @property
    def latency(self):
        return self.tree.latency + 6

    def circuit(self):
        m = Module()
        pipe = Pipeline(m, advance=Const(1))
        n_stages = self.tree.latency + 1
        valid = self.valid
        for stage in range(1, n_stages + 1):
            valid = pipe.control(valid, name=f"valid_{stage}")
        last = pipe.register(self.last, name="last", stages=n_stages)
        row_valid = valid & last
        for stage in range(n_stages + 1, self.latency + 1):
            row_valid = pipe.control(row_valid, name=f"row_valid_{stage}")
        m.d.comb += self.row_valid.eq(row_valid)

        total, count, special, largest, smallest = self._accumulate(m, pipe, valid, last, n_stages)
        count_width, count_fraction = self.parameters.count_width, self.parameters.count_fraction
        dropped = _SCALE_MAX + count_width - 1 - (spec.FRAME_FRACTION - 1)  # largest right shift of a sum
        amount_max = dropped + spec.FRAME_FRACTION - 1 - 1

        # The number of elements as a significand; the range; its leading one.
        m.submodules.count_zeros = count_zeros = LeadingZeroCounter(width=count_width)
        m.submodules.count_shifter = count_shifter = LogShifter(
            width=count_width, amount_width=len(count_zeros.count), direction="left"
        )
        octave = Signal.like(self.row.octave)
        m.d.comb += [
            count_zeros.value.eq(count),
            count_shifter.value.eq(count),
            count_shifter.amount.eq(count_zeros.count),
            octave.eq(count_width - 1 - count_zeros.count),
        ]
        limits = [
            pipe.register(self._fixed(m, key, name), name=f"{name}_fixed")
            for key, name in ((largest, "largest"), (smallest, "smallest"))
        ]
        spread = Signal(FIXED_WIDTH + 1)
        m.d.comb += spread.eq(limits[0] - limits[1])
        spread = pipe.register(spread, name="spread")
        m.submodules.spread_zeros = spread_zeros = LeadingZeroCounter(width=FIXED_WIDTH)
        scale = Signal.like(self.row.scale)
        amount = Signal(range(amount_max + 1))
        octave = pipe.register(octave, name="octave", stages=2)
        m.d.comb += [
            spread_zeros.value.eq(spread[1:]),
            scale.eq(_SCALE_MAX - spread_zeros.count),
            amount.eq((amount_max + 1 - _SCALE_MAX) - octave + spread_zeros.count),
        ]
        scale = pipe.register(scale, name="scale")
        amount = pipe.register(amount, name="amount")

        # The sum in the frame, divided by a power of two.
        m.submodules.shifter = shifter = LogShifter(
            width=FRAME_WIDTH + dropped, amount_width=len(amount), direction="left"
        )
        late = pipe.register(total, name="total_late", stages=3)
        m.d.comb += [shifter.value.eq(late), shifter.amount.eq(amount)]
        m.d.comb += [
            self.row.count.eq(
                pipe.register(count_shifter.shifted[-1 - count_fraction : -1], name="count_late", stages=4)
            ),
            self.row.octave.eq(pipe.register(octave, name="octave_late", stages=2)),
            self.row.scale.eq(pipe.register(scale, name="scale_late")),
            self.row.mean.eq(pipe.register(shifter.shifted[dropped:], name="mean")),
            self.row.has_special.eq(pipe.register(special, name="special_late", stages=4)),
        ]
        return m

    def _accumulate(self, m, pipe, valid, last, n_stages):
        """Registers with a row's sum, number of elements, flag, and the keys of its largest and smallest element."""
        m.submodules.tree = tree = self.tree
        trees = {}
        for name in ("largest", "smallest"):
            trees[name] = MaximumTree(n_inputs=self.n_lanes, width=FP16.width, n_stages=n_stages)
            m.submodules[f"{name}_tree"] = trees[name]
            m.d.comb += trees[name].advance.eq(1)
        m.d.comb += tree.advance.eq(1)
        specials = Signal(self.n_lanes)
        negatives = Signal(self.n_lanes)
        for lane, word in enumerate(self.elements):
            enable = self.enable[lane]
            fixed = m.submodules[f"fixed_{lane}"] = FixedMagnitude()
            addend = Signal(signed(FIXED_WIDTH + 1), name=f"addend_{lane}")
            key = Signal(FP16.width, name=f"key_{lane}")
            m.d.comb += [
                fixed.word.eq(word),
                negatives[lane].eq(fixed.sign & enable),
                addend.eq(
                    (Cat(fixed.magnitude, 0) & enable.replicate(len(addend))) ^ negatives[lane].replicate(len(addend))
                ),
                tree.addends[lane].eq(pipe.register(addend, name=f"addend_{lane}_1")),
                specials[lane].eq(enable & float_layout(FP16)(word).exponent.all()),
                # Keys order the numbers; the smallest element is the largest complement, 0 is none.
                key.eq(Mux(fixed.sign, ~word, Cat(word[:-1], 1))),
                trees["largest"].values[lane].eq(key & enable.replicate(len(key))),
                trees["smallest"].values[lane].eq(~key & enable.replicate(len(key))),
            ]
        n_negative = pipe.register(self._count(m, "n_negative", negatives), name="n_negative_1")
        n_enabled = pipe.register(self._count(m, "n_enabled", self.enable), name="n_enabled_late", stages=n_stages)
        m.d.comb += tree.addends[self.n_lanes].eq(n_negative)

        begun = Signal()  # the row has had a beat
        sums = {
            "total": (Signal(signed(self.parameters.total_width), reset_less=True), tree.total),
            "count": (Signal(self.parameters.count_width, reset_less=True), n_enabled),
        }
        special_now = pipe.register(specials.any(), name="special_now", stages=n_stages)
        special = Signal(reset_less=True)
        keys = {name: Signal(FP16.width, name=f"{name}_key", reset_less=True) for name in trees}
        with m.If(valid):
            m.d.sync += [begun.eq(~last), special.eq(special_now | (begun & special))]
            m.d.sync += [so_far.eq(Mux(begun, so_far, 0) + now) for so_far, now in sums.values()]
            for name, key in keys.items():
                now = trees[name].largest
                m.d.sync += key.eq(Mux(begun & (key > now), key, now))
        return sums["total"][0], sums["count"][0], special, keys["largest"], ~keys["smallest"]

    def _count(self, m, name, bits):
        """The number of ones."""
        heap = Heap(m, name, bits_for(len(bits)))
        for bit in bits:
            heap.add(bit)
        return heap.total()

    def _fixed(self, m, key, name):
        """The number of a key in two's complement."""
        fixed = m.submodules[f"{name}_magnitude"] = FixedMagnitude()
        value = Signal(signed(FIXED_WIDTH + 1), name=f"{name}_value")
        m.d.comb += [
            fixed.word.eq(Mux(key[-1], Cat(key[:-1], 0), ~key)),
            value.eq(Mux(fixed.sign, -fixed.magnitude, fixed.magnitude)),
        ]
        return value
