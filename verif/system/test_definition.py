"""The accelerator's definition: registers that do not overlap, descriptors that survive a round trip, sizes."""

import itertools

import pytest

from golden.core.streams import TokenCompare
from golden.spec.accelerator.descriptor import DESCRIPTOR_FIELDS, DESCRIPTOR_WORDS, Descriptor
from golden.spec.accelerator.parameters import AcceleratorSizes
from golden.spec.accelerator.registers import REGISTERS, SPACE_BYTES, Access
from golden.spec.commands import Command
from hw.presets import CORES


def test_registers_have_places_of_their_own():
    used = [item.offset + 4 * index for item in REGISTERS for index in range(item.count)]
    assert len(set(used)) == len(used)
    assert all(offset % 4 == 0 and offset < SPACE_BYTES for offset in used)
    assert len({item.name for item in REGISTERS}) == len(REGISTERS)


def test_fields_have_bits_of_their_own_and_constants_fit():
    sizes = AcceleratorSizes(**CORES["disc"])
    for item in REGISTERS:
        bits = [bit for part in item.fields for bit in range(part.low, part.low + part.width)]
        assert len(set(bits)) == len(bits) and max(bits) < 32, item.name
        for part in item.fields:
            reset = getattr(sizes, part.reset) if isinstance(part.reset, str) else part.reset
            assert 0 <= reset < 1 << part.width, (item.name, part.name)
            assert part.access == Access.RO or not isinstance(part.reset, str)


def test_descriptor_fields_fill_the_words():
    bits = sorted((item.offset, item.offset + item.width) for item in DESCRIPTOR_FIELDS)
    assert bits[0][0] == 0 and bits[-1][1] == 32 * DESCRIPTOR_WORDS
    assert all(end == begin for (_, end), (begin, _) in itertools.pairwise(bits))


def test_a_descriptor_survives_its_bytes():
    descriptor = Descriptor(command=Command(opcode=2, column=77), flags=3, number=5, length=8, pitch=6, address=1 << 63)
    assert Descriptor.decode(descriptor.encode()) == descriptor
    assert len(descriptor.encode()) == 64


def test_a_field_that_is_too_large_is_refused():
    with pytest.raises(ValueError, match="pitch must be from 0 to 4294967295, not 4294967296"):
        Descriptor(pitch=1 << 32)


def test_pieces_of_the_latent_are_those_that_ctr_takes():
    shapes = itertools.product((1, 3, 8), (1, 5, 8), (1, 3), (1, 2, 4), (2, 8, 32, 64))
    for width, height, channels, patch, banks in shapes:
        sizes = AcceleratorSizes(
            latent_width=width, latent_height=height, channels=channels, patch=patch, n_banks=banks, wmem_depth=1024
        )
        assert len(TokenCompare(sizes).positions) == sizes.latent_pieces


def test_rows_of_masks_are_whole_elements():
    with pytest.raises(ValueError, match="max_tokens must be at least 9"):
        AcceleratorSizes(max_tokens=8, latent_width=2, latent_height=2)
