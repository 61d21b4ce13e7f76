"""Token selector: mask and index list of free inputs on small patch grids, and the decision on all words."""

import numpy as np
from amaranth.hdl import Array, Cat, Const, Mux, Signal
from amaranth.utils import ceil_log2

from golden.units.token_selector import beat_positions
from hw.units.token_selector.index_scanner import IndexScanner
from hw.units.token_selector.unit import TokenSelector
from verif.formal.follow import Followed
from verif.formal.properties import Property
from verif.formal.streams import moves, obey, stable

ONE, HALF, NAN = 0x3C00, 0x3800, 0x7E00


def _list(c, indices, turn, token, is_selected, name="list"):
    """Claims about a list of indices in its turn: complete, without others, ascending, closed with their number."""
    m = c.m
    given, entry = moves(indices), indices.payload
    listed = Signal(name=f"{name}_has_token")
    count = Signal(len(entry.index), name=f"{name}_count")
    previous = Signal(len(entry.index) + 1, name=f"{name}_least")
    with m.If(given):
        m.d.sync += [
            count.eq(Mux(entry.last, 0, count + 1)),
            previous.eq(Mux(entry.last, 0, entry.index + 1)),
            listed.eq(~entry.last & (listed | (entry.index == token))),
        ]
    c.claim(f"{name}: ascending, each once", ~indices.valid | entry.last | (entry.index >= previous))
    c.claim(f"{name}: closed with the number of indices", ~(indices.valid & entry.last) | (entry.index == count))
    c.claim(
        f"{name}: only selected tokens", ~(turn & indices.valid & ~entry.last & (entry.index == token)) | is_selected
    )
    c.claim(f"{name}: all selected tokens", ~(turn & indices.valid & entry.last) | (listed == is_selected))
    c.cover(f"{name}: closed with the token", turn & given & entry.last & listed)
    c.cover(f"{name}: closed without the token", turn & given & entry.last & ~listed)


