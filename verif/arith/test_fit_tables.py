"""The function tables are data: they equal the fits, and no process fits them again."""

import subprocess
import sys

import pytest

from golden.arith.fit_tables import FITS, text
from golden.spec import functions, layer_norm_unit, softmax_unit
from golden.spec.formats import BF16, FP16, FP32
from golden.spec.tables import FOLDER


@pytest.mark.parametrize("name", FITS)
def test_data_equals_the_fit(name):
    assert (FOLDER / f"{name}.json").read_text() == text(FITS[name]())


def test_every_file_is_a_fit():
    assert {path.stem for path in FOLDER.glob("*.json")} == set(FITS)


@pytest.mark.parametrize("fmt", [FP16, BF16], ids=["fp16", "bf16"])
def test_what_is_read_equals_what_is_fitted(fmt):
    assert functions.exponential_tables(fmt) == FITS[f"exponential_{fmt.name}"]()
    assert functions.reciprocal_table(fmt) == FITS[f"reciprocal_{fmt.name}"]()
    assert functions.reciprocal_root_table(fmt) == FITS[f"reciprocal_root_{fmt.name}"]()
    assert functions.gelu_tables(fmt) == FITS[f"gelu_{fmt.name}"]()
    assert functions.silu_tables(fmt) == FITS[f"silu_{fmt.name}"]()


def test_tables_of_the_row_units():
    assert softmax_unit.power_table() == FITS["softmax_power"]()
    assert softmax_unit.reciprocal_table() == FITS["softmax_reciprocal"]()
    assert layer_norm_unit.reciprocal_table() == FITS["layer_norm_reciprocal"]()
    assert layer_norm_unit.root_table() == FITS["layer_norm_root"]()


def test_there_are_no_tables_for_formats_of_results():
    with pytest.raises(ValueError, match="format must be one of fp16, bf16, not 'fp32'"):
        functions.gelu_tables(FP32)


def test_models_do_not_fit():
    """The models are imported and run without the module that fits."""
    program = (
        "import sys, numpy as np\n"
        "from golden.arith.functions import gelu\n"
        "from golden.units.layer_norm_unit import normalise\n"
        "from golden.units.softmax_unit import encode_scale, softmax\n"
        "row = np.zeros((1, 8), np.uint16)\n"
        "softmax(row, row == 0, encode_scale(0.25)), normalise(row, row == 0, 0), gelu(row)\n"
        "assert 'golden.arith.fit' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
