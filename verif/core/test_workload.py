"""Real attention heads through the core's golden model at the sizes of edge: dense with a mask, then under that mask.

Bounds: :func:`golden.core.attention_bound.attention_bound`, element by element, and 4 * 2**-10 of a row's largest
output for all rows together. Other data are used with ``WORKLOAD=file.npz``.
"""

import numpy as np
import pytest

from golden.arith.floats import to_float64
from golden.core.attention import attention_reference
from golden.core.attention_bound import attention_bound
from golden.core.core import Core
from golden.program.assembler import Program
from golden.spec.formats import FP16
from golden.spec.sizes import CoreSizes
from verif.bench import datasets

EDGE = CoreSizes(
    n_banks=16,
    n_lanes=16,
    simd_lanes=16,
    max_tokens=256,
    max_head_dim=32,
    max_dim=128,
    imem_depth=2048,
    wmem_depth=512,
    vmem_depth=128,
    omem_depth=4096,
    latent_width=32,
    latent_height=32,
)
MULTIPLIER = 13
MOST_FLIPS = 15


@pytest.fixture(scope="module")
def arrays():
    return datasets.workload()


def attention(core, query, key, value, mask=0, **softmax):
    """Output, made mask, retained masses and counters of one head on a persistent core; mask 0 is all ones."""
    n, d = query.shape
    program = Program(core.sizes, checked=False)  # masks are there from the step before
    rows = program.load_rows(query)
    keys, values = program.load_keys(key, MULTIPLIER), program.load_values(value, MULTIPLIER)
    if mask == 0:
        program.load_mask(np.ones((1, n)), multiplier=MULTIPLIER)
    program.clear(counters=True)
    kept = program.softmax(program.sddmm(rows, keys, mask), d**-0.5, **softmax)
    stored = [program.store_rows(program.spmm(kept, values))]
    if softmax.get("mask_out"):
        stored += [program.store_mask(softmax["mask_out"], n, n, MULTIPLIER), program.store_mass(n)]
    core.n_commands = 0  # handles count from the program's first command
    run = core.execute(program.commands, program.load_beats)
    assert all(run.executed) and all(each.defined(run).all() for each in stored)
    output, *rest = (each.of(run) for each in stored)
    return to_float64(FP16, output), *rest


def check(output, query, key, value, mask=None, factor=1.0):
    exact = attention_reference(query, key, value, mask) * factor
    error = np.abs(output - exact)
    bound = attention_bound(query, key, value, mask, factor)
    largest = np.abs(exact).max(axis=1)
    relative = (error.max(axis=1) / np.where(largest > 0, largest, 1)).max() * 2**10
    print(f"error {relative:.2f} * 2**-10 of a row's largest output, {(error / bound).max():.2f} of its bound")
    assert (error <= bound).all()
    assert relative <= 4


def test_a_dense_step_and_a_masked_one(arrays):
    """The second step of a head under the mask that the first one made, without and with the retained mass."""
    theta = float(arrays["A_theta"][1])
    heads = [head.astype(np.float64) for head in arrays["A_qkv"][:2]]
    recorded = np.unpackbits(arrays["A_mask"][0, 1], axis=-1, bitorder="little").astype(bool)
    core = Core(EDGE)
    output, mask, mass = attention(core, *heads[0], theta=theta, mask_out=1)
    check(output, *heads[0])
    assert (mask != recorded).sum() <= MOST_FLIPS
    n_scores = core.counters["scores"]
    assert n_scores == mask.size and core.counters["array_beats"] == mask.size * 2

    (output,) = attention(core, *heads[1], mask=1)
    check(output, *heads[1], mask)
    assert core.counters["scores"] == mask.sum()
    assert core.counters["skipped_scores"] == (~mask).sum()
    reference, same = arrays["A_O_ref"][0], (mask == recorded).all(axis=1)
    assert same.mean() > 0.9
    in_fp32 = attention_bound(*heads[1], mask) + 2.0**-23 * np.abs(reference)
    assert (np.abs(output - reference) <= in_fp32)[same].all()

    (output,) = attention(core, *heads[1], mask=1, use_mass=True)
    check(output, *heads[1], mask, to_float64(FP16, mass)[:, None])


def test_masks_with_empty_rows(arrays):
    """The highest threshold leaves rows without any element; their outputs are +0."""
    head = arrays["A_qkv"][1].astype(np.float64)
    mask = np.unpackbits(arrays["A_mask"][1, -1], axis=-1, bitorder="little").astype(bool)
    mask[::17] = False
    core = Core(EDGE)
    program = Program(EDGE, checked=False)
    program.load_mask(mask, 1, MULTIPLIER)
    assert all(core.execute(program.commands, program.load_beats).executed)
    (output,) = attention(core, *head, mask=1)
    check(output, *head, mask)
    empty = ~mask.any(axis=1)
    assert empty.sum() >= 16 and not np.signbit(output[empty]).any() and not output[empty].any()


def test_ctr_list_of_real_latents(arrays):
    """The token list of successive latents, each compared with the values at which a token was last computed."""
    core = Core(EDGE)
    steps = min(6, len(arrays["A_z"]))
    for latent in arrays["A_z"][:steps]:
        program = Program(EDGE, checked=False)
        program.ctr(latent, float(arrays["A_tau"][2]))
        listed = program.store_tokens()
        core.n_commands = 0
        run = core.execute(program.commands, program.load_beats)
        tokens = listed.of(run)
        if latent is arrays["A_z"][0]:
            assert len(tokens) == 256
    recorded = np.unpackbits(arrays["A_ctr_last"][2, steps - 2], bitorder="little").astype(bool)
    assert np.array_equal(tokens, np.flatnonzero(recorded))
