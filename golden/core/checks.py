"""What the core refuses: the conditions of every opcode, in the order in which they are looked at.

N = n_banks, L = n_lanes, S = simd_lanes, W = row_word, T = max_tokens, D = max_head_dim; rw(n) = ceil(n / W),
b(n) = ceil(n / L) + 1 with the flag bias and ceil(n / L) without, q(n) = ceil(n / N), c(n) = ceil(n / S), ks(n) =
slots_of(n). ``function`` of MATMUL, SDDMM, SOFTMAX, SPMM, LAYER_NORM and CTR is ignored, as are all fields that
``USES`` does not name. A check is made only if those before it passed; so sums and products have sizes that fit.

1. UNKNOWN_OPCODE: opcode is not one of ``Opcode``.
2. UNKNOWN_FUNCTION:

   * a flag that ``LEGAL_FLAGS`` does not give for the opcode (the other opcodes have none), also of the bits that no
     flag has; SOFTMAX with both make_mask and use_mass;
   * CLEAR: function > 1. LOAD: function > 7. STORE: function is WEIGHTS, VALUES or > 8. PROJECT: function > 1.
     ELEMENTWISE: function is none of ``Elementwise`` (0, 1, 2, 3, 5, 6 on two operands; 12 to 15 on one).

3. SIZE: a number outside the bounds, or a stride below the words of a row. ``1..x`` are bounds, both legal.

   ==================  ===========  ==========  ==========  ==============================================
   opcode              n_rows       n_in        n_out       strides and masks
   ==================  ===========  ==========  ==========  ==============================================
   LOAD, STORE ROWS    1..T         1..max_dim              stride (LOAD: destination, STORE: source) >= rw(n_in)
   . WEIGHTS, VALUES   1..
   . SCORES, PROB.     1..
   . MASK              1..T                                 m < n_masks; n_rows = 1 if m = 0 (LOAD: m = mask_out,
                                                            STORE: m = mask)
   . TOKENS            LOAD 0..T                            (STORE: n_rows is ignored)
   . MASS              1..T
   . COUNTERS                                               (n_rows is ignored)
   MATMUL              1..T         1..max_dim  1..max_dim  source >= rw(n_in), destination >= rw(n_out)
   PROJECT             1..T         1..max_dim  1..D        source >= rw(n_in)
   SDDMM               1..T         1..D        1..T        source >= rw(n_in); mask < n_masks
   SOFTMAX             1..T                     1..T        mask < n_masks; make_mask: 1 <= mask_out < n_masks
   SPMM                1..T         1..D        1..T        destination >= rw(n_in); mask < n_masks
   ELEMENTWISE         1..T         1..max_dim              source, destination >= rw(n_in); with two operands
                                                            source_2 >= rw(n_in), or 0: one row for all rows
   LAYER_NORM          1..T         1..max_dim              source, destination, source_2 >= rw(n_in)
   CLEAR, CTR                                               nothing
   ==================  ===========  ==========  ==========  ==============================================

4. RANGE: an extent ends beyond its memory. A matrix in IMEM has the extent from its first to its last word, what lies
   between its rows included: ``first .. first + (n - 1) * stride + rw(elements)``, the end not included. Gated commands
   have the extents of all n_rows rows. SCORES and PROBABILITIES have the extent of a mask of ones.

   ================  =======================================================  =======================================
   opcode            read                                                     written
   ================  =======================================================  =======================================
   LOAD ROWS                                                                  IMEM destination, n_rows, n_in
   . WEIGHTS                                                                  WMEM bank_address, n_rows
   . VALUES                                                                   VMEM bank_address, n_rows
   . SCORES, PROB.                                                            that memory: destination, n_rows
   STORE ROWS        IMEM source, n_rows, n_in
   . SCORES, PROB.   that memory: source, n_rows
   MATMUL            IMEM source, n_rows, n_in;                               IMEM destination, n_rows, n_out
                     WMEM bank_address, b(n_in) * q(n_out)
   PROJECT KEYS      as MATMUL                                                WMEM destination,
                                                                              ceil(n_out / L) * ks(n_rows)
   . VALUES          as MATMUL                                                VMEM destination, c(n_out) * ks(n_rows)
   SDDMM             IMEM source, n_rows, n_in;                               SCORES destination, n_rows * ks(n_out)
                     WMEM bank_address, b(n_in) * ks(n_out)
   SOFTMAX           SCORES source, n_rows * ks(n_out)                        PROB. destination, n_rows * ks(n_out)
   SPMM              PROB. source, n_rows * ks(n_out);                        IMEM destination, n_rows, n_in
                     VMEM bank_address, c(n_in) * ks(n_out)
   ELEMENTWISE       IMEM source, n_rows, n_in; with two operands             IMEM destination, n_rows, n_in
                     IMEM source_2, n_rows, n_in
   LAYER_NORM        IMEM source, n_rows, n_in; IMEM source_2, 2 rows, n_in   IMEM destination, n_rows, n_in
   ================  =======================================================  =======================================

5. OVERLAP: an extent that is read and one that is written share a word of one memory (so: MATMUL, ELEMENTWISE and
   LAYER_NORM in IMEM, PROJECT KEYS in WMEM); SOFTMAX with make_mask: mask = mask_out.
6. MASK_MISSING: SDDMM, SOFTMAX, SPMM, STORE MASK: the rows of mask m are not all valid, that is
   ``mask_count[m] < (1 if m = 0 else n_rows)``. SOFTMAX with make_mask and gated: ``mask_count[mask_out] < n_rows``.
7. TOKENS_MISSING: a command with the flag gated, or STORE TOKENS: there is no list. Gated: the list has more than
   n_rows entries, or its largest entry is n_rows or more (an empty list has none).
8. MASS_MISSING: SOFTMAX with use_mass, SOFTMAX with make_mask and gated, STORE MASS: ``mass_count < n_rows``.
"""

