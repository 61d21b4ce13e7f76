"""Row operations of the core outside the array: SOFTMAX, SPMM, ELEMENTWISE and LAYER_NORM."""

import numpy as np

from golden.arith.elementwise import elementwise as lane_operation
from golden.core.memories import SampledElements, Words, encoded_matrix
from golden.core.spmm import spmm as spmm_rows
from golden.spec.commands import Elementwise
from golden.spec.formats import FP16
from golden.spec.layer_norm_unit import EPSILON
from golden.spec.sizes import words_for
from golden.spec.vector_operations import VectorOp
from golden.units.layer_norm_unit import layer_norm as normalised_rows
from golden.units.softmax_unit import softmax as softmax_rows
from golden.units.vector_unit import FUNCTIONS

__all__ = ["elementwise", "layer_norm", "softmax", "spmm"]


def _flat(bits):
    """[rows, banks, slots] as [rows, banks * slots], also for no rows."""
    return bits.reshape(len(bits), bits.shape[1] * bits.shape[2])


def softmax(memories, command, rows, bits):
    """Probabilities of the sampled scores; with make_mask also the bits of those >= theta and the retained mass."""
    enable = _flat(bits)
    scores = encoded_matrix(memories.scores, command.source, bits)
    scores = scores.reshape(enable.shape)
    factor = memories.mass[rows] if command.has("use_mass") else Words.of(np.full(len(rows), FP16.one))
    result = softmax_rows(scores.data, enable, command.scale, command.theta, factor.data)
    is_defined = scores.defined.all(axis=1) & factor.defined

    sampled = SampledElements.of(bits)
    where = (sampled.row, sampled.bank, sampled.slot)
    values = Words(result.values.reshape(bits.shape)[where], is_defined[sampled.row])
    memories.probabilities[sampled.bank, command.destination + sampled.position] = values
    if command.has("make_mask"):
        sizes = memories.sizes
        whole = np.zeros((len(rows), sizes.n_banks, sizes.key_slots), bool)
        whole[:, :, : bits.shape[2]] = result.keep.reshape(bits.shape)
        whole = _flat(whole)
        # Bits of unsampled elements are 0, whatever the scores are.
        bits_defined = np.broadcast_to(is_defined[:, None], whole.shape).copy()
        scanned = np.zeros((len(rows), sizes.n_banks, sizes.key_slots), bool)
        scanned[:, :, : bits.shape[2]] = bits
        bits_defined |= ~_flat(scanned)
        memories.mask[memories.mask_row_numbers(command.mask_out, rows)] = Words(whole, bits_defined)
        memories.mass[rows] = Words(result.retained_mass, is_defined)
    return {}


def spmm(memories, command, rows, bits):
    """Probabilities times the values in the banks into IMEM, in whole groups of simd_lanes elements."""
    sizes, slots = memories.sizes, bits.shape[2]
    chunks = words_for(command.n_in, sizes.simd_lanes)
    width = chunks * sizes.simd_lanes
    mask = _flat(bits)
    coefficients = encoded_matrix(memories.probabilities, command.source, bits).reshape(mask.shape)
    values = memories.bank_words(memories.vmem, command.bank_address, chunks, slots).reshape(-1, width)
    engine, address = np.divmod(np.arange(sizes.n_banks * slots), slots)
    result = np.zeros((len(rows), width), np.uint16)
    if len(rows):
        result = spmm_rows(coefficients.data, mask, values.data, engine, address, sizes.n_banks)[1]
    is_defined = np.asarray(coefficients.defined.all(axis=1))[:, None] & (
        mask.astype(np.float32) @ ~values.defined == 0
    )
    result = Words(result, is_defined)
    memories.write_rows(command.destination, command.destination_stride, rows, result, command.column)
    return {"spmm_terms": int(bits.sum()) * chunks}


def elementwise(memories, command, rows):
    """One operation on every element of the words of rows of one or two matrices."""
    sizes = memories.sizes
    n = words_for(command.n_in, sizes.row_word) * sizes.row_word
    left = memories.rows(command.source, command.source_stride, rows, n)
    if Elementwise(command.function).n_operands == 2:
        right = memories.rows(command.source_2, command.source_2_stride, rows, n)
        value = lane_operation(VectorOp(command.function), left.data, right.data, left.data)
        result = Words(value.astype(np.uint16), left.defined & right.defined)
    else:
        result = Words(FUNCTIONS[VectorOp(command.function)](left.data), left.defined)
    memories.write_rows(command.destination, command.destination_stride, rows, result)
    return {"vector_issues": len(rows) * n // sizes.n_vector_lanes}


def layer_norm(memories, command, rows):
    """Rows normalised over n_in elements, times gamma, plus beta; the last word's other elements are zeros.

    Epsilon, as :func:`golden.units.layer_norm_unit.encode_epsilon` has it, is in the low bits of the field ``scale``.
    """
    sizes, n = memories.sizes, command.n_in
    values = memories.rows(command.source, command.source_stride, rows, n)
    gamma, beta = (memories.rows(command.source_2, command.source_2_stride, [row], n) for row in (0, 1))
    epsilon = command.scale & ((1 << EPSILON.width) - 1)
    result = normalised_rows(values.data, np.ones(values.data.shape, bool), gamma.data[0], beta.data[0], epsilon)
    is_defined = values.defined.all(axis=1, keepdims=True) & gamma.defined & beta.defined
    words = Words(result, is_defined).padded(words_for(n, sizes.row_word) * sizes.row_word)
    memories.write_rows(command.destination, command.destination_stride, rows, words)
    return {}
