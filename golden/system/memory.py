"""Memory behind the bus: bytes, which of them are defined, and addresses at which the bus answers with an error."""

import numpy as np

__all__ = ["SystemMemory"]


class SystemMemory:
    """``data`` and ``defined``, one entry a byte from address 0 on; beyond its end every access is an error.

    ``read_faults`` and ``write_faults`` are further ranges ``(first, end)`` of addresses with that answer.
    """

    def __init__(self, n_bytes):
        self.data = np.zeros(n_bytes, np.uint8)
        self.defined = np.ones(n_bytes, bool)
        self.read_faults, self.write_faults = [], []

    def place(self, address, data):
        """Put bytes or an array there, as software does."""
        values = np.frombuffer(
            bytes(data) if isinstance(data, bytes) else np.ascontiguousarray(data).tobytes(), np.uint8
        )
        self.data[address : address + len(values)] = values
        self.defined[address : address + len(values)] = True

    def fails(self, faults, first, end):
        """Whether an access to the bytes from ``first`` to ``end`` is answered with an error."""
        return end > len(self.data) or any(low < end and first < high for low, high in faults)