from dataclasses import dataclass

from golden.spec.commands import FLAGS, LEGAL_FLAGS, Elementwise, ErrorCode, Memory, Opcode, Projection
from golden.spec.sizes import words_for

__all__ = ["Extent", "Known", "check", "extents", "has_two_operands"]

_MASKED = (Opcode.SDDMM, Opcode.SOFTMAX, Opcode.SPMM)
_ROWWISE = (Opcode.MATMUL, Opcode.PROJECT, *_MASKED, Opcode.ELEMENTWISE, Opcode.LAYER_NORM)


@dataclass
class Known:
    """What was written so far: valid rows of each mask, valid masses, and the token list, None before the first."""

    mask_count: list
    mass_count: int = 0
    tokens: list | None = None


@dataclass(frozen=True)
class Extent:
    """Words ``first`` to ``end`` - 1 of a memory (of each of its banks) that a command reads or writes."""

    memory: str
    first: int
    end: int
    is_written: bool = False

    def meets(self, other):
        return self.memory == other.memory and self.first < other.end and other.first < self.end


def check(command, sizes, known):
    """The first reason to refuse a command, ``ErrorCode.NONE`` if there is none."""
    if command.opcode not in list(Opcode):
        return ErrorCode.UNKNOWN_OPCODE
    for code, is_wrong in (
        (ErrorCode.UNKNOWN_FUNCTION, lambda: not _function_exists(command)),
        (ErrorCode.SIZE, lambda: not _sizes_fit(command, sizes)),
        (ErrorCode.RANGE, lambda: not _in_range(command, sizes)),
        (ErrorCode.OVERLAP, lambda: _overlaps(command, sizes)),
        (ErrorCode.MASK_MISSING, lambda: _mask_missing(command, known)),
        (ErrorCode.TOKENS_MISSING, lambda: _tokens_missing(command, known)),
        (ErrorCode.MASS_MISSING, lambda: _mass_missing(command, known)),
    ):
        if is_wrong():
            return code
    return ErrorCode.NONE


def _accesses(command, *memories):
    """Whether it is a LOAD or a STORE of one of these memories."""
    return command.opcode in (Opcode.LOAD, Opcode.STORE) and command.function in memories


def has_two_operands(command):
    return command.opcode == Opcode.ELEMENTWISE and Elementwise(command.function).n_operands == 2


