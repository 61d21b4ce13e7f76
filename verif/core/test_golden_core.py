"""The core's golden model: attention against float64, its layouts against loops over single words, gating, marks."""

import numpy as np
import pytest

from golden.arith.floats import to_float64
from golden.core.array import run_time_map
from golden.core.attention import attention_reference
from golden.core.attention_bound import attention_bound
from golden.core.core import Core
from golden.core.spmm import spmm
from golden.program.assembler import Program
from golden.program.placement import decode_sampled, encode_sampled
from golden.spec.commands import Command, Elementwise, Memory, Opcode
from golden.spec.formats import FP16
from golden.spec.sizes import CoreSizes, words_for
from golden.spec.vector_operations import VectorOp
from golden.units.dot_product_unit import dot_products
from golden.units.hash_bank_mapper import BankMap
from golden.units.token_selector import token_masks
from golden.units.vector_unit import FUNCTIONS

POINTS = {
    "default": CoreSizes(omem_depth=2048),
    "wide banks": CoreSizes(
        n_banks=8, n_lanes=2, simd_lanes=4, max_tokens=40, max_head_dim=13, max_dim=29, latent_width=9, latent_height=11
    ),
    "wide lanes": CoreSizes(
        n_banks=4,
        n_lanes=8,
        simd_lanes=8,
        max_tokens=30,
        max_head_dim=20,
        max_dim=20,
        latent_width=7,
        latent_height=5,
        patch=3,
    ),
    "two banks": CoreSizes(
        n_banks=2,
        n_lanes=1,
        simd_lanes=1,
        max_tokens=19,
        max_head_dim=5,
        max_dim=7,
        n_masks=3,
        wmem_depth=400,
        vmem_depth=100,
        latent_width=5,
        latent_height=8,
        channels=1,
    ),
}


@pytest.fixture(params=POINTS)
def sizes(request):
    return POINTS[request.param]


def numbers(words):
    return to_float64(FP16, words)


def run_of(program):
    run = Core(program.sizes).execute(program.commands, program.load_beats)
    assert all(run.executed) and run.load_beats == len(program.load_beats)
    assert all(stored.defined(run).all() for stored in program.stored)
    return run


@pytest.mark.parametrize("n_short", [0, 3])
def test_attention_is_within_its_bound(sizes, n_short):
    """Dense with a mask at theta, then under this mask with the retained mass; the bound is the core's own."""
    rng = np.random.default_rng(1)
    n, d = sizes.max_tokens - n_short, sizes.max_head_dim - min(n_short, 2)
    query, key, value = (rng.normal(size=(n, d)).astype(np.float16) for _ in range(3))
    program = Program(sizes)
    rows = program.load_rows(query)
    keys, values = program.load_keys(key, multiplier=5), program.load_values(value, multiplier=5)
    program.load_mask(np.ones((1, n)), multiplier=5)
    theta = 0.6 / n
    kept = program.softmax(program.sddmm(rows, keys, at=0), d**-0.5, theta, mask_out=1, at=0)
    dense = program.store_rows(program.spmm(kept, values, into=program.matrix(n, d)))
    mask, mass = program.store_mask(1, n, n, multiplier=5), program.store_mass(n)
    kept = program.softmax(program.sddmm(rows, keys, mask=1, at=0), d**-0.5, use_mass=True, at=0)
    sparse = program.store_rows(program.spmm(kept, values))

    run = run_of(program)
    mask, factor = mask.of(run), numbers(mass.of(run))[:, None]
    assert 0.2 < mask.mean() < 0.9
    for output, rule, scaled in ((dense, None, 1.0), (sparse, mask, factor)):
        exact = attention_reference(query, key, value, rule) * scaled
        error = np.abs(numbers(output.of(run)) - exact)
        assert (error <= attention_bound(query, key, value, rule, scaled)).all()
        assert (error.max(axis=1) <= 4 * 2.0**-10 * np.abs(exact).max(axis=1)).all()


def test_run_time_hash_is_the_shifted_one(sizes):
    """A multiplier of hash_width bits with shifted indices and addresses serves every number of keys."""
    width, bank_width = sizes.hash_width, sizes.n_banks.bit_length() - 1
    full = BankMap(n_columns=1 << width, n_banks=sizes.n_banks, multiplier=13)
    for n in range(1, sizes.max_tokens + 1):
        shift = width - bank_width - (sizes.slots_of(n).bit_length() - 1)
        index = np.arange(n)
        bank, address = full.locate(index << shift)
        assert np.array_equal((bank, address >> shift), run_time_map(sizes, n, 12).locate(index))


