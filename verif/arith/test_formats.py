"""The number formats, against NumPy's and against Amaranth's layout of a word."""

import numpy as np
import pytest

from golden.arith.floats import word_type
from golden.spec.formats import BF16, FORMATS, FP16, FP32, float_format
from hw.lib.formats import float_layout


@pytest.mark.parametrize("fmt, numpy_type", [(FP16, np.float16), (FP32, np.float32)])
def test_words_are_those_of_numpy(fmt, numpy_type):
    info = np.finfo(numpy_type)
    assert (fmt.width, fmt.fraction_width) == (info.bits, info.nmant)
    for word, value in ((fmt.one, 1.0), (fmt.infinity, np.inf), (fmt.sign_bit, -0.0), (fmt.nan, np.nan)):
        assert numpy_type(value).view(word_type(fmt)) == word
    assert numpy_type(info.max).view(word_type(fmt)) == fmt.infinity - 1


def test_bf16_is_the_upper_half_of_fp32():
    assert (BF16.width, BF16.exponent_width, BF16.bias) == (16, FP32.exponent_width, FP32.bias)
    for name in ("one", "infinity", "nan", "sign_bit"):
        assert getattr(BF16, name) == getattr(FP32, name) >> 16


@pytest.mark.parametrize("fmt", FORMATS.values(), ids=FORMATS)
def test_layout_has_the_sign_on_top(fmt):
    layout = float_layout(fmt)
    assert layout.size == fmt.width and list(layout.members) == ["fraction", "exponent", "sign"]
    constant = layout.from_bits(fmt.sign_bit | fmt.nan)
    assert (constant.sign, constant.exponent, constant.fraction) == (1, fmt.max_exponent, 1 << fmt.fraction_width - 1)


def test_unknown_format_is_refused():
    with pytest.raises(ValueError, match="format must be one of fp16, bf16, fp32, not 'fp8'"):
        float_format("fp8")
