"""How each kind of RTLIL cell is written as a Verilog operator.

Every operand is first made as wide as its operator works, so that the width of an expression never depends on where it
stands, and everything is unsigned but for what ``$signed`` marks within one operator.
"""

from typing import NamedTuple

from hw.emit.netlist import Bits, cut, fitted, memory_of, width_of

_BINARY = {
    "$add": "+", "$sub": "-", "$mul": "*", "$div": "/", "$mod": "%", "$divfloor": "/", "$modfloor": "%",
    "$and": "&", "$or": "|", "$xor": "^", "$xnor": "~^",
    "$shl": "<<", "$sshl": "<<", "$shr": ">>", "$sshr": ">>>", "$shift": ">>", "$shiftx": ">>",
    "$eq": "==", "$ne": "!=", "$eqx": "===", "$nex": "!==", "$lt": "<", "$le": "<=", "$gt": ">", "$ge": ">=",
    "$logic_and": "&&", "$logic_or": "||",
}  # fmt: skip
_UNARY = {
    "$not": "~", "$neg": "-", "$pos": "", "$reduce_and": "&", "$reduce_or": "|", "$reduce_bool": "|",
    "$reduce_xor": "^", "$reduce_xnor": "~^", "$logic_not": "~|",
}  # fmt: skip

ASSOCIATIVE = {"&", "|", "^", "+", "*", "&&", "||"}

# Whose lower bits do not depend on the operands' upper bits: as wide as is used.
_ANY_WIDTH = {"$add", "$sub", "$mul", "$neg", "$not", "$pos", "$and", "$or", "$xor", "$xnor", "$mux", "$pmux"}
_ANY_WIDTH_SHIFTS = {"$shl", "$sshl"}
_SHIFTS = {"$shr", "$sshr", "$shift", "$shiftx"} | _ANY_WIDTH_SHIFTS
_DIVISIONS = {"$div", "$mod", "$divfloor", "$modfloor"}
_SIGNED_BY_MARK = {"$lt", "$le", "$gt", "$ge", "$div", "$mod"}

# Words of which names of results are made, where one has no name of its own.
WORDS = {
    "$add": "sum", "$sub": "difference", "$neg": "negated", "$mul": "product", "$and": "and", "$or": "or",
    "$xor": "xor", "$xnor": "xnor", "$not": "not", "$mux": "choice", "$pmux": "choice", "$shl": "shifted",
    "$sshl": "shifted", "$shr": "shifted", "$sshr": "shifted", "$shift": "part", "$shiftx": "part", "$eq": "equal",
    "$ne": "differs", "$lt": "below", "$le": "up_to", "$gt": "above", "$ge": "from", "$reduce_and": "all",
    "$reduce_or": "any", "$reduce_bool": "any", "$reduce_xor": "parity", "$logic_not": "none", "$memrd_v2": "word",
}  # fmt: skip


class Operation(NamedTuple):
    """A cell as it is written: its operands as signals of the right widths, and the width of the result.

    ``operator`` is Verilog's, or ``?`` or ``case``; ``signed`` says which operands are marked.
    """

    kind: str
    operator: str
    operands: tuple
    width: int
    signed: tuple = ()


def is_operation(cell):
    return cell.kind in _BINARY or cell.kind in _UNARY or cell.kind in ("$mux", "$pmux", "$memrd_v2")


def narrowed(cell, used):
    """How wide a cell's result needs to be where ``used`` of its bits are used."""
    return used if cell.kind in _ANY_WIDTH | _ANY_WIDTH_SHIFTS else width_of(cell.ports["Y"])


def operation(cell, ports, width):
    """The :class:`Operation` of a cell with the operands ``ports``, its result of ``width`` bits."""
    kind, operand = cell.kind, ports.get("A")
    if kind == "$memrd_v2":
        return Operation(kind, memory_of(cell), (ports["ADDR"],), width)
    if kind == "$mux":
        return Operation(
            kind, "?", (ports["S"], fitted(ports["B"], width, False), fitted(operand, width, False)), width
        )
    if kind == "$pmux":
        whole = width_of(operand)
        choices = ports["B"]
        if width < whole:
            choices = tuple(
                part
                for index in reversed(range(width_of(choices) // whole))
                for part in cut(choices, index * whole, width)
            )
        return Operation(kind, "case", (fitted(operand, width, False), choices, ports["S"]), width)
    signed = cell.parameters.get("A_SIGNED", "0") != "0"
    if kind in _UNARY:
        if kind in _ANY_WIDTH:
            return Operation(kind, _UNARY[kind], (fitted(operand, width, signed),), width)
        operator = "~" if kind == "$logic_not" and width_of(operand) == 1 else _UNARY[kind]
        return Operation(kind, operator, (operand,), 1)
    second, operator = ports["B"], _BINARY[kind]
    both_signed = signed and cell.parameters["B_SIGNED"] != "0"
    if kind in _SHIFTS:
        if kind in ("$shift", "$shiftx") and cell.parameters["B_SIGNED"] != "0":
            raise ValueError("a shift by a signed amount has no Verilog operator")
        width = width if kind in _ANY_WIDTH_SHIFTS else max(width, width_of(operand))
        marked = kind == "$sshr" and signed
        first = fitted(operand, width, signed)
        return Operation(kind, operator if kind != "$sshr" or marked else ">>", (first, second), width, (marked, False))
    if kind in _ANY_WIDTH:
        return Operation(
            kind, operator, (fitted(operand, width, both_signed), fitted(second, width, both_signed)), width
        )
    if operator in ("&&", "||"):
        return Operation(kind, operator, (operand, second), 1)
    inner = max(width_of(operand), width_of(second), width if kind in _DIVISIONS else 0)
    operands = (fitted(operand, inner, both_signed), fitted(second, inner, both_signed))
    if kind in _DIVISIONS:
        if both_signed and kind.endswith("floor"):
            raise ValueError("a signed division that rounds down has no Verilog operator")
        return Operation(kind, operator, operands, inner, (both_signed,) * 2)
    marked = both_signed and kind in _SIGNED_BY_MARK
    return Operation(kind, operator, operands, 1, (marked, marked))


def constant(bits):
    """A constant as Verilog writes it: hexadecimal, or binary where only some bits of a digit are unknown."""
    if len(bits) > 64:
        if len(set(bits)) == 1:
            return f"{{{len(bits)}{{1'h{bits[0]}}}}}"
        first = len(bits) % 64 or 64
        return f"{{{', '.join(constant(bits[max(0, at - 64) : at]) for at in range(first, len(bits) + 1, 64))}}}"
    padded = bits.rjust(-len(bits) % 4 + len(bits), "x" if set(bits) == {"x"} else "0")
    digits = [padded[index : index + 4] for index in range(0, len(padded), 4)]
    if any("x" in digit and digit != "xxxx" for digit in digits):
        return f"{len(bits)}'b{bits}"
    return f"{len(bits)}'h" + "".join("x" if "x" in digit else f"{int(digit, 2):x}" for digit in digits)


def is_constant(signal):
    return all(isinstance(part, Bits) for part in signal)
