"""Memory wrapper: what a read returns, also of the word that is written in the same clock, and that it holds."""

from amaranth.hdl import Mux, Signal
from amaranth.utils import ceil_log2

from hw.lib.memory import MemoryBank
from verif.formal.properties import Property


def reads(c, block):
    """One bit of one word, both chosen by the solver, is followed through all writes and reads."""
    m, p = c.m, block.parameters
    single = block.ports == "single"
    write_address = block.address if single else block.write_address
    read_address = block.address if single else block.read_address
    c.assume((write_address < block.depth) & (read_address < block.depth), in_reset=True)
    if single:
        c.assume(~(block.read_enable & block.write_enable.any()), in_reset=True)

    word = c.constant(len(read_address), "word")
    place = c.constant(max(1, ceil_log2(block.width)), "place")
    c.assume(place < block.width, in_reset=True)
    part = block.width // p.n_enables
    written_here = (write_address == word) & block.write_enable.bit_select(place // part, 1)
    data = block.write_data.bit_select(place, 1)

    # Memories know no reset: neither does what is expected of them.
    kept, is_kept = Signal(reset_less=True), Signal(reset_less=True)
    with m.If(written_here):
        m.d.sync += [kept.eq(data), is_kept.eq(1)]
    expected, is_expected = Signal(reset_less=True), Signal(reset_less=True)
    value, known = kept, is_kept
    if block.read_during_write == "new":
        value, known = Mux(written_here, data, kept), is_kept | written_here
    elif block.read_during_write == "undefined":
        known = is_kept & ~written_here
    with m.If(block.read_enable):
        m.d.sync += [expected.eq(value), is_expected.eq(known & (read_address == word))]
    read_bit = block.read_data.bit_select(place, 1)
    c.claim("a read returns what was written last", ~is_expected | (read_bit == expected))

    before, did_read = Signal(block.width, reset_less=True), Signal(init=1, reset_less=True)
    m.d.sync += [before.eq(block.read_data), did_read.eq(block.read_enable)]
    c.claim("without a read the data hold", did_read | (block.read_data == before))
    c.cover("one is read", is_expected & expected)
    c.cover("zero is read", is_expected & ~expected)
    if not single and block.read_during_write != "undefined":
        meets = written_here & block.read_enable & (read_address == word)
        c.cover("a read meets a write", meets & is_kept & (kept != data))


PROPERTIES = [
    Property(
        "memory",
        f"read during write: {rule}; reads return the last write, data hold",
        MemoryBank,
        [
            {"depth": depth, "width": width, "read_during_write": rule, **more}
            for depth, width, more in ((1, 1, {}), (3, 2, {}), (4, 3, {}), (5, 1, {}), (6, 4, {"granularity": 2}))
        ],
        reads,
        quick=True,
    )
    for rule in ("old", "new", "undefined")
] + [
    Property(
        "memory",
        "single port: reads return the last write, data hold",
        MemoryBank,
        [
            {"depth": depth, "width": width, "ports": "single", **more}
            for depth, width, more in ((1, 3, {}), (3, 2, {}), (6, 4, {"granularity": 1}))
        ],
        reads,
        quick=True,
    )
]
