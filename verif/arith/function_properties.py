"""Functions of one word: all 65,536 of them through the Verilog, with stalls, against the golden model."""

import numpy as np

from golden.arith import functions
from golden.spec.formats import FORMATS
from hw.arith.exponential import Exponential
from hw.arith.gelu import Gelu
from hw.arith.reciprocal import Reciprocal
from hw.arith.reciprocal_root import ReciprocalRoot
from hw.arith.silu import Silu
from verif.formal.lockstep import lock_step
from verif.formal.properties import Property

_MODELS = {
    Exponential: functions.exponential,
    Reciprocal: functions.reciprocal,
    ReciprocalRoot: functions.reciprocal_root,
    Gelu: functions.gelu,
    Silu: functions.silu,
}


def every_word(c, block):
    filled = lock_step(c, block, (block.x, range(1 << len(block.x))))
    c.result(block.y)
    stalled = c.register(~block.advance & filled, "stalled")
    c.claim("the result holds while the pipeline stands still", ~stalled | (block.y == c.register(block.y, "y_before")))
    c.cover("the pipeline stands still", stalled)


def _expected(block, words):
    return _MODELS[type(block)](words.astype(np.uint16), FORMATS[block.format])


PROPERTIES = [
    Property(
        "functions",
        "every word's result is the golden model's, whose error other tests bound",
        cls,
        [{"format": "fp16"}, {"format": "bf16"}],
        every_word,
        engine="exhaustive",
        expected=_expected,
        quick=True,
    )
    for cls in _MODELS
]
