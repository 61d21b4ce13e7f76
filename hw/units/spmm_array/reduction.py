"""ReductionLane: one lane's sum over the engines, in one clock or a few for each pass."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, signed
from amaranth.lib import data
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from golden.spec.vector_unit import GUARD_BITS
from hw.arith.shifter import LogShifter
from hw.arith.trees import MaximumTree, SumTree
from hw.lib.block import Block
from hw.lib.pipeline import Pipeline
from hw.units.spmm_array.layouts import SpmmArrayParameters, status_layout
from hw.units.spmm_array.rounder import SumRounder
from hw.units.vector_unit.arithmetic import SPECIALS, amount_width, clamp

__all__ = ["ReductionLane"]


class ReductionLane(Block):
    """The engines' sums of a pass, aligned to the largest exponent, added and rounded once.

    Engines are reduced in groups of ``reduction_clocks``; in each clock one engine of every group is, so that a group
    shares an aligner. With one clock all engines are reduced at once, and nothing has to be selected.

    Stages count from the clock in which the status of a pass's first engines is there: exponents and specials first,
    then, when the largest exponent is known, the exponents again for the distances, and a clock later the sums.
    """

    Parameters = SpmmArrayParameters
    rounder_latency = SumRounder.latency
    members_doc = {
        "status": "exponents and specials, by engine",
        "again": "exponents of the pass whose sums come next, by engine",
        "totals": "the sums, by engine",
        "select_status": "which engine of each group",
        "first_status": "stage exponent_stages: the first engines of a pass",
        "last_status": "stage exponent_stages: the last ones of a pass",
        "select_again": "which engine of each group has the exponent that status shows again",
        "select_totals": "which engine of each group has the sum that comes now",
        "first_total": "the first engines of a pass are in the sum of sums",
        "rounded": "the sum over the engines, a word of the format",
        "single": "the sum in FP32",
    }

    @staticmethod
    def members(p):
        q = p.arithmetic
        clocks = p.reduction_clocks
        shared = {
            "select_status": In(clocks),
            "first_status": In(1),
            "last_status": In(1),
            "select_again": In(clocks),
            "select_totals": In(clocks),
            "first_total": In(1),
        }
        return {
            "status": In(data.ArrayLayout(status_layout(q), p.n_engines)),
            "totals": In(data.ArrayLayout(signed(q.sum_width), p.n_engines)),
            **(shared if clocks > 1 else {"again": In(data.ArrayLayout(q.exponent_width, p.n_engines))}),
            "rounded": Out(q.float_format.width),
            **({"single": Out(32)} if p.wide else {}),
        }

    def prepare(self):
        members = self.members(self.parameters)
        self.members_doc = {name: text for name, text in self.members_doc.items() if name in members}

    def circuit(self):
        m = Module()
        p, q = self.parameters, self.parameters.arithmetic
        pipe = Pipeline(m, advance=Const(1, 1))
        largest, specials = self._largest(m, pipe)
        total = self._total(m, pipe, largest)
        m.submodules.rounder = rounder = SumRounder(**p.lane(), width=len(total), wide=p.wide)
        stages = p.bus_to_rounder
        m.d.comb += [
            rounder.total.eq(total),
            rounder.exponent.eq(pipe.register(largest, name="largest_later", stages=stages)),
            rounder.specials.eq(pipe.register(specials, name="specials_later", stages=stages)),
            self.rounded.eq(rounder.rounded),
        ]
        if p.wide:
            m.d.comb += self.single.eq(rounder.single)
        assert len(total) == q.aligned_width + ceil_log2(p.n_engines)
        return m

    def _chosen(self, values, select):
        """One value of each group."""
        clocks = self.reduction_clocks
        if clocks == 1:
            return list(values)
        chosen = []
        for low in range(0, self.n_engines, clocks):
            value = Const(0, 1)
            for index in range(clocks):
                one = Value.cast(values[low + index]).as_unsigned()
                value |= one & select[index].replicate(len(one))
            chosen.append(value)
        return chosen

    def _largest(self, m, pipe):
        """The largest exponent and the union of the specials; they last for reduction_clocks."""
        p, q = self.parameters, self.parameters.arithmetic
        layout = status_layout(q)
        status = [data.View(layout, Signal(layout.size, name=f"status_{group}")) for group in range(p.n_groups)]
        values = [self.status[engine] for engine in range(p.n_engines)]
        chosen = self._chosen(values, self.select_status if p.reduction_clocks > 1 else None)
        m.d.comb += [view.as_value().eq(value) for view, value in zip(status, chosen, strict=True)]
        m.submodules.exponents = tree = MaximumTree(
            n_inputs=p.n_groups, width=q.exponent_width, n_stages=p.exponent_stages
        )
        union = Signal(SPECIALS)
        for name in SPECIALS.members:
            m.d.comb += union[name].eq(Cat(view.specials[name] for view in status).any())
        m.d.comb += [tree.advance.eq(1), Cat(tree.values).eq(Cat(view.exponent for view in status))]
        union = pipe.register(union, name="union", stages=p.exponent_stages)
        if p.reduction_clocks == 1:
            return tree.largest, union
        # From engine to engine of the groups.
        exponent = Signal(q.exponent_width, name="exponent_so_far", reset_less=True)
        specials = Signal(SPECIALS, name="specials_so_far", reset_less=True)
        higher, more = Signal.like(exponent, name="higher"), Signal(SPECIALS, name="more")
        m.d.comb += [
            higher.eq(Mux(self.first_status | (exponent < tree.largest), tree.largest, exponent)),
            more.eq(union.as_value() | Mux(self.first_status, 0, specials)),
        ]
        m.d.sync += [exponent.eq(higher), specials.eq(more)]
        largest = Signal.like(exponent, name="largest", reset_less=True)
        all_specials = Signal(SPECIALS, name="all_specials", reset_less=True)
        with m.If(self.last_status):
            m.d.sync += [largest.eq(higher), all_specials.eq(more)]
        return largest, all_specials

    def _total(self, m, pipe, largest):
        """The sums, aligned one clock after their distances are known."""
        p, q = self.parameters, self.parameters.arithmetic
        engines = range(p.n_engines)
        if p.reduction_clocks == 1:
            again, totals = self.again, self.totals
        else:
            again = self._chosen([self.status[engine].exponent for engine in engines], self.select_again)
            totals = self._chosen([self.totals[engine] for engine in engines], self.select_totals)
        amount = amount_width(q.aligned_width, q.exponent_width)
        m.submodules.sums = sums = SumTree(n_inputs=p.n_groups, width=q.aligned_width)
        m.d.comb += sums.advance.eq(1)
        for group in range(p.n_groups):
            distance = Signal(q.exponent_width, name=f"distance_{group}")
            m.submodules[f"shifter_{group}"] = shifter = LogShifter(
                width=q.aligned_width, amount_width=amount, arithmetic=True
            )
            m.d.comb += [
                distance.eq(largest - again[group]),
                shifter.value.eq(Cat(Const(0, GUARD_BITS), totals[group])),
                shifter.amount.eq(pipe.register(clamp(distance, amount), name=f"amount_{group}")),
                sums.addends[group].eq(pipe.register(shifter.shifted, name=f"aligned_{group}").as_signed()),
            ]
        if p.reduction_clocks == 1:
            return sums.total
        total = Signal(signed(q.aligned_width + ceil_log2(p.n_engines)), name="total_so_far", reset_less=True)
        m.d.sync += total.eq(sums.total + Mux(self.first_total, 0, total))
        return total
