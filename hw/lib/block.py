"""The base of every block: parameters, documentation of its ports, and one shared Verilog module a configuration."""

import hashlib
import inspect
import re
from typing import TYPE_CHECKING, Any

from amaranth.hdl import Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from golden.spec.limits import MAX_INPUT_BITS, MAX_OUTPUT_BITS
from golden.spec.parameters import NoParameters

MAX_NAME = 60
"""Characters of a module's name; a longer one is cut."""


class Block(wiring.Component):
    """A component with checked parameters that is emitted as one Verilog module for each distinct configuration.

    A subclass names its ``Parameters`` dataclass, documents each port in ``members_doc``, declares its ports as a
    function of the parameters in :meth:`members`, and builds its logic in :meth:`circuit`.

    In an Amaranth design a block is an ordinary component. When Verilog is emitted (the platform is an
    :class:`hw.emit.emission.Emission`), a parent holds an instance instead, and the block's own module is elaborated
    once, with all of its ports, however many instances there are.
    """

    # A block also describes itself (ports, latency, parameters): making one without elaborating it is no mistake.
    _MustUse__silence = True

    Parameters = NoParameters
    members_doc: dict[str, str] = {}
    role: str | None = None
    """Role of the module for later flows, such as "memory"; emitted as an attribute of the module."""
    latency: int | None = None
    """Clocks from a beat to its result; None if that depends on the operation."""
    interval = 1
    """Clocks from one accepted beat to the next."""

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Parameters and ports are attributes that a type checker cannot know."""

    def __init_subclass__(cls, **options):
        """``help()`` and editors show the parameters by name, with their types and defaults."""
        super().__init_subclass__(**options)
        cls.__signature__ = inspect.signature(cls.Parameters).replace(return_annotation=inspect.Signature.empty)

    def __init__(self, **parameters):
        for name in parameters:
            if name not in self.Parameters.__dataclass_fields__:
                legal = ", ".join(self.Parameters.__dataclass_fields__) or "none"
                raise TypeError(f"{type(self).__name__} has no parameter {name!r}: legal are {legal}")
        self.parameters = self.Parameters(**parameters)
        for name, value in self.parameters.to_dict().items():
            setattr(self, name, value)
        super().__init__(self.members(self.parameters))
        for flow, way, most in ((In, "input", MAX_INPUT_BITS), (Out, "output", MAX_OUTPUT_BITS)):
            members = self.signature.flatten(self)
            bits = sum(len(Value.cast(value)) for _, member, value in members if member.flow is flow)
            if bits > most:
                sizes = ", ".join(
                    f"{name}={value}" for name, value in self.parameters.to_dict().items() if value is not None
                )
                raise ValueError(f"{self.base_name} with {sizes} has {bits} {way} bits; at most {most} can be emitted")
        self.prepare()

    def members(self, parameters):
        """The ports as ``{name: In(shape) or Out(shape)}``, a function of the parameters alone."""
        raise TypeError(f"{type(self).__name__} does not define members()")

    def prepare(self):
        """Build what properties and circuit share, such as sub-blocks; runs once, after the checks."""

    @property
    def key(self):
        """Blocks with equal keys are the same module."""
        return type(self), self.parameters

    @property
    def base_name(self):
        """The class name in snake case."""
        return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", type(self).__name__).lower()

    @property
    def module_name(self):
        """A Verilog module name that no other configuration of any block has: the class and its parameter values.

        A parameter that a block may choose itself (its default is None) is told by the initials of its name, since it
        may be absent. A set of names is told where it is not the default. What is too long ends in a digest of all
        parameters.
        """
        words = [self.base_name]
        for name, item in self.Parameters.__dataclass_fields__.items():
            value = getattr(self.parameters, name)
            if isinstance(value, bool):
                words += [name] if value else []
            elif isinstance(value, tuple):
                words += [] if value == item.default else value or ["none"]
            elif value is not None:
                tag = "".join(word[0] for word in name.split("_")) if item.default is None else ""
                words.append(tag + re.sub(r"\W", "_", str(value)))
        name = "_".join(words)
        if len(name) <= MAX_NAME:
            return name
        digest = hashlib.sha256(repr(self.parameters).encode()).hexdigest()[:8]
        return f"{name[: MAX_NAME - 9].rstrip('_')}_{digest}"

    @property
    def module_attributes(self):
        """The module's Verilog attributes, ``{name: text or integer}``: its role, and numbers that belong to it."""
        return {"role": self.role} if self.role else {}

    def circuit(self):
        """Build the block's logic: an :class:`amaranth.hdl.Module`."""
        raise TypeError(f"{type(self).__name__} does not define circuit()")

    def circuit_for(self, target):
        """The logic for a target of :class:`hw.emit.emission.Emission`; the same for all unless overridden."""
        return self.circuit()

    def elaborate(self, platform):
        instantiate = getattr(platform, "instantiate", None)
        return instantiate(self) if instantiate else self.circuit()
