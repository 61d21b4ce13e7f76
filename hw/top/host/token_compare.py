"""TokenCompare: the CTR command: latents from the load stream through the token selector into the token list."""

from dataclasses import dataclass

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out

from golden.spec.formats import FP16
from hw.lib.stream import StreamQueue
from hw.top.parameters import Banks, CorePart, Latent, Tokens
from hw.units.token_selector.unit import TokenSelector

__all__ = ["TokenCompare"]

_NEGATIVE = FP16.sign_bit | FP16.one
"""-1 in FP16: a threshold that selects every token."""


@dataclass(frozen=True, kw_only=True)
class TokenCompareParameters(Latent, Tokens, Banks):
    pass


class TokenCompare(CorePart):
    """Takes a latent's beats (alternately current and previous if there are both) and lists the changed tokens.

    ``restart`` selects every token. ``done`` comes when the list is complete; beats are taken from ``start`` on.
    """

    Parameters = TokenCompareParameters
    members_doc = {
        "start": "begin with a latent",
        "theta": "FP16: constant from start to done",
        "restart": "constant from start to done: every token counts as changed",
        "beats": "n_banks values of the latent",
        "is_last": "the next one is the last one",
        "append": "row changed",
        "row": "a token",
        "done": "all tokens are listed",
    }

    @staticmethod
    def members(p):
        return {
            "start": In(1),
            "theta": In(16),
            "restart": In(1),
            "beats": In(stream.Signature(16 * p.n_banks)),
            "is_last": Out(1),
            "append": Out(1),
            "row": Out(max(1, (p.max_tokens - 1).bit_length())),
            "done": Out(1),
        }

    def circuit(self):
        m = Module()
        m.submodules.selector = selector = TokenSelector(**self.parameters.latent.to_dict(), reference=self.reference)
        n_beats = selector.parameters.n_beats
        beats = stream.Signature(16 * self.n_banks).create(path=("wanted",))
        left = Signal(range(2 * n_beats + 1))
        wanted = Signal()
        m.d.comb += [
            wanted.eq(left != 0),
            self.is_last.eq(left == 1),
            beats.payload.eq(self.beats.payload),
            beats.valid.eq(self.beats.valid & wanted),
            self.beats.ready.eq(beats.ready & wanted),
        ]
        with m.If(self.start):
            m.d.sync += left.eq(n_beats * (1 if self.reference == "last" else 2))
        with m.Elif(beats.valid & beats.ready):
            m.d.sync += left.eq(left - 1)
        if self.reference == "last":
            self._one_latent(m, beats, selector)
        else:
            self._two_latents(m, beats, selector, is_previous=left[0])
        entry = selector.indices
        m.d.comb += [
            selector.mask.ready.eq(1),
            entry.ready.eq(1),
            self.append.eq(entry.valid & ~entry.payload.last),
            self.row.eq(entry.payload.index),
            self.done.eq(entry.valid & entry.payload.last),
        ]
        return m

    def _one_latent(self, m, beats, selector):
        current = selector.current
        m.d.comb += [
            current.payload["values"].as_value().eq(beats.payload),
            current.payload.tau.eq(self.theta),
            current.payload.restart.eq(self.restart),
            current.valid.eq(beats.valid),
            beats.ready.eq(current.ready),
        ]

    def _two_latents(self, m, beats, selector, is_previous):
        """The selector takes both latents together, so the current beat waits for the previous one's."""
        current, previous = selector.current, selector.previous
        m.submodules.waiting = waiting = StreamQueue(width=16 * self.n_banks, depth=1)
        m.d.comb += [
            waiting.source.payload.eq(beats.payload),
            waiting.source.valid.eq(beats.valid & ~is_previous),
            current.payload["values"].as_value().eq(waiting.sink.payload),
            current.payload.tau.eq(Mux(self.restart, _NEGATIVE, self.theta)),
            current.valid.eq(waiting.sink.valid),
            waiting.sink.ready.eq(current.ready),
            previous.payload["values"].as_value().eq(beats.payload),
            previous.valid.eq(beats.valid & is_previous),
            beats.ready.eq(Mux(is_previous, previous.ready, waiting.source.ready)),
        ]
