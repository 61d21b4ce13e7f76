"""Programs through the AXI4 memory and the AXI4-Lite manager of cocotbext-axi, which were not written here."""

import importlib.util

import numpy as np
import pytest

from golden.spec.commands import Opcode
from hw.registry import make_block
from verif.bench.harness import run_job
from verif.system.session import differences
from verif.system.test_session import DATA, RESULT, RING, SEED, SMALLEST, new_script, rows

pytestmark = [
    pytest.mark.core,
    pytest.mark.skipif(importlib.util.find_spec("cocotbext") is None, reason="cocotbext-axi is not installed"),
]


def test_rows_through_a_foreign_memory():
    block = make_block("accelerator", None, SMALLEST | {"data_width": 32, "burst_beats": 8})
    script, image, rng = new_script(block)
    script.start(RING, 3)
    for number in range(10):
        n_rows, n_in = int(rng.integers(1, 9)), int(rng.integers(1, 41))
        place, pitch = 2 * int(rng.integers(0, 2000)), 2 * n_in + 2 * int(rng.integers(0, 40))
        load = rows(script.sizes, Opcode.LOAD, n_rows, n_in, 0, address=DATA + place, pitch=pitch, number=number)
        store = rows(script.sizes, Opcode.STORE, n_rows, n_in, 0, address=RESULT + place, pitch=pitch, flags=2)
        script.submit([load, store])
    script.finish()
    job = {
        "image": bytes(image).hex(),
        "steps": [[type(step).__name__, *step] for step in script.take()],
        "share": 0.3,
        "seed": SEED,
    }
    result = run_job(block, "verif.system.cocotbext_session:run", job)
    assert not result["messages"], result["messages"]
    assert not differences(np.frombuffer(bytes.fromhex(result["memory"]), np.uint8), script.memory)
