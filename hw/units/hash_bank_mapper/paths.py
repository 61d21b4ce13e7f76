"""The two halves of the hash bank mapper, index to location and slot to column, with their shared parameters."""

from dataclasses import dataclass

from amaranth.hdl import Cat, Module, Signal, unsigned
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out

from golden.spec import hash_bank_mapper as spec
from hw.arith.modular_multiplier import ConstantModularMultiplier, ModularMultiplier
from hw.lib.block import Block
from hw.lib.pipeline import Pipeline


@dataclass(frozen=True, kw_only=True)
class HashBankMapperParameters(spec.HashBankMapperParameters):
    @property
    def is_runtime(self):
        """Whether the multiplier is an input."""
        return self.multiplier == "runtime"

    @property
    def slots(self):
        """Payload of one beat of slots: banks, then addresses. A field that needs no bits has one bit."""
        return data.StructLayout(
            {
                "bank": data.ArrayLayout(unsigned(max(1, self.bank_width)), self.n_indices),
                "address": data.ArrayLayout(unsigned(max(1, self.address_width)), self.n_indices),
            }
        )

    @property
    def indices(self):
        """Payload of one beat of indices."""
        return data.StructLayout({"index": data.ArrayLayout(unsigned(max(1, self.index_width)), self.n_indices)})

    @property
    def columns(self):
        """Payload of one beat of columns: indices, then in_range bits."""
        in_range = data.ArrayLayout(unsigned(1), self.n_indices)
        return data.StructLayout({**self.indices.members, "in_range": in_range})


def _fold(m, word, digit_width, name):
    """XOR of the digits of a word."""
    folded = Signal(digit_width, name=name)
    digits = [word[low : low + digit_width] for low in range(0, len(word), digit_width)]
    total = digits[0]
    for digit in digits[1:]:
        total = total ^ digit
    m.d.comb += folded.eq(total)
    return folded


class LocationPath(Block):
    """Index to location, registered; the forward half of :class:`HashBankMapper`."""

    Parameters = HashBankMapperParameters
    latency = 1
    members_doc = {
        "index": "column indices",
        "location": "bank and address of each index",
        "factor": "k, odd, where it is given at run time",
    }

    @staticmethod
    def members(p):
        return {
            "index": In(stream.Signature(p.indices)),
            "location": Out(stream.Signature(p.slots)),
            **({"factor": In(max(1, p.index_width))} if p.is_runtime else {}),
        }

    def circuit(self):
        m = Module()
        pipe = Pipeline(m, source=self.index, sink=self.location)
        pipe.valid_chain(self.latency)
        located = Signal(self.parameters.slots)
        for lane in range(self.n_indices):
            bank, address = self._locate(m, self.index.payload.index[lane][: self.parameters.index_width], lane)
            m.d.comb += [located.bank[lane].eq(bank), located.address[lane].eq(address)]
        m.d.comb += self.location.payload.eq(pipe.register(located, name="location_register"))
        return m

    def _locate(self, m, index, lane):
        p = self.parameters
        if self.hash == "modular" or not p.index_width:
            return index[: p.bank_width], index[p.bank_width :]
        if self.hash == "xor_fold":
            folded = _fold(m, index, p.bank_width, f"bank_{lane}") if p.bank_width else index[:0]
            return folded, index[p.bank_width :]
        if self.hash == "multiplicative":
            index = _product(m, self, index, p.constant, f"product_{lane}")
        return index[p.address_width :], index[: p.address_width]


class ColumnPath(Block):
    """Slot to column, registered; the inverse half of :class:`HashBankMapper`."""

    Parameters = HashBankMapperParameters
    latency = 1
    members_doc = {
        "slot": "pairs of bank and address",
        "column": "index at each slot, and whether it is a column",
        "factor": "the inverse of k, where k is given at run time",
    }

    @staticmethod
    def members(p):
        return {
            "slot": In(stream.Signature(p.slots)),
            "column": Out(stream.Signature(p.columns)),
            **({"factor": In(max(1, p.index_width))} if p.is_runtime else {}),
        }

    def circuit(self):
        m = Module()
        pipe = Pipeline(m, source=self.slot, sink=self.column)
        pipe.valid_chain(self.latency)
        found = Signal(self.parameters.columns)
        for lane in range(self.n_indices):
            self._find(m, self.slot.payload.bank[lane], self.slot.payload.address[lane], found, lane)
        m.d.comb += self.column.payload.eq(pipe.register(found, name="column_register"))
        return m

    def _find(self, m, bank, address, found, lane):
        p = self.parameters
        surplus = Cat(bank[p.bank_width :], address[p.address_width :])
        bank, address = bank[: p.bank_width], address[: p.address_width]
        if self.hash == "modular":
            index = Cat(bank, address)
        elif self.hash == "xor_fold":
            digit = bank ^ _fold(m, address, p.bank_width, f"fold_{lane}") if p.bank_width and p.address_width else bank
            index = Cat(digit, address)
        else:
            index = Cat(address, bank)
        if self.hash == "multiplicative" and p.index_width:
            inverse = None if p.constant is None else pow(p.constant, -1, 1 << p.index_width)
            index = _product(m, self, index, inverse, f"product_{lane}")
        in_range = ~surplus.any()
        if self.n_columns < 1 << p.index_width:
            in_range &= found.index[lane] < self.n_columns
        m.d.comb += [found.index[lane].eq(index), found.in_range[lane].eq(in_range)]


def _product(m, path, multiplicand, constant, name):
    """``multiplicand`` times the constant, or times the path's input factor where that is None."""
    width = path.parameters.index_width
    if constant is None:
        product = ModularMultiplier(width=width)
        m.d.comb += product.multiplier.eq(path.factor)
    else:
        product = ConstantModularMultiplier(width=width, multiplier=constant)
    m.submodules[name] = product
    m.d.comb += product.multiplicand.eq(multiplicand)
    return product.product
