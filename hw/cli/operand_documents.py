"""The command table as text: what each command reads and writes, how far, and what follows it in a chain."""

from golden.spec.commands import COMMANDS
from golden.spec.operands import DEPTH, MaskRows, MassRows, Matrix, RoundUp, Slots, TokenList, Words

__all__ = ["bounds_rows", "chain_rows", "operand_rows"]

_LETTERS = {
    "n_banks": "N",
    "n_lanes": "L",
    "simd_lanes": "S",
    "max_tokens": "T",
    "max_head_dim": "D",
    "max_dim": "M",
    "max_norm_dim": "norm",
}
"""Sizes as the page writes them."""


def operand_rows():
    """``[command, unit, what is read, what is written]`` of each row of the table that has operands."""
    return [
        [f"`{form.name}`", _unit(form), *("<br>".join(map(_operand, part)) for part in (form.reads, form.writes))]
        for form in COMMANDS
        if form.reads or form.writes
    ]


def _unit(form):
    return form.unit.name.lower().replace("_", " ") if form.unit is not None else ""


def _operand(operand):
    flag = f", if `{operand.flag}`" if getattr(operand, "flag", None) else ""
    if isinstance(operand, Matrix):
        n_rows = f"`{operand.n_rows}` rows" if isinstance(operand.n_rows, str) else f"{operand.n_rows} rows"
        return f"imem: `{operand.base}`, {n_rows} of `{operand.elements}` elements"
    if isinstance(operand, Words):
        return f"{operand.memory}: `{operand.base}`, {' * '.join(map(_factor, operand.length))} words"
    if isinstance(operand, MaskRows):
        return f"rows of mask `{operand.number}`{flag}"
    return {MassRows: "retained mass", TokenList: "token list"}[type(operand)] + flag


def _factor(factor):
    if isinstance(factor, RoundUp):
        words = f"ceil(`{factor.field}` / {_LETTERS[factor.divisor]})"
        return words if factor.flag is None else f"({words} + `{factor.flag}`)"
    if isinstance(factor, Slots):
        return f"slots(`{factor.field}`)" + ("" if factor.words is None else " * ceil(N / L)")
    return f"`{factor}`"


def bounds_rows():
    """``[command, n_rows, n_in, n_out, strides and masks]`` of each row of the table that has bounds."""
    return [
        [
            f"`{form.name}`",
            *(_bound(form, name) for name in ("n_rows", "n_in", "n_out")),
            "<br>".join(_conditions(form)),
        ]
        for form in COMMANDS
        if form.bounds
    ]


def _bound(form, name):
    if name not in form.bounds:
        return ""
    lowest, highest = form.bounds[name]
    return f"{lowest}.." if highest is None else f"{lowest}..{_LETTERS[highest]}"


def _conditions(form):
    for matrix in form.operands(Matrix):
        zero = ", or 0: one row for all rows" if matrix.stride_may_be_0 else ""
        yield f"`{matrix.stride}` >= ceil(`{matrix.elements}` / W){zero}"
    for mask in form.operands(MaskRows):
        flag = f", if `{mask.flag}`" if mask.flag else ""
        if form.is_transfer:
            yield f"`{mask.number}` < n_masks; if it is 0, `n_rows` = 1 and `first_row` = 0"
        else:
            yield f"{'1 <= ' if mask in form.writes else ''}`{mask.number}` < n_masks{flag}"


def chain_rows():
    """``[memory, what hands its rows over, what takes them, what must be equal]``."""
    rows = []
    for memory in DEPTH:
        given, taken = (
            {form: form.chained(form.of_memory(memory)[is_written]) for form in COMMANDS} for is_written in (1, 0)
        )
        given, taken = ({form: item for form, item in side.items() if item} for side in (given, taken))
        if not given or not taken:
            continue
        (result, *_), (source, *_) = given.values(), taken.values()
        equal = [f"`{result.base}` = `{source.base}`"]
        if isinstance(source, Matrix):
            equal.append(f"`{result.stride}` = `{source.stride}`")
        equal += [f"`{name}`" for name in getattr(source, "layout", ())]
        names = (", ".join(dict.fromkeys(f"`{form.opcode.name}`" for form in side)) for side in (given, taken))
        rows.append([memory, *names, ", ".join(equal)])
    return rows
