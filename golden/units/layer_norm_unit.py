"""Bit-exact model of the layer-norm unit: rows of FP16 values, normalised, times gamma, plus beta."""

import numpy as np

from golden.arith.elementwise import fused_multiply_add
from golden.arith.floats import bit_length, check_words, decode, decode_positive, encode_positive, round_pack, word_type
from golden.arith.lines import evaluate
from golden.spec import layer_norm_unit as spec
from golden.spec.formats import FP16
from golden.units.softmax_unit import check_row_length, truncated_product

__all__ = ["FAULT_SITES", "encode_epsilon", "decode_epsilon", "layer_norm", "normalise"]

_SMALLEST = 1 - FP16.bias - FP16.fraction_width
"""Exponent of the smallest FP16 number."""
FAULT_SITES = (
    "scale",
    "mean",
    "term",
    "deviation",
    "squares",
    "significand",
    "reciprocal",
    "variance product",
    "variance",
    "addend product",
    "addend",
    "root",
    "product",
)
"""Internal values into which an error can be injected."""


def encode_epsilon(epsilon):
    """The unit's word for an epsilon, rounded to 13 significant bits.

    From the top, the word has 6 bits of exponent and 12 of fraction: ``(1 + fraction / 2**12) * 2**(exponent - 48)``.
    Legal epsilons are 4e-15 to 65528.
    """
    word = encode_positive(spec.EPSILON, epsilon)
    if word is None:
        raise ValueError(f"epsilon must be from 4e-15 to 65528, not {epsilon}")
    return word


def decode_epsilon(word):
    """The epsilon of a word, exactly."""
    return decode_positive(spec.EPSILON, word)


def layer_norm(values, enable, gamma, beta, epsilon):
    """``y = gamma * (x - mean) / sqrt(variance + epsilon) + beta`` over the enabled elements of each row.

    ``values`` and ``enable`` [rows, n], ``gamma`` and ``beta`` [n], FP16 words, ``epsilon`` as encode_epsilon gives it.
    Results of disabled elements are 0. Gamma and beta are applied to :func:`normalise` with one rounding.
    """
    check_words("gamma", gamma, FP16.width)
    check_words("beta", beta, FP16.width)
    y = fused_multiply_add(gamma, normalise(values, enable, epsilon), beta)
    return np.where(enable, y, 0).astype(word_type(FP16))


def normalise(values, enable, epsilon, faults=None):
    """``(x - mean) / sqrt(variance + epsilon)``, rounded once to FP16; disabled elements are don't-cares.

    The error is at most :func:`golden.arith.layer_norm_tables.error_bound` ulps of the exact value and
    :func:`golden.arith.layer_norm_tables.absolute_error`, for every epsilon and all finite elements. Rows with an
    infinity or NaN are NaN. With n = c * 2**k the number of elements, c in [1, 2), and 2**s the first power of two
    above the row's range, the largest element less the smallest one:

    1. Sum and range: exact.
    2. ``d = c * x - sum / 2**k``, that is c times the deviation from the mean, in the frame, whose unit is
       ``2**(s + 1 - FRAME_FRACTION)``: both terms are rounded down to integers, elements in magnitude. Nothing
       cancels: these integers are exact unless some elements are far smaller than the range. d is rounded down to
       DEVIATION_WIDTH significant bits.
    3. The sum of the squares of ``d / 2**(s + 1)``, each rounded down to SQUARE_FRACTION fraction bits.
    4. That sum divided by c, plus ``epsilon * c**2 * 2**k / 4**(s + 1)``: the variance and epsilon in the same units,
       both to VARIANCE_WIDTH bits; its reciprocal root by lines.
    5. Product of deviation and root, rounded once.

    ``faults`` ``{name: difference}`` injects errors: each is added to the internal value of that name, see FAULT_SITES.
    Testbenches use them to find rows that expose an error of one unit.
    """
    faults = dict.fromkeys(FAULT_SITES, 0) | (faults or {})
    values, enable = np.asarray(values), np.asarray(enable, dtype=bool)
    check_row_length(values.shape[-1], spec.MAX_ELEMENTS)
    check_words("values", values, FP16.width)
    check_words("epsilon", epsilon, spec.EPSILON.width)
    number = decode(FP16, values)
    special = (enable & (number.is_nan | number.is_inf)).any(axis=-1, keepdims=True)
    n_enabled = np.maximum(enable.sum(axis=-1, keepdims=True), 1)
    octave = bit_length(n_enabled) - 1
    count = (n_enabled << spec.COUNT_FRACTION) >> octave

    total, scale = _sum_and_scale(number, enable)
    scale = scale + faults["scale"]
    negative, leading_zeros, deviation = _deviations(number, enable, count, octave, scale, total, faults)
    square = deviation * deviation << spec.SQUARE_FRACTION - 2 * spec.DEVIATION_WIDTH
    squares = (square >> np.minimum(2 * leading_zeros, 62)).sum(axis=-1, keepdims=True) + faults["squares"]
    root, exponent = _reciprocal_root(np.maximum(squares, 0), count, octave, scale, epsilon, faults)
    product = truncated_product(deviation, root, spec.PRODUCT_DROPPED, spec.PRODUCT_CENTRE)
    product = np.maximum(product + faults["product"], 0)
    return round_pack(FP16, negative, product, -spec.PRODUCT_FRACTION - leading_zeros - exponent, nan=special)


