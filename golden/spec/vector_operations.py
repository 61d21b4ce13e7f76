"""The operations of the vector unit and the scopes of its totals, with the numbers that its commands carry."""

import enum

__all__ = [
    "ACCUMULATING_OPS",
    "ADDING_OPS",
    "BANK_OPS",
    "FUNCTION_OPS",
    "LANE_OPS",
    "LANE_OPERATIONS",
    "OPERATIONS",
    "OPERATION_WIDTH",
    "SCOPES",
    "SCOPE_WIDTH",
    "TWO_OPERAND_OPS",
    "Scope",
    "VectorOp",
    "names_of",
    "operations_of",
]


class VectorOp(enum.IntEnum):
    """Codes below 16, and SILU, are element-wise, 16 to 18 accumulate, from 24 on they use the banks."""

    ADD = 0
    SUB = 1
    ABS_DIFF = 2
    MUL = 3
    FMA = 4
    MAX = 5
    MIN = 6
    GREATER = 7
    LESS = 8
    LESS_EQUAL = 9
    TO_FP32 = 10
    TO_FP16 = 11
    EXP = 12
    RECIPROCAL = 13
    RSQRT = 14
    GELU = 15
    SUM = 16
    SUM_SQUARES = 17
    MAXIMUM = 18
    SILU = 20
    WRITE_BANK = 24
    READ_BANK = 25
    SPMM = 26


OPERATION_WIDTH = 5

LANE_OPS = tuple(op for op in VectorOp if op < VectorOp.EXP)
"""Operations that are fused multiply-adds of selected operands."""

TWO_OPERAND_OPS = tuple(op for op in LANE_OPS if op != VectorOp.TO_FP32)
"""Operations with a second operand; FMA has a third one."""

FUNCTION_OPS = (VectorOp.EXP, VectorOp.RECIPROCAL, VectorOp.RSQRT, VectorOp.GELU, VectorOp.SILU)
"""Functions of one operand, each with a unit of its own."""

ADDING_OPS = (VectorOp.SUM, VectorOp.SUM_SQUARES, VectorOp.SPMM)
ACCUMULATING_OPS = (*ADDING_OPS, VectorOp.MAXIMUM)
BANK_OPS = (VectorOp.WRITE_BANK, VectorOp.READ_BANK, VectorOp.SPMM)


class Scope(enum.IntEnum):
    """The accumulators that a total adds; code 3 acts as ALL."""

    LANES = 0  # each lane over all engines
    ENGINE = 1  # each engine over its lanes
    ALL = 2  # all lanes of all engines


SCOPE_WIDTH = 2


def names_of(codes):
    """The names of operations or scopes, as parameters have them."""
    return tuple(code.name.lower() for code in codes)


def operations_of(names):
    """The operations with these names."""
    return frozenset(VectorOp[name.upper()] for name in names)


OPERATIONS, LANE_OPERATIONS, SCOPES = names_of(VectorOp), names_of(LANE_OPS), names_of(Scope)
"""The names of all operations, of those of LANE_OPS, and of all scopes."""
