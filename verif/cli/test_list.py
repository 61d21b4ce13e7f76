"""``python -m hw list``: every parameter with what is legal, the limits of rows among it."""

import json

import pytest

from golden.spec import layer_norm_unit, softmax_unit
from hw import __main__ as command_line
from hw.registry import BLOCKS, make_block, unit_class


@pytest.fixture
def listed(capsys):
    assert command_line.main(["list", "--json"]) == 0
    return {name: {row["name"]: row for row in rows} for name, rows in json.loads(capsys.readouterr().out).items()}


def test_every_parameter_is_listed(listed):
    assert list(listed) == list(BLOCKS)
    for name, rows in listed.items():
        assert list(rows) == list(unit_class(name).Parameters.__dataclass_fields__)
        assert all(row["doc"] and row["legal"] for row in rows.values())


@pytest.mark.parametrize(
    "block, parameter, limit",
    [
        ("softmax_unit", "n_slots", softmax_unit.MAX_ELEMENTS),
        ("layer_norm_unit", "n_slots", layer_norm_unit.MAX_ELEMENTS),
        ("core", "max_dim", layer_norm_unit.MAX_ELEMENTS),
    ],
)
def test_the_limits_of_rows_are_listed(listed, block, parameter, limit):
    assert limit in (16384, 4096)
    assert f"at most {limit}" in listed[block][parameter]["doc"]


def test_a_core_with_too_many_tokens_is_refused_in_its_own_words():
    with pytest.raises(ValueError, match="max_tokens must be an integer from 2 to 8192, not 16385"):
        make_block("core", None, {"max_tokens": "16385", "omem_depth": "65536"})
