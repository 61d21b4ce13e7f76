"""What the program runs: an attention head at two steps, dense and under the mask that it made, as descriptors."""

from dataclasses import dataclass

import numpy as np

from golden.program.assembler import Program
from golden.spec.accelerator.registers import register
from golden.system.accelerator import Accelerator
from golden.system.image import image_of
from golden.system.memory import SystemMemory

__all__ = ["Workload", "head_program", "make_workload"]

RING, DESCRIPTORS = 0x20000, 0x21000
"""Program and stack lie below; the ring of the program has 16 slots."""


def head_program(sizes, head):
    """The commands of :mod:`verif.core.demo.program` for attention, without counters, as far as they fit."""
    n, d = min(head.first.shape[1], sizes.max_tokens), min(head.first.shape[2], sizes.max_head_dim)
    first, second = head.first[:, :n, :d], head.second[:, :n, :d]
    program = Program(sizes)
    scale = d**-0.5
    program.load_mask(np.ones((1, n), bool), 0)
    query, keys, values = program.load_rows(first[0]), program.load_keys(first[1]), program.load_values(first[2])
    probabilities = program.softmax(program.sddmm(query, keys), scale, head.theta, mask_out=1)
    output = program.spmm(probabilities, values)
    program.store_rows(output)
    program.load_rows(second[0], into=query)
    program.load_keys(second[1], at=keys.first)
    program.load_values(second[2], at=values.first)
    scores = program.sddmm(query, keys, mask=1, at=0)
    program.store_rows(program.spmm(program.softmax(scores, scale, use_mass=True, at=0), values, into=output))
    return program


@dataclass(frozen=True)
class Workload:
    """The memory behind the program, from DESCRIPTORS on, and where what was stored and what is expected lie."""

    data: np.ndarray
    n_descriptors: int
    ranges: list  # (address, address of what is expected, bytes)

    @property
    def header(self):
        """For the program in C."""
        ranges = ", ".join(f"{{{found:#x}u, {wanted:#x}u, {count}u}}" for found, wanted, count in self.ranges)
        return (
            f"#define WORKLOAD_RING {RING:#x}u\n#define WORKLOAD_DESCRIPTORS {DESCRIPTORS:#x}u\n"
            f"#define WORKLOAD_COUNT {self.n_descriptors}u\n#define WORKLOAD_RANGES {len(self.ranges)}u\n"
            "static const struct { uint32_t address, expected, bytes; } workload_ranges[] = {" + ranges + "};\n"
        )


def make_workload(program, sizes):
    """The :class:`Workload` of a program on an accelerator of these sizes; the golden model says what is stored."""
    base = DESCRIPTORS + 64 * len(program.commands)
    image = image_of(program.commands, program.load_beats, sizes, base)
    memory = SystemMemory(1 << (image.end + (1 << 20)).bit_length())
    memory.place(image.base, image.data)
    for number, descriptor in enumerate(image.descriptors):
        memory.place(DESCRIPTORS + 64 * number, descriptor.encode())
    model = Accelerator(sizes, memory)
    # The model's ring is the list itself, which begins with a multiple of 64.
    for name, value in (
        ("RING_BASE_LOW", DESCRIPTORS),
        ("RING_SIZE", len(program.commands).bit_length()),
        ("CONTROL", 1),
        ("TAIL", len(program.commands)),
    ):
        model.write(register(name).offset, value)
    if model.error:
        raise ValueError(f"the golden model stopped with {model.error.name}")
    end, ranges, expected = image.end, [], []
    for first, last in image.stores.values():
        ranges.append((first, end, last - first))
        expected.append(memory.data[first:last].copy())
        end += last - first
    table = b"".join(descriptor.encode() for descriptor in image.descriptors)
    gap = bytes(image.base - DESCRIPTORS - len(table))
    data = np.frombuffer(table + gap + image.data.tobytes() + b"".join(map(bytes, expected)), np.uint8)
    return Workload(data, len(image.descriptors), ranges)