def _function_exists(command):
    legal = sum(FLAGS[name] for name in LEGAL_FLAGS.get(command.opcode, ()))
    if command.flags & ~legal or command.has("make_mask") and command.has("use_mass"):
        return False
    functions = {
        Opcode.CLEAR: (0, 1),
        Opcode.LOAD: [memory for memory in Memory if memory != Memory.COUNTERS],
        Opcode.STORE: [memory for memory in Memory if memory not in (Memory.WEIGHTS, Memory.VALUES)],
        Opcode.PROJECT: list(Projection),
        Opcode.ELEMENTWISE: list(Elementwise),
    }
    return command.opcode not in functions or command.function in functions[command.opcode]


def _sizes_fit(command, sizes):
    opcode, n_rows = command.opcode, command.n_rows
    tokens, dim, head = sizes.max_tokens, sizes.max_dim, sizes.max_head_dim
    if opcode in _ROWWISE:
        bounds = {
            Opcode.MATMUL: ((command.n_in, dim), (command.n_out, dim)),
            Opcode.PROJECT: ((command.n_in, dim), (command.n_out, head)),
            Opcode.SDDMM: ((command.n_in, head), (command.n_out, tokens)),
            Opcode.SOFTMAX: ((command.n_out, tokens),),
            Opcode.SPMM: ((command.n_in, head), (command.n_out, tokens)),
        }.get(opcode, ((command.n_in, dim),))
        if not all(1 <= value <= highest for value, highest in ((n_rows, tokens), *bounds)):
            return False
    elif _accesses(command, Memory.ROWS):
        if not (1 <= n_rows <= tokens and 1 <= command.n_in <= dim):
            return False
    elif _accesses(command, Memory.MASK, Memory.MASS):
        if not 1 <= n_rows <= tokens:
            return False
    elif _accesses(command, Memory.WEIGHTS, Memory.VALUES, Memory.SCORES, Memory.PROBABILITIES):
        if n_rows == 0:
            return False
    elif _accesses(command, Memory.TOKENS) and opcode == Opcode.LOAD and n_rows > tokens:
        return False
    return _strides_fit(command, sizes) and _masks_exist(command, sizes)


def _strides_fit(command, sizes):
    read, written = words_for(command.n_in, sizes.row_word), words_for(command.n_in, sizes.row_word)
    opcode = command.opcode
    if opcode == Opcode.MATMUL:
        written = words_for(command.n_out, sizes.row_word)
    has_source = opcode in (Opcode.MATMUL, Opcode.PROJECT, Opcode.SDDMM, Opcode.ELEMENTWISE, Opcode.LAYER_NORM)
    has_source |= opcode == Opcode.STORE and command.function == Memory.ROWS
    has_destination = opcode in (Opcode.MATMUL, Opcode.SPMM, Opcode.ELEMENTWISE, Opcode.LAYER_NORM)
    has_destination |= opcode == Opcode.LOAD and command.function == Memory.ROWS
    has_second = opcode == Opcode.LAYER_NORM or (has_two_operands(command) and command.source_2_stride > 0)
    return not (
        has_source
        and command.source_stride < read
        or has_second
        and command.source_2_stride < read
        or has_destination
        and command.destination_stride < written
    )


def _masks_exist(command, sizes):
    if _accesses(command, Memory.MASK):
        mask = command.mask_out if command.opcode == Opcode.LOAD else command.mask
        return mask < sizes.n_masks and (mask > 0 or command.n_rows == 1)
    if command.opcode not in _MASKED:
        return True
    return command.mask < sizes.n_masks and (not command.has("make_mask") or 1 <= command.mask_out < sizes.n_masks)


