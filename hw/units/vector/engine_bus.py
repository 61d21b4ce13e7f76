"""The bus over the engines: totals of every scope, rounded."""

from dataclasses import dataclass

from amaranth.hdl import Cat, Module, Signal, signed
from amaranth.lib import data
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from hw.block import Block
from hw.formats import FP32
from hw.params import integer, power_of_two
from hw.pipeline import Pipeline
from hw.units.vector.aligner import BusAligner
from hw.units.vector.arithmetic import SCOPE_WIDTH, SPECIALS, Scope
from hw.units.vector.engine import VectorEngineParameters
from hw.units.vector.total import TotalRounder
from hw.units.vector.trees import ReductionBus, tree_latency

__all__ = ["EngineBus", "EngineBusParameters"]


@dataclass(frozen=True, kw_only=True)
class EngineBusParameters(VectorEngineParameters):
    n_engines: int = power_of_two(4, low=1, high=128, doc="engines on the bus")

    @property
    def n_totals(self):
        return max(self.n_engines, self.n_lanes)

    @property
    def all_width(self):
        """Bits of the sum over all lanes of all engines."""
        return self.total_width + ceil_log2(self.n_engines)

    @property
    def select_stage(self):
        """The stage at which the totals of all scopes are ready and one is chosen."""
        return self.total_stage + 1 + tree_latency(self.n_engines)

    @property
    def result_stage(self):
        return self.select_stage + TotalRounder.latency

    @property
    def total_layout(self):
        return data.StructLayout({
            "total": signed(self.all_width),
            "exponent": self.exponent_width,
            "specials": SPECIALS,
            "maximum_key": self.float_format.width,
        })


