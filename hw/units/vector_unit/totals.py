"""Totals over all engines; selection and rounding of the totals of a command's scope."""

from dataclasses import dataclass

from amaranth.hdl import Module, Mux, Signal, signed
from amaranth.lib import data
from amaranth.lib.wiring import In, Out

from golden.spec import vector_unit as spec
from golden.spec.formats import FP32
from golden.spec.vector_operations import SCOPE_WIDTH, Scope
from hw.lib.block import Block
from hw.lib.pipeline import Pipeline
from hw.units.vector_unit.aligner import BusAligner
from hw.units.vector_unit.arithmetic import SPECIALS, AccumulatorParameters
from hw.units.vector_unit.reduction_bus import ReductionBus
from hw.units.vector_unit.rounder import TotalRounder
from hw.units.vector_unit.stages import (
    CHOICE_LATENCY,
    EXPONENT_STAGE,
    SPECIAL_STAGE,
    engine_total_stage,
    lane_stages,
    select_stage,
)

__all__ = ["Totals", "TotalsParameters"]


@dataclass(frozen=True, kw_only=True)
class TotalsParameters(spec.TotalsParameters, AccumulatorParameters):
    @property
    def latency(self):
        """Stage of the results."""
        return select_stage(self.n_engines, self.n_lanes) + CHOICE_LATENCY + TotalRounder.latency

    @property
    def total_layout(self):
        return data.StructLayout(
            {
                "total": signed(self.all_width),
                "exponent": self.exponent_width,
                "specials": SPECIALS,
                "maximum_key": self.float_format.width,
            }
        )