def extents(command, sizes):
    """The extents of a command whose sizes fit: what the table above says under RANGE."""

    def rows(first, stride, elements, n_rows=command.n_rows, is_written=False):
        end = first + (n_rows - 1) * stride + words_for(elements, sizes.row_word)
        return Extent("imem", first, end, is_written)

    def words(memory, first, length, is_written=False):
        return Extent(memory, first, first + length, is_written)

    opcode, n_in, n_out, n_rows = command.opcode, command.n_in, command.n_out, command.n_rows
    source = rows(command.source, command.source_stride, n_in)
    second = rows(command.source_2, command.source_2_stride, n_in)
    destination = rows(command.destination, command.destination_stride, n_in, is_written=True)
    beats = words_for(n_in, sizes.n_lanes) + command.has("bias")
    if opcode in (Opcode.MATMUL, Opcode.PROJECT):
        weights = words("wmem", command.bank_address, beats * words_for(n_out, sizes.n_banks))
        if opcode == Opcode.MATMUL:
            return [source, weights, rows(command.destination, command.destination_stride, n_out, is_written=True)]
        memory, lanes = ("wmem", sizes.n_lanes) if command.function == Projection.KEYS else ("vmem", sizes.simd_lanes)
        length = words_for(n_out, lanes) * sizes.slots_of(n_rows)
        return [source, weights, words(memory, command.destination, length, is_written=True)]
    if opcode in _MASKED:
        slots = sizes.slots_of(n_out)
        kept = n_rows * slots
        if opcode == Opcode.SDDMM:
            keys = words("wmem", command.bank_address, beats * slots)
            return [source, keys, words("scores", command.destination, kept, is_written=True)]
        if opcode == Opcode.SOFTMAX:
            probabilities = words("probabilities", command.destination, kept, is_written=True)
            return [words("scores", command.source, kept), probabilities]
        values = words("vmem", command.bank_address, words_for(n_in, sizes.simd_lanes) * slots)
        return [words("probabilities", command.source, kept), values, destination]
    if opcode == Opcode.ELEMENTWISE:
        return [source, second, destination] if has_two_operands(command) else [source, destination]
    if opcode == Opcode.LAYER_NORM:
        return [source, rows(command.source_2, command.source_2_stride, n_in, n_rows=2), destination]
    if opcode == Opcode.LOAD:
        return {
            Memory.ROWS: [destination],
            Memory.WEIGHTS: [words("wmem", command.bank_address, n_rows, is_written=True)],
            Memory.VALUES: [words("vmem", command.bank_address, n_rows, is_written=True)],
            Memory.SCORES: [words("scores", command.destination, n_rows, is_written=True)],
            Memory.PROBABILITIES: [words("probabilities", command.destination, n_rows, is_written=True)],
        }.get(command.function, [])
    if opcode == Opcode.STORE:
        return {
            Memory.ROWS: [source],
            Memory.SCORES: [words("scores", command.source, n_rows)],
            Memory.PROBABILITIES: [words("probabilities", command.source, n_rows)],
        }.get(command.function, [])
    return []


def _in_range(command, sizes):
    depth = {
        "imem": sizes.imem_depth,
        "wmem": sizes.wmem_depth,
        "vmem": sizes.vmem_depth,
        "scores": sizes.omem_depth,
        "probabilities": sizes.omem_depth,
    }
    return all(extent.end <= depth[extent.memory] for extent in extents(command, sizes))


def _overlaps(command, sizes):
    if command.has("make_mask") and command.mask == command.mask_out:
        return True
    parts = extents(command, sizes)
    written = [part for part in parts if part.is_written]
    return any(part.meets(other) for part in parts if not part.is_written for other in written)


def _mask_missing(command, known):
    reads = command.opcode in _MASKED or command.opcode == Opcode.STORE and command.function == Memory.MASK
    if reads and known.mask_count[command.mask] < (command.n_rows if command.mask else 1):
        return True
    keeps_others = command.has("make_mask") and command.has("gated")
    return keeps_others and known.mask_count[command.mask_out] < command.n_rows


def _tokens_missing(command, known):
    if command.has("gated"):
        tokens = known.tokens
        return tokens is None or len(tokens) > command.n_rows or max(tokens, default=0) >= command.n_rows
    return command.opcode == Opcode.STORE and command.function == Memory.TOKENS and known.tokens is None


def _mass_missing(command, known):
    needed = command.has("use_mass") or command.has("make_mask") and command.has("gated")
    needed |= command.opcode == Opcode.STORE and command.function == Memory.MASS
    return needed and known.mass_count < command.n_rows
