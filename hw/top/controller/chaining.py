"""ChainingChecker: whether a command may begin while earlier ones still work, and on whose rows it then waits."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib.wiring import In, Out

from golden.spec.commands import FLAGS, Opcode
from hw.lib.block import Block
from hw.top.command_layout import COMMAND_LAYOUT
from hw.top.controller.command_checker import EXTENT

__all__ = ["ChainingChecker"]

_PRODUCERS = (Opcode.MATMUL, Opcode.SPMM, Opcode.ELEMENTWISE, Opcode.LAYER_NORM)
_CONSUMERS = (Opcode.MATMUL, Opcode.SDDMM, Opcode.ELEMENTWISE, Opcode.LAYER_NORM)


class ChainingChecker(Block):
    """Commands that work at the same time are a chain: each reads, row by row, what the one before it writes.

    A command may join if it processes the same rows as the one before and reads its result (scores by SOFTMAX,
    probabilities by SPMM, a matrix in IMEM by its first operand), and if what it writes is neither read nor written
    by any other command of the chain, nor its second operand written. Ranges of IMEM are taken together, from the
    first to the last word that the chain reads, and that it writes; so now and then a command waits without need.
    """

    members_doc = {
        "command": "the command that asks",
        "reads": "words of IMEM that it reads as rows",
        "second_reads": "words of IMEM that it reads as second operands",
        "writes": "words of IMEM that it writes",
        "tokens_ascending": "no row comes twice in the token list",
        "begin": "the command begins, and the core was idle",
        "join": "the command begins, and joins the chain",
        "softmax_busy": "a SOFTMAX is at work",
        "spmm_busy": "an SPMM is at work",
        "fits": "the command may join, as far as its rows and its words are concerned",
    }

    @staticmethod
    def members(p):
        return {
            "command": In(COMMAND_LAYOUT),
            "reads": In(EXTENT),
            "second_reads": In(EXTENT),
            "writes": In(EXTENT),
            "tokens_ascending": In(1),
            "begin": In(1),
            "join": In(1),
            "softmax_busy": In(1),
            "spmm_busy": In(1),
            "fits": Out(1),
        }

    def circuit(self):
        m = Module()
        command = self.command
        before = Signal(COMMAND_LAYOUT)
        before_end = Signal(17)
        with m.If(self.begin | self.join):
            m.d.sync += [before.eq(command), before_end.eq(self.writes.end)]
        both = self._union(m, "both_read", self.reads, self.second_reads)
        read, written = (self._hull(m, name, extent) for name, extent in (("read", both), ("written", self.writes)))

        def one_of(opcode, codes):
            result = opcode == codes[0]
            for code in codes[1:]:
                result = result | (opcode == code)
            return result

        gated = FLAGS["gated"]
        same_rows = (
            (before.n_rows == command.n_rows)
            & (((before.flags ^ command.flags) & gated) == 0)
            & (((command.flags & gated) == 0) | self.tokens_ascending)
        )
        same_kept = (
            (before.destination == command.source) & (before.mask == command.mask) & (before.n_out == command.n_out)
        )
        same_matrix = (
            (before.destination == command.source)
            & (before.destination_stride == command.source_stride)
            & (self.reads.end <= before_end)
        )
        softmax = (before.opcode == Opcode.SDDMM) & (command.opcode == Opcode.SOFTMAX) & same_kept & ~self.spmm_busy
        spmm = (before.opcode == Opcode.SOFTMAX) & (command.opcode == Opcode.SPMM) & same_kept
        # Scores may be written anew only when nobody reads the old ones.
        overwrites_scores = (command.opcode == Opcode.SDDMM) & self.softmax_busy
        rows = one_of(before.opcode, _PRODUCERS) & one_of(command.opcode, _CONSUMERS) & same_matrix & ~overwrites_scores
        conflict = Signal()
        m.d.comb += [
            conflict.eq(
                self._meet(self.writes, read)
                | self._meet(self.writes, written)
                | self._meet(self.second_reads, written)
            ),
            self.fits.eq(same_rows & (softmax | spmm | rows) & ~conflict),
        ]
        return m

    def _hull(self, m, name, extent):
        """All words that the chain reads, or writes, from the first to the last one."""
        hull = Signal(EXTENT, name=f"{name}_words")
        with m.If(self.begin):
            m.d.sync += hull.eq(extent)
        with m.Elif(self.join):
            m.d.sync += hull.eq(self._union(m, f"{name}_union", hull, extent))
        return hull

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
