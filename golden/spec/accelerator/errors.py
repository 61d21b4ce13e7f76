"""Why an accelerator stopped: the codes of register ERROR."""

from golden.spec.commands import Documented

__all__ = ["AcceleratorError"]


class AcceleratorError(Documented):
    """The first error in the order of the descriptors; of one descriptor, the first of this list."""

    NONE = 0, "no error"
    RING_RANGE = 1, "TAIL is more than the size of the ring ahead of DONE, or the ring is longer than it may be"
    RING_ALIGNMENT = 2, "the base of the ring is no multiple of 64, or has bits beyond address_width"
    DIRECT_BUSY = 3, "the window or DIRECT_SUBMIT was written while STATUS.direct_ready was 0"
    FETCH_RESPONSE = 4, "the bus answered the read of a descriptor with SLVERR or DECERR"
    FLAGS = 5, "a bit of flags that has no meaning, or of the reserved word, is 1"
    LENGTH = 6, "length is not what the command takes"
    ALIGNMENT = 7, "address or pitch is odd"
    ADDRESS = 8, "address has bits beyond address_width"
    REFUSED = 9, "the core refused the command: ERROR.reason says why"
    LOAD_RESPONSE = 10, "the bus answered a read of data with SLVERR or DECERR"
    STORE_RESPONSE = 11, "the bus answered a write with SLVERR or DECERR"


ADDRESS_OF = {
    "FETCH_RESPONSE": "the descriptor's",
    "LOAD_RESPONSE": "the first byte of the beat",
    "STORE_RESPONSE": "the first byte of the burst",
}
"""What ERROR_ADDRESS tells; of FLAGS to REFUSED it is the descriptor's ``address``, else 0."""
