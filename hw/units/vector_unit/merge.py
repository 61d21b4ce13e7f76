"""Results of different latencies merged into one pipeline."""

from amaranth.hdl import Signal

__all__ = ["merge"]


def merge(m, pipe, entries, latency, width):
    """The value at stage ``latency`` of entries ``(stage, word, take)``: at its stage a word joins if it is taken.

    At most one word of a beat may be taken; without any the value is 0.
    """
    value = None
    for stage in range(min(entry[0] for entry in entries), latency + 1):
        parts = [] if value is None else [pipe.register(value, name=f"value_{stage}")]
        parts += [word & take.replicate(len(word)) for at, word, take in entries if at == stage]
        merged = parts[0]
        for part in parts[1:]:
            merged = merged | part
        value = Signal(width, name=f"merged_{stage}")
        m.d.comb += value.eq(merged)
    return value
