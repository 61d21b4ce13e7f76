"""Token masks of cached token reuse: which tokens of a latent changed by more than a threshold (NumPy, exact)."""

import numpy as np

from golden.arith.floats import check_words, decode
from golden.spec.formats import FP16
from golden.spec.token_selector import LatentParameters, TokenSelectorParameters

__all__ = ["words", "is_legal_threshold", "changed", "any_of_patch", "token_masks", "index_list", "beat_positions"]


def words(array):
    """FP16 bit patterns as int64, from bit patterns of any integer type or from values of float16.

    Other floating-point types are converted, and refused if FP16 does not hold every value.
    """
    array = np.asarray(array)
    if array.dtype.kind != "f":
        check_words("values", array, FP16.width)
        return array.astype(np.int64)
    half = array.astype(np.float16)
    if not np.array_equal(half.astype(array.dtype), array, equal_nan=True):
        raise ValueError("values must be FP16 numbers: some do not fit without rounding")
    return half.view(np.uint16).astype(np.int64)


def _exact(bits):
    """Finite FP16 words as integers in units of 2**-24, the smallest subnormal: at most 41 bits."""
    number = decode(FP16, bits)
    magnitude = number.significand << (number.field - 1)
    return np.where(number.sign == 1, -magnitude, magnitude), number.is_nan | number.is_inf


def is_legal_threshold(tau):
    """Whether tau is zero or more: -0 is zero; negative numbers and NaN are illegal and select every token."""
    bits = words(tau)
    number = decode(FP16, bits)
    return ~number.is_nan & ((number.sign == 0) | number.is_zero & ~number.is_inf)


def changed(current, reference, tau):
    """Elementwise ``|current - reference| > tau`` in exact arithmetic on FP16 words (or float16 values), broadcast.

    An infinity or NaN on either side counts as changed. An illegal tau marks everything as changed; an
    infinite tau only the infinities and NaNs. Source: DiSC, section III-A.
    """
    left, left_special = _exact(words(current))
    right, right_special = _exact(words(reference))
    bits = words(tau)
    limit, _ = _exact(bits)
    limit = np.where(decode(FP16, bits).is_inf, np.int64(1) << 42, limit)
    return (np.abs(left - right) > limit) | left_special | right_special | ~is_legal_threshold(bits)


def any_of_patch(bits, patch):
    """``[..., channels, height, width]`` bits to ``[..., tokens]``: the OR over every patch and all channels.

    Tokens are in row-major order of the patch grid; patches at the right and lower edges may be cut off.
    """
    *lead, channels, height, width = bits.shape
    rows, columns = -(-height // patch), -(-width // patch)
    padded = np.zeros((*lead, channels, rows * patch, columns * patch), dtype=bool)
    padded[..., :height, :width] = bits
    tiles = padded.reshape(*lead, channels, rows, patch, columns, patch)
    return tiles.any(axis=(-5, -3, -1)).reshape(*lead, rows * columns)


def _all_values(tokens, patch, height, width):
    """Token bits spread to the pixels of their patches, ``[..., 1, height, width]``."""
    rows, columns = -(-height // patch), -(-width // patch)
    grid = tokens.reshape(*tokens.shape[:-1], 1, rows, columns)
    return grid.repeat(patch, axis=-2).repeat(patch, axis=-1)[..., :height, :width]


def token_masks(latents, tau, patch, reference="previous", restart=None):
    """Masks of successive latents ``[steps, channels, height, width]``: bool ``[steps - 1, tokens]``, 1 = compute.

    ``reference="previous"`` compares every latent with the one before it. ``"last"`` compares each token with the
    latent at which it was last computed, the first latent being computed in full. ``tau`` is one threshold or one
    a mask; ``restart`` (bool, one a mask, only for ``last``) marks latents that are computed in full again.
    Sources: DiSC, section III-A (previous); the project's own rule, which detects slow drift (last).
    """
    latents = words(latents)
    steps, channels, height, width = latents.shape
    TokenSelectorParameters(width=width, height=height, channels=channels, patch=patch, reference=reference)
    taus = np.broadcast_to(words(tau), (steps - 1,))
    if reference == "previous":
        return any_of_patch(changed(latents[1:], latents[:-1], taus[:, None, None, None]), patch)
    restart = np.zeros(steps - 1, dtype=bool) if restart is None else np.asarray(restart, dtype=bool)
    reference_latent, masks = latents[0], []
    for latent, threshold, start in zip(latents[1:], taus, restart, strict=True):
        mask = any_of_patch(changed(latent, reference_latent, threshold), patch) | start
        reference_latent = np.where(_all_values(mask, patch, height, width), latent, reference_latent)
        masks.append(mask)
    return np.array(masks)


def index_list(mask):
    """The selected tokens of one mask, ascending."""
    return np.flatnonzero(mask)


def beat_positions(width, height, channels, patch, n_values, channel_order):
    """Where the values of each beat lie in a latent ``[channels, height, width]``: flat indices, -1 for unused lanes.

    Values go row by row; within a row pixel by pixel (``channel_order="inner"``) or channel by channel
    (``"outer"``). A beat of n_values lanes holds whole bands of ``patch`` rows if one fits; else whole rows of one
    band if one fits; else a part of one row. Each such group starts with lane 0 of a new beat.
    """
    LatentParameters(
        width=width, height=height, channels=channels, patch=patch, n_values=n_values, channel_order=channel_order
    )
    flat = np.arange(channels * height * width).reshape(channels, height, width)
    rows = flat.transpose((1, 2, 0) if channel_order == "inner" else (1, 0, 2)).reshape(height, -1)
    row, band = rows.shape[1], min(patch, height) * rows.shape[1]
    if n_values >= band:
        group = n_values // band * min(patch, height)
        beats = [rows[y : y + group].ravel() for y in range(0, height, group)]
    elif n_values >= row:
        group = n_values // row
        beats = [
            rows[y : min(y + group, top + patch)].ravel()
            for top in range(0, height, patch)
            for y in range(top, min(top + patch, height), group)
        ]
    else:
        beats = [line[x : x + n_values] for line in rows for x in range(0, row, n_values)]
    result = np.full((len(beats), n_values), -1)
    for index, beat in enumerate(beats):
        result[index, : len(beat)] = beat
    return result