def _sum_and_scale(number, enable):
    """The sum in units of the smallest FP16 number, and the bits of the range in the same units, at least 1."""
    units = np.where(number.sign == 1, -number.significand, number.significand) << number.field - 1
    total = np.where(enable, units, 0).sum(axis=-1, keepdims=True)
    # Without enabled elements the range is a don't-care.
    far = 1 << 62
    spread = np.where(enable, units, -far).max(axis=-1, keepdims=True) - np.where(enable, units, far).min(
        axis=-1, keepdims=True
    )
    return total, np.maximum(bit_length(np.maximum(spread, 0)), 1)


def _deviations(number, enable, count, octave, scale, total, faults):
    """Signs, leading zeros below 1 and significands of the deviations, in the frame of the row's range."""
    term = _shift(count * number.significand, number.field - scale + spec.FRAME_FRACTION - 13) + faults["term"]
    mean = _shift(total, spec.FRAME_FRACTION - 1 - octave - scale) + faults["mean"]
    negated = _wrap(mean - np.where(number.sign == 1, -term, term), spec.FRAME_FRACTION + 1)
    negative = negated >= 0
    # Positive deviations are one unit of the frame too small.
    magnitude = np.where(enable, np.where(negative, negated, ~negated), 0)
    leading_zeros = spec.FRAME_FRACTION - bit_length(magnitude)
    deviation = (magnitude << leading_zeros) >> spec.FRAME_FRACTION - spec.DEVIATION_WIDTH
    return negative, leading_zeros, np.maximum(deviation + faults["deviation"], 0)


def _reciprocal_root(squares, count, octave, scale, epsilon, faults):
    """The root as an integer with ROOT_FRACTION + 1 fraction bits, and its negated exponent."""
    length = bit_length(squares)
    significand = ((squares << spec.SUM_WIDTH) >> length) + faults["significand"]
    table = spec.reciprocal_table()
    reciprocal = (
        evaluate(table, count & ((1 << spec.COUNT_FRACTION) - 1)) >> table.value_fraction - spec.RECIPROCAL_FRACTION
    )
    reciprocal = reciprocal + faults["reciprocal"]
    product = significand * reciprocal + faults["variance product"]
    variance = product >> spec.SUM_WIDTH + spec.RECIPROCAL_FRACTION + 1 - spec.VARIANCE_WIDTH
    variance = variance + faults["variance"]
    # For a sum of 0 this is smaller than epsilon's, for its row has the smallest scale.
    variance_exponent = length - spec.SQUARE_FRACTION - spec.VARIANCE_WIDTH

    exponent, fraction = divmod(epsilon, 1 << spec.EPSILON.fraction_width)
    square = count * count >> 2 * spec.COUNT_FRACTION - spec.SPREAD_FRACTION
    dropped = spec.EPSILON.fraction_width + spec.SPREAD_FRACTION + 3 - spec.VARIANCE_WIDTH
    product = ((1 << spec.EPSILON.fraction_width) + fraction) * square + faults["addend product"]
    addend = (product >> dropped) + faults["addend"]
    addend_exponent = (
        exponent
        - spec.EPSILON.bias
        - spec.EPSILON.fraction_width
        - spec.SPREAD_FRACTION
        + dropped
        + octave
        - 2 * (scale + 1 + _SMALLEST)
    )

    larger = np.maximum(variance_exponent, addend_exponent)
    total = (variance >> np.minimum(larger - variance_exponent, 62)) + (
        addend >> np.minimum(larger - addend_exponent, 62)
    )
    length = bit_length(total)
    argument = (total << spec.ROOT_ARGUMENT + 1 >> length) & ((1 << spec.ROOT_ARGUMENT) - 1)
    half = larger + length - 1 - octave
    table = spec.root_table()
    root = evaluate(table, (half & 1) << spec.ROOT_ARGUMENT | argument) >> table.value_fraction - spec.ROOT_FRACTION
    return root + faults["root"], half >> 1


def _shift(value, left):
    """``value * 2**left``, rounded down; modulo 2**64."""
    return np.where(left >= 0, value << np.clip(left, 0, 63), value >> np.clip(-left, 0, 63))


def _wrap(value, width):
    """The lowest bits as two's complement."""
    return (value << 64 - width) >> 64 - width
