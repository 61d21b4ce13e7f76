"""The token selector: its beats against the golden order, and its two outputs taken one after the other."""

from itertools import product

import numpy as np
import pytest
from amaranth.sim import Simulator

from golden.units.token_selector import beat_positions
from hw.units.token_selector.order import BeatCounter, LatentParameters
from hw.units.token_selector.unit import TokenSelector
from verif.units.token_selector.bench import TokenSelectorBench

NAMES = ("width", "height", "channels", "patch", "n_values", "channel_order")
SIZES = [
    dict(zip(NAMES, (*latent, n_values, order), strict=False))
    for latent, n_values, order in product(
        [(1, 1, 1, 1), (7, 5, 3, 2), (4, 9, 1, 4), (6, 3, 2, 5)], [1, 3, 8, 13, 30, 64, 200], ["inner", "outer"]
    )
]


@pytest.mark.parametrize("size", SIZES, ids=lambda size: "-".join(map(str, size.values())))
def test_every_lane_belongs_to_its_token(size):
    """Two latents long, the counter gives the kind of beat that the golden order asks for."""
    p = LatentParameters(**size)
    block, positions = BeatCounter(**size), beat_positions(*size.values())
    pixel = positions % (p.width * p.height)
    token = np.where(positions < 0, -1, pixel // p.width // p.patch * p.n_columns + pixel % p.width // p.patch)
    assert len(token) == p.n_beats
    found = []

    async def process(ctx):
        ctx.set(block.step, 1)
        word = 0
        for beat in range(2 * p.n_beats):
            lanes = p.kinds()[ctx.get(block.kind)]
            found.append([-1 if bit is None else word * p.word_tokens + bit for bit in lanes])
            assert ctx.get(block.is_first) == (beat % p.n_beats == 0)
            assert ctx.get(block.is_last) == (beat % p.n_beats == p.n_beats - 1)
            assert ctx.get(block.position) == beat % p.n_beats
            word += ctx.get(block.closes_word)
            word *= not ctx.get(block.is_last)
            await ctx.tick()

    simulator = Simulator(block)
    simulator.add_clock(1e-6)
    simulator.add_testbench(process)
    simulator.run()
    assert np.array_equal(found, np.concatenate([token, token]))


@pytest.mark.parametrize("reference, bounds", [("previous", 0), ("last", 0), ("last", 2)])
@pytest.mark.parametrize("is_queued", [False, True])
def test_mask_before_the_list(reference, bounds, is_queued):
    """The whole mask can be taken before the first index if the queue holds it, and not without a queue."""
    block = TokenSelector(
        width=4,
        height=16,
        channels=1,
        patch=2,
        n_values=2,
        reference=reference,
        bounds=bounds,
        index_queue=8 if is_queued else 0,
    )
    assert block.parameters.n_words == 8
    bench = TokenSelectorBench(block, 1)
    values = np.zeros((1, 64), dtype=np.int64)
    batch = bench.make_batch(
        values, [0x8001], np.ones((1, 16), dtype=bool), values if reference == "previous" else None
    )
    taken = {"mask": [], "indices": []}

    async def process(ctx):
        rest = {name: list(beats) for name, beats in batch.inputs.items()}
        for _ in range(400):
            wanted = next((name for name in taken if len(taken[name]) < len(batch.outputs[name])), None)
            for name, beats in rest.items():
                ctx.set(getattr(block, name).valid, bool(beats))
                ctx.set(getattr(block, name).payload.as_value(), beats[0] if beats else 0)
            for name in taken:
                ctx.set(getattr(block, name).ready, name == wanted)
            for name, beats in rest.items():
                if beats and ctx.get(getattr(block, name).ready):
                    beats.pop(0)
            if wanted and ctx.get(getattr(block, wanted).valid):
                taken[wanted].append(ctx.get(getattr(block, wanted).payload.as_value()))
            await ctx.tick()

    simulator = Simulator(block)
    simulator.add_clock(1e-6)
    simulator.add_testbench(process)
    simulator.run()
    if is_queued:
        assert taken == batch.outputs
    else:
        assert 0 < len(taken["mask"]) < len(batch.outputs["mask"]) and not taken["indices"]


@pytest.mark.parametrize(
    "values, message",
    [
        ({"patch": 0}, "patch must be an integer from 1 to 64, not 0"),
        ({"reference": "next"}, "reference must be one of previous, last, not 'next'"),
        ({"bounds": 4}, "bounds must be 0 where reference is previous, not 4"),
        ({"width": 1024, "channels": 64, "n_values": 1}, "n_values must be large enough"),
    ],
)
def test_refusals(values, message):
    with pytest.raises(ValueError, match=message):
        TokenSelector(**values)
