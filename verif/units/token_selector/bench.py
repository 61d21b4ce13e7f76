"""Stimulus and expectation for the token selector: latents whose values lie just below, on and above the threshold."""

import numpy as np

from golden.units.token_selector import any_of_patch, beat_positions, changed, index_list, words
from verif.bench.batch import Batch, Bench
from verif.bench.packing import join, pack

STYLES = ("mixed", "full", "empty", "tau_zero", "tau_illegal")
NAN, INFINITY, LARGEST, NEGATIVE_ZERO = 0x7E01, 0x7C00, 0x7BFF, 0x8000
SPECIALS = (NAN, INFINITY, NAN | 0x8000, INFINITY | 0x8000)


def rounded(values):
    """FP16 words near float64 values; infinities and NaNs become finite."""
    return words(np.clip(np.nan_to_num(values), -65504, 65504).astype(np.float16))


def exact_difference(left, right):
    """``|left - right|`` of finite FP16 words: float64 holds it without rounding; NaN for two infinities."""
    with np.errstate(invalid="ignore"):
        return np.abs(_value(left) - _value(right))


def _value(bits):
    return bits.astype(np.uint16).view(np.float16).astype(np.float64)


class TokenSelectorBench(Bench):
    """Each latent has a style; at most one value of a token decides, the others stay just within the threshold."""

    unit = "token_selector"

    def __init__(self, block, seed):
        super().__init__(block, seed)
        p = self.parameters
        self._batches = 0
        self._started = False  # whether a latent was sent: it would have been computed in full
        self._positions = beat_positions(p.width, p.height, p.channels, p.patch, p.n_values, p.channel_order)
        self._shape = p.channels, p.height, p.width
        values = np.arange(p.channels * p.height * p.width)
        y, x = values // p.width % p.height, values % p.width
        self._token = y // p.patch * p.n_columns + x // p.patch
        self._is_cut = p.width % p.patch != 0 or p.height % p.patch != 0

    @property
    def required_bins(self):
        bins = {"empty", "full", "nan", "infinity", "tie", "tau_zero", "tau_illegal", "negative_zero"}
        if self.parameters.reference == "last":
            bins |= {"restart"}
        if self._is_cut:
            bins |= {"edge_patch"}
        return frozenset(bins)

    def batch(self, count):
        is_last = self.parameters.reference == "last"
        n_latents = max(1, count // len(self._positions))
        latents, references, taus, restarts, masks, bins = [], [], [], [], [], {}
        # Every other batch is cut short by reset and not counted: the others begin with each style in turn.
        first_style = self._batches // 2
        special = (NAN, INFINITY)[first_style // len(STYLES) % 2]
        styled = started = 0
        reference = None
        holds_tau = self.parameters.bounds > 0  # from one restart to the next
        for number in range(n_latents + is_last):
            restart = is_last and (number == 0 or n_latents > 8 and self.rng.random() < (0.3 if holds_tau else 0.1))
            style = STYLES[(first_style + styled) % len(STYLES)]
            styled += not restart
            if restart or not holds_tau:
                tau_style = STYLES[(first_style + started) % len(STYLES)] if holds_tau else style
                started += 1
                nominal = self._tau(tau_style)
                tau = self._sent_tau(tau_style, nominal)
            if reference is None or not is_last:
                reference = self._values(nominal)
            latent = self._latent(reference, "full" if restart else style, special, nominal)
            if tau == INFINITY and not is_last:  # not even the largest difference exceeds it
                place, sign = self.rng.integers(len(latent)), self.rng.integers(2) << 15
                reference[place], latent[place] = LARGEST | sign, LARGEST | sign ^ 0x8000
            if restart:
                latent[self.rng.integers(len(latent))] &= NEGATIVE_ZERO
            mask = self._mask(latent, reference, tau) | restart
            self._count(bins, tau_style, latent, reference, tau, restart, mask)
            latents.append(latent)
            references.append(reference)
            taus.append(tau)
            restarts.append(restart)
            masks.append(mask)
            if is_last:
                reference = np.where(mask[self._token], latent, reference)
        # Reset alone makes the first latent a restart, and nothing came before the first batch.
        flags = list(restarts)
        if is_last and not self._batches:
            flags[0] = False
        self._batches += 1
        batch = self.make_batch(latents, taus, masks, None if is_last else references, flags)
        batch.bins = bins
        return batch

    def make_batch(self, latents, taus, masks, references=None, restarts=None):
        """The batch that sends latents (flat FP16 words) and expects masks (bool, one bit a token)."""
        inputs = {"current": self._beats(latents, taus, np.zeros(len(latents)) if restarts is None else restarts)}
        if references is not None:
            inputs["previous"] = self._beats(references)
        outputs = {"mask": self._mask_words(masks), "indices": self._lists(masks)}
        if self._keeps_up(masks):
            return Batch(inputs, outputs, causes={"mask": ("current", self._closing_beats(len(latents)))})
        return Batch(inputs, outputs, full_rate=(), causes={})

    def _values(self, tau=0):
        """Finite numbers of all sizes, of one size, or below tau, and some zeros, as a flat latent."""
        n = len(self._token)
        kind = self.rng.integers(4 if tau & 0x7FFF else 3)
        if kind == 0:
            values = rounded(self.rng.standard_normal(n))
        elif kind == 3:  # against tau only a part of their bits counts, or whether there is any
            values = self.rng.integers(0, 2, n) << 15 | self.rng.integers(0, tau & 0x7FFF, n)
        else:
            exponent = self.rng.integers(0, 31, n if kind == 1 else 1)
            values = self.rng.integers(0, 2, n) << 15 | exponent << 10 | self.rng.integers(0, 1 << 10, n)
        zeros = self.rng.random(n) < 0.05
        zeros[self.rng.integers(n)] = True
        return np.where(zeros, values & NEGATIVE_ZERO, values)

    def _tau(self, style):
        """A legal, finite threshold around which the values of a latent are chosen."""
        if style == "tau_zero":
            return int(self.rng.choice([0, NEGATIVE_ZERO]))
        return int(
            self.rng.choice(
                [
                    self.rng.integers(0, 0x7C00),
                    self.rng.choice([0x1C00, 0x2400, 0x2800, 0x2C00]),
                    self.rng.integers(0, 0x500),
                ],
                p=[0.5, 0.4, 0.1],
            )
        )

    def _sent_tau(self, style, tau):
        """What is sent for it: an illegal one, or sometimes infinity, in some styles."""
        if style == "tau_illegal":
            return int(
                self.rng.choice(
                    [tau | 0x8000 if tau else 0x8001, 0x7C00 | 1 << self.rng.integers(10), 0xFC00, 0xFE00],
                    p=[0.35, 0.45, 0.1, 0.1],
                )
            )
        return INFINITY if style == "empty" and self.rng.random() < 0.4 else tau

    def _latent(self, reference, style, special, tau):
        """A latent of that style, with the special value among others if mixed."""
        n = len(reference)
        near = _value(reference) + self.rng.choice([-1, 1], n) * _value(np.array(tau))
        candidate = rounded(near)
        step = self.rng.choice([-2, -1, 0, 1, 2], n, p=[0.1, 0.15, 0.5, 0.15, 0.1])
        candidate = np.clip((candidate & 0x7FFF) + step, 0, LARGEST) | candidate & 0x8000
        candidate = np.where(self.rng.random(n) < 0.2, self._values(), candidate)
        if style == "full":
            for far in (LARGEST | ~reference & 0x8000, NAN):
                candidate = np.where(changed(candidate, reference, tau), candidate, far)
        n_tokens = self.parameters.n_tokens
        decider = np.zeros(n_tokens, dtype=np.int64)
        order = self.rng.permutation(n)
        if self.rng.random() < 0.5:  # the value that exceeds the threshold by the least
            excess = exact_difference(candidate, reference) - _value(np.array(tau))
            order = order[np.argsort(np.where(excess > 0, -excess, -np.inf)[order], kind="stable")]
        decider[self._token[order]] = order  # the last one of each token
        share = {"full": 1.0, "empty": 0.0}.get(style, self.rng.random())
        has_decider = self.rng.random(n_tokens) < share
        one = self.rng.integers(n_tokens)
        if style in ("mixed", "tau_zero"):
            has_decider[one] = style == "mixed"
        decides = np.zeros(n, dtype=bool)
        decides[decider[has_decider]] = True
        if style == "mixed":
            specials = np.flatnonzero(decides)[: 1 + n_tokens // 16]
            candidate[specials] = np.resize(self.rng.permutation(SPECIALS), specials.shape)
            candidate[decider[one]] = special | self.rng.integers(2) << 15
        latent = np.where(changed(candidate, reference, tau) & ~decides, reference, candidate)
        # Zeros of either sign are the same number.
        flipped = (reference & 0x7FFF == 0) & ~decides & (self.rng.random(n) < (1.0 if style == "empty" else 0.5))
        return np.where(flipped, reference ^ NEGATIVE_ZERO, latent)

    def _mask(self, latent, reference, tau):
        bits = changed(latent, reference, tau).reshape(self._shape)
        return any_of_patch(bits, self.parameters.patch)

    def _count(self, bins, style, latent, reference, tau, restart, mask):
        finite = (latent & 0x7C00 != 0x7C00) & (reference & 0x7C00 != 0x7C00)
        tie = finite & (exact_difference(latent, reference) == _value(np.array(tau)))
        hits = {
            "empty": not mask.any(),
            "full": mask.all() and not restart,
            "nan": (latent & 0x7FFF > INFINITY).sum(),
            "infinity": (latent & 0x7FFF == INFINITY).sum(),
            "tie": tie.sum(),
            "tau_zero": tau & 0x7FFF == 0,
            "tau_illegal": style == "tau_illegal" and not restart,
            "negative_zero": ((latent ^ reference == NEGATIVE_ZERO) & (latent & 0x7FFF == 0)).sum(),
            "restart": restart,
            "edge_patch": self._is_cut and mask[-1],
        }
        for name, number in hits.items():
            if number:
                bins[name] = bins.get(name, 0) + int(number)

    def _beats(self, latents, taus=None, restarts=None):
        """Packed beats; what does not matter is random."""
        n = self.parameters.n_values
        used = self._positions >= 0
        payloads = []
        for number, latent in enumerate(latents):
            noise = self.rng.integers(0, 1 << 16, used.shape)
            beats = pack(np.where(used, latent[self._positions], noise), 16)
            if taus is not None:
                tau = self.rng.integers(0, 1 << 16, len(beats))
                restart = self.rng.integers(0, 2, len(beats))
                restart[0] = restarts[number]
                if restart[0] or not self._started or not self.parameters.bounds:
                    tau[0] = taus[number]
                self._started = True
                extra = 1 if self.parameters.reference == "last" else 0
                beats = [join((b, 16 * n), (t, 16), (r, extra)) for b, t, r in zip(beats, tau, restart, strict=True)]
            payloads += beats
        return payloads

    def _mask_words(self, masks):
        width = self.parameters.word_tokens
        beats = []
        for mask in masks:
            firsts = range(0, len(mask), width)
            for first in firsts:
                bits = np.packbits(mask[first : first + width], bitorder="little").tobytes()
                beats.append(join((int.from_bytes(bits, "little"), width), (first == firsts[-1], 1)))
        return beats

    def _lists(self, masks):
        width = self.parameters.n_tokens.bit_length()
        beats = []
        for mask in masks:
            indices = index_list(mask).tolist()
            beats += [join((index, width), (0, 1)) for index in indices]
            beats.append(join((len(indices), width), (1, 1)))
        return beats

    def _closing_beats(self, n_latents):
        """The beats of ``current`` that complete a mask word."""
        p = self.parameters
        within = [(word + 1) * p.beats_a_word - 1 for word in range(p.n_words - 1)] + [p.n_beats - 1]
        return [latent * p.n_beats + beat for latent in range(n_latents) for beat in within]

    def _keeps_up(self, masks):
        """Whether the documented rates let every beat in at once."""
        p = self.parameters
        if p.reference == "last" and p.n_beats < p.beats_a_word + p.write_delay:
            return False
        if p.bounds and not all(self._bounds_keep_up(mask) for mask in masks):
            return False
        spare = 1 if min(p.beats_a_word, p.last_word_beats) == 1 else 2
        costs = []
        for mask in masks:
            costs += [max(1, int(mask[i : i + p.word_tokens].sum())) for i in range(0, len(mask), p.word_tokens)]
            costs[-1] += 1 if mask[-(len(mask) - (p.n_words - 1) * p.word_tokens) :].any() else 0
        arrivals = self._closing_beats(len(masks))
        done = 0
        for arrival, following, cost in zip(arrivals, [*arrivals[1:], arrivals[-1] + spare], costs, strict=False):
            taken = max(arrival, done)
            if taken + spare > following:
                return False
            done = taken + cost
        return True

    def _bounds_keep_up(self, mask):
        """Whether the bounds of each beat are made in one clock."""
        p = self.parameters
        slots = p.token_slots(p.bounds)
        for word in range(p.n_words):
            bits = mask[word * p.word_tokens : (word + 1) * p.word_tokens]
            # However the kinds of beats follow each other: no kind may have two slots to make.
            for kind in range(len(p.kinds())):
                if sum(token < len(bits) and bits[token] and kind in kinds for token, _, kinds in slots) > 1:
                    return False
        return True
