"""Definitions that models and hardware share: commands, sizes, parameters and their limits, formats, widths, tables.

Constants and layouts stand here once and are shared; algorithms are written twice, in :mod:`golden` and in :mod:`hw`,
so that each can show an error of the other; tables that both read are held to the accuracy tests.

It imports nothing of this project and no library, and it is all of :mod:`golden` that :mod:`hw` imports;
``verif/test_layering.py`` holds both.
"""
