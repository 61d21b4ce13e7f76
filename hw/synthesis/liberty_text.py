"""The text of a Liberty library as groups and attributes, whatever their names are."""

import re
from dataclasses import dataclass, field

_COMMENTS = re.compile(r"/\*.*?\*/|\\\r?\n", re.DOTALL)
_TOKEN = re.compile(r'"[^"]*"|[{}();:,]|[^\s{}();:,"]+|\n')
_CAPACITANCE_FF = {"ff": 1.0, "pf": 1000.0}


def without_comments(text):
    """The text without comments and escaped line ends."""
    return _COMMENTS.sub(" ", text)


def parse(text):
    """The groups of a library's text; IndexError or ValueError if they do not close."""
    group, _ = _group(_TOKEN.findall(without_comments(text)), 0)
    return group


@dataclass
class Group:
    """``kind (arguments) { ... }`` with its attributes, its groups and the rows of its table."""

    kind: str
    arguments: list
    values: dict
    groups: list
    rows: list = field(default_factory=list)

    @property
    def name(self):
        return self.arguments[0] if self.arguments else ""


def _group(tokens, at):
    """Parse ``kind (arguments) { ... }`` beginning at a token; returns the group and the index past it."""
    while tokens[at] == "\n":
        at += 1
    kind, (arguments, at) = tokens[at], _arguments(tokens, at + 1)
    if tokens[at] != "{":
        raise ValueError("not a group")
    group = Group(kind, arguments, {}, [])
    at += 1
    while tokens[at] != "}":
        if tokens[at] in (";", "\n"):
            at += 1
        elif tokens[at + 1] == ":":
            end = at + 2
            while tokens[end] not in (";", "\n", "}"):
                end += 1
            group.values[tokens[at]] = " ".join(tokens[at + 2 : end]).strip('"')
            at = end
        else:
            arguments, after = _arguments(tokens, at + 1)
            if tokens[after] == "{":
                child, at = _group(tokens, at)
                group.groups.append(child)
            elif tokens[at] == "values":
                group.rows, at = arguments, after
            else:
                group.values[tokens[at]] = " ".join(arguments)
                at = after
    return group, at + 1


def _arguments(tokens, at):
    """Parse ``( a , b )``; returns the arguments and the index of the next token that is not a line end."""
    if tokens[at] != "(":
        raise ValueError("no arguments")
    end = tokens.index(")", at)
    arguments = [token.strip('"') for token in tokens[at + 1 : end] if token not in (",", "\n")]
    end += 1
    while end < len(tokens) and tokens[end] == "\n":
        end += 1
    return arguments, end


def femtofarad(group):
    """The unit of capacitance of a library's group, in fF."""
    amount, unit = (group.values.get("capacitive_load_unit", "1 pf").split() + ["pf"])[:2]
    return float(amount) * _CAPACITANCE_FF.get(unit.lower(), 1000.0)
