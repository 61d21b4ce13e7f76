"""TokenSelector: which tokens of a latent changed since the reference, for cached token reuse (CTR)."""

from dataclasses import dataclass, fields

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out, connect, flipped

from golden.spec import token_selector as spec
from hw.arith.difference import DECODED_THRESHOLD, DifferenceExceeds, ThresholdDecoder
from hw.arith.stored_bounds import OutsideBounds
from hw.lib.block import Block
from hw.lib.pipeline import Pipeline
from hw.lib.stream import StreamQueue
from hw.units.token_selector import bounds_store, reference_store
from hw.units.token_selector.bounds_store import BoundsStore
from hw.units.token_selector.index_scanner import IndexScanner, index_entry, mask_word
from hw.units.token_selector.order import BeatCounter, LatentParameters
from hw.units.token_selector.patches import PatchAny
from hw.units.token_selector.reference_store import ReferenceStore

__all__ = ["TokenSelector", "TokenSelectorParameters"]


@dataclass(frozen=True, kw_only=True)
class TokenSelectorParameters(spec.TokenSelectorParameters, LatentParameters):
    @property
    def write_delay(self):
        """With reference = last: clocks from the read of a word's last beat until its address may be read again."""
        return bounds_store.WRITE_DELAY if self.bounds else reference_store.WRITE_DELAY

    @property
    def latent(self):
        """The part that describes the latent."""
        return {item.name: getattr(self, item.name) for item in fields(LatentParameters)}


