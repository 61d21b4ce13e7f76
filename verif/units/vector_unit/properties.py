"""Vector unit: a pipeline in lock step that gives a result for the right commands, and its banks."""

from amaranth.hdl import Cat, Const, Mux, Shape, Signal

from golden.spec.vector_operations import ACCUMULATING_OPS, VectorOp
from hw.arith.elementwise import ElementwiseLane
from hw.arith.exponential import Exponential
from hw.arith.gelu import Gelu
from hw.arith.reciprocal import Reciprocal
from hw.arith.reciprocal_root import ReciprocalRoot
from hw.arith.silu import Silu
from hw.units.vector_unit.accumulator import LaneAccumulator
from hw.units.vector_unit.aligner import BusAligner
from hw.units.vector_unit.factor import Factor
from hw.units.vector_unit.maximum import LaneMaximum
from hw.units.vector_unit.reduction_bus import ReductionBus
from hw.units.vector_unit.rounder import TotalRounder
from hw.units.vector_unit.unit import VectorUnit
from verif.formal.properties import Property
from verif.formal.streams import pipeline, stable


def _gives(block):
    """Whether a command gives a result beat."""
    command, present = block.command.payload, block.parameters.present
    accumulates = Cat(Const(0, 1), *(command.operation == op for op in present(ACCUMULATING_OPS))).any()
    writes = Cat(Const(0, 1), *(command.operation == op for op in present((VectorOp.WRITE_BANK,)))).any()
    return Mux(accumulates, command.last, ~writes) if block.parameters.accumulates else ~writes


def contract(c, block):
    stable(c, result=block.result)
    pipeline(c, block.command, block.result, latency=block.latency, gives=_gives(block))


def banks(c, block):
    """Only bank commands: a read gives what earlier commands wrote into enabled lanes of enabled engines, else 0.

    The low bit of each lane is followed. Reset makes what was written unknown, for it stops writes under way.
    """
    m, command = c.m, block.command.payload
    widths = {name: Shape.cast(shape).width for name, shape in command.shape().members.items()}
    fields = {name: c.free(width, name) for name, width in widths.items() if name != "operation"}
    reads = c.free(1, "reads")
    operation = Mux(reads, Const(VectorOp.READ_BANK, len(command.operation)), VectorOp.WRITE_BANK)
    c.drive(block.command.payload, Cat(operation if name == "operation" else fields[name] for name in widths))

    expected = []
    for engine in range(block.n_engines):
        address = command.address[engine]
        works = command.enable[engine] & (address < block.bank_depth)
        for lane in range(block.n_lanes):
            bits = [Signal(name=f"bit_{engine}_{lane}_{row}", reset_less=True) for row in range(block.bank_depth)]
            known = [Signal(name=f"known_{engine}_{lane}_{row}") for row in range(block.bank_depth)]
            value, is_known = Const(0, 1), Const(0, 1)
            for row, (bit, is_set) in enumerate(zip(bits, known, strict=False)):
                writes = block.command.valid & block.command.ready & ~reads & works & command.lane_enable[engine][lane]
                with m.If(writes & (address == row)):
                    m.d.sync += [bit.eq(command.a[engine][lane][0]), is_set.eq(1)]
                value, is_known = Mux(address == row, bit, value), Mux(address == row, is_set, is_known)
            c.assume(~(block.command.valid & reads & works) | is_known)
            expected.append(value & works)
    pipeline(
        c,
        block.command,
        block.result,
        latency=block.latency,
        gives=reads,
        expected=Cat(expected),
        shown=lambda result: Cat(value[0] for engine in result["values"] for value in engine),
    )


SOME = {
    "n_engines": 2,
    "n_lanes": 1,
    "bank_depth": 2,
    "operations": ("mul", "silu", "spmm", "write_bank"),
    "scopes": ("lanes",),
    "totals": ("rounded",),
}
TINY = [{"n_engines": 1, "n_lanes": 1, "bank_depth": 1}]

ARITHMETIC = (
    BusAligner,
    ElementwiseLane,
    Exponential,
    Factor,
    Gelu,
    LaneAccumulator,
    LaneMaximum,
    Reciprocal,
    ReciprocalRoot,
    ReductionBus,
    Silu,
    TotalRounder,
)
"""What has no part in what a bank holds."""

PROPERTIES = [
    Property(
        "vector_unit",
        "a pipeline in lock step, one result for each command that gives one",
        VectorUnit,
        [*TINY, {"n_engines": 2, "n_lanes": 2, "bank_depth": 4}, SOME],
        contract,
    ),
    Property(
        "vector_unit",
        "bank reads give the last writes of enabled lanes of enabled engines, else 0",
        VectorUnit,
        [*TINY, {"n_engines": 2, "n_lanes": 1, "bank_depth": 3}],
        banks,
        free=ARITHMETIC,
    ),
]