def test_projection_is_a_product_in_hash_order(sizes):
    """PROJECT leaves in the banks what MATMUL gives and a load in hash order puts there, zeros included."""
    rng = np.random.default_rng(2)
    n, n_in, d = sizes.max_tokens - 1, sizes.max_dim - 1, sizes.max_head_dim - 1
    program = Program(sizes)
    x = program.load_rows(rng.normal(size=(n, n_in)))
    weights = program.load_weights(rng.normal(size=(n_in, d)), bias=rng.normal(size=d))
    product = program.store_rows(program.matmul(x, weights))
    keys, values = program.project_keys(x, weights, multiplier=7), program.project_values(x, weights, multiplier=7)
    core = Core(sizes)
    run = core.execute(program.commands, program.load_beats)
    loaded = Program(sizes)
    loaded.load_keys(product.of(run), multiplier=7, at=keys.first)
    loaded.load_values(product.of(run), multiplier=7, at=values.first)
    other = Core(sizes)
    other.execute(loaded.commands, loaded.load_beats)
    for name in ("wmem", "vmem"):
        projected, expected = getattr(core.memories, name), getattr(other.memories, name)
        assert expected.defined.any()
        assert projected.defined[expected.defined].all()
        assert np.array_equal(projected.data[expected.defined], expected.data[expected.defined])


class Single:
    """Reads single elements of a core's memories as the design says where they are."""

    def __init__(self, core):
        self.memories, self.sizes = core.memories, core.sizes

    def row(self, matrix, row, element):
        word, place = divmod(element, self.sizes.row_word)
        return int(self.memories.imem.data[matrix.first + row * matrix.stride + word, place])

    def weight(self, bank, first, slot, slots, element):
        beat, lane = divmod(element, self.sizes.n_lanes)
        return int(self.memories.wmem.data[bank, first + beat * slots + slot, lane])

    def value(self, bank, first, slot, slots, element):
        chunk, lane = divmod(element, self.sizes.simd_lanes)
        return int(self.memories.vmem.data[bank, first + chunk * slots + slot, lane])


def dot(left, right, n_lanes):
    beats = np.zeros((2, words_for(len(left), n_lanes) * n_lanes), np.uint16)
    beats[:, : len(left)] = left, right
    return dot_products(*beats.reshape(2, -1, n_lanes), format="fp16").narrow


