"""The operations of the vector unit and the scopes of its totals, with the numbers that its commands carry."""

import enum


class VectorOp(enum.IntEnum):
    """Codes below 16 are element-wise, 16 to 23 accumulate, from 24 on they move data."""

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
    WRITE_BANK = 24
    READ_BANK = 25
    SPMM = 26


OPERATION_WIDTH = 5


class Scope(enum.IntEnum):
    """The accumulators that a total adds; code 3 acts as ALL."""

    LANES = 0  # each lane over all engines
    ENGINE = 1  # each engine over its lanes
    ALL = 2  # all lanes of all engines


SCOPE_WIDTH = 2
