"""The driver's calls in Python: sparse_dit.c as a shared library, on registers that are reached by two functions.

    device = Device(build_library("build/driver"), read, write)  # functions of a register's offset (and value)
    device.open(ring, address, log2=6)  # ring: a NumPy array that the machine sees at address
    device.submit(Descriptor(command=..., length=..., address=...))
    device.wait()

A call that fails raises :class:`DriverError` with the text of ``dit_text``.
"""

import ctypes
import subprocess
from pathlib import Path
from typing import NamedTuple

from golden.spec.accelerator.descriptor import DESCRIPTOR_FIELDS, Descriptor
from golden.spec.accelerator.errors import AcceleratorError
from golden.spec.commands import FIELDS, ErrorCode
from hw.cli import command_documents, register_documents
from hw.emit.package import write_files

__all__ = ["Device", "DriverError", "Failure", "build_library"]

_SOURCES = Path(__file__).parent
_SIZES = (
    *("n_banks", "n_lanes", "simd_lanes", "row_word", "max_tokens", "max_head_dim", "max_dim", "n_masks"),
    *("rows_a_mask", "key_slots", "imem_depth", "wmem_depth", "vmem_depth", "omem_depth", "pmem_depth"),
    *("latent_length", "data_width", "address_width", "max_ring_log2"),
)


def build_library(folder, compiler="cc"):
    """Compile the driver with its generated headers; the path of the shared library."""
    folder = Path(folder)
    headers = {
        command_documents.HEADER: command_documents.c_header(),
        register_documents.HEADER: register_documents.c_header(),
    }
    write_files(folder, headers)
    library = folder / "libsparse_dit.so"
    flags = ["-std=c99", "-O1", "-Wall", "-Wextra", "-Wconversion", "-pedantic", "-Werror", "-fPIC", "-shared"]
    sources = ["-I", str(folder), "-I", str(_SOURCES), str(_SOURCES / "sparse_dit.c")]
    subprocess.run([compiler, *flags, *sources, "-o", str(library)], check=True)
    return library


class DriverError(RuntimeError):
    """A call failed; ``result`` is the number that it returned."""

    def __init__(self, text, result):
        super().__init__(text)
        self.result = result


class Failure(NamedTuple):
    """Why the machine has stopped."""

    code: AcceleratorError
    reason: ErrorCode
    number: int
    address: int


_Read = ctypes.CFUNCTYPE(ctypes.c_uint32, ctypes.c_void_p, ctypes.c_uint32)
_Write = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_uint32)
_Call = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


def _whole(width):
    return ctypes.c_uint8 if width <= 8 else ctypes.c_uint16 if width <= 16 else ctypes.c_uint32


class _Port(ctypes.Structure):
    _fields_ = (("read", _Read), ("write", _Write), ("barrier", _Call), ("relax", _Call), ("context", ctypes.c_void_p))


class _Sizes(ctypes.Structure):
    _fields_ = tuple((name, ctypes.c_uint32) for name in _SIZES)


class _Device(ctypes.Structure):
    _fields_ = (
        ("port", _Port),
        ("sizes", _Sizes),
        ("ring", ctypes.c_void_p),
        ("slots", ctypes.c_uint32),
        ("tail", ctypes.c_uint32),
    )


class _Command(ctypes.Structure):
    _fields_ = tuple((item.name, _whole(item.width)) for item in FIELDS)


class _Descriptor(ctypes.Structure):
    _fields_ = (
        ("command", _Command),
        ("flags", ctypes.c_uint32),
        ("number", ctypes.c_uint32),
        ("length", ctypes.c_uint32),
        ("pitch", ctypes.c_uint32),
        ("address", ctypes.c_uint64),
    )


class _Failure(ctypes.Structure):
    _fields_ = (
        ("code", ctypes.c_uint32),
        ("reason", ctypes.c_uint32),
        ("number", ctypes.c_uint32),
        ("address", ctypes.c_uint64),
    )


