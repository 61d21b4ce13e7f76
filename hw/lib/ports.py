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


def leaf_ports(block):
    """The streams and plain ports of a block, in order: a list of :class:`Port`."""
    return list(_ports(block.signature.members, block.members_doc, ()))


def _ports(members, docs, path):
    for name, member in members.items():
        for indices in itertools.product(*map(range, member.dimensions)):
            place = (*path, name, *indices)
            if member.is_port:
                yield Port(port_name(place), member.flow, False, member.shape, docs[name])
            elif isinstance(member.signature, stream.Signature):
                payload = member.signature.members["payload"].shape
                yield Port(port_name(place), member.flow, True, payload, docs[name])
            else:
                # Of an input, Amaranth gives the signature as the block sees it.
                yield from _ports(member.signature.members, member.signature.members_doc, place)
