"""Lock-step pipelines: every register row advances together, or none does."""

from amaranth.hdl import Signal


class Pipeline:
    """Registers that share one ``advance`` enable.

    With ``source`` and ``sink`` streams the pipeline accepts a beat whenever its last stage is empty or taken:
    ``advance = ~sink.valid | sink.ready``. A block that is part of an enclosing pipeline passes that
    pipeline's enable as ``advance`` instead.
    """

    def __init__(self, m, source=None, sink=None, advance=None):
        self._m = m
        self._source, self._sink = source, sink
        if advance is None:
            advance = Signal(name="advance")
            m.d.comb += advance.eq(~sink.valid | sink.ready)
            m.d.comb += source.ready.eq(advance)
        self.advance = advance

    def register(self, value, *, name, stages=1):
        """``value`` delayed by ``stages`` advances; data only, so without reset. Views keep their layout."""
        for stage in range(1, stages + 1):
            delayed = Signal.like(value, name=name if stage == stages else f"{name}_{stage}", reset_less=True)
            with self._m.If(self.advance):
                self._m.d.sync += delayed.eq(value)
            value = delayed
        return value

    def control(self, value, *, name):
        """``value`` one advance later, cleared by reset."""
        delayed = Signal.like(value, name=name, init=0)
        with self._m.If(self.advance):
            self._m.d.sync += delayed.eq(value)
        return delayed

    def valid_chain(self, n_stages):
        """The valid bit after each of ``n_stages`` stages; the last one drives ``sink.valid``."""
        chain, valid = [], self._source.valid
        for stage in range(1, n_stages + 1):
            valid = self.control(valid, name=f"valid_{stage}")
            chain.append(valid)
        self._m.d.comb += self._sink.valid.eq(valid)
        return chain
