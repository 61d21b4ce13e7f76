"""Error bound of the core's attention: the sum of the worst-case effects of its roundings."""

import numpy as np

from golden.arith.softmax_tables import error_bound
from golden.core.attention import attention_reference, scores_reference, softmax_reference
from golden.spec.dot_product_unit import DEFAULT_ALIGN_WIDTHS
from golden.spec.softmax_unit import SCALE
from golden.spec.vector_unit import AccumulatorParameters

__all__ = ["attention_bound"]

_HALF_ULP = 2.0**-11
"""Half an ulp of a normal FP16 number, relative to it."""
_HALF_SUBNORMAL = 2.0**-25
_SPMM_WINDOW = AccumulatorParameters().align_width


def attention_bound(query, key, value, mask=None, factor=1.0):
    """Largest ``|output - factor * softmax(query . key / sqrt(d) over the mask) . value|``, an array [rows, d].

    ``query``, ``key`` and ``value`` are the FP16 numbers that SDDMM, SOFTMAX and SPMM get, ``factor`` [rows, 1]
    the row factors of SOFTMAX. The bound adds up

    * the scores: rounded to FP16, summed in a window; and the scale, rounded to 16 bits. If they change
      the exponent by at most x, numerator and denominator together change the probability by at most ``exp(2 * x) -
      1``;
    * the softmax unit: :func:`golden.arith.softmax_tables.error_bound` ulps;
    * SpMM: summed in a window, and the output rounded to FP16.
    """
    query, key, value = (np.asarray(array, np.float64) for array in (query, key, value))
    n_keys, d = key.shape
    selected = np.ones((len(query), n_keys), bool) if mask is None else np.asarray(mask, bool)
    products = np.abs(query)[:, None] * np.abs(key)
    scores = scores_reference(query, key)
    window = d * 2.0 ** (3 - DEFAULT_ALIGN_WIDTHS["fp16"]) * products.max(axis=2)
    score_error = _HALF_ULP * np.abs(scores) + (_HALF_SUBNORMAL + window) / np.sqrt(d)
    scale_error = 2.0 ** -(SCALE.fraction_width + 1) * 2 * np.abs(scores)
    exponent = np.where(selected, score_error + scale_error, 0).max(axis=1, keepdims=True)

    exact = softmax_reference(scores, selected) * factor
    ulps = error_bound(n_keys)
    error = exact * np.expm1(2 * exponent) + ulps * (2 * _HALF_ULP * exact * np.exp(2 * exponent) + 2.0**-24)
    error = np.where(selected, error, 0)
    largest = (np.where(selected, exact + error, 0)[:, :, None] * np.abs(value)).max(axis=1)
    output = np.abs(attention_reference(query, key, value, selected) * factor)
    before_rounding = error @ np.abs(value) + n_keys * 2.0 ** (3 - _SPMM_WINDOW) * largest
    return before_rounding + _HALF_ULP * (output + before_rounding) + _HALF_SUBNORMAL