class EngineBus(Block):
    """Adds the engines' lanes (LANES) or the engines' totals over their lanes (ALL), and rounds totals.

    Totals over the lanes (ENGINE) come from the engines. For ALL they are aligned once more, to the largest of
    their exponents. Stage n of a member is n advances after the command was accepted.
    """

    Parameters = EngineBusParameters
    members_doc = {
        "advance": "registers move on",
        "scope": "stage select_stage: a Scope",
        "used": "stage select_stage: there is a total",
        "is_maximum": "stage select_stage: it is a maximum",
        "exponents": "stage 4: exponent codes of the lanes' sums, engine 0 in the lowest bits",
        "references": "stage 6: the largest exponent codes over the engines",
        "specials": "stage 6: specials of the lanes' sums",
        "aligned": "stage 7: the lanes' aligned sums",
        "keys": "stage 3: keys of the lanes' maxima",
        "lane_exponent": "stage 6: of each engine, the largest exponent code of its lanes",
        "lane_special": "stage 7: the union of their specials",
        "lane_total": "stage total_stage: their sum",
        "lane_key": "stage total_stage: their largest key",
        "single": "stage result_stage: totals in FP32, 0 where there is none",
        "rounded": "stage result_stage: totals in the format",
    }

    def __init__(self, **parameters):
        super().__init__(parameters, self._members)

    @staticmethod
    def _members(p):
        def engines(shape):
            return data.ArrayLayout(shape, p.n_engines)

        lanes = {name: member.flip() if name == "references" else member for name, member in p.lane_ports().items()}
        return {
            "advance": In(1),
            "scope": In(SCOPE_WIDTH),
            "used": In(1),
            "is_maximum": In(1),
            **{name: In(engines(member.shape)) for name, member in lanes.items() if name != "references"},
            "references": Out(lanes["references"].shape),
            "lane_exponent": In(engines(p.exponent_width)),
            "lane_special": In(engines(SPECIALS)),
            "lane_total": In(engines(signed(p.total_width))),
            "lane_key": In(engines(p.float_format.width)),
            "single": Out(data.ArrayLayout(FP32.width, p.n_totals)),
            "rounded": Out(data.ArrayLayout(p.float_format.width, p.n_totals)),
        }

    @property
    def latency(self):
        return self.result_stage

    def circuit(self):
        m = Module()
        self._pipe = Pipeline(m, advance=self.advance)
        lanes = [self._lane_total(m, index) for index in range(self.n_lanes)]
        engines = [self._engine_total(m, index) for index in range(self.n_engines)]
        everything = self._all_total(m)
        for index in range(self.parameters.n_totals):
            choices = {Scope.LANES: lanes[index:index + 1], Scope.ENGINE: engines[index:index + 1],
                       Scope.ALL: [everything] if index == 0 else []}
            self._round(m, index, choices)
        return m

    def _bus(self, m, name, n_inputs, width):
        p = self.parameters
        bus = ReductionBus(
            n_inputs=n_inputs, width=width, exponent_width=p.exponent_width, key_width=p.float_format.width
        )
        m.submodules[name] = bus
        m.d.comb += bus.advance.eq(self.advance)
        return bus

    def _total(self, m, name, parts):
        """Parts, each ready at its stage, brought together at select_stage: ``{field: (stage, value)}``."""
        total = Signal(self.parameters.total_layout, name=name)
        for field, (stage, value) in parts.items():
            late = self._pipe.register(value, name=f"{name}_{field}", stages=self.parameters.select_stage - stage)
            m.d.comb += total[field].eq(late)
        return total

    def _lane_total(self, m, lane):
        """One lane over all engines."""
        bus = self._bus(m, f"bus_{lane}", self.n_engines, self.parameters.aligned_width)
        m.d.comb += [
            bus.exponents.eq(Cat(engine[lane] for engine in self.exponents)),
            bus.specials.eq(Cat(engine[lane].as_value() for engine in self.specials)),
            bus.sums.eq(Cat(engine[lane] for engine in self.aligned)),
            bus.keys.eq(Cat(engine[lane] for engine in self.keys)),
            self.references[lane].eq(bus.largest_exponent),
        ]
        return self._total(m, f"lane_{lane}", {
            "total": (7 + bus.latency, bus.total),
            "exponent": (6, bus.largest_exponent),
            "specials": (7, bus.any_special),
            "maximum_key": (3 + bus.latency, bus.largest_key),
        })

    def _engine_total(self, m, engine):
        """One engine over its lanes."""
        stage = self.parameters.total_stage
        return self._total(m, f"engine_{engine}", {
            "total": (stage, self.lane_total[engine]),
            "exponent": (6, self.lane_exponent[engine]),
            "specials": (7, self.lane_special[engine]),
            "maximum_key": (stage, self.lane_key[engine]),
        })

    def _all_total(self, m):
        """All engines' totals over their lanes."""
        p, pipe = self.parameters, self._pipe
        bus = self._bus(m, "bus_all", self.n_engines, p.total_width)
        reference = pipe.register(bus.largest_exponent, name="all_reference", stages=p.total_stage - 8)
        for engine in range(self.n_engines):
            aligner = BusAligner(width=p.total_width, exponent_width=p.exponent_width)
            m.submodules[f"aligner_{engine}"] = aligner
            exponent = pipe.register(
                self.lane_exponent[engine], name=f"all_exponent_{engine}", stages=p.total_stage - 6
            )
            m.d.comb += [
                aligner.value.eq(self.lane_total[engine]),
                aligner.exponent.eq(exponent),
                aligner.reference.eq(reference),
                bus.sums[engine].eq(pipe.register(aligner.aligned, name=f"all_aligned_{engine}")),
            ]
        m.d.comb += [
            bus.exponents.eq(self.lane_exponent),
            bus.specials.eq(self.lane_special),
            bus.keys.eq(self.lane_key),
        ]
        return self._total(m, "all", {
            "total": (p.total_stage + 1 + bus.latency, bus.total),
            "exponent": (8, bus.largest_exponent),
            "specials": (8, bus.any_special),
            "maximum_key": (p.total_stage + bus.latency, bus.largest_key),
        })

    def _round(self, m, index, choices):
        """One rounder; it takes the total of the command's scope, if that has one of this index."""
        p = self.parameters
        rounder = TotalRounder(**p.accumulator(), width=p.all_width)
        m.submodules[f"rounder_{index}"] = rounder
        chosen = Signal(p.total_layout, name=f"chosen_{index}")
        exists = Signal(name=f"exists_{index}")
        with m.Switch(self.scope):
            for scope, candidates in choices.items():
                for candidate in candidates:
                    # Codes above ALL mean the same.
                    with m.Case(scope) if scope != Scope.ALL else m.Default():
                        m.d.comb += [chosen.eq(candidate), exists.eq(1)]
        m.d.comb += [
            rounder.advance.eq(self.advance),
            rounder.used.eq(self.used & exists),
            rounder.is_maximum.eq(self.is_maximum),
            *(getattr(rounder, field).eq(chosen[field]) for field in p.total_layout.members),
            self.single[index].eq(rounder.single),
            self.rounded[index].eq(rounder.rounded),
        ]
