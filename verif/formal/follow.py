"""Following one of many groups of beats (a latent, a row, a list) through a block, the one that the solver picks."""

from amaranth.hdl import Mux, Signal

__all__ = ["Followed", "Output"]


class Followed:
    """``starts``: the first beat of a group is accepted; ``most`` groups may be inside.

    :attr:`now` says that this beat begins the followed group; :attr:`busy` that one is being followed, until all of its
    outputs have been :meth:`output` to the end.
    """

    def __init__(self, c, starts, most, name="group"):
        self._c, self._most, self._starts, self._name = c, most, starts, name
        self.busy = Signal(name=f"{name}_followed")
        self.now = Signal(name=f"{name}_begins")
        self._open = []
        c.m.d.comb += self.now.eq(c.free(1, f"{name}_pick") & starts & ~self.busy)

    def output(self, ends, name):
        """An output stream, where ``ends`` says that a group's last beat is given; returns an :class:`Output`.

        Its ``is_turn``: what the output gives now belongs to the followed group; ``inside``: so many groups have begun
        and not ended there.
        """
        c, m = self._c, self._c.m
        inside = Signal(range(self._most + 2), name=f"{name}_inside")
        m.d.sync += inside.eq(inside + self._starts - ends)
        c.claim(f"{name}: at most {self._most} inside", inside <= self._most)
        pending, ahead = Signal(name=f"{name}_pending"), Signal(range(self._most + 2), name=f"{name}_ahead")
        with m.If(self.now):
            m.d.sync += [pending.eq(1), ahead.eq(inside - ends)]
        with m.Elif(pending & ends):
            m.d.sync += [pending.eq(ahead != 0), ahead.eq(Mux(ahead == 0, 0, ahead - 1))]
        self._open.append(pending)
        return Output(inside, pending, pending & (ahead == 0))

    def finish(self):
        """Call it when all outputs are known."""
        self._c.m.d.comb += self.busy.eq(sum(self._open[1:], self._open[0]) != 0)


class Output:
    """See :meth:`Followed.output`."""

    def __init__(self, inside, pending, is_turn):
        self.inside, self.pending, self.is_turn = inside, pending, is_turn
