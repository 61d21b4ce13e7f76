"""Lanes of a beat to tokens of a mask word (OR over a patch), and tokens back to lanes."""

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib.wiring import In, Out

from hw.lib.block import Block
from hw.units.token_selector.order import LatentParameters

__all__ = ["PatchAny", "PatchSpread"]


def _select_kinds(m, kind, n_kinds):
    """One bit for each kind of beat."""
    is_kind = Signal(n_kinds)
    m.d.comb += is_kind.eq(Cat(kind == number for number in range(n_kinds)))
    return is_kind


def _for_kinds(is_kind, numbers, value):
    """``value`` in the given kinds of beats, 0 in all others."""
    return value if len(numbers) == len(is_kind) else value & Cat(is_kind[number] for number in numbers).any()


class PatchAny(Block):
    """``tokens[t]`` = whether any lane of the beat that belongs to token t of the word is set. Combinational."""

    Parameters = LatentParameters
    latency = 0
    members_doc = {"lanes": "one bit a value", "kind": "the kind of beat", "tokens": "one bit a token of the word"}

    @staticmethod
    def members(p):
        return {"lanes": In(p.n_values), "kind": In(p.kind_width), "tokens": Out(p.word_tokens)}

    def circuit(self):
        m = Module()
        kinds = self.parameters.kinds()
        is_kind = _select_kinds(m, self.kind, len(kinds))
        wanted = [{} for _ in range(self.parameters.word_tokens)]  # {lanes: kinds of beats} of each token
        for number, tokens in enumerate(kinds):
            lanes_of_token = {}
            for lane, token in enumerate(tokens):
                if token is not None:
                    lanes_of_token.setdefault(token, []).append(lane)
            for token, lanes in lanes_of_token.items():
                wanted[token].setdefault(tuple(lanes), []).append(number)
        any_of = {}
        for lanes in dict.fromkeys(lanes for choices in wanted for lanes in choices):
            any_of[lanes] = Signal(name=f"any_from_{lanes[0]}_to_{lanes[-1]}")
            m.d.comb += any_of[lanes].eq(Cat(self.lanes[lane] for lane in lanes).any())
        for token, choices in enumerate(wanted):
            terms = [_for_kinds(is_kind, numbers, any_of[lanes]) for lanes, numbers in choices.items()]
            m.d.comb += self.tokens[token].eq(Cat(terms).any())
        return m


class PatchSpread(Block):
    """``lanes[v]`` = the bit of the token of the word that lane v of the beat belongs to; 0 if none. Combinational."""

    Parameters = LatentParameters
    latency = 0
    members_doc = {"tokens": "one bit a token of the word", "kind": "the kind of beat", "lanes": "one bit a value"}

    @staticmethod
    def members(p):
        return {"tokens": In(p.word_tokens), "kind": In(p.kind_width), "lanes": Out(p.n_values)}

    def circuit(self):
        m = Module()
        kinds = self.parameters.kinds()
        is_kind = _select_kinds(m, self.kind, len(kinds))
        for lane, tokens in enumerate(zip(*kinds, strict=True)):
            numbers_of_token = {}
            for number, token in enumerate(tokens):
                if token is not None:
                    numbers_of_token.setdefault(token, []).append(number)
            terms = [_for_kinds(is_kind, numbers, self.tokens[token]) for token, numbers in numbers_of_token.items()]
            m.d.comb += self.lanes[lane].eq(Cat(terms).any())
        return m
