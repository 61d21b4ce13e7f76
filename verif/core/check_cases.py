"""Commands from both sides of every bound of the golden checks, with the code that each is refused with.

A case is ``(command, changes, {code: [changes, ...]})``: the command is legal, and so it is with the first changes;
every other one gives it that code.
"""

from dataclasses import replace

from golden.core.checks import WrittenState
from golden.spec.commands import FLAGS, Command, Elementwise, ErrorCode, Memory, Opcode
from golden.spec.sizes import CoreSizes

SIZES = CoreSizes()  # W = 8, T = 64, D = 16, max_dim = 32; words: 512, 256, 64, 1024; two masks
MASKS, TOKENS, MASSES = [1, 30], [4, 9, 2], 20
KNOWN = WrittenState(MASKS, MASSES, TOKENS)

OK, FUNCTION, SIZE, RANGE, OVERLAP = (
    ErrorCode.NONE,
    ErrorCode.UNKNOWN_FUNCTION,
    ErrorCode.SIZE,
    ErrorCode.RANGE,
    ErrorCode.OVERLAP,
)
MASK, TOKEN, MASS = ErrorCode.MASK_MISSING, ErrorCode.TOKENS_MISSING, ErrorCode.MASS_MISSING
GATED, BIAS, MAKE, USE, RESTART = (FLAGS[name] for name in ("gated", "bias", "make_mask", "use_mass", "restart"))


def command(opcode, **fields):
    return Command(opcode=opcode, **fields)


def load(memory, **fields):
    return command(Opcode.LOAD, function=memory, **fields)


def store(memory, **fields):
    return command(Opcode.STORE, function=memory, **fields)


MATMUL = command(
    Opcode.MATMUL, n_rows=20, n_in=20, n_out=10, source=100, source_stride=3, destination=300, destination_stride=2
)
PROJECT = command(Opcode.PROJECT, n_rows=20, n_in=20, n_out=10, source=100, source_stride=3, destination=15)
SDDMM = command(Opcode.SDDMM, mask=1, n_rows=20, n_in=10, n_out=30, source_stride=2)
SOFTMAX = command(Opcode.SOFTMAX, mask=1, n_rows=20, n_out=30)
SPMM = command(Opcode.SPMM, mask=1, n_rows=20, n_in=10, n_out=30, destination_stride=2)
WEIGH = command(Opcode.WEIGHTED_SUM, mask=1, n_rows=20, n_in=10, n_out=30, destination_stride=2)
ADD = command(
    Opcode.ELEMENTWISE,
    n_rows=20,
    n_in=10,
    source_stride=2,
    source_2=40,
    source_2_stride=2,
    destination=80,
    destination_stride=2,
)
NORM = command(
    Opcode.LAYER_NORM,
    n_rows=20,
    n_in=10,
    source_stride=2,
    source_2=40,
    source_2_stride=2,
    destination=44,
    destination_stride=2,
)
ROWS = load(Memory.ROWS, n_rows=20, n_in=10, destination_stride=2)
STORE_ROWS = store(Memory.ROWS, n_rows=20, n_in=10, source_stride=2)

