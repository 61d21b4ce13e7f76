"""Makes Yosys' Verilog read well: ANSI port lists, intermediate nets folded into their only use, registers grouped."""

import re

from hw.emit.verilog_subset import plain_reductions, plain_selections

MAX_LINE = 118


def split_modules(text):
    """``{name: text of one module}`` in the order of the file."""
    return {match[1]: match[0] for match in re.finditer(r"^module (\S+?)\s*\(.*?^endmodule$", text, re.M | re.S)}


def tidy(module, black_box=False):
    """One module in the form in which it is given to the user."""
    name, header, body = _ansi_ports(_plain_names(module))
    body = _replications(plain_selections(body))
    body = _fold_nets(header, body)
    body = _group_registers(plain_reductions(body))
    text = f"module {name} (\n{header}\n);\n{body}\n"
    return undriven(f"(* blackbox *)\n{text}") if black_box else text


def undriven(text):
    """Tell Verilator that the outputs of these modules are driven by what takes their place."""
    return f"/* verilator lint_off UNDRIVEN */\n{text}/* verilator lint_on UNDRIVEN */\n"


# Ports -----------------------------------------------------------------------------------------------------------

_PORT = re.compile(r"^  (input|output)((?: signed)?(?: \[\d+:\d+\])?) (\w+);\n", re.M)


def _ansi_ports(module):
    """Split a module into its name, an ANSI port list and the rest."""
    opening = re.match(r"module (\S+?)\s*\((.*?)\);\n", module, re.S)
    order, body = re.findall(r"\w+", opening[2]), module[opening.end() :]
    direction = {match[3]: match[1] for match in _PORT.finditer(body)}
    body = _PORT.sub("", body)
    lines = []
    for port in order:
        declaration = re.search(rf"^  (wire|reg)((?: signed)?(?: \[\d+:\d+\])?) {port};\n", body, re.M)
        body = body[: declaration.start()] + body[declaration.end() :]
        lines.append(f"  {direction[port]:6} {declaration[1]:4}{declaration[2]} {port}")
    return opening[1], ",\n".join(lines), body


# Names -----------------------------------------------------------------------------------------------------------

_BIT_REGISTER = re.compile(r"\\(\w+)\[(\d+)\] ")


def _plain_names(module):
    """The register that Yosys makes of one bit of a vector, ``\\name_reg[3] ``, becomes ``name_reg_3``."""
    used = set(re.findall(r"\w+", module))
    names = {}
    for match in _BIT_REGISTER.finditer(module):
        if match[0] not in names:
            name = f"{match[1]}_{match[2]}"
            while name in used:
                name += "_"
            used.add(name)
            names[match[0]] = name
    return _BIT_REGISTER.sub(lambda match: names[match[0]], module)


# Concatenations --------------------------------------------------------------------------------------------------

_CONCATENATION = re.compile(r"\{ ([^{}]+) \}")


def _replications(body):
    """``{ a, a, a, b }`` becomes ``{ {3{a}}, b }``."""

    def shorten(match):
        runs = []
        for item in match[1].split(", "):
            if runs and runs[-1][0] == item:
                runs[-1][1] += 1
            else:
                runs.append([item, 1])
        if all(count < 3 for _, count in runs):
            return match[0]
        words = [f"{{{count}{{{item}}}}}" if count > 2 else ", ".join([item] * count) for item, count in runs]
        return words[0] if len(words) == 1 else "{ " + ", ".join(words) + " }"

    return _CONCATENATION.sub(shorten, body)


# Intermediate nets -----------------------------------------------------------------------------------------------

