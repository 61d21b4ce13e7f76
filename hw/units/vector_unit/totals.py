"""Totals over all engines; selection and rounding of the totals of a command's scope."""

from dataclasses import dataclass

from amaranth.hdl import Const, Module, Mux, Signal, signed
from amaranth.lib import data
from amaranth.lib.wiring import In, Out

from golden.spec import vector_unit as spec
from golden.spec.formats import FP32
from golden.spec.vector_operations import SCOPE_WIDTH, Scope
from hw.lib.block import Block
from hw.lib.pipeline import Pipeline
from hw.units.vector_unit.aligner import BusAligner
from hw.units.vector_unit.arithmetic import SPECIALS, OperationParameters
from hw.units.vector_unit.reduction_bus import ReductionBus
from hw.units.vector_unit.rounder import TotalRounder
from hw.units.vector_unit.stages import (
    EXPONENT_STAGE,
    SPECIAL_STAGE,
    choice_latency,
    engine_total_stage,
    lane_stages,
    select_stage,
)

__all__ = ["Totals", "TotalsParameters"]


@dataclass(frozen=True, kw_only=True)
class TotalsParameters(spec.TotalsParameters, OperationParameters):
    @property
    def select_stage(self):
        """The stage of the totals of all scopes."""
        return select_stage(self.total_scopes, self.n_engines, self.n_lanes)

    @property
    def latency(self):
        """Stage of the results."""
        return self.select_stage + choice_latency(self.total_scopes) + TotalRounder.latency

    @property
    def total_layout(self):
        sums = {"total": signed(self.total_width), "exponent": self.exponent_width, "specials": SPECIALS}
        key = {"maximum_key": self.float_format.width}
        return data.StructLayout((sums if self.has_sums else {}) | (key if self.has_maximum else {}))

    def inputs_of(self, width):
        """The shapes of the parts of a total with so many bits, as they come in."""
        sums = {"exponent": self.exponent_width, "special": SPECIALS, "total": signed(width)}
        key = {"key": self.float_format.width}
        return (sums if self.has_sums else {}) | (key if self.has_maximum else {})


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
        scopes, several = p.total_scopes, len(p.total_scopes) > 1
        members = {"advance": In(1), "used": In(1)}
        members |= {"scope": In(SCOPE_WIDTH)} if several else {}
        members |= {"is_maximum": In(1)} if p.has_sums and p.has_maximum else {}
        for name, exists, count, width in (
            ("lane", "lanes" in scopes, p.n_lanes, p.lane_width),
            ("engine", "engine" in scopes or "all" in scopes, p.n_engines, p.engine_width),
        ):
            if exists:
                members |= {
                    f"{name}_{part}": In(data.ArrayLayout(shape, count)) for part, shape in p.inputs_of(width).items()
                }
        widths = {"single": FP32.width, "rounded": p.float_format.width}
        return members | {form: Out(data.ArrayLayout(widths[form], p.n_totals)) for form in p.total_forms}

    @property
    def latency(self):
        return self.parameters.latency

    def circuit(self):
        m = Module()
        p, scopes = self.parameters, self.parameters.total_scopes
        self._pipe = Pipeline(m, advance=self.advance)
        lanes, engines, everything = [], [], []
        if "lanes" in scopes:
            sum_stage, key_stage = lane_stages(self.n_engines)
            lanes = [self._total(m, "lane", index, sum_stage, key_stage) for index in range(self.n_lanes)]
        if "engine" in scopes:
            stage = engine_total_stage(self.n_lanes)
            engines = [self._total(m, "engine", index, stage, stage) for index in range(self.n_engines)]
        if "all" in scopes:
            everything = [self._all_total(m)]
        of = {scope: Const(1, 1) for scope in scopes}
        if len(scopes) > 1:
            of_lanes, of_engine = Signal(name="of_lanes"), Signal(name="of_engine")
            m.d.comb += [of_lanes.eq(self.scope == Scope.LANES), of_engine.eq(self.scope == Scope.ENGINE)]
            # Codes above ALL act as ALL.
            of = {"lanes": of_lanes, "engine": of_engine, "all": ~of_lanes & ~of_engine}
        for index in range(p.n_totals):
            choices = [
                (of[scope], totals[index])
                for scope, totals in (("lanes", lanes), ("engine", engines), ("all", everything))
                if index < len(totals)
            ]
            self._round(m, index, choices)
        return m

    def _total(self, m, name, index, sum_stage, key_stage):
        """A total of a lane over the engines, or of an engine over its lanes, delayed to select_stage."""
        stages = {
            "exponent": ("exponent", EXPONENT_STAGE),
            "special": ("specials", SPECIAL_STAGE),
            "total": ("total", sum_stage),
            "key": ("maximum_key", key_stage),
        }
        parts = {
            stages[part][0]: (stages[part][1], getattr(self, f"{name}_{part}")[index])
            for part in self.parameters.inputs_of(1)
        }
        return self._delayed(m, f"{name}_{index}", parts)

    def _delayed(self, m, name, parts):
        """Parts, each available at its stage, delayed to select_stage: ``{field: (stage, value)}``."""
        until = self.parameters.select_stage
        total = Signal(self.parameters.total_layout, name=f"{name}_at_select")
        for field, (stage, value) in parts.items():
            late = self._pipe.register(value, name=f"{name}_{field}_late", stages=until - stage)
            m.d.comb += total[field].eq(late)
        return total

    def _all_total(self, m):
        """All engines' totals over their lanes."""
        p, pipe, stage = self.parameters, self._pipe, engine_total_stage(self.n_lanes)
        m.submodules.all_bus = bus = ReductionBus(
            n_inputs=p.n_engines,
            width=p.engine_width,
            exponent_width=p.exponent_width,
            key_width=p.float_format.width,
            has_sums=p.has_sums,
            has_maximum=p.has_maximum,
        )
        m.d.comb += bus.advance.eq(self.advance)
        parts = {}
        if p.has_maximum:
            m.d.comb += bus.keys.eq(self.engine_key)
            parts["maximum_key"] = (stage + bus.latency, bus.largest_key)
        if p.has_sums:
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
            m.d.comb += [bus.exponents.eq(self.engine_exponent), bus.specials.eq(self.engine_special)]
            parts |= {
                "total": (stage + 1 + bus.latency, bus.total),
                "exponent": (reference_stage, bus.largest_exponent),
                "specials": (SPECIAL_STAGE + bus.special_latency, bus.any_special),
            }
        return self._delayed(m, "all", parts)

    def _round(self, m, index, choices):
        """One rounder for the total with this index in the command's scope, if there is one."""
        p, pipe = self.parameters, self._pipe
        m.submodules[f"rounder_{index}"] = rounder = TotalRounder(
            **p.accumulator(), width=p.total_width, forms=p.total_forms, has_sums=p.has_sums, has_maximum=p.has_maximum
        )
        exists, total = choices[0]
        for chosen, other in choices[1:]:
            exists, total = exists | chosen, Mux(chosen, other, total)
        # The scope has a high fan-out, which leaves no time for a carry chain after it.
        wait = choice_latency(p.total_scopes)
        chosen = Signal(p.total_layout, name=f"chosen_{index}")
        m.d.comb += chosen.eq(total)
        chosen = pipe.register(chosen, name=f"total_{index}", stages=wait)
        m.d.comb += [
            rounder.advance.eq(self.advance),
            rounder.used.eq(pipe.register(self.used & exists, name=f"used_{index}", stages=wait)),
            *(getattr(rounder, field).eq(chosen[field]) for field in p.total_layout.members),
            *(getattr(self, form)[index].eq(getattr(rounder, form)) for form in p.total_forms),
        ]
        if p.has_sums and p.has_maximum:
            is_maximum = pipe.register(self.is_maximum, name=f"is_maximum_{index}", stages=wait)
            m.d.comb += rounder.is_maximum.eq(is_maximum)
