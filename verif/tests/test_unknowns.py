"""Nothing unknown gets out: memories and data registers start as X in Icarus; control registers and outputs never are.

The standard testbench compares every payload that is valid, every valid and plain output; here the control registers
inside are watched too, from the first reset on.
"""

import shutil

import pytest

from hw.registry import BLOCKS, make_block
from verif.harness import run_bench
from verif.unknowns import SENTENCE, watch_control_registers

pytestmark = pytest.mark.skipif(not shutil.which("iverilog"), reason="Icarus Verilog, which knows X, is not installed")

COUNT = {"core": 27, "vector_unit": 9}
LONG = ("vector_unit", "dot_product_unit", "layer_norm_unit")
SLOW = {"core": pytest.mark.core} | dict.fromkeys(LONG, pytest.mark.slow)


def run(block, folder, edit, count=18):
    """The result of the bench and the registers that the log names."""
    result = run_bench(block, sim="icarus", count=count, keep=folder, edit=edit)
    log = (folder / "simulation.log").read_text()
    return result, sorted({line.split(SENTENCE)[1] for line in log.splitlines() if SENTENCE in line})


@pytest.mark.parametrize("unit", [pytest.param(unit, marks=SLOW.get(unit, ())) for unit in BLOCKS])
def test_block(unit, tmp_path):
    numbers = []

    def edit(files):
        files, number = watch_control_registers(files)
        numbers.append(number)
        return files

    result, unknown = run(make_block(unit, "tiny"), tmp_path, edit, COUNT.get(unit, 18))
    assert numbers[0] > 0
    assert not unknown
    assert result.passed, result.messages


def test_an_unknown_bit_is_found(tmp_path):
    """A control register that takes a bit of data before there is any is told of."""

    def edit(files):
        text = files["hash_bank_mapper.v"]
        wrong = text.replace("column__valid <= slot__valid;", "column__valid <= column__payload_index[0];")
        assert wrong != text
        return watch_control_registers({"hash_bank_mapper.v": wrong})[0]

    result, unknown = run(make_block("hash_bank_mapper", "tiny"), tmp_path, edit)
    assert any(name.endswith("column_path.column__valid") for name in unknown)
    assert not result.passed
