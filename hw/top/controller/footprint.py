"""The footprint of a command: the words that it reads and writes, and whose rows it may take or hand over."""

from amaranth.hdl import Mux
from amaranth.lib import data

from golden.spec.commands import COMMANDS, Unit
from golden.spec.operands import DEPTH, MaskRows, MassRows, Matrix, TokenList, Words

__all__ = ["BASES", "EXCLUSIVE", "GIVEN", "TAKEN", "bases_in", "fill_footprint", "footprint_layout", "is_written_at"]


def _operands():
    """``(form, operand, whether it is written)`` of all operands that have words of their own."""
    return [
        (form, operand, operand in form.writes)
        for form in COMMANDS
        for operand in (*form.reads, *form.writes)
        if isinstance(operand, Matrix | Words)
    ]


BASES = tuple(dict.fromkeys(operand.base for _, operand, _ in _operands()))
"""The fields with the first word of an operand."""


def bases_in(base):
    """The memories that operands with this base field lie in."""
    return tuple(memory for memory in DEPTH if any(o.base == base and o.memory == memory for _, o, _ in _operands()))


def is_written_at(base, memory):
    """Which of reading (False) and writing (True) commands do there."""
    return {written for _, operand, written in _operands() if (operand.base, operand.memory) == (base, memory)}


def _chained(is_given):
    """``{memory: {form: operand}}`` of what is handed over row by row, or taken."""
    found = {}
    for form in COMMANDS:
        operand = form.chained(form.writes if is_given else form.reads)
        if operand is not None:
            found.setdefault(operand.memory, {})[form] = operand
    return found


GIVEN, TAKEN = _chained(True), _chained(False)

EXCLUSIVE = tuple(
    dict.fromkeys(operand.memory for form in COMMANDS if form.is_exclusive for operand in (*form.reads, *form.writes))
)
"""The memories that a command may have for itself."""


def _one(operands, name):
    """The field that all operands have in common."""
    values = {getattr(operand, name) for operand in operands}
    if len(values) != 1:
        raise ValueError(f"operands of a hand-over differ in {name}: {values}")
    return values.pop()


def footprint_layout(p):
    """What the scoreboard knows of a command; extents are words first to end - 1."""
    rows = range(p.max_tokens + 1)
    mask = data.StructLayout({"is_used": 1, "number": max(1, (p.n_masks - 1).bit_length())})
    place = {"first": 16, "end": 17, "is_written": 1}
    places = {
        base: data.StructLayout({**place, "memory": data.StructLayout(dict.fromkeys(bases_in(base), 1))})
        for base in BASES
    }
    return data.StructLayout(
        {
            "unit": range(len(Unit)),
            "is_exclusive": 1,
            "places": data.StructLayout(places),
            "rows": data.StructLayout({"first": rows, "end": rows}),  # of masks and of the retained mass
            "mask_read": mask,
            "mask_written": mask,
            "mass_read": 1,
            "mass_written": 1,
            "tokens_read": 1,
            "tokens_written": 1,
            "gives": data.StructLayout(dict.fromkeys(GIVEN, 1)),
            "takes": data.StructLayout(dict.fromkeys(TAKEN, 1)),
            "n_rows": 16,
            "is_gated": 1,
            "first_row": 16,
            "n_keys": 16,
            "source_stride": 16,
            "destination_stride": 16,
            "begins_late": 1,  # the result does not begin with its rows
            "is_in_place": 1,  # the result lies exactly where the first operand lies
        }
    )


def fill_footprint(m, footprint, command, decoder, extents, largest_token):
    """Assign ``footprint`` from a command and the extents of its operands."""
    gated = decoder.has_flag("gated")
    unit = decoder.choose([([form for form in COMMANDS if form.unit == unit], unit) for unit in Unit])
    m.d.comb += [
        footprint.unit.eq(unit),
        footprint.is_exclusive.eq(decoder.any_of([form for form in COMMANDS if form.is_exclusive])),
        footprint.rows.first.eq(Mux(gated, 0, command.first_row)),
        footprint.rows.end.eq(Mux(gated, largest_token + 1, command.first_row + command.n_rows)),
        footprint.n_rows.eq(command.n_rows),
        footprint.is_gated.eq(gated),
        footprint.first_row.eq(command.first_row),
        footprint.n_keys.eq(command.n_out),
        footprint.source_stride.eq(command.source_stride),
        footprint.destination_stride.eq(command.destination_stride),
        footprint.begins_late.eq(
            decoder.any_of([form for form in COMMANDS if any(item.column for item in form.operands(Matrix))])
            & (command.column != 0)
        ),
        footprint.is_in_place.eq(
            decoder.any_of([form for form in COMMANDS if form.is_in_place])
            & (command.source == command.destination)
            & (command.source_stride == command.destination_stride)
        ),
    ]
    for base in BASES:
        _fill_place(m, footprint.places[base], base, decoder, extents)
    for is_given, side, bits in ((True, GIVEN, footprint.gives), (False, TAKEN, footprint.takes)):
        for memory, forms in side.items():
            assert _one(forms.values(), "base") == ("destination" if is_given else "source")
            m.d.comb += bits[memory].eq(decoder.any_of(list(forms)))
    for kind, name in ((MaskRows, "mask"), (MassRows, "mass"), (TokenList, "tokens")):
        for is_written, suffix in ((False, "read"), (True, "written")):
            used = [
                (form, item)
                for form in COMMANDS
                for item in (form.writes if is_written else form.reads)
                if isinstance(item, kind)
            ]
            is_used = decoder.uses(used)
            if kind is TokenList and not is_written:
                is_used = is_used | gated
            port = footprint[f"{name}_{suffix}"]
            if kind is MaskRows:
                m.d.comb += [port.is_used.eq(is_used), port.number.eq(command[_one([o for _, o in used], "number")])]
            else:
                m.d.comb += port.eq(is_used)


def _fill_place(m, place, base, decoder, extents):
    matrix, words = extents.matrices.get(base), extents.words.get(base)
    found = [each for each in (matrix, words) if each is not None]
    end = found[0].end if len(found) == 1 else Mux(decoder.any_of(matrix.forms), matrix.end, words.end)
    operands = [(form, operand) for each in found for form, operand in each.operands]
    written = [form for form, operand in operands if operand in form.writes]
    m.d.comb += [
        place.first.eq(found[0].first),
        place.end.eq(end),
        place.is_written.eq(decoder.any_of(written) if written else 0),
        *(
            place.memory[memory].eq(decoder.any_of([form for form, operand in operands if operand.memory == memory]))
            for memory in place.memory.shape().members
        ),
    ]
