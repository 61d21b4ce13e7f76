"""Lock-step blocks, whose registers move when ``advance`` says so, under the engines that evaluate."""

from amaranth.hdl import Signal

__all__ = ["delayed", "lock_step"]


def lock_step(c, block, *choices):
    """Enumerate inputs of a block with random stalls; returns whether its outputs belong to a combination."""
    count = Signal(range(block.latency + 1))
    with c.m.If(block.advance & (count != block.latency)):
        c.m.d.sync += count.eq(count + 1)
    filled = count == block.latency
    if choices:
        c.enumerate(*choices, taken=block.advance, checked=block.advance & filled)
    c.cover("results are compared", filled)
    return filled


def delayed(c, block, value):
    """The value ``latency`` advances later."""
    for stage in range(block.latency):
        value = c.register(value, f"reference_{stage}", enable=block.advance)
    return value
