"""Liberty's expressions: as truth tables and as Verilog."""

import re
from itertools import product

MOST_INPUTS = 12
"""A cell with more is nothing that the flow looks for by its function."""


def truth_table(expression, inputs):
    """Evaluate a Liberty expression (``! ' & * | + ^``, juxtaposition) for all inputs; None if it names other pins."""
    if len(inputs) > MOST_INPUTS:
        return None
    rows = list(product((0, 1), repeat=len(inputs)))
    columns = {pin: sum(row[index] << n for n, row in enumerate(rows)) for index, pin in enumerate(inputs)}
    ones = (1 << len(rows)) - 1
    value = _evaluate(expression, columns | {"0": 0, "1": ones}, ones)
    return None if value is None else tuple(value >> n & 1 for n in range(len(rows)))


class _Text(str):
    """A Verilog expression that is built by computing with it."""

    def __or__(self, other):
        return _Text(f"({self} | {other})")

    def __and__(self, other):
        return _Text(f"({self} & {other})")

    def __xor__(self, other):
        return _Text(f"({self} ^ {other})")


def verilog(expression, names):
    """A Liberty expression in Verilog; ``names`` says what its operands are called there. None if it has others."""
    columns = {name: _Text(text) for name, text in names.items()}
    return _evaluate(expression, columns | {"0": _Text("1'b0"), "1": _Text("1'b1")}, _Text("1'b1"))


def _evaluate(expression, columns, ones):
    """An expression computed with the values that ``columns`` has for its operands; None if it is no plain function."""
    tokens = re.findall(r"[\w\[\]]+|[!'&*|+^()]", expression)
    names = [token for token in tokens if re.match(r"[\w\[\]]", token)]
    if not tokens or any(name not in columns for name in names):
        return None
    try:
        value, rest = _either(tokens, columns, ones)
    except RecursionError:  # parentheses in their hundreds
        return None
    return value if not rest else None


def _either(tokens, columns, ones):
    value, tokens = _both(tokens, columns, ones)
    while tokens and tokens[0] in "|+":
        other, tokens = _both(tokens[1:], columns, ones)
        value |= other
    return value, tokens


def _both(tokens, columns, ones):
    value, tokens = _differ(tokens, columns, ones)
    while tokens and tokens[0] not in "|+)":
        other, tokens = _differ(tokens[tokens[0] in "&*" :], columns, ones)
        value &= other
    return value, tokens


def _differ(tokens, columns, ones):
    value, tokens = _term(tokens, columns, ones)
    while tokens and tokens[0] == "^":
        other, tokens = _term(tokens[1:], columns, ones)
        value ^= other
    return value, tokens


def _term(tokens, columns, ones):
    if not tokens:
        return 0, tokens
    if tokens[0] == "!":
        value, tokens = _term(tokens[1:], columns, ones)
        return value ^ ones, tokens
    if tokens[0] == "(":
        value, tokens = _either(tokens[1:], columns, ones)
        tokens = tokens[1:]
    else:
        value, tokens = columns.get(tokens[0], 0), tokens[1:]
    while tokens and tokens[0] == "'":
        value, tokens = value ^ ones, tokens[1:]
    return value, tokens
