"""The memories of probabilities beside an SpMM array, as an endpoint of a simulation's clock."""

from verif.bench.endpoints import StallPattern, word

__all__ = ["ProbabilityBanks"]


class ProbabilityBanks:
    """Answers the array's reads a clock later, refuses some of them, and gives the pulse of ``start``.

    ``load`` is called when a run begins: it has the banks' words ``[engines][depth]``. A word that is not read changes
    to noise where ``holds`` is off: the array must not look at it again.
    """

    name, done = "probability", True

    def __init__(self, dut, p, rng):
        self._dut, self._rng = dut, rng
        self._n_engines, self._width = p.n_engines, p.probability_address_width
        self._word_width = p.float_format.width
        self._stall = None
        self._starts, self._words, self._next = False, None, [0] * p.n_engines
        self.reads = 0

    def load(self, words, pattern):
        """Begin a run with these words; reads are refused by a pattern of stalls."""
        self._words, self._starts = words, True
        self._stall = [StallPattern(pattern, self._rng) for _ in range(self._n_engines)]

    def drive(self, cycle):
        dut = self._dut
        dut.start.value = int(self._starts)
        self._starts = False
        self._ready = [not stall.stalls() for stall in self._stall] if self._stall else [True] * self._n_engines
        dut.probability_ready.value = sum(ready << engine for engine, ready in enumerate(self._ready))
        value = 0
        for engine, each in enumerate(self._next):
            value |= each << engine * self._word_width
        dut.probability_word.value = value

    def sample(self, cycle):
        enable, address = word(self._dut.probability_enable), word(self._dut.probability_address)
        self._next = [self._rng.getrandbits(self._word_width) for _ in range(self._n_engines)]
        for engine in range(self._n_engines):
            if self._words is not None and enable is not None and enable >> engine & self._ready[engine] & 1:
                at = self._address(engine, address)
                self._next[engine] = self._words[engine][at]
                self.reads += 1
        return False

    def _address(self, engine, address):
        """An engine's address; those of others may be X."""
        if address is None:
            text = str(self._dut.probability_address.value)
            high = len(text) - engine * self._width
            return int(text[high - self._width : high], 2)
        return address >> engine * self._width & ((1 << self._width) - 1)
