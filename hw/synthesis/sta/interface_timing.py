"""What a module and those around it know of each other: :class:`InterfaceTiming` and :class:`BoundaryConstraints`."""

from dataclasses import dataclass, field

NEVER = -1e9  # the arrival at a net that nothing drives


@dataclass
class Driver:
    """The cell that drives an output of a module: its output pin, ``{pin: (arrivals, slews)}``, its load inside."""

    kind: str
    pin: str
    inputs: dict
    load: tuple


@dataclass
class InterfaceTiming:
    """What a module shows to the one around it, by ``(port, bit)``, mostly pairs of rising and falling.

    That is the load of its inputs, how long before the clock edge they are needed, and the drivers of its outputs; of
    outputs that are inputs, or come from what has no timing, only when they arrive and their slew.
    """

    load: dict = field(default_factory=dict)
    needed: dict = field(default_factory=dict)
    drivers: dict = field(default_factory=dict)
    arrival: dict = field(default_factory=dict)
    slew: dict = field(default_factory=dict)


@dataclass
class BoundaryConstraints:
    """What a module meets around it, the worst of all its instances: pairs by ``(port, bit)``.

    That is when its inputs arrive, their slew, by how many ps they come later for each fF that they load their drivers
    more than the ``reference_load``, the load of its outputs, and how long before the clock edge these are needed. What
    is not there is as for a whole design: inputs arrive with the clock, outputs are due at its edge; if it
    ``is_complete``, there is no path from other inputs and to other outputs.
    """

    arrival: dict = field(default_factory=dict)
    slew: dict = field(default_factory=dict)
    resistance: dict = field(default_factory=dict)
    reference_load: dict = field(default_factory=dict)
    load: dict = field(default_factory=dict)
    needed: dict = field(default_factory=dict)
    is_complete: bool = False

    def include(self, name, key, pair):
        """Take the worse of what is known and another pair."""
        pairs = getattr(self, name)
        pairs[key] = tuple(map(max, pair, pairs.get(key, pair)))