CASES = [
    # Functions and flags
    (command(Opcode.CLEAR), {"function": 1}, {OK: [{}], FUNCTION: [{"function": 2}, {"flags": GATED}]}),
    (ROWS, {}, {FUNCTION: [{"function": 8}, {"function": 9}, {"flags": GATED}, {"flags": 128}]}),
    (STORE_ROWS, {}, {FUNCTION: [{"function": 1}, {"function": 2}, {"function": 9}, {"flags": BIAS}]}),
    (
        MATMUL,
        {"flags": GATED | BIAS},
        {RANGE: [{"function": 1}, {"function": 3}], FUNCTION: [{"function": 4}, {"flags": MAKE}, {"flags": 32}]},
    ),
    (
        PROJECT,
        {"flags": BIAS, "destination": 18},
        {OK: [{"function": 1}, {"function": 2}], FUNCTION: [{"function": 3}, {"flags": GATED}]},
    ),
    (SDDMM, {"flags": GATED}, {FUNCTION: [{"flags": BIAS}, {"flags": USE}]}),
    (SOFTMAX, {"flags": USE | GATED}, {FUNCTION: [{"flags": USE | MAKE}, {"flags": BIAS}, {"flags": RESTART}]}),
    (SPMM, {"flags": GATED}, {FUNCTION: [{"flags": MAKE}]}),
    (WEIGH, {"flags": GATED}, {FUNCTION: [{"flags": MAKE}, {"flags": BIAS}]}),
    (
        ADD,
        {"flags": GATED},
        {
            OK: [{"function": item} for item in Elementwise],
            FUNCTION: [{"function": item} for item in (4, 7, 11, 16, 255)],
        },
    ),
    (NORM, {"flags": GATED}, {FUNCTION: [{"flags": USE}]}),
    (command(Opcode.CTR), {"flags": RESTART}, {OK: [{"n_rows": 0, "theta": 0xFFFF}], FUNCTION: [{"flags": GATED}]}),
    # Sizes
    (
        ROWS,
        {},
        {
            OK: [{"n_rows": 64, "n_in": 32, "destination_stride": 4}],
            SIZE: [
                {"n_rows": 0},
                {"n_rows": 65},
                {"n_in": 0},
                {"n_in": 33, "destination_stride": 9},
                {"destination_stride": 1},
                {"n_rows": 1, "destination_stride": 0},
            ],
        },
    ),
    (
        STORE_ROWS,
        {},
        {SIZE: [{"n_rows": 0}, {"n_rows": 65}, {"n_in": 0}, {"n_in": 33, "source_stride": 9}, {"source_stride": 1}]},
    ),
    (load(Memory.WEIGHTS, n_rows=1), {}, {OK: [{"n_rows": 256}], SIZE: [{"n_rows": 0}]}),
    (load(Memory.VALUES, n_rows=1), {}, {OK: [{"n_rows": 64}], SIZE: [{"n_rows": 0}]}),
    (load(Memory.SCORES, n_rows=1), {}, {OK: [{"n_rows": 1024}], SIZE: [{"n_rows": 0}]}),
    (store(Memory.PROBABILITIES, n_rows=1), {}, {OK: [{"n_rows": 1024}], SIZE: [{"n_rows": 0}]}),
    (
        load(Memory.MASK, n_rows=64, mask_out=1),
        {},
        {
            OK: [{"n_rows": 1, "mask_out": 0}],
            SIZE: [{"n_rows": 0}, {"n_rows": 65}, {"mask_out": 2}, {"n_rows": 2, "mask_out": 0}],
        },
    ),
    (
        store(Memory.MASK, n_rows=30, mask=1),
        {},
        {OK: [{"n_rows": 1, "mask": 0}], SIZE: [{"mask": 2}, {"n_rows": 2, "mask": 0}]},
    ),
    (load(Memory.TOKENS, n_rows=64), {}, {OK: [{"n_rows": 0}], SIZE: [{"n_rows": 65}]}),
    (store(Memory.TOKENS), {}, {OK: [{"n_rows": 999}]}),
    (load(Memory.MASS, n_rows=64), {}, {SIZE: [{"n_rows": 0}, {"n_rows": 65}]}),
    (store(Memory.COUNTERS), {}, {OK: [{"n_rows": 999}]}),
    (
        MATMUL,
        {},
        {
            OK: [
                {"n_rows": 64, "n_in": 1, "n_out": 1, "source_stride": 1, "destination_stride": 1},
                {"n_in": 32, "n_out": 32, "source_stride": 4, "destination_stride": 4, "n_rows": 1},
            ],
            SIZE: [
                {"n_rows": 0},
                {"n_rows": 65},
                {"n_in": 0},
                {"n_out": 0},
                {"n_in": 33, "source_stride": 9},
                {"n_out": 33, "destination_stride": 9},
                {"source_stride": 2},
                {"destination_stride": 1},
            ],
        },
    ),
    (
        PROJECT,
        {},
        {
            OK: [{"n_out": 16, "destination": 20}, {"n_in": 32, "source_stride": 4, "destination": 24}],
            SIZE: [
                {"n_rows": 0},
                {"n_rows": 65},
                {"n_in": 33, "source_stride": 9},
                {"n_out": 17},
                {"source_stride": 2},
            ],
        },
    ),
    (
        SDDMM,
        {},
        {
            OK: [{"n_in": 16, "n_out": 64}, {"mask": 0, "n_rows": 64}],
            SIZE: [
                {"n_rows": 0},
                {"n_in": 17, "source_stride": 9},
                {"n_out": 0},
                {"n_out": 65},
                {"source_stride": 1},
                {"mask": 2},
                {"mask": 15},
            ],
        },
    ),
    (
        SOFTMAX,
        {},
        {
            OK: [{"n_out": 64}, {"mask_out": 9}, {"mask": 0, "flags": MAKE, "mask_out": 1}],
            SIZE: [
                {"n_rows": 0},
                {"n_out": 65},
                {"mask": 2},
                {"flags": MAKE, "mask_out": 0},
                {"flags": MAKE, "mask_out": 2},
            ],
        },
    ),
    (
        SPMM,
        {},
        {
            OK: [{"n_in": 16}],
            SIZE: [
                {"n_in": 0},
                {"n_in": 17, "destination_stride": 9},
                {"n_out": 65},
                {"destination_stride": 1},
                {"mask": 2},
            ],
        },
    ),
    (WEIGH, {}, {OK: [{"n_in": 16}], SIZE: [{"n_in": 17, "destination_stride": 9}, {"n_out": 65}, {"mask": 2}]}),
    (
        ADD,
        {},
        {
            OK: [{"n_in": 16}, {"function": Elementwise.GELU, "source_2_stride": 0}],
            SIZE: [
                {"n_rows": 65},
                {"n_in": 0},
                {"n_in": 17},
                {"n_in": 33, "source_stride": 9},
                {"source_2_stride": 1},
                {"source_stride": 1},
                {"destination_stride": 1},
            ],
        },
    ),
    (NORM, {}, {SIZE: [{"n_rows": 0}, {"n_in": 17}, {"source_2_stride": 1}]}),
    # Ranges
    (ROWS, {}, {OK: [{"destination": 472}], RANGE: [{"destination": 473}, {"destination_stride": 65535}]}),
    (STORE_ROWS, {}, {OK: [{"source": 472}], RANGE: [{"source": 473}]}),
    (load(Memory.WEIGHTS, n_rows=16, bank_address=240), {}, {RANGE: [{"n_rows": 17}, {"bank_address": 65535}]}),
    (load(Memory.VALUES, n_rows=16, bank_address=48), {}, {RANGE: [{"n_rows": 17}]}),
    (load(Memory.SCORES, n_rows=24, destination=1000), {}, {RANGE: [{"n_rows": 25}]}),
    (load(Memory.PROBABILITIES, n_rows=24, destination=1000), {}, {RANGE: [{"n_rows": 25}]}),
    (store(Memory.SCORES, n_rows=24, source=1000), {}, {RANGE: [{"n_rows": 25}]}),
    (store(Memory.PROBABILITIES, n_rows=24, source=1000), {}, {RANGE: [{"n_rows": 25}]}),
    (
        MATMUL,
        {"bank_address": 241},
        {
            OK: [{"source": 452, "destination": 0}, {"destination": 472}, {"bank_address": 238, "flags": BIAS}],
            RANGE: [
                {"source": 453, "destination": 0},
                {"destination": 473},
                {"bank_address": 242},
                {"bank_address": 239, "flags": BIAS},
            ],
        },
    ),
    (
        PROJECT,
        {},
        {
            OK: [{"destination": 232}, {"function": 1, "destination": 40}],
            RANGE: [{"destination": 233}, {"function": 1, "destination": 41}, {"bank_address": 242}],
        },
    ),
    (
        SDDMM,
        {},
        {
            OK: [{"destination": 864}, {"bank_address": 232}, {"source": 472}],
            RANGE: [{"destination": 865}, {"bank_address": 233}, {"source": 473}],
        },
    ),
    (SOFTMAX, {}, {OK: [{"destination": 864}, {"source": 864}], RANGE: [{"destination": 865}, {"source": 865}]}),
    (
        SPMM,
        {},
        {
            OK: [{"source": 864}, {"bank_address": 40}, {"destination": 472}],
            RANGE: [{"source": 865}, {"bank_address": 41}, {"destination": 473}],
        },
    ),
    (
        WEIGH,
        {},
        {
            OK: [{"source": 864}, {"bank_address": 232}, {"destination": 472}],
            RANGE: [{"source": 865}, {"bank_address": 233}, {"destination": 473}],
        },
    ),
    (PROJECT, {"function": 2, "destination": 232}, {RANGE: [{"function": 2, "destination": 233}]}),
    (
        ADD,
        {},
        {
            OK: [
                {"source": 472},
                {"source_2": 472},
                {"destination": 472},
                {"function": Elementwise.EXP, "source_2": 65535},
            ],
            RANGE: [{"source": 473}, {"source_2": 473}, {"destination": 473}],
        },
    ),
    (
        NORM,
        {},
        {
            OK: [{"source_2": 508}, {"source_2": 500, "source_2_stride": 10}],
            RANGE: [{"source_2": 509}, {"source_2": 501, "source_2_stride": 10}],
        },
    ),
    # Overlaps
    (
        MATMUL,
        {},
        {OK: [{"destination": 160}, {"destination": 60}], OVERLAP: [{"destination": 159}, {"destination": 61}]},
    ),
    (
        PROJECT,
        {"flags": BIAS, "destination": 18},
        {
            OK: [{"bank_address": 39}, {"bank_address": 39, "destination": 0}, {"function": 1, "destination": 0}],
            OVERLAP: [{"destination": 14}, {"destination": 17, "flags": BIAS}, {"bank_address": 38}],
        },
    ),
    (SDDMM, {}, {OK: [{"source": 0, "destination": 0, "bank_address": 0}]}),
    (SOFTMAX, {}, {OVERLAP: [{"flags": MAKE, "mask_out": 1}]}),
    (SPMM, {}, {OK: [{"source": 0, "destination": 0, "bank_address": 0}]}),
    (
        ADD,
        {},
        {
            OK: [{"source_2": 0}, {"function": Elementwise.EXP, "source_2": 80}],
            OVERLAP: [{"destination": 79}, {"destination": 1}, {"source": 119}, {"source_2": 41}],
        },
    ),
    (NORM, {}, {OVERLAP: [{"destination": 43}, {"source_2": 83}, {"source_2": 30, "source_2_stride": 13}]}),
    # In place: the result lies exactly where an operand lies
    (
        ADD,
        {"destination": 0},
        {
            OK: [
                {"destination": 40},
                {"destination": 0, "source_2": 0},
                {"destination": 0, "function": Elementwise.EXP},
            ],
            OVERLAP: [{"destination": 0, "destination_stride": 3}, {"destination": 40, "source_2_stride": 0}],
        },
    ),
    (NORM, {"destination": 0}, {OVERLAP: [{"destination": 40}, {"destination": 0, "source_2": 10}]}),
    # First rows, of masks, retained mass and the token list
    (
        SDDMM,
        {"first_row": 10},
        {OK: [{"mask": 0, "first_row": 44}], SIZE: [{"mask": 0, "first_row": 45}], MASK: [{"first_row": 11}]},
    ),
    (
        load(Memory.MASK, n_rows=4, mask_out=1),
        {"first_row": 30},
        {SIZE: [{"first_row": 61}, {"n_rows": 1, "first_row": 1, "mask_out": 0}], MASK: [{"first_row": 31}]},
    ),
    (load(Memory.MASS, n_rows=4), {"first_row": 20}, {SIZE: [{"first_row": 61}], MASS: [{"first_row": 21}]}),
    (store(Memory.MASS, n_rows=4), {"first_row": 16}, {MASS: [{"first_row": 17}]}),
    (
        replace(SOFTMAX, mask=0, flags=MAKE, mask_out=1),
        {"first_row": 20},
        {MASS: [{"first_row": 21}], MASK: [{"first_row": 31}], SIZE: [{"first_row": 45}]},
    ),
    (MATMUL, {"first_row": 60000}, {SIZE: [{"first_row": 60, "flags": GATED}, {"first_row": 60000, "flags": GATED}]}),
    # What was never written
    (SDDMM, {"n_rows": 30}, {MASK: [{"n_rows": 31}]}),
    (SOFTMAX, {"n_rows": 30}, {OK: [{"mask": 0, "flags": MAKE, "mask_out": 1, "n_rows": 64}], MASK: [{"n_rows": 31}]}),
    (SPMM, {"n_rows": 30}, {MASK: [{"n_rows": 31}]}),
    (WEIGH, {"n_rows": 30}, {MASK: [{"n_rows": 31}]}),
    (store(Memory.MASK, n_rows=30, mask=1), {}, {MASK: [{"n_rows": 31}]}),
    (
        MATMUL,
        {"flags": GATED, "n_rows": 2, "source": 482, "destination": 0},
        {RANGE: [{"flags": GATED, "n_rows": 2, "source": 483, "destination": 0}]},
    ),
    (SOFTMAX, {"flags": USE, "n_rows": 20}, {MASS: [{"flags": USE, "n_rows": 21}]}),
    (store(Memory.MASS, n_rows=20), {}, {MASS: [{"n_rows": 21}]}),
]
