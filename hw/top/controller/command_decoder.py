"""Decoder of a command to its row of the command table."""

from amaranth.hdl import Mux, Signal

from golden.spec.commands import COMMANDS, FLAGS, forms_of

__all__ = ["CommandDecoder", "any_term"]


class CommandDecoder:
    """Conditions on opcode and function of a command, created on first use.

    They are undefined for commands with illegal functions or flags.
    """

    def __init__(self, m, command, prefix=""):
        self._m, self._command, self._prefix = m, command, prefix
        self._made = {}

    def _named(self, name, make):
        if name not in self._made:
            signal = Signal(name=f"{self._prefix}{name}")
            self._m.d.comb += signal.eq(make())
            self._made[name] = signal
        return self._made[name]

    def is_opcode(self, opcode):
        return self._named(f"is_{opcode.name.lower()}", lambda: self._command.opcode == opcode)

    def is_function(self, number):
        return self._named(f"function_is_{number}", lambda: self._command.function == number)

    def has_flag(self, name):
        return self._named(f"has_{name}", lambda: (self._command.flags & FLAGS[name]).any())

    def any_of(self, forms):
        """Whether the command follows one of these rows of the table."""
        by_functions = {}
        for opcode in dict.fromkeys(form.opcode for form in forms):
            chosen = [form for form in forms if form.opcode == opcode]
            is_all = len(chosen) == len(forms_of(opcode))
            functions = () if is_all else tuple(number for form in chosen for number in form.functions)
            by_functions.setdefault(functions, []).append(self.is_opcode(opcode))
        return any_term(
            any_term(opcodes) & any_term(map(self.is_function, functions)) if functions else any_term(opcodes)
            for functions, opcodes in by_functions.items()
        )

    def uses(self, operands):
        """Whether the command reads or writes one of these ``(form, operand)``, some of which depend on a flag."""
        by_flag = {}
        for form, operand in operands:
            by_flag.setdefault(getattr(operand, "flag", None), []).append(form)
        terms = []
        for flag, forms in by_flag.items():
            if flag is None:
                terms.append(self.any_of(forms))
            elif all(form in forms for form in COMMANDS if flag in form.flags):
                terms.append(self.has_flag(flag))
            else:
                terms.append(self.any_of(forms) & self.has_flag(flag))
        return any_term(terms)

    def choose(self, cases):
        """The value that belongs to the command's row of the table: ``cases`` are ``(forms, value)``.

        Of the values, the one with most rows is that of all other commands too.
        """
        (_, result), *others = sorted(cases, key=lambda case: len(case[0]), reverse=True)
        for forms, value in others:
            result = Mux(self.any_of(forms), value, result)
        return result


def any_term(terms):
    """Any of some conditions; False if there are none."""
    result = None
    for term in terms:
        result = term if result is None else result | term
    return 0 if result is None else result
