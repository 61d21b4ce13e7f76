"""HashBankMapper: column index to (bank, address) and back, for the hash-based distribution of keys and values."""

from amaranth.hdl import Module, Signal
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out, connect, flipped

from hw.arith.modular_inverse import ModularInverse
from hw.lib.block import Block
from hw.units.hash_bank_mapper.paths import ColumnPath, HashBankMapperParameters, LocationPath


class HashBankMapper(Block):
    """Maps n_columns columns to n_banks banks and back; n_indices results a clock in each direction.

    With b = log2(n_banks), w = ceil(log2(n_columns)) but at least b, and j an index:

    * multiplicative: x = (j * k) mod 2**w with k odd; bank = top b bits of x, address = low w - b bits of x
    * range: the same with x = j
    * modular: bank = j mod n_banks, address = j >> b
    * xor_fold: bank = XOR of the b-bit digits of j, address = j >> b

    Each is a bijection of 0 .. 2**w - 1, so no two columns share a slot. Where n_columns is not a power of two, the
    slots of the indices n_columns .. 2**w - 1 stay empty: ``column`` returns those indices with in_range 0, and
    ``location`` gives an index beyond the last column its empty slot.

    Members: ``index`` carries n_indices indices of w bits; ``location`` and ``slot`` n_indices banks of b bits,
    then as many addresses of w - b bits; ``column`` n_indices indices, then as many in_range bits; element 0 is in the
    lowest bits. A field that needs no bits (one bank, one column) keeps one bit: 0 as an output; as an input of
    ``index`` it is ignored, of ``slot`` it makes in_range 0.

    The two directions are independent; parameter ``direction`` leaves one out. With multiplier = runtime, k is the
    input ``hash_multiplier`` of w bits, whose bit 0 is taken as 1, so that k is always odd. It may
    change in any clock, and a beat is mapped with the k of the clock in which it is accepted. The block computes
    the inverse of k, one bit a clock: ``slot.ready`` stays low for w + 1 clocks after a change or reset.

    Timing: a result is valid in the clock after its beat was accepted (latency 1), one beat a clock, and a direction
    stalls while its result is not accepted.

    Defined by :class:`golden.units.hash_bank_mapper.BankMap`. Hashes: DiSC, section IV-D; the address that comes with
    the bank and the XOR fold are this project's.
    """

    Parameters = HashBankMapperParameters
    latency = 1
    members_doc = {
        "index": "n_indices columns, one location each; unsigned",
        "index.index": "number of a column, below n_columns",
        "location": "where these columns are",
        "location.bank": "bank of each column",
        "location.address": "word of the bank",
        "slot": "n_indices pairs of bank and address, one column each",
        "slot.bank": "a bank",
        "slot.address": "a word of it",
        "column": "which columns are there",
        "column.index": "number of the column, where in_range is 1",
        "column.in_range": "0 where the slot is empty: there is no such column",
        "hash_multiplier": "k, unsigned; bit 0 is taken as 1; may change at any time",
    }

    @staticmethod
    def members(p):
        members = {}
        if p.direction != "inverse":
            members |= {"index": In(stream.Signature(p.indices)), "location": Out(stream.Signature(p.slots))}
        if p.direction != "forward":
            members |= {"slot": In(stream.Signature(p.slots)), "column": Out(stream.Signature(p.columns))}
        if p.is_runtime:
            members["hash_multiplier"] = In(max(1, p.index_width))
        return members

    def circuit(self):
        m = Module()
        values = self.parameters.to_dict()
        if self.parameters.is_runtime:
            odd = Signal.like(self.hash_multiplier, name="odd_multiplier")
            m.d.comb += odd.eq(self.hash_multiplier | 1)
        if self.direction != "inverse":
            m.submodules.location_path = path = LocationPath(**values)
            connect(m, flipped(self.index), path.index)
            connect(m, flipped(self.location), path.location)
            if self.parameters.is_runtime:
                m.d.comb += path.factor.eq(odd)
        if self.direction != "forward":
            m.submodules.column_path = path = ColumnPath(**values)
            connect(m, flipped(self.column), path.column)
            m.d.comb += path.slot.payload.eq(self.slot.payload)
            is_known = Signal()
            if self.parameters.is_runtime:
                m.submodules.inverter = inverter = ModularInverse(width=len(odd))
                m.d.comb += [inverter.number.eq(odd), path.factor.eq(inverter.inverse), is_known.eq(inverter.ready)]
            else:
                m.d.comb += is_known.eq(1)
            m.d.comb += [path.slot.valid.eq(self.slot.valid & is_known), self.slot.ready.eq(path.slot.ready & is_known)]
        return m