class Device:
    """An accelerator, found by ``read(offset)`` and ``write(offset, value)`` of its registers.

    ``relax()``, if given, is called between two polls. ``limit`` is always the number of polls after which a call
    gives up; 0 is no limit.
    """

    def __init__(self, library, read, write, relax=None):
        self._library = ctypes.CDLL(str(library))
        self._library.dit_text.restype = ctypes.c_char_p
        self._library.dit_stop_text.restype = ctypes.c_char_p
        self._library.dit_descriptor_for.restype = _Descriptor
        self._library.dit_length.restype = self._library.dit_take_interrupts.restype = ctypes.c_uint32
        # The library calls these as long as the device lives.
        self._port = _Port(
            _Read(lambda _, offset: read(offset)),
            _Write(lambda _, offset, value: write(offset, value)),
            _Call(),
            _Call() if relax is None else _Call(lambda _: relax()),
            None,
        )
        self._device, self._ring = _Device(), None
        self._call("probe", ctypes.byref(self._port))

    def _call(self, name, *arguments):
        result = getattr(self._library, f"dit_{name}")(ctypes.byref(self._device), *arguments)
        if result < 0:
            raise DriverError(self._library.dit_text(result).decode(), result)
        return result

    @property
    def sizes(self):
        """``{name: number}``, as the registers tell them."""
        return {name: getattr(self._device.sizes, name) for name in _SIZES}

    def open(self, ring, address, log2):
        """Use 2**log2 slots as ring: ``ring``, an array of bytes, which the machine sees at ``address``."""
        if ring.nbytes < 64 << log2:
            raise ValueError(f"ring must have at least {64 << log2} bytes, not {ring.nbytes}")
        self._ring = ring
        self._call("open", ctypes.c_void_p(ring.ctypes.data), ctypes.c_uint64(address), ctypes.c_uint32(log2))

    def close(self, limit=0):
        """Wait until nothing is under way and stop fetching."""
        self._call("close", ctypes.c_uint32(limit))

    def submit(self, descriptor):
        """Put a descriptor into the ring and start it; returns what :meth:`is_complete` takes."""
        position = ctypes.c_uint32()
        self._call("submit", ctypes.byref(_packed(descriptor)), ctypes.byref(position))
        return position.value

    def is_complete(self, position):
        """Whether the descriptor and all before it are complete."""
        return bool(self._call("is_complete", ctypes.c_uint32(position)))

    def wait(self, limit=0):
        """Poll until all descriptors are complete."""
        self._call("wait", ctypes.c_uint32(limit))

    def execute(self, descriptor, limit=0):
        """Execute one descriptor without a ring."""
        self._call("execute", ctypes.byref(_packed(descriptor)), ctypes.c_uint32(limit))

    def enable_interrupts(self, events):
        """``events``: bits of INTERRUPT_ENABLE."""
        self._library.dit_enable_interrupts(ctypes.byref(self._device), ctypes.c_uint32(events))

    def take_interrupts(self):
        """The events that have come since the last call."""
        return self._library.dit_take_interrupts(ctypes.byref(self._device))

    def failure(self):
        """Why the machine has stopped; None if it has not."""
        found = _Failure()
        if not self._library.dit_get_failure(ctypes.byref(self._device), ctypes.byref(found)):
            return None
        return Failure(AcceleratorError(found.code), ErrorCode(found.reason), found.number, found.address)

    def clear(self, limit=0):
        """Drop all that was not begun and make the machine ready again."""
        self._call("clear", ctypes.c_uint32(limit))

    def descriptor_for(self, command, address=0):
        """The :class:`Descriptor` of a command, with its length, rows without gaps in memory, and no flags."""
        sizes, packed = ctypes.byref(self._device.sizes), ctypes.byref(_command(command))
        made = self._library.dit_descriptor_for(sizes, packed, ctypes.c_uint64(address))
        return Descriptor(command=command, length=made.length, pitch=made.pitch, address=made.address)

    def stop_text(self, code):
        """What a code of register ERROR means."""
        return self._library.dit_stop_text(ctypes.c_uint32(code)).decode()


def _command(command):
    return _Command(**{item.name: int(getattr(command, item.name)) for item in FIELDS})


def _packed(descriptor):
    names = [item.name for item in DESCRIPTOR_FIELDS if item.name not in ("command", "reserved")]
    return _Descriptor(command=_command(descriptor.command), **{name: int(getattr(descriptor, name)) for name in names})