def test_matmul_element_by_element(sizes):
    rng = np.random.default_rng(3)
    n, n_in, n_out = 3, sizes.max_dim, sizes.max_dim - 1
    program = Program(sizes)
    x = program.load_rows(rng.normal(size=(n, n_in)))
    plain, biased = (program.load_weights(rng.normal(size=(n_in, n_out)), bias) for bias in (None, np.ones(n_out)))
    into = program.matrix(n, n_out)
    sevens = np.full((n * into.stride, sizes.row_word), 0x4700)
    program.append(
        Command(opcode=Opcode.LOAD, n_rows=n, n_in=n_out, destination=into.first, destination_stride=into.stride),
        sevens,
    )
    results = [(plain, program.matmul(x, plain)), (biased, program.matmul(x, biased, into=into))]
    core = Core(sizes)
    run = core.execute(program.commands, program.load_beats)
    assert all(run.executed)
    single, banks = Single(core), sizes.n_banks
    slots = words_for(n_out, banks)
    for weights, result in results:
        for row in range(n):
            query = [single.row(x, row, i) for i in range(n_in)]
            for column in range(n_out):
                key = [single.weight(column % banks, weights.first, column // banks, slots, i) for i in range(n_in)]
                if weights.has_bias:
                    place = words_for(n_in, sizes.n_lanes) * sizes.n_lanes
                    query_row = query + [0] * (place - n_in) + [0x3C00]
                    key += [0] * (place - n_in)
                    key.append(single.weight(column % banks, weights.first, column // banks, slots, place))
                else:
                    query_row = query
                assert single.row(result, row, column) == dot(query_row, key, sizes.n_lanes)
    # The group's pad is zero, and the word's other elements are as before.
    rest = [single.row(into, 0, i) for i in range(n_out, into.stride * sizes.row_word)]
    pad = slots * banks - n_out
    assert rest == [0] * pad + [0x4700] * (len(rest) - pad)


def test_encoded_rows_element_by_element(sizes):
    """SDDMM, SOFTMAX and SPMM on a gated list, with empty rows and loops over rows, banks and slots."""
    rng = np.random.default_rng(4)
    n, n_keys, d = sizes.max_tokens - 1, sizes.max_tokens // 2 + 1, sizes.max_head_dim
    mask = rng.random((n, n_keys)) < 0.4
    mask[1], mask[-1] = False, True
    tokens = [n - 1, 0, 1, n // 2]
    program = Program(sizes)
    query = program.load_rows(rng.normal(size=(n, d)))
    keys = program.load_keys(rng.normal(size=(n_keys, d)), multiplier=3)
    values = program.load_values(rng.normal(size=(n_keys, d)), multiplier=3)
    program.load_mask(mask, 1, multiplier=3)
    program.load_tokens(tokens)
    scores = program.sddmm(query, keys, mask=1, gated=True, at=3)
    kept = program.softmax(scores, 0.5, at=1)
    output = program.spmm(kept, values)
    core = Core(sizes)
    run = core.execute(program.commands, program.load_beats)
    assert all(run.executed)

    single, memories = Single(core), core.memories
    slots = sizes.slots_of(n_keys)
    bank_map = run_time_map(sizes, n_keys, 3)
    position = np.zeros(sizes.n_banks, int)
    for row in tokens:
        coefficients = np.zeros((1, n_keys), np.uint16)
        for bank in range(sizes.n_banks):
            for slot in range(slots):
                column = int(bank_map.column(bank, slot)[0])
                if column >= n_keys or not mask[row, column]:
                    continue
                key = [single.weight(bank, keys.first, slot, slots, i) for i in range(d)]
                expected = dot([single.row(query, row, i) for i in range(d)], key, sizes.n_lanes)
                assert memories.scores.data[bank, 3 + position[bank]] == expected
                coefficients[0, column] = memories.probabilities.data[bank, 1 + position[bank]]
                position[bank] += 1
        bank, slot = bank_map.locate(np.arange(n_keys))
        rows = [[single.value(v, values.first, a, slots, i) for i in range(d)] for v, a in zip(bank, slot, strict=True)]
        expected = spmm(coefficients, mask[row : row + 1], np.array(rows), bank, slot, sizes.n_banks)[1][0]
        assert [single.row(output, row, i) for i in range(d)] == expected.tolist()
        assert mask[row].any() or not expected.any()
    assert core.counters["scores"] == mask[tokens].sum()
    assert core.counters["skipped_scores"] == (~mask[tokens]).sum()
    assert core.counters["skipped_rows"] == 3 * (n - len(tokens))
    assert not core.memories.imem.defined[output.first + 2 * output.stride].any()


def test_ctr_gates_rows(sizes):
    """Rows of tokens that changed are computed again, the others stay as they were."""
    rng = np.random.default_rng(5)
    n = words_for(sizes.latent_width, sizes.patch) * words_for(sizes.latent_height, sizes.patch)
    latents = rng.normal(size=(4, sizes.channels, sizes.latent_height, sizes.latent_width)).astype(np.float16)
    latents[1:] = latents[0] + np.where(rng.random(latents[1:].shape) < 0.05, 0.5, 0).astype(np.float16)
    latents[3] = latents[2]
    program = Program(sizes)
    x = program.load_rows(rng.normal(size=(n, 4)))
    weights = program.load_weights(rng.normal(size=(4, 5)))
    outputs, lists = [], []
    result = program.matrix(n, 5)
    for latent in latents:
        program.ctr(latent, 0.25)
        lists.append(program.store_tokens())
        program.load_rows(rng.normal(size=(n, 4)), into=x)
        program.matmul(x, weights, gated=True, into=result)
        outputs.append(program.store_rows(result))
    program.ctr(latents[0], 100.0, restart=True)
    everything = program.store_tokens()
    run = run_of(program)
    masks = token_masks(latents, 0.25, sizes.patch, reference="last")
    assert np.array_equal(lists[0].of(run), np.arange(n))
    assert np.array_equal(everything.of(run), np.arange(n))
    for step, mask in enumerate(masks, start=1):
        assert np.array_equal(lists[step].of(run), np.flatnonzero(mask))
        before, after = outputs[step - 1].of(run), outputs[step].of(run)
        assert np.array_equal(before[~mask], after[~mask])
        assert (before[mask] != after[mask]).any(axis=1).all()
    assert masks.any() and not masks[:2].all() and not masks[2].any()


def test_ctr_with_the_latent_of_the_step_before():
    sizes = CoreSizes(reference="previous")
    rng = np.random.default_rng(6)
    current = rng.normal(size=(3, 8, 8)).astype(np.float16)
    previous = np.where(rng.random(current.shape) < 0.05, -4, current).astype(np.float16)
    program = Program(sizes)
    program.ctr(current, 1.5, previous)
    some = program.store_tokens()
    program.ctr(current, 1.5, current, restart=True)
    everything = program.store_tokens()
    run = run_of(program)
    expected = np.flatnonzero(token_masks(np.stack([previous, current]), 1.5, 2)[0])
    assert 0 < len(expected) < 16
    assert np.array_equal(some.of(run), expected) and len(everything.of(run)) == 16


def test_every_memory_comes_back(sizes):
    rng = np.random.default_rng(7)
    n, n_keys = sizes.max_tokens - 2, sizes.max_tokens - 1
    rows = rng.integers(0, 1 << 16, size=(n, sizes.max_dim))
    mask = rng.random((n, n_keys)) < 0.5
    masses, scores = rng.random(n), rng.normal(size=mask.shape)
    program = Program(sizes)
    stored = [(program.store_rows(program.load_rows(rows)), rows)]
    program.load_mask(mask, 1, multiplier=3)
    stored.append((program.store_mask(1, n, n_keys, multiplier=3), mask))
    program.load_mass(masses)
    stored.append((program.store_mass(n), masses.astype(np.float16).view(np.uint16)))
    for tokens in ([2, 0, 2], []):
        program.load_tokens(tokens)
        stored.append((program.store_tokens(), tokens))
    words = encode_sampled(scores, mask, sizes, 3)
    for memory in (Memory.SCORES, Memory.PROBABILITIES):
        encoded = program.load_sampled(scores, mask, 1, memory, multiplier=3)
        stored.append((program.store_sampled(encoded, len(words), memory), words))
    run = run_of(program)
    for handle, expected in stored:
        assert np.array_equal(handle.of(run), expected)
    assert len(program.beat_integers()) == len(program.load_beats)
    assert all(map(np.array_equal, program.results(run), program.split(run.store.values, run.store.last)))
    decoded = decode_sampled(words, mask, sizes, 3)
    assert np.array_equal(decoded[mask], scores.astype(np.float16).view(np.uint16)[mask]) and not decoded[~mask].any()


def test_a_second_operand_of_one_row_serves_all_rows():
    """As the gates of adaptive layer norm need it."""
    rng = np.random.default_rng(10)
    left, gate = rng.normal(size=(5, 11)).astype(np.float16), rng.normal(size=(1, 11)).astype(np.float16)
    program = Program(CoreSizes())
    handle = program.store_rows(program.elementwise("mul", program.load_rows(left), program.load_rows(gate)))
    assert np.array_equal(handle.of(run_of(program)), (left * gate).view(np.uint16))


def test_elementwise_is_the_vector_units_operation():
    sizes = CoreSizes()
    rng = np.random.default_rng(9)
    left, right = rng.normal(size=(2, 3, 11)).astype(np.float16)
    program = Program(sizes)
    x, y = program.load_rows(left), program.load_rows(right)
    stored = {item: program.store_rows(program.elementwise(item.name, x, y)) for item in Elementwise}
    run = run_of(program)
    exact = {
        "ADD": left + right,
        "SUB": left - right,
        "ABS_DIFF": abs(left - right),
        "MUL": left * right,
        "MAX": np.maximum(left, right),
        "MIN": np.minimum(left, right),
    }
    for item, handle in stored.items():
        assert VectorOp[item.name] == item
        words = handle.of(run)
        if item.n_operands == 2:
            assert np.array_equal(words, exact[item.name].view(np.uint16))
        else:
            assert np.array_equal(words, FUNCTIONS[VectorOp(item)](left.view(np.uint16)))


def test_layer_norm_of_rows(sizes):
    rng = np.random.default_rng(10)
    n = sizes.max_dim - 1
    rows, gamma, beta = rng.normal(size=(5, n)), rng.normal(size=n), rng.normal(size=n)
    program = Program(sizes)
    x, parameters = program.load_rows(rows), program.load_rows(np.stack([gamma, beta]))
    normalised = program.layer_norm(x, parameters, epsilon=1e-3)
    output = program.store_rows(normalised)
    program.load_tokens([3, 1])
    gated = program.store_rows(program.layer_norm(x, parameters, gated=True))
    core = Core(sizes)
    run = core.execute(program.commands, program.load_beats)
    assert all(run.executed)
    rows, gamma, beta = (array.astype(np.float16).astype(float) for array in (rows, gamma, beta))
    deviation = rows - rows.mean(axis=1, keepdims=True)
    exact = gamma * deviation / np.sqrt((deviation**2).mean(axis=1, keepdims=True) + 1e-3) + beta
    assert np.abs(numbers(output.of(run)) - exact).max() < 2.0**-8
    whole = words_for(n, sizes.row_word) * sizes.row_word
    pad = core.memories.rows(normalised.first, normalised.stride, np.arange(5), whole)[:, n:]
    assert pad.defined.all() and not pad.data.any()
    assert gated.defined(run)[[1, 3]].all() and not gated.defined(run)[[0, 2, 4]].any()