_DECLARATION = re.compile(r"(?:wire|reg) *(?:\[(\d+):(\d+)\] )?(\w+)")
_NET = re.compile(r"\b_\d+_(?![\w\[])")
_ANY_NET = re.compile(r"\b_\d+_\b")
_OPERAND = (
    r"(?:\w+(?:'h?[\w?]+)?(?:\[\d+(?::\d+)?\])?|\{[^()]*?\}\}?|\([^()]*(?:\([^()]*(?:\([^()]*\)[^()]*)*\)[^()]*)*\))"
)
_UNARY = re.compile(rf"^(~|!|&|\||\^|~\^) ({_OPERAND})$")
_BINARY = re.compile(rf"^({_OPERAND}) (&&|\|\||[&|^+*-]|==|!=|<=?|>=?|<<<?|>>>?) ({_OPERAND})$")
_TERNARY = re.compile(rf"^({_OPERAND}) \? ({_OPERAND}) : ({_OPERAND})$")
_ONE_BIT = {"!", "&&", "||", "==", "!=", "<", "<=", ">", ">="}
_ASSIGN = re.compile(r"^  assign (.+?) = (.+);$")
_REGISTER = re.compile(r"^(    (?:else )?(?:if \(.*?\) )?)(\S+) <= (.+);$")


class _Widths:
    """Widths of the simple operands that Yosys writes; ``None`` where it cannot be told."""

    def __init__(self, text):
        self._named = {match[3]: int(match[1] or 0) - int(match[2] or 0) + 1 for match in _DECLARATION.finditer(text)}
        self.folded = {}

    def of(self, operand):
        if operand in self.folded:
            return self.folded[operand]
        if match := re.fullmatch(r"(\w+)", operand):
            return self._named.get(operand)
        if match := re.fullmatch(r"(\d+)'h?[\w?]+", operand):
            return int(match[1])
        if match := re.fullmatch(r"\w+\[(\d+)(?::(\d+))?\]", operand):
            return int(match[1]) - int(match[2] or match[1]) + 1
        if match := re.fullmatch(r"\{(\d+)\{([^{}]+)\}\}", operand):
            width = self.of(match[2])
            return width and int(match[1]) * width
        if match := re.fullmatch(r"\{ (.+) \}", operand):
            parts = [self.of(part) for part in re.split(r", (?![^{}]*\}\})", match[1])]
            return None if None in parts else sum(parts)
        return None


def _shape(expression, width, widths):
    """How an expression may be folded into its use: "anywhere", "same width", "assignment" or ``None``.

    Verilog evaluates most operators at the width of the context. Comparisons, and bitwise operations on operands of
    the full width, give the same bits in a wider context; an inverted operand does not, nor does a sum.
    """
    if match := _UNARY.match(expression):
        operator, operand = match.groups()
        if operator == "~":
            return "same width" if widths.of(operand) == width else None
        return "anywhere" if width == 1 else None
    if match := _TERNARY.match(expression):
        return "anywhere" if widths.of(match[2]) == widths.of(match[3]) == width else "assignment"
    if match := _BINARY.match(expression):
        first, operator, second = match.groups()
        if operator in _ONE_BIT:
            return "anywhere" if width == 1 else None
        if operator in "&|^":
            return "anywhere" if widths.of(first) == widths.of(second) == width else "assignment"
        return "assignment"
    return None


def _folded(line, net, expression, shape, width, widths):
    """The line with the net replaced by its expression, or ``None`` where that could change the value."""
    match = _ASSIGN.match(line)
    target, value = (match[1], match[2]) if match else (None, None)
    if match is None and (match := _REGISTER.match(line)):
        target, value = match[2], match[3]
        if net not in _ANY_NET.findall(value):  # the condition: self-determined
            if shape == "assignment" or width != 1:
                return None
            bare = line.replace(f"({net})", f"({expression})")
            return bare if bare != line else _NET.sub(lambda m: f"({expression})" if m[0] == net else m[0], line)
    if match is None:
        return None
    target_width = widths.of(target)
    if value == net:
        return line[: match.start(match.lastindex)] + expression + ";" if target_width == width else None
    if shape == "assignment":
        return None
    if shape == "same width":
        form = _BINARY.match(value) or _TERNARY.match(value)
        if form is None:
            return None
        is_condition = len(form.groups()) == 3 and form.re is _TERNARY and form[1] == net
        bitwise = form.re is _TERNARY or form[2] in "&|^"
        if not (is_condition and width == 1) and not (bitwise and target_width == width):
            return None
    elif not (_UNARY.match(value) or _BINARY.match(value) or _TERNARY.match(value)):
        return None
    wrapped = f"({expression})"
    widths.folded[wrapped] = width
    return _NET.sub(lambda found: wrapped if found[0] == net else found[0], line)