class Totals(Block):
    """Adds the engines' totals to the total over all lanes, selects the totals of the scope, and rounds them.

    For the total over all lanes, those of the engines are aligned to the largest of their exponents and added. The
    stages of the ports are those of :mod:`hw.units.vector_unit.stages`.
    """

    Parameters = TotalsParameters
    members_doc = {
        "advance": "lock-step enable of the registers",
        "scope": "select_stage: a Scope",
        "used": "select_stage: there is a total",
        "is_maximum": "select_stage: it is a maximum",
        "lane_exponent": "stage 5: the largest exponent code of each lane over the engines",
        "lane_special": "stage 6: the union of their specials",
        "lane_total": "lane_stages: their sum",
        "lane_key": "lane_stages: the largest key",
        "engine_exponent": "stage 5: the largest exponent code of each engine over its lanes",
        "engine_special": "stage 6: the union of their specials",
        "engine_total": "engine_total_stage: their sum",
        "engine_key": "engine_total_stage: the largest key",
        "single": "latency: totals in FP32, 0 where there is none",
        "rounded": "latency: totals in the format",
    }

    @staticmethod
    def members(p):
        members = {"advance": In(1), "scope": In(SCOPE_WIDTH), "used": In(1), "is_maximum": In(1)}
        for name, count, width in (("lane", p.n_lanes, p.lane_width), ("engine", p.n_engines, p.engine_width)):
            shapes = {
                "exponent": p.exponent_width,
                "special": SPECIALS,
                "total": signed(width),
                "key": p.float_format.width,
            }
            members |= {f"{name}_{part}": In(data.ArrayLayout(shape, count)) for part, shape in shapes.items()}
        return members | {
            "single": Out(data.ArrayLayout(FP32.width, p.n_totals)),
            "rounded": Out(data.ArrayLayout(p.float_format.width, p.n_totals)),
        }

    @property
    def latency(self):
        return self.parameters.latency

    def circuit(self):
        m = Module()
        self._pipe = Pipeline(m, advance=self.advance)
        sum_stage, key_stage = lane_stages(self.n_engines)
        lanes = [
            self._total(
                m,
                f"lane_{lane}",
                {
                    "total": (sum_stage, self.lane_total[lane]),
                    "exponent": (EXPONENT_STAGE, self.lane_exponent[lane]),
                    "specials": (SPECIAL_STAGE, self.lane_special[lane]),
                    "maximum_key": (key_stage, self.lane_key[lane]),
                },
            )
            for lane in range(self.n_lanes)
        ]
        stage = engine_total_stage(self.n_lanes)
        engines = [
            self._total(
                m,
                f"engine_{engine}",
                {
                    "total": (stage, self.engine_total[engine]),
                    "exponent": (EXPONENT_STAGE, self.engine_exponent[engine]),
                    "specials": (SPECIAL_STAGE, self.engine_special[engine]),
                    "maximum_key": (stage, self.engine_key[engine]),
                },
            )
            for engine in range(self.n_engines)
        ]
        everything = self._all_total(m)
        of_lanes, of_engine = Signal(name="of_lanes"), Signal(name="of_engine")
        m.d.comb += [of_lanes.eq(self.scope == Scope.LANES), of_engine.eq(self.scope == Scope.ENGINE)]
        for index in range(self.parameters.n_totals):
            choices = [(of_lanes, total) for total in lanes[index : index + 1]]
            choices += [(of_engine, total) for total in engines[index : index + 1]]
            # Codes above ALL act as ALL.
            choices += [(~of_lanes & ~of_engine, everything)] if index == 0 else []
            self._round(m, index, choices)
        return m

    def _total(self, m, name, parts):
        """Parts, each available at its stage, delayed to select_stage: ``{field: (stage, value)}``."""
        until = select_stage(self.n_engines, self.n_lanes)
        total = Signal(self.parameters.total_layout, name=f"{name}_at_select")
        for field, (stage, value) in parts.items():
            late = self._pipe.register(value, name=f"{name}_{field}_late", stages=until - stage)
            m.d.comb += total[field].eq(late)
        return total

    def _all_total(self, m):
        """All engines' totals over their lanes."""
        p, pipe, stage = self.parameters, self._pipe, engine_total_stage(self.n_lanes)
        m.submodules.all_bus = bus = ReductionBus(
            n_inputs=p.n_engines, width=p.engine_width, exponent_width=p.exponent_width, key_width=p.float_format.width
        )
        reference_stage = EXPONENT_STAGE + bus.exponent_latency
        reference = pipe.register(bus.largest_exponent, name="all_reference", stages=stage - reference_stage)
        for engine in range(self.n_engines):
            aligner = BusAligner(width=p.engine_width, exponent_width=p.exponent_width)
            m.submodules[f"aligner_{engine}"] = aligner
            exponent = pipe.register(
                self.engine_exponent[engine], name=f"exponent_{engine}", stages=stage - EXPONENT_STAGE
            )
            m.d.comb += [
                aligner.value.eq(self.engine_total[engine]),
                aligner.exponent.eq(exponent),
                aligner.reference.eq(reference),
                bus.sums[engine].eq(pipe.register(aligner.aligned, name=f"aligned_{engine}")),
            ]
        m.d.comb += [
            bus.advance.eq(self.advance),
            bus.exponents.eq(self.engine_exponent),
            bus.specials.eq(self.engine_special),
            bus.keys.eq(self.engine_key),
        ]
        return self._total(
            m,
            "all",
            {
                "total": (stage + 1 + bus.latency, bus.total),
                "exponent": (reference_stage, bus.largest_exponent),
                "specials": (SPECIAL_STAGE + bus.special_latency, bus.any_special),
                "maximum_key": (stage + bus.latency, bus.largest_key),
            },
        )

    def _round(self, m, index, choices):
        """One rounder for the total with this index in the command's scope, if there is one."""
        p, pipe = self.parameters, self._pipe
        m.submodules[f"rounder_{index}"] = rounder = TotalRounder(**p.accumulator(), width=p.all_width)
        exists, total = choices[0]
        for chosen, other in choices[1:]:
            exists, total = exists | chosen, Mux(chosen, other, total)
        # The scope has a high fan-out, which leaves no time for a carry chain after it.
        chosen = Signal(p.total_layout, name=f"chosen_{index}")
        m.d.comb += chosen.eq(total)
        chosen = pipe.register(chosen, name=f"total_{index}")
        m.d.comb += [
            rounder.advance.eq(self.advance),
            rounder.used.eq(pipe.register(self.used & exists, name=f"used_{index}")),
            rounder.is_maximum.eq(pipe.register(self.is_maximum, name=f"is_maximum_{index}")),
            *(getattr(rounder, field).eq(chosen[field]) for field in p.total_layout.members),
            self.single[index].eq(rounder.single),
            self.rounded[index].eq(rounder.rounded),
        ]
