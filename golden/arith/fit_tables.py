"""``python -m golden.arith.fit_tables``: fits every function table and writes it to golden/spec/tables."""

import json
from dataclasses import fields, is_dataclass
from fractions import Fraction
from typing import Any

from golden.arith import function_tables, gelu_tables, layer_norm_tables, silu_tables, softmax_tables
from golden.spec.formats import BF16, FP16
from golden.spec.tables import FOLDER

__all__ = ["FITS", "text"]

FITS = {
    "softmax_power": softmax_tables.fit_power,
    "softmax_reciprocal": softmax_tables.fit_reciprocal,
    "layer_norm_reciprocal": layer_norm_tables.fit_reciprocal,
    "layer_norm_root": layer_norm_tables.fit_root,
} | {
    f"{name}_{fmt.name}": lambda fit=fit, fmt=fmt: fit(fmt)
    for fmt in (FP16, BF16)
    for name, fit in (
        ("exponential", function_tables.fit_exponential),
        ("reciprocal", function_tables.fit_reciprocal),
        ("reciprocal_root", function_tables.fit_reciprocal_root),
        ("gelu", gelu_tables.fit_gelu),
        ("silu", silu_tables.fit_silu),
    )
}
"""The fit of each file."""


def text(table):
    """The file of a fitted table: a field a line."""
    lines = (f'  "{name}": {json.dumps(value)}' for name, value in _plain(table).items())
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _plain(value) -> Any:
    """Dataclasses as dictionaries of the fields without defaults, fractions as text."""
    if is_dataclass(value):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value) if _is_fitted(field)}
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return str(value) if isinstance(value, Fraction) else value


def _is_fitted(field):
    """Whether a field is a result of the fit: those that have a default are definitions."""
    return field.default is field.default_factory


def main():
    for name, fit in FITS.items():
        path = FOLDER / f"{name}.json"
        path.write_text(text(fit()))
        print(f"{path.name}  {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
