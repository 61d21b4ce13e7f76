"""Definitions that models and hardware share: commands, sizes, parameters and their limits, formats, widths, tables.

Constants and layouts are defined here once and shared; algorithms are written twice, in :mod:`golden` and in
:mod:`hw`, so that each checks the other; shared tables are checked by the accuracy tests.

It imports nothing else of this project and no library, and it is the only part of :mod:`golden` that :mod:`hw`
imports; ``verif/test_layering.py`` checks both.
"""
