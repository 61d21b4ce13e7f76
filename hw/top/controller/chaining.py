"""ChainingChecker: whether a command may start while earlier ones are running."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib.wiring import In, Out

from golden.spec.commands import COMMANDS, FLAGS
from golden.spec.operands import DEPTH, Matrix
from hw.lib.block import Block
from hw.top.command_layout import COMMAND_LAYOUT
from hw.top.controller.command_checker import EXTENT
from hw.top.controller.command_decoder import CommandDecoder, any_term

__all__ = ["REUSED", "ChainingChecker", "users_of"]


def _writers(memory):
    """Rows of the command table that may join a chain and write a memory."""
    return [form for form in COMMANDS if form.chained(form.reads) and form.of_memory(memory)[1]]


REUSED = tuple(memory for memory in DEPTH if memory != "imem" and _writers(memory))
"""Memories that a command of a chain may write; of IMEM the words are compared, of these the users."""


def users_of(memory):
    """Rows of the command table that may be using such a memory when the next command is about to write it."""
    units = {form.unit for form in _writers(memory)}
    return [form for form in COMMANDS if any(form.of_memory(memory)) and not form.is_transfer and {form.unit} != units]


def _chained(memory, is_written):
    """Operands whose rows are handed over, or taken: one for each place in the command, and the rows of the table."""
    found = {}
    for form in COMMANDS:
        operand = form.chained(form.of_memory(memory)[is_written])
        if operand is not None:
            found.setdefault(operand.base, (operand, []))[1].append(form)
    return found.values()


class ChainingChecker(Block):
    """Concurrent commands form a chain: each one reads, row by row, what the one before it writes.

    A command may join if it processes the same rows as the one before and reads its result (the operands that the
    command table calls chained), and if what it writes is neither read nor written by any other command of the chain,
    nor its second operand written. Ranges of IMEM are taken together, from the first to the last word that the chain
    reads, and that it writes; so the check is conservative.
    """

    members_doc = {
        "command": "the command to be issued",
        "source_extent": "words of IMEM that it reads as rows",
        "source_2_extent": "words of IMEM that it reads as second operands",
        "destination_extent": "words of IMEM that it writes",
        "tokens_ascending": "the token list is strictly ascending",
        "begin": "the command starts, and the core was idle",
        "join": "the command starts and joins the chain",
        **{f"{memory}_in_use": f"a command at work uses the {memory}" for memory in REUSED},
        "fits": "the command may join, as far as its rows and its words are concerned",
    }

    @staticmethod
    def members(p):
        return {
            "command": In(COMMAND_LAYOUT),
            "source_extent": In(EXTENT),
            "source_2_extent": In(EXTENT),
            "destination_extent": In(EXTENT),
            "tokens_ascending": In(1),
            "begin": In(1),
            "join": In(1),
            **{f"{memory}_in_use": In(1) for memory in REUSED},
            "fits": Out(1),
        }

    def circuit(self):
        m = Module()
        command = self.command
        previous = Signal(COMMAND_LAYOUT)
        previous_end = Signal(17)
        with m.If(self.begin | self.join):
            m.d.sync += [previous.eq(command), previous_end.eq(self.destination_extent.end)]
        self._previous, self._previous_end = previous, previous_end
        self._decoder = CommandDecoder(m, command)
        self._previous_decoder = CommandDecoder(m, previous, prefix="previous_")

        read = self._union(m, "both_read", self.source_extent, self.source_2_extent)
        chain_read, chain_written = (
            self._enclosing_range(m, "read", read),
            self._enclosing_range(m, "written", self.destination_extent),
        )
        gated = FLAGS["gated"]
        same_rows = (
            (previous.n_rows == command.n_rows)
            & (((previous.flags ^ command.flags) & gated) == 0)
            & (((command.flags & gated) == 0) | self.tokens_ascending)
        )
        # A memory may be overwritten only when the commands that read it are done.
        overwrites = any_term(
            self._decoder.any_of(_writers(memory)) & getattr(self, f"{memory}_in_use") for memory in REUSED
        )
        conflict = Signal()
        m.d.comb += [
            conflict.eq(
                self._meet(self.destination_extent, chain_read)
                | self._meet(self.destination_extent, chain_written)
                | self._meet(self.source_2_extent, chain_written)
            ),
            self.fits.eq(same_rows & any_term(map(self._reads_result, DEPTH)) & ~overwrites & ~conflict),
        ]
        return m

    def _reads_result(self, memory):
        """The command reads the rows of a memory that the command before hands over, at the same location."""
        terms = []
        for result, giving in _chained(memory, is_written=True):
            for source, taking in _chained(memory, is_written=False):
                is_same = self._previous[result.base] == self.command[source.base]
                if isinstance(source, Matrix):
                    is_same &= self._previous[result.stride] == self.command[source.stride]
                    is_same &= getattr(self, f"{source.base}_extent").end <= self._previous_end
                else:
                    for name in source.layout:
                        is_same &= self._previous[name] == self.command[name]
                terms.append(self._previous_decoder.any_of(giving) & self._decoder.any_of(taking) & is_same)
        return any_term(terms)

    def _enclosing_range(self, m, name, extent):
        """The enclosing range of all words that the chain reads, or writes."""
        enclosing = Signal(EXTENT, name=f"{name}_words")
        with m.If(self.begin):
            m.d.sync += enclosing.eq(extent)
        with m.Elif(self.join):
            m.d.sync += enclosing.eq(self._union(m, f"{name}_union", enclosing, extent))
        return enclosing

    @staticmethod
    def _union(m, name, one, other):
        """The smallest extent with the words of both."""
        union = Signal(EXTENT, name=name)
        m.d.comb += [
            union.is_used.eq(one.is_used | other.is_used),
            union.first.eq(Mux(~one.is_used | (other.is_used & (other.first < one.first)), other.first, one.first)),
            union.end.eq(Mux(~one.is_used | (other.is_used & (other.end > one.end)), other.end, one.end)),
        ]
        return union

    @staticmethod
    def _meet(one, other):
        return one.is_used & other.is_used & (one.first < other.end) & (other.first < one.end)
