"""HazardChecker: whether a command must wait for an earlier one, or may follow it row by row."""

from dataclasses import dataclass

from amaranth.hdl import Module, Signal
from amaranth.lib.wiring import In, Out

from hw.top.controller.command_decoder import any_term
from hw.top.controller.footprint import BASES, EXCLUSIVE, GIVEN, TAKEN, bases_in, footprint_layout, is_written_at
from hw.top.parameters import CorePart, Masks, Tokens

__all__ = ["HazardChecker", "HazardParameters"]


@dataclass(frozen=True, kw_only=True)
class HazardParameters(Masks, Tokens):
    """The parameters that the footprint of a command depends on."""


def _conflicting(later, earlier):
    """The memories where both base fields have operands of which at least one is written."""
    return [
        memory
        for memory in bases_in(later)
        if memory in bases_in(earlier) and True in is_written_at(later, memory) | is_written_at(earlier, memory)
    ]


class HazardChecker(CorePart):
    """Compares what two commands touch; combinational.

    ``waits``: both touch a word (of a memory, a mask, the retained mass, the token list) that one of them writes.
    ``follows``: the later one takes the rows that the earlier one hands over, as the command
    table has it, and there is no other reason to wait: row k can be read when the earlier command has done k + 1 rows.
    A result that replaces the rows that are taken (in place) is no reason to wait, for they were handed over before.
    """

    Parameters = HazardParameters
    members_doc = {
        "later": "footprint of the later command",
        "earlier": "footprint of the earlier one",
        "is_ascending": "the token list is strictly ascending",
        "waits": "the later one begins when the earlier one is done",
        "follows": "it may begin with it, row by row",
    }

    @staticmethod
    def members(p):
        layout = footprint_layout(p)
        return {"later": In(layout), "earlier": In(layout), "is_ascending": In(1), "waits": Out(1), "follows": Out(1)}

    def circuit(self):
        m = Module()
        later, earlier = self.later, self.earlier
        conflicts = {
            pair: self._meet(m, *pair) for pair in ((a, b) for a in BASES for b in BASES) if _conflicting(*pair)
        }
        takes = self._takes(m)
        # Pairs that are no conflict where rows are handed over.
        handed, replaced, replaced_twice = Signal(), Signal(), Signal()
        m.d.comb += [
            handed.eq(takes),
            replaced.eq(takes & later.is_in_place),
            replaced_twice.eq(takes & later.is_in_place & earlier.is_in_place),
        ]
        excused = {
            ("source", "destination"): handed,
            ("destination", "destination"): replaced,
            ("destination", "source"): replaced_twice,
        }
        others = any_term(found & ~excused.get(pair, 0) for pair, found in conflicts.items()) | self._others(m)
        must_wait = Signal()
        m.d.comb += [must_wait.eq(others), self.follows.eq(takes & ~must_wait), self.waits.eq(must_wait)]
        return m

    def _meet(self, m, later_base, earlier_base):
        """Operands of both commands share a word, and one of them is written."""
        later, earlier = self.later.places[later_base], self.earlier.places[earlier_base]
        is_same = any_term(
            later.memory[memory] & earlier.memory[memory] for memory in _conflicting(later_base, earlier_base)
        )
        ranges_meet = (later.first < earlier.end) & (earlier.first < later.end)
        found = Signal(name=f"{later_base}_meets_{earlier_base}")
        m.d.comb += found.eq(is_same & (later.is_written | earlier.is_written) & ranges_meet)
        return found

    def _others(self, m):
        """They touch the same row of a mask or of the retained mass, or the token list."""
        later, earlier = self.later, self.earlier
        rows_meet = Signal()
        m.d.comb += rows_meet.eq((later.rows.first < earlier.rows.end) & (earlier.rows.first < later.rows.end))
        terms = []
        for one, other in (("read", "written"), ("written", "read"), ("written", "written")):
            new, old = later[f"mask_{one}"], earlier[f"mask_{other}"]
            is_same = new.is_used & old.is_used & (new.number == old.number)
            terms.append(is_same & (rows_meet | (new.number == 0)))
            terms.append(later[f"mass_{one}"] & earlier[f"mass_{other}"] & rows_meet)
            terms.append(later[f"tokens_{one}"] & earlier[f"tokens_{other}"])
        # An exclusive transfer shares no memory of its kind at all.
        shared = any_term(self._uses(later, memory) & self._uses(earlier, memory) for memory in EXCLUSIVE)
        terms.append((later.is_exclusive | earlier.is_exclusive) & shared)
        return any_term(terms)

    @staticmethod
    def _uses(footprint, memory):
        if memory == "mass":
            return footprint.mass_read | footprint.mass_written
        return any_term(footprint.places[base].memory[memory] for base in BASES if memory in bases_in(base))

    def _takes(self, m):
        """The later command reads the rows that the earlier one writes, in the same place, and the same rows of it."""
        later, earlier = self.later, self.earlier
        source, result = later.places.source, earlier.places.destination
        same_rows, same_layout, same_place = Signal(), Signal(), Signal()
        m.d.comb += [
            same_rows.eq(
                (later.n_rows == earlier.n_rows)
                & (later.is_gated == earlier.is_gated)
                & (~later.is_gated | (self.is_ascending & (later.first_row == earlier.first_row)))
            ),
            same_layout.eq(
                (later.first_row == earlier.first_row)
                & (later.n_keys == earlier.n_keys)
                & (later.mask_read.number == earlier.mask_read.number)
            ),
            same_place.eq(source.first == result.first),
        ]
        terms = []
        for memory in GIVEN:
            if memory not in TAKEN:
                continue
            is_handed = earlier.gives[memory] & later.takes[memory]
            if memory == "imem":
                fits = (later.source_stride == earlier.destination_stride) & (source.end <= result.end)
                fits &= ~earlier.begins_late
            else:
                fits = same_layout
            terms.append(is_handed & fits)
        return same_rows & same_place & any_term(terms)
