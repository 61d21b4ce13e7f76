"""Nothing unknown gets out of the core, or into control registers; test_units tries the other blocks so."""

import shutil

import pytest

from hw.registry import make_block
from verif.campaigns.x_check import run_watched, watch_control_registers

pytestmark = pytest.mark.skipif(not shutil.which("iverilog"), reason="Icarus Verilog, which knows X, is not installed")


@pytest.mark.core
def test_core():
    result = run_watched(make_block("core", "tiny"), count=4)
    assert result.passed, result.messages


@pytest.mark.parametrize(
    "right, wrong, seen",
    [
        ("column__valid <= slot__valid;", "column__valid <= column__payload_index[0];", "column_path.column__valid"),
        ("if (rst) column__valid <= 1'h0;", "if (rst) column__valid <= column__valid;", "column_path.column__valid"),
    ],
)
def test_an_unknown_bit_is_found(right, wrong, seen):
    def edit(files):
        assert right in files["hash_bank_mapper.v"]
        return {"hash_bank_mapper.v": files["hash_bank_mapper.v"].replace(right, wrong)}

    result = run_watched(make_block("hash_bank_mapper", "tiny"), edit, count=18)
    assert not result.passed
    assert any(message == f"unknown bits in hash_bank_mapper.{seen}" for message in result.messages), result.messages


def test_a_design_without_control_registers_is_refused():
    with pytest.raises(ValueError, match="no register"):
        watch_control_registers({"a.v": "module a (\n  input wire a\n);\nendmodule\n"})
