"""The block ``token_selector``: :class:`TokenSelector` and its parts."""

from hw.units.token_selector.unit import TokenSelector, TokenSelectorParameters

__all__ = ["TokenSelector", "TokenSelectorParameters"]
