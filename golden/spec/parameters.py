"""Parameters of a block: declared once, then checked, parsed from text and listed from that declaration."""

import dataclasses
import re
from collections.abc import Callable
from dataclasses import dataclass, field, fields


@dataclass(frozen=True)
class Kind:
    """The legal values of a parameter: Python types, predicate, description, and the parser of text."""

    types: tuple[type, ...]
    accepts: Callable[[object], bool]
    legal: str
    parse: Callable[[str], object]
    doc: str
    type_name: str
    normal: Callable[[object], object] = lambda value: value
    """The one form in which equal values are kept."""


def _declare(default, kind):
    return field(default=default, metadata={"kind": kind})


def _parse_integer(text):
    if not re.fullmatch(r"[+-]?(\d+|0x[\da-f]+|0b[01]+)", text, re.ASCII | re.IGNORECASE) or len(text) > 100:
        raise ValueError
    return int(text, 0)


def _optional(default, types, parse, accepts, legal):
    """Extend a kind by ``None`` ("chosen by the block") where that is the default."""
    if default is not None:
        return types, parse, accepts, legal
    return (
        (*types, type(None)),
        lambda text: None if text.lower() == "none" else parse(text),
        lambda value: value is None or accepts(value),
        f"none, or {legal}",
    )


def integer(default, *, low, high, doc):
    """An integer in [low, high]; a default of ``None`` means that the block chooses."""
    types, parse, accepts, legal = _optional(
        default, (int,), _parse_integer, lambda v: low <= v <= high, f"an integer from {low} to {high}"
    )
    return _declare(default, Kind(types, accepts, legal, parse, doc, "int"))


def number(default, *, above, below, doc):
    """A number between two others, neither of which is legal."""
    legal = f"a number above {above} and below {below}"
    return _declare(default, Kind((int, float), lambda v: above < v < below, legal, float, doc, "number"))


def power_of_two(default, *, low, high, doc):
    """A power of two in [low, high]; a default of ``None`` means that the block chooses."""
    types, parse, accepts, legal = _optional(
        default,
        (int,),
        _parse_integer,
        lambda v: low <= v <= high and v & (v - 1) == 0,
        f"a power of two from {low} to {high}",
    )
    return _declare(default, Kind(types, accepts, legal, parse, doc, "int"))


def choice(default, *options, doc):
    """One of the named options."""
    return _declare(default, Kind((str,), lambda v: v in options, "one of " + ", ".join(options), str, doc, "str"))


def subset(default, *options, least=1, doc):
    """Some of the named options, at least as many as told; kept as a tuple in the order of the options.

    A default of ``None`` means that the block chooses. In text the names are separated by commas.
    """
    types, parse, accepts, legal = _optional(
        default,
        (tuple, list, set, frozenset),
        lambda text: tuple(text.split(",")),
        lambda value: len(value) >= least and all(name in options for name in value) and len(set(value)) == len(value),
        f"different names out of {', '.join(options)}",
    )
    return _declare(
        default,
        Kind(
            types,
            accepts,
            legal,
            parse,
            doc,
            "names",
            lambda value: None if value is None else tuple(name for name in options if name in value),
        ),
    )


def odd_or(default, word, *, high, doc):
    """An odd integer in [1, high], or the given word; a default of ``None`` means that the block chooses."""

    def parse_one(text):
        return text if text == word else _parse_integer(text)

    types, parse, accepts, legal = _optional(
        default,
        (int, str),
        parse_one,
        lambda v: v == word if isinstance(v, str) else 1 <= v <= high and v % 2 == 1,
        f"an odd integer from 1 to {high}, or {word}",
    )
    return _declare(default, Kind(types, accepts, legal, parse, doc, "int or str"))


_FLAG_WORDS = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}


def flag(default, *, doc):
    """True or False."""
    return _declare(
        default, Kind((bool,), lambda v: True, "true or false", lambda text: _FLAG_WORDS[text.lower()], doc, "bool")
    )


def kind_of(dataclass_field) -> Kind:
    """The kind with which a parameter was declared."""
    return dataclass_field.metadata["kind"]


@dataclass(frozen=True, kw_only=True)
class Parameters:
    """Base of every block's parameters: each field is checked against its kind, then :meth:`check` runs.

    Raises ``TypeError`` for a value of the wrong type and ``ValueError`` for an illegal value, in one sentence
    that names the parameter, the value and what is legal.
    """

    def __post_init__(self):
        for item in fields(self):
            value = getattr(self, item.name)
            self.check_value(item.name, value)
            object.__setattr__(self, item.name, kind_of(item).normal(value))
        self.check()

    @classmethod
    def check_value(cls, name, value):
        """Refuse a value that is illegal for one parameter whatever the others are."""
        kind = kind_of(cls.__dataclass_fields__[name])
        # bool is a subclass of int, yet True is no sensible number of lanes.
        if not isinstance(value, kind.types) or (isinstance(value, bool) and bool not in kind.types):
            raise TypeError(f"{name} must be {kind.legal}, not {value!r} of type {type(value).__name__}")
        if not kind.accepts(value):
            raise ValueError(f"{name} must be {kind.legal}, not {value!r}")

    def check(self):
        """Rules that span several parameters; overridden where there are any."""

    def refuse(self, name, legal):
        """Raise the ``ValueError`` of one parameter."""
        raise ValueError(f"{name} must be {legal}, not {getattr(self, name)!r}")

    def to_dict(self):
        """Names and values, in order of declaration."""
        return dataclasses.asdict(self)

    @classmethod
    def parse(cls, assignments):
        """Make parameters from ``{name: text or value}``; text is read by the parameter's kind."""
        known = {item.name: kind_of(item) for item in fields(cls)}
        values = {}
        for name, value in assignments.items():
            if name not in known:
                raise ValueError(f"unknown parameter {name!r}: legal are {', '.join(known)}")
            if isinstance(value, str):
                try:
                    value = known[name].parse(value)
                except (ValueError, KeyError):
                    shown = repr(value if len(value) <= 100 else f"{value[:97]}...")
                    raise ValueError(f"{name} must be {known[name].legal}, not {shown}") from None
            values[name] = value
        return cls(**values)


@dataclass(frozen=True, kw_only=True)
class NoParameters(Parameters):
    """For blocks that come in one size."""
