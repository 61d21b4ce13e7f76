"""Allocation of a memory of the core: first fit, with words that can be given back."""

__all__ = ["Arena"]


class Arena:
    """The words of one memory; allocations are told apart by their first word."""

    def __init__(self, name, depth):
        self.name, self.depth = name, depth
        self._taken = {}  # first word: length

    @property
    def n_free(self):
        """Words that are free, in one piece or more."""
        return self.depth - sum(self._taken.values())

    def take(self, length, purpose):
        """The first of ``length`` free words; ``ValueError`` if there are not so many in one piece."""
        first, longest = 0, 0
        for taken, size in [*sorted(self._taken.items()), (self.depth, 0)]:
            if taken - first >= length:
                self._taken[first] = length
                return first
            longest = max(longest, taken - first)
            first = max(first, taken + size)
        raise ValueError(
            f"{self.name}: {purpose} needs {length} words; of {self.depth} there, {self.n_free} are free, "
            f"{longest} in one piece"
        )

    def put(self, first, length):
        """Take given words, whoever has them: they are this allocation's from now on."""
        end = first + length
        overlapped = [(at, size) for at, size in self._taken.items() if at < end and first < at + size]
        for at, size in overlapped:
            del self._taken[at]
            if at < first:
                self._taken[at] = first - at
            if end < at + size:
                self._taken[end] = at + size - end
        if length:
            self._taken[first] = length

    def free(self, first):
        """Give an allocation back; ``ValueError`` if there is none."""
        if first not in self._taken:
            raise ValueError(f"{self.name}: no allocation begins at word {first}")
        del self._taken[first]

    def allocations(self):
        """The first words of all allocations."""
        return set(self._taken)
