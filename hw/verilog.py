"""Makes Yosys' Verilog read well: modules apart, ANSI port lists, no leftovers of the tool."""

import re


def split_modules(text):
    """``{name: text of one module}`` in the order of the file."""
    return {match[1]: match[0] for match in re.finditer(r"^module (\\?\S+?)\s*\(.*?^endmodule$", text, re.M | re.S)}


def tidy(module, black_box=False):
    """One module with its ports declared in the header."""
    return ("(* blackbox *)\n" if black_box else "") + _ansi_ports(module) + "\n"


_PORT = re.compile(r"^  (input|output)( \[\d+:\d+\])? (\w+);\n", re.M)


def _ansi_ports(module):
    header = re.match(r"module (\S+?)\s*\((.*?)\);\n", module, re.S)
    name, order = header[1], re.findall(r"\w+", header[2])
    body = module[header.end():]
    ports = {}
    for match in _PORT.finditer(body):
        direction, width, port = match.groups()
        ports[port] = [direction, "wire", width or ""]
    body = _PORT.sub("", body)
    for port, fields in ports.items():
        declaration = re.compile(rf"^  (wire|reg)( \[\d+:\d+\])? {port};\n", re.M)
        found = declaration.search(body)
        if found:
            fields[1] = found[1]
            body = declaration.sub("", body, count=1)
    lines = [f"  {direction:6} {kind:4}{width} {port}" for port, (direction, kind, width) in
             ((port, ports[port]) for port in order)]
    return f"module {name} (\n" + ",\n".join(lines) + "\n);\n" + body
