"""Static timing analysis of mapped netlists with a library's own delay tables.

From outside, :func:`read_delay_tables` and :func:`worst_path` are what there is to use; timing repair works with its
inside.
"""

from hw.synthesis.sta.delay_tables import read as read_delay_tables
from hw.synthesis.sta.hierarchy import time_hierarchy

__all__ = ["read_delay_tables", "worst_path"]


def worst_path(netlist, top, tables, clock, from_inputs=True):
    """The worst path in ps between registers, or ``from_inputs`` and to outputs too; None if there is no path."""
    return round(time_hierarchy(netlist, top, tables, clock, from_inputs)[0], 1) or None