def _fold_nets(header, body):
    """Fold each numbered net that is used once into its use."""
    lines = body.split("\n")
    widths = _Widths(header + "\n" + body)
    uses, definition = {}, {}
    for index, line in enumerate(lines):
        if re.match(r"  wire (?:\[\d+:\d+\] )?_\d+_;$", line):
            continue
        match = _ASSIGN.match(line)
        for net in _ANY_NET.findall(line):
            uses.setdefault(net, []).append(index)
        if match and _ANY_NET.fullmatch(match[1]):
            definition[match[1]] = index
    gone = set()
    position = {}  # where a folded line's nets went
    for net, index in definition.items():
        places = [place for place in uses[net] if place != index]
        if len(places) != 1 or uses[net].count(index) != 1:
            continue
        place = places[0]
        while place in position:
            place = position[place]
        expression = _ASSIGN.match(lines[index])[2]
        width = widths.of(net)
        shape = _shape(expression, width, widths)
        if shape is None or lines[place] is None or len(lines[place]) + len(expression) > MAX_LINE:
            continue
        replaced = _folded(lines[place], net, expression, shape, width, widths)
        if replaced is None or replaced == lines[place]:
            continue
        lines[place], lines[index] = replaced, None
        position[index] = place
        gone.add(net)
    kept = []
    for line in lines:
        match = line is not None and re.match(r"  wire (?:\[\d+:\d+\] )?(_\d+_);$", line)
        if line is not None and not (match and match[1] in gone):
            kept.append(line)
    return "\n".join(kept)


# Registers -------------------------------------------------------------------------------------------------------

_ALWAYS = re.compile(
    r"^  always @\((posedge clk)\)\n"
    r"(?:    if \((.*)\) (\S+) <= (.*);\n(?:    else if \((.*)\) \3 <= (.*);\n|    else \3 <= (.*);\n)?"
    r"|    (\S+) <= (.*);\n)",
    re.M,
)


def _group_registers(body):
    """One always block for all registers with the same reset and enable."""
    groups, spans = {}, []
    for match in _ALWAYS.finditer(body):
        _, condition, target, value, enable, enabled, otherwise, plain, plain_value = match.groups()
        if plain:
            key, branches = ("plain",), [(plain, plain_value)]
        elif enable is not None:
            key, branches = ("reset", condition, enable), [(target, value), (target, enabled)]
        elif otherwise is not None:
            key, branches = ("reset", condition, None), [(target, value), (target, otherwise)]
        else:
            key, branches = ("enable", condition), [(target, value)]
        groups.setdefault(key, []).append(branches)
        spans.append((match.start(), match.end(), key))
    out, last, written = [], 0, set()
    for start, end, key in spans:
        out.append(body[last:start])
        if key not in written:
            written.add(key)
            out.append(_always(key, groups[key]))
        last = end
    return "".join(out) + body[last:]


def _always(key, registers):
    def block(opening, branch):
        assignments = [f"{target} <= {value};" for target, value in (branches[branch] for branches in registers)]
        if len(assignments) == 1:
            return f"{opening}{assignments[0]}\n"
        return f"{opening}begin\n" + "".join(f"      {line}\n" for line in assignments) + "    end\n"

    text = "  always @(posedge clk)\n"
    if key[0] == "plain":
        return (
            text.replace(")\n", ") begin\n") + block("", 0)[6:].replace("      ", "    ").replace("    end", "  end")
            if len(registers) > 1
            else text + block("    ", 0)
        )
    text += block(f"    if ({key[1]}) ", 0)
    if key[0] == "reset":
        text += block("    else " if key[2] is None else f"    else if ({key[2]}) ", 1)
    return text
