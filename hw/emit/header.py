"""Comments of emitted Verilog: the contract at the top of a file, a sentence before a shared module."""

import textwrap

__all__ = ["comment", "file_header", "module_comment"]

_WIDTH = 112

_RESET = "While rst is 1 a ready may be 1, and a beat offered then is lost: hold valid at 0 until rst is 0."

_STREAMS = [
    "A stream NAME has the ports NAME__payload, NAME__valid and NAME__ready. A beat moves at a clock edge where valid "
    "and ready are 1. Once valid is 1 it stays so until then, and the payload does not change; while valid is 0 the "
    "payload may be anything. Of arrays, element 0 is in the lowest bits.",
    "Of a stream that is not used: hold valid and payload of an input at 0, ready of an output at 1.",
]


def comment(lines):
    """Lines as a Verilog comment."""
    return "".join(f"// {line}".rstrip() + "\n" for line in lines)


def module_comment(summary, parameters):
    """What stands before a module that blocks share: its purpose and its parameters."""
    values = ", ".join(f"{name}={_text(value)}" for name, value in parameters.items())
    return comment(textwrap.wrap(summary, _WIDTH) + (textwrap.wrap(f"Parameters: {values}", _WIDTH) if values else []))


def file_header(name, contract, clocking):
    """What a component does, its configuration, and all that one must know to connect it."""
    lines = textwrap.wrap(f"{name}: {contract.summary}", _WIDTH)
    if contract.parameters:
        lines += ["", "Configuration"]
        lines += [f"  {key} = {_text(value)}" for key, value in contract.parameters.items()]
    streams = any(member["kind"] == "stream" for member in contract.members)
    if timing := list(_timing(contract, clocking, streams)):
        lines += ["", "Timing", *timing]
    lines += ["", "Ports"]
    for sentence in _STREAMS if streams else []:
        lines += _indented(sentence, 2)
    for member in contract.members:
        lines += ["", *_member(member)]
    return comment(lines)


def _timing(contract, clocking, streams):
    if contract.latency is not None:
        yield f"  latency {contract.latency} clocks, one beat every {contract.interval} clock(s)"
    elif contract.block is not None:
        yield "  latency depends on what the block is told to do"
    if clocking:
        yield "  clk rising edge" + ("; rst synchronous, active high" if "rst" in clocking else "; there is no reset")
    if streams and "rst" in clocking:
        yield f"  {_RESET}"


def _member(member):
    doc = f" {member['doc']}" if member["doc"] else ""
    yield from _indented(f"{member['name']}: {member['direction']} {member['kind']}, {_bits(member['width'])}.{doc}", 2)
    for field in member["fields"]:
        span = f"[{field['high']}:{field['low']}]" if field["high"] > field["low"] else f"[{field['low']}]"
        doc = f": {field['doc']}" if field["doc"] else ""
        yield from _indented(f"{span:>12} {field['name']} ({_bits(field['lanes'])}){doc}", 4, 17)


def _bits(width):
    return f"{width} bit" if str(width) == "1" else f"{width} bits"


def _indented(text, first, further=None):
    return textwrap.wrap(
        text, _WIDTH, initial_indent=" " * first, subsequent_indent=" " * (further or first), break_on_hyphens=False
    )


def _text(value):
    return str(value).lower() if isinstance(value, bool) or value is None else str(value)