def lists(c, block):
    """The index scanner by itself: one token of one mask is followed."""
    m, words = c.m, block.words
    n_words = -(-block.n_tokens // block.n_bits)
    obey(c, words)
    stable(c, indices=block.indices)
    taken, given = moves(words), moves(block.indices)
    word = Signal(range(n_words))
    with m.If(taken):
        m.d.sync += word.eq(Mux(words.payload.last, 0, word + 1))
    c.assume(~words.valid | (words.payload.last == (word == n_words - 1)))
    unused = n_words * block.n_bits - block.n_tokens
    c.assume(~(words.valid & words.payload.last) | ((words.payload.tokens >> (block.n_bits - unused)) == 0))

    token = c.constant(max(1, ceil_log2(block.n_tokens)), "token")
    c.assume(token < block.n_tokens, in_reset=True)
    followed = Followed(c, taken & (word == 0), most=3, name="mask")
    indices = followed.output(given & block.indices.payload.last, "lists")
    followed.finish()
    selected, taking = Signal(), Signal()
    with m.If(taken & (followed.now | taking)):
        m.d.sync += taking.eq(~words.payload.last)
        with m.If(word == token // block.n_bits):
            m.d.sync += selected.eq(words.payload.tokens.bit_select(token % block.n_bits, 1))
    _list(c, block.indices, indices.is_turn, token, selected)
    something = Signal()
    m.d.sync += something.eq(taken & (words.payload.tokens.any() | words.payload.last))
    later = c.register(something, "something_later")
    c.claim("the first index two clocks after its word", ~later | block.indices.valid)


def selects(c, block):
    """The selector: values are 0 or 1, the threshold 1/2 or a NaN, which selects everything; the solver chooses.

    That the pipeline decides right about all values is another property; here it matters which values decide about
    which token, and when.
    """
    m, p = c.m, block.parameters
    is_last_rule = p.reference == "last"
    obey(c, block.current, *([] if is_last_rule else [block.previous]))
    stable(c, mask=block.mask, indices=block.indices)

    positions = beat_positions(p.width, p.height, p.channels, p.patch, p.n_values, p.channel_order)
    flat = np.arange(p.channels * p.height * p.width)
    row, column = flat // p.width % p.height, flat % p.width
    token_of_value = row // p.patch * p.n_columns + column // p.patch
    tokens = [[int(token_of_value[at]) if at >= 0 else None for at in beat] for beat in positions]

    accepted = moves(block.current)
    beat = Signal(range(len(tokens)))
    is_first, is_last = Signal(), Signal()
    m.d.comb += [is_first.eq(beat == 0), is_last.eq(beat == len(tokens) - 1)]
    with m.If(accepted):
        m.d.sync += beat.eq(Mux(is_last, 0, beat + 1))

    ones = c.free(p.n_values, "ones")
    all_selected = c.free(1, "selects_all")
    c.drive(
        block.current.payload,
        Cat(
            *(Mux(bit, Const(ONE, 16), 0) for bit in ones),
            Mux(all_selected, Const(NAN, 16), HALF),
            *([c.free(1, "restart")] if is_last_rule else []),
        ),
    )
    if not is_last_rule:
        c.drive(block.previous.payload, 0)

    token = c.constant(max(1, ceil_log2(p.n_tokens)), "token")
    c.assume(token < p.n_tokens, in_reset=True)
    # Which lanes of the present beat belong to the token.
    mine = Signal(p.n_values)
    with m.Switch(beat):
        for number, lanes in enumerate(tokens):
            with m.Case(number):
                m.d.comb += mine.eq(Cat(token == lane if lane is not None else Const(0, 1) for lane in lanes))

    followed = Followed(c, accepted & is_first, most=5, name="latent")
    mask = followed.output(moves(block.mask) & block.mask.payload.last, "masks")
    indices = followed.output(moves(block.indices) & block.indices.payload.last, "lists")
    followed.finish()

    whole = all_selected
    references = [Signal(p.n_values, name=f"reference_{number}") for number in range(len(tokens))]
    if is_last_rule:
        has_reference = Signal()
        with m.If(accepted):
            m.d.sync += has_reference.eq(1)
        whole = whole | block.current.payload.restart | ~has_reference
    # Whether the token is selected, so far, in the latent that comes in.
    so_far, found = Signal(), Signal()
    reference = Array(references)[beat] if is_last_rule else 0
    m.d.comb += found.eq(((ones ^ reference) & mine).any() | Mux(is_first, whole, so_far))
    with m.If(accepted):
        m.d.sync += so_far.eq(found)
    if is_last_rule:
        _keep_references(m, references, ones, beat, accepted & is_last & found, accepted)
    selected, taking = Signal(), Signal()
    with m.If(accepted & (followed.now | taking)):
        m.d.sync += [selected.eq(found), taking.eq(~is_last)]

    word = Signal(range(p.n_words))
    with m.If(moves(block.mask)):
        m.d.sync += word.eq(Mux(block.mask.payload.last, 0, word + 1))
    bits = block.mask.payload.tokens
    here = mask.is_turn & block.mask.valid & (word == token // p.word_tokens)
    c.claim("mask bit of the token", ~here | (bits.bit_select(token % p.word_tokens, 1) == selected))
    c.claim("last mask word is marked", ~block.mask.valid | (block.mask.payload.last == (word == p.n_words - 1)))
    rest = p.n_words * p.word_tokens - p.n_tokens
    c.claim(
        "unused mask bits are 0",
        ~(block.mask.valid & block.mask.payload.last) | ((bits >> (p.word_tokens - rest)) == 0),
    )
    _list(c, block.indices, indices.is_turn, token, selected)

    # Both outputs ready: a beat is accepted in reasonable time.
    patience = Signal(range(p.word_tokens + 20))
    ready = block.mask.ready & block.indices.ready
    offered = block.current.valid & (1 if is_last_rule else block.previous.valid)
    m.d.sync += patience.eq(Mux(ready & offered & ~accepted, patience + 1, 0))
    bound = p.word_tokens + block.latency + 3
    c.claim(f"a beat is accepted within {bound} clocks", patience <= bound)


def _keep_references(m, references, ones, beat, replaces, accepted):
    """The values of the latent that comes in become the token's references if it is selected."""
    for number, reference in enumerate(references):
        new = Signal.like(reference, name=f"new_{number}")
        current = Mux(beat == number, ones, new)
        with m.If(accepted):
            m.d.sync += new.eq(current)
        with m.If(replaces):
            m.d.sync += reference.eq(current)


LATENTS = [
    {"width": 2, "height": 1, "channels": 1, "patch": 1, "n_values": 1},
    {"width": 2, "height": 2, "channels": 1, "patch": 1, "n_values": 2},
    {"width": 3, "height": 3, "channels": 1, "patch": 2, "n_values": 2},
    {"width": 2, "height": 2, "channels": 2, "patch": 1, "n_values": 3, "channel_order": "outer"},
]

PROPERTIES = [
    Property(
        "token_selector",
        "index list of a mask: complete, ascending, closed with the count",
        IndexScanner,
        [{"n_bits": bits, "n_tokens": tokens} for bits, tokens in ((1, 1), (1, 3), (2, 4), (3, 5), (4, 4), (4, 8))],
        lists,
        quick=True,
    ),
    Property(
        "token_selector",
        "mask and index list of free inputs are the specification's; stream contract",
        TokenSelector,
        LATENTS[:3],
        selects,
    ),
    Property(
        "token_selector",
        "the same for two channels, one after the other",
        TokenSelector,
        LATENTS[3:],
        selects,
        engine="bmc",
        depth=18,
        reach=30,
    ),
    Property(
        "token_selector",
        "the same with the values at which each token was last computed",
        TokenSelector,
        [{**LATENTS[0], "reference": "last"}],
        selects,
    ),
    Property(
        "token_selector",
        "the same with several values a beat and tokens a word",
        TokenSelector,
        [{**LATENTS[1], "reference": "last"}],
        selects,
        engine="bmc",
        depth=17,
        reach=30,
    ),
]
