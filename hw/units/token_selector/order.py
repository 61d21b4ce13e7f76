"""The order of the values of a latent in the beats, and the token of every lane."""

from dataclasses import dataclass

from amaranth.hdl import Module, Signal
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from golden.spec import token_selector as spec
from hw.lib.block import Block

__all__ = ["LatentParameters", "BeatCounter"]


@dataclass(frozen=True, kw_only=True)
class LatentParameters(spec.LatentParameters):
    """How a latent is cut into beats.

    A *word* is the mask bits of the bands that lie in one beat (or of the one band that takes several).
    """

    @property
    def band_rows(self):
        return min(self.patch, self.height)

    @property
    def last_band_rows(self):
        """Rows of the lowest band, which may be cut off by the edge of the latent."""
        return self.height - (self.n_bands - 1) * self.patch

    @property
    def bands_a_word(self):
        return max(1, min(self.n_values // (self.band_rows * self.row_values), self.n_bands))

    @property
    def word_tokens(self):
        """Mask bits that become known together."""
        return self.n_columns * self.bands_a_word

    @property
    def n_words(self):
        return -(-self.n_bands // self.bands_a_word)

    @property
    def rows_a_group(self):
        return max(1, min(self.n_values // self.row_values, self.band_rows))

    @property
    def groups(self):
        return -(-self.band_rows // self.rows_a_group)

    @property
    def last_groups(self):
        """Groups of the last word."""
        return self.groups if self.bands_a_word > 1 else -(-self.last_band_rows // self.rows_a_group)

    @property
    def beats_a_word(self):
        return self.groups * self.beats_a_group

    @property
    def last_word_beats(self):
        return self.last_groups * self.beats_a_group

    @property
    def n_beats(self):
        """Beats of a latent."""
        return (self.n_words - 1) * self.beats_a_word + self.last_word_beats

    def column(self, position):
        """The token column of a position in a row."""
        x = position // self.channels if self.channel_order == "inner" else position % self.width
        return x // self.patch

    def kinds(self):
        """The kinds of beats, as tuples with the bit of the word that each lane belongs to (``None``: unused lane).

        Kind k < beats_a_group is the k-th beat of a row where rows take several beats. Otherwise 0 is the usual
        beat, 1 the last one of a word, 2 the last one of the latent.
        """
        if self.beats_a_group > 1:
            return [self._lanes(first, self.row_values) for first in range(0, self.row_values, self.n_values)]
        if self.bands_a_word > 1 or self.groups == 1:
            full = self.bands_a_word * self.band_rows
            rest = self.height - (self.n_words - 1) * full
            return [self._lanes(0, rows * self.row_values) for rows in (full, full, rest)]
        rows = (
            self.rows_a_group,
            self.band_rows - (self.groups - 1) * self.rows_a_group,
            self.last_band_rows - (self.last_groups - 1) * self.rows_a_group,
        )
        return [self._lanes(0, n * self.row_values) for n in rows]

    def _lanes(self, first, end):
        lanes = []
        for position in range(first, first + self.n_values):
            row, place = divmod(position, self.row_values)
            band = row // self.patch if self.bands_a_word > 1 else 0
            lanes.append(band * self.n_columns + self.column(place) if position < end else None)
        return tuple(lanes)

    def token_slots(self, size):
        """The lanes of each token of a word that lie in one beat, cut into slots of at most ``size`` lanes.

        Returns a list of (token, lanes, kinds of beats), in order of the tokens.
        """
        slots = {}
        for kind, tokens in enumerate(self.kinds()):
            lanes_of_token = {}
            for lane, token in enumerate(tokens):
                if token is not None:
                    lanes_of_token.setdefault(token, []).append(lane)
            for token, lanes in lanes_of_token.items():
                for first in range(0, len(lanes), size):
                    slot = tuple(lanes[first : first + size])
                    slots.setdefault((token, slot), []).append(kind)
        return [(token, slot, kinds) for (token, slot), kinds in sorted(slots.items())]

    @property
    def kind_width(self):
        return ceil_log2(max(3, self.beats_a_group))


class BeatCounter(Block):
    """Position of the current beat in the latent; advances with ``step`` and wraps after the last beat."""

    Parameters = LatentParameters
    latency = 1
    members_doc = {
        "step": "advance by one beat",
        "kind": "which lanes hold values of which tokens",
        "is_first": "first beat of the latent",
        "opens_word": "first beat of a mask word",
        "closes_word": "last beat of a mask word",
        "is_last": "last beat of the latent",
        "position": "number of the beat in the latent",
    }

    @staticmethod
    def members(p):
        return {
            "step": In(1),
            "kind": Out(p.kind_width),
            "is_first": Out(1),
            "opens_word": Out(1),
            "closes_word": Out(1),
            "is_last": Out(1),
            "position": Out(max(1, ceil_log2(p.n_beats))),
        }

    def circuit(self):
        m = Module()
        p = self.parameters
        chunk = Signal(range(p.beats_a_group))
        group = Signal(range(p.groups))
        word = Signal(range(p.n_words))
        ends_group = Signal()
        ends_word = Signal()
        in_last_word = Signal()
        m.d.comb += [
            ends_group.eq(chunk == p.beats_a_group - 1),
            in_last_word.eq(word == p.n_words - 1),
            ends_word.eq((group == p.groups - 1) | in_last_word & (group == p.last_groups - 1)),
            self.closes_word.eq(ends_group & ends_word),
            self.opens_word.eq((chunk == 0) & (group == 0)),
            self.is_last.eq(self.closes_word & in_last_word),
            self.is_first.eq(self.opens_word & (word == 0)),
        ]
        if p.beats_a_group > 1:
            m.d.comb += self.kind.eq(chunk)
        else:
            with m.If(ends_word):
                m.d.comb += self.kind.eq(1 + in_last_word)
        position = Signal.like(self.position)
        m.d.comb += self.position.eq(position)
        with m.If(self.step):
            m.d.sync += [chunk.eq(chunk + 1), position.eq(position + 1)]
            with m.If(ends_group):
                m.d.sync += [chunk.eq(0), group.eq(group + 1)]
            with m.If(self.closes_word):
                m.d.sync += [group.eq(0), word.eq(word + 1)]
            with m.If(self.is_last):
                m.d.sync += [word.eq(0), position.eq(0)]
        return m
