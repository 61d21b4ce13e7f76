"""The ports of a block as Verilog has them: interfaces and arrays taken apart, down to streams and plain ports."""

import itertools
from typing import Any, NamedTuple

from amaranth.lib import stream
from amaranth.lib.wiring import Flow

__all__ = ["Port", "leaf_ports", "port_name"]


def port_name(path):
    """The Verilog name of a member: two underscores before a name, one before an index."""
    return "".join(f"_{step}" if isinstance(step, int) else f"__{step}" for step in path).removeprefix("__")


class Port(NamedTuple):
    """A stream or a plain port."""

    name: str
    """In Verilog; of a stream, what comes before ``__payload``, ``__valid`` and ``__ready``."""
    flow: Flow
    is_stream: bool
    shape: Any
    """Of a stream, that of its payload."""
    doc: str
    field_docs: dict[str, str]
    """What the fields of the shape mean."""


def leaf_ports(component):
    """The streams and plain ports of a component, in order: a list of :class:`Port`.

    ``members_doc`` of the component, or of a signature inside, says what each member means, and under ``"name.field"``
    what a field of it means. A component without ``members_doc`` says nothing of any.
    """
    return list(_ports(component.signature.members, getattr(component, "members_doc", None), ()))


def _ports(members, docs, path):
    for name, member in members.items():
        doc = "" if docs is None else docs[name]
        fields = {
            key.removeprefix(f"{name}."): text for key, text in (docs or {}).items() if key.startswith(f"{name}.")
        }
        for indices in itertools.product(*map(range, member.dimensions)):
            place = (*path, name, *indices)
            if member.is_port:
                yield Port(port_name(place), member.flow, False, member.shape, doc, fields)
            elif isinstance(member.signature, stream.Signature):
                payload = member.signature.members["payload"].shape
                yield Port(port_name(place), member.flow, True, payload, doc, fields)
            else:
                # Of an input, Amaranth gives the signature as the block sees it.
                inner = getattr(member.signature, "members_doc", None)
                yield from _ports(member.signature.members, inner, place)
