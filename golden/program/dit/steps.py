"""Loads ahead of what uses them: the weights of a step come while the steps before it compute."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from golden.spec.sizes import words_for

__all__ = ["Step", "run_steps", "weight_length"]


@dataclass
class Step:
    """``compute(*weights)``; ``loads`` are pairs of a matrix [n_in, n_out] and a bias, or None in its place."""

    compute: Callable
    loads: list = field(default_factory=list)


def weight_length(sizes, weights, bias):
    """Words of the weight banks that a matrix [n_in, n_out] takes."""
    n_in, n_out = weights.shape
    return (words_for(n_in, sizes.n_lanes) + (bias is not None)) * words_for(n_out, sizes.n_banks)


def run_steps(program, steps, ahead=2):
    """Emit the steps in order, and the loads of each up to ``ahead`` steps before it, as far as there is memory.

    A command waits for the words that it touches, so a load may replace what a step before still uses.
    """
    waiting, loaded = deque(steps), deque()
    while waiting or loaded:
        while waiting and len(loaded) <= ahead:
            handles = _load(program, waiting[0].loads, is_due=not loaded)
            if handles is None:
                break
            loaded.append((waiting.popleft(), handles))
        step, handles = loaded.popleft()
        step.compute(*handles)
        program.free(*handles)


def _load(program, loads, is_due):
    """Handles of weights, or None if there is no memory for all of them yet; if they are due, ``ValueError``."""
    places = []
    for weights, bias in loads:
        try:
            length = weight_length(program.sizes, weights, bias)
            places.append(program.place("wmem", length, purpose=f"weights {list(weights.shape)}"))
        except ValueError:
            for first in places:
                program.release("wmem", first)
            if is_due:
                raise
            return None
    return [program.load_weights(*pair, at=first) for pair, first in zip(loads, places, strict=True)]