class TokenSelector(Block):
    """token = OR over its patch and all channels of |current - reference| > tau, in exact arithmetic on FP16 values.

    An infinity or NaN on either side counts as changed. A negative tau or a NaN selects every token; -0 is 0; an
    infinite tau leaves only the infinities and NaNs.

    A latent is sent as beats of n_values values, row by row, with the channels of a row ``inner`` (pixel by pixel) or
    ``outer`` (channel by channel). A beat holds as many whole bands (rows of patches) as fit; if none fits, as many
    whole rows of one band as fit; if none fits, a part of one row. Each begins with lane 0 of a new beat, and
    unused lanes are don't-cares. Latents follow each other without marks.

    Members, bit 0 first:

    * ``current``: n_values FP16 words, tau (FP16), and for reference = last the flag restart. tau and restart are
      read in the first beat of a latent and ignored in the others.
    * ``previous`` (reference = previous): n_values FP16 words of the step before, one beat for each of ``current``.
    * ``mask``: the bits of one row of patches (of as many as one beat holds), left to right, then ``last`` with the
      last word of a latent, whose bits beyond the last token are 0.
    * ``indices``: the index of each selected token in ascending order with last = 0, then a beat with last = 1 that
      closes the list; its index is the number of selected tokens. A latent without any sends just that beat.

    With reference = last, the values of a token become its reference when it is selected. restart selects every
    token, and so does the first latent after reset. With bounds, tau is read only in those latents and applies
    until the next restart; an illegal one selects every token until then.

    Timing: a mask word is valid ``latency`` clocks after the beat that completed it; its first index is valid two
    clocks later, then one a clock. One beat a clock is accepted while the outputs keep up: the list
    takes max(1, selected tokens) clocks a word, and one clock a latent for the closing beat. A stalled output stalls
    the input, and with it the other output, after at most two words: a consumer that needs one output complete before
    it takes the other needs a queue. With reference = last, a latent of fewer beats than those of a word plus 6 (with
    bounds 8) waits until the one before is written; with bounds, a word waits for the one before, whose bounds take
    max(1, selected tokens) clocks a beat (tokens with more than ``bounds`` values in a beat count once for each part).

    Defined by :func:`golden.units.token_selector.token_masks`. Source: DiSC, section III-A and the token selector of
    section IV-A; the exact decision and the rule ``last`` are this project's.
    """

    Parameters = TokenSelectorParameters
    members_doc = {
        "current": "the latent of this step, row by row; the channels of a row as channel_order says",
        "current.values": "FP16 numbers",
        "current.tau": "threshold, FP16, not negative; counts in the first beat of a latent, ignored in others",
        "current.restart": "select every token and take it as reference; counts in the first beat of a latent",
        "previous": "the latent of the step before, beat for beat",
        "previous.values": "FP16 numbers",
        "mask": "mask bits in row-major order of the patches, of one row of patches a beat at most",
        "mask.tokens": "1 = compute this token, the leftmost one in bit 0; 0 beyond the last token",
        "mask.last": "the last beat of a latent",
        "indices": "selected tokens in ascending order, then a closing beat",
        "indices.index": "number of the token in row-major order; in the closing beat, how many were selected",
        "indices.last": "1 in the closing beat",
    }

    @property
    def latency(self):
        return 3 if self.bounds else 4

    @staticmethod
    def members(p):
        values = {"values": data.ArrayLayout(16, p.n_values)}
        if p.reference == "last":
            inputs = {"current": In(stream.Signature(data.StructLayout({**values, "tau": 16, "restart": 1})))}
        else:
            inputs = {
                "current": In(stream.Signature(data.StructLayout({**values, "tau": 16}))),
                "previous": In(stream.Signature(data.StructLayout(values))),
            }
        return {
            **inputs,
            "mask": Out(stream.Signature(mask_word(p.word_tokens))),
            "indices": Out(stream.Signature(index_entry(p.n_tokens))),
        }

    def circuit(self):
        m = Module()
        p = self.parameters
        is_last_rule = p.reference == "last"
        advance = Signal()  # lock-step enable
        accept = Signal()  # with an accepted beat
        pipe = Pipeline(m, advance=advance)
        m.submodules.place = place = BeatCounter(**p.latent)
        m.d.comb += place.step.eq(accept)

        # Accept a beat and its reference.
        current = self.current.payload
        current_values = pipe.register(current["values"], name="current_values")
        selects_all = Signal()
        if is_last_rule:
            store = BoundsStore(**p.latent, bounds=p.bounds) if p.bounds else ReferenceStore(**p.latent)
            m.submodules.store = store
            m.d.comb += [
                accept.eq(self.current.valid & advance & store.may_read),
                self.current.ready.eq(advance & store.may_read),
                store.read.eq(accept),
                store.position.eq(place.position),
            ]
            reference_values = store.reference
            has_reference = Signal()
            with m.If(accept):
                m.d.sync += has_reference.eq(1)
            m.d.comb += selects_all.eq(current.restart | ~has_reference)
        else:
            m.d.comb += [
                accept.eq(self.current.valid & self.previous.valid & advance),
                self.current.ready.eq(self.previous.valid & advance),
                self.previous.ready.eq(self.current.valid & advance),
            ]
            reference_values = pipe.register(self.previous.payload["values"], name="previous_values")

        # Remember the threshold for the latent; with bounds, until everything is selected again.
        m.submodules.decoder = decoder = ThresholdDecoder()
        m.d.comb += decoder.threshold.eq(current.tau)
        threshold = Signal(DECODED_THRESHOLD, reset_less=True)
        all_selected = Signal(reset_less=True)
        with m.If(accept & place.is_first):
            m.d.sync += all_selected.eq(selects_all if p.bounds else selects_all | decoder.decoded.is_illegal)
        with m.If(accept & place.is_first & (selects_all if p.bounds else 1)):
            m.d.sync += threshold.eq(decoder.decoded)

        # Compare value by value: by subtraction in two stages, or with bounds in one.
        exceeds = Signal(p.n_values)
        if p.bounds:
            m.d.comb += store.threshold.eq(threshold)
            for lane in range(p.n_values):
                m.submodules[f"lane_{lane}"] = decision = OutsideBounds()
                m.d.comb += [
                    decision.current.eq(current_values[lane]),
                    decision.bounds.eq(reference_values[lane]),
                    exceeds[lane].eq(decision.outside),
                ]
        else:
            threshold_later = pipe.register(threshold, name="threshold_later")
            for lane in range(p.n_values):
                m.submodules[f"lane_{lane}"] = decision = DifferenceExceeds()
                m.d.comb += [
                    decision.advance.eq(advance),
                    decision.current.eq(current_values[lane]),
                    decision.previous.eq(reference_values[lane]),
                    decision.threshold.eq(threshold),
                    decision.threshold_later.eq(threshold_later),
                    exceeds[lane].eq(decision.exceeds),
                ]
        stages = self.latency - 1  # from an accepted beat to its changed bits
        changed = pipe.register(exceeds, name="changed")
        valids = [accept]
        for stage in range(1, stages + 1):
            valids.append(pipe.control(valids[-1], name=f"valid_{stage}"))
        valid = valids[-1]
        kind = pipe.register(place.kind, name="kind", stages=stages)
        opens_word = pipe.register(place.opens_word, name="opens_word", stages=stages)
        closes_word = pipe.register(place.closes_word, name="closes_word", stages=stages)
        is_last = pipe.register(place.is_last, name="is_last", stages=stages)
        all_selected = pipe.register(all_selected, name="all_selected_later", stages=stages - 1)

        # Collect the bits of each token over the beats of a word.
        m.submodules.patch_any = patch_any = PatchAny(**p.latent)
        m.d.comb += [patch_any.lanes.eq(changed), patch_any.kind.eq(kind)]
        tokens_so_far = Signal(p.word_tokens, reset_less=True)
        tokens = Signal(p.word_tokens)
        m.d.comb += tokens.eq(Mux(opens_word, 0, tokens_so_far) | patch_any.tokens)
        with m.If(valid & advance):
            m.d.sync += tokens_so_far.eq(tokens)

        # A complete word is forked to the mask and to the scanner, which accept it independently.
        word = Signal(mask_word(p.word_tokens), reset_less=True)
        mask_waits = Signal()
        list_waits = Signal()
        m.submodules.scanner = scanner = IndexScanner(n_bits=p.word_tokens, n_tokens=p.n_tokens)
        connect(m, flipped(self.indices), scanner.indices)
        listed = scanner.words
        if p.index_queue:
            storage = "registers" if p.index_queue <= 4 else "memory"
            m.submodules.queue = queue = StreamQueue(width=p.word_tokens + 1, depth=p.index_queue, storage=storage)
            m.d.comb += [
                scanner.words.payload.eq(queue.sink.payload),
                scanner.words.valid.eq(queue.sink.valid),
                queue.sink.ready.eq(scanner.words.ready),
            ]
            listed = queue.source
        m.d.comb += [
            self.mask.payload.eq(word),
            self.mask.valid.eq(mask_waits),
            listed.payload.eq(word),
            listed.valid.eq(list_waits),
        ]
        completes = Signal()
        word_is_free = Signal()
        mask_is_free = ~mask_waits
        list_is_free = ~list_waits
        if min(p.beats_a_word, p.last_word_beats) == 1:
            # One word a clock: the register can be refilled in the clock in which it is emptied.
            mask_is_free = mask_is_free | self.mask.ready
            list_is_free = list_is_free | listed.ready
        m.d.comb += [
            word_is_free.eq(mask_is_free & list_is_free & (store.may_take_mask if is_last_rule else 1)),
            advance.eq(~(valid & closes_word) | word_is_free),
            completes.eq(valid & closes_word & word_is_free),
        ]
        with m.If(completes):
            m.d.sync += [
                word.tokens.eq(tokens | self._all_tokens(is_last) & all_selected.replicate(p.word_tokens)),
                word.last.eq(is_last),
                mask_waits.eq(1),
                list_waits.eq(1),
            ]
        with m.Else():
            m.d.sync += [mask_waits.eq(mask_waits & ~self.mask.ready), list_waits.eq(list_waits & ~listed.ready)]

        if is_last_rule:
            m.d.comb += [
                store.keep.eq(valids[1] & advance),
                store.current.eq(current_values),
                store.take_mask.eq(completes),
                store.mask.eq(word.tokens),
            ]
        return m

    def _all_tokens(self, is_last):
        """Ones for the tokens of the word."""
        p = self.parameters
        n_rest = p.n_tokens - (p.n_words - 1) * p.word_tokens
        return Mux(is_last, (1 << n_rest) - 1, (1 << p.word_tokens) - 1)
