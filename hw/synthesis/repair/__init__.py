"""Timing repair of mapped netlists: sizing, buffering, resynthesis of slow regions, inverted outputs of flip-flops.

:func:`repair` is all that is used from outside; ``docs/synthesis.md`` says what it gains.
"""

from hw.synthesis.repair.design import repair

__all__ = ["repair"]
