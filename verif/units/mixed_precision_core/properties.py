"""Mixed-precision core: commands under way never use the same, none is lost or doubled, none waits for ever."""

from itertools import combinations

from amaranth.hdl import Cat, Mux, Signal

from golden.spec.mixed_precision import GROUP
from golden.spec.mixed_precision_core import Code, Error, Unit
from hw.units.mixed_precision_core.group_builder import GroupBuilder
from hw.units.mixed_precision_core.issuer import CommandIssuer
from verif.formal.properties import Property
from verif.formal.streams import moves, obey

SIZES = {
    "n_rows": 1,
    "n_columns": 1,
    "n_channels": 2,
    "n_levels": 1,
    "n_output_lanes": 1,
    "n_regions": 2,
    "n_buffers": 3,
    "n_tiles": 2,
    "activation_depth": 2,
    "reference_depth": 2,
}

_MEMORY_OF = {Code.LOAD: "destination", Code.STORE: "source"}


def issues(c, block):
    """Units finish whenever they like; each of two commands under way works on what the other one does not use."""
    m = c.m
    obey(c, block.commands)
    active = Signal(len(Unit))
    kept = [Signal.like(block.command[unit], name=f"kept_{unit.name}") for unit in Unit]
    starts = block.start
    for unit in Unit:
        c.assume(~block.done[unit] | active[unit])
        m.d.sync += active[unit].eq((active[unit] | starts[unit]) & ~block.done[unit])
        c.claim(f"{unit.name}: free before it starts", ~(starts[unit] & active[unit]))
        c.claim(
            f"{unit.name}: its command is constant",
            ~active[unit] | (block.command[unit].as_value() == kept[unit].as_value()),
        )
        with m.If(starts[unit]):
            m.d.sync += kept[unit].eq(block.command[unit])
        c.cover(f"{unit.name} starts", starts[unit])
    tails = {}
    for name, unit, ends in (("built", Unit.QUANTISER, block.built), ("drained", Unit.ARRAY, block.drained)):
        is_tail, command = Signal(name=f"is_{name}"), Signal.like(block.command[unit], name=f"{name}_command")
        hands_over = block.done[unit]
        c.assume(~ends | is_tail)
        c.assume(~hands_over | ~is_tail)
        m.d.sync += is_tail.eq((is_tail & ~ends) | hands_over)
        with m.If(hands_over):
            m.d.sync += command.eq(block.command[unit])
        tails[name] = (is_tail, _uses(command))

    under_way = {unit: (active[unit] | starts[unit], _uses(block.command[unit])) for unit in Unit}
    # What is handed over uses less: of a quantised tile the buffer, of a multiplication the region and the tile.
    for name, kinds in (("built", ("buffer",)), ("drained", ("region", "tile"))):
        is_tail, uses = tails[name]
        under_way[name] = (is_tail, {kind: uses[kind] for kind in kinds})
    for (one, (first, uses)), (other, (second, also)) in combinations(under_way.items(), 2):
        if {one, other} == {Unit.ARRAY, "drained"}:
            continue  # in order, by the array
        c.claim(
            f"{getattr(one, 'name', one)} and {getattr(other, 'name', other)} use different memories, regions, tiles",
            ~(first & second & _meet(uses, also)),
        )
    c.cover(
        "five at once",
        active[Unit.QUANTISER] & active[Unit.ARRAY] & active[Unit.TRANSFER] & tails["built"][0] & tails["drained"][0],
    )

    # Each command starts one unit, is dropped, or clears: counted from the queue in front of the checker.
    patience = Signal(range(6))
    executed = Signal(range(len(Unit) + 1))
    m.d.comb += executed.eq(sum(starts))
    c.claim("one command starts in a clock", executed <= 1)
    is_idle = ~(active | starts).any() & ~tails["built"][0] & ~tails["drained"][0]
    m.d.sync += patience.eq(Mux(is_idle & block.commands.valid & ~block.commands.ready, patience + (patience != 5), 0))
    c.claim("no command waits while all units are free", patience < 3)
    error_before = c.register(block.error, "error_before")
    stopped = c.register(error_before != Error.NONE, "stopped_before")
    c.claim("nothing starts after a refusal", ~(stopped & (error_before != Error.NONE)) | (executed == 0))
    c.claim(
        "an error stays until CLEAR",
        (error_before == Error.NONE) | (block.error == error_before) | c.register(block.clears, "cleared"),
    )
    c.cover("an error is cleared", (error_before != Error.NONE) & (block.error == Error.NONE))


def _uses(command):
    """What a command uses, from the meaning of its opcode: {kind: (condition, number)}."""
    code, function = command.opcode, command.function
    transfers = (code == Code.LOAD) | (code == Code.STORE)
    place = Mux(code == Code.STORE, command.source, command.destination)
    quantises, multiplies, activates = (code == item for item in (Code.QUANTISE, Code.MULTIPLY, Code.ACTIVATE))
    return {
        "activations": (transfers & (function == 2) | quantises | activates, 0),
        "references": (transfers & (function == 3) | quantises, 0),
        "reader of outputs": ((code == Code.STORE) & (function == 4) | activates, 0),
        "buffer": (quantises | multiplies, command.buffer),
        "region": ((code == Code.LOAD) & (function < 2) | multiplies, command.region),
        "tile": (
            transfers & (function == 4) | multiplies | activates,
            Mux(activates, command.source, Mux(multiplies, command.destination, place)),
        ),
    }


def _meet(one, other):
    terms = []
    for kind in sorted(one.keys() & other.keys()):
        (used, number), (also, place) = one[kind], other[kind]
        terms.append(used & also & (number == place))
    return Cat(terms).any()


def builds(c, block):
    """Every entry is written to one lane of one row; lanes of a row have one key; no row has a gap."""
    m = c.m
    obey(c, block.entry)
    entry = block.entry.payload
    # One tile: start, entries up to last, then nothing until the next start.
    is_open, is_first = Signal(), Signal()
    with m.If(block.start):
        m.d.sync += [is_open.eq(1), is_first.eq(1)]
    with m.Elif(moves(block.entry)):
        m.d.sync += [is_open.eq(~entry.last), is_first.eq(0)]
    n_entries = Signal(range(4 * block.n_channels + 2))
    with m.If(block.start):
        m.d.sync += n_entries.eq(0)
    with m.Elif(moves(block.entry)):
        m.d.sync += n_entries.eq(n_entries + 1)
    c.assume(~block.entry.valid | ~is_open | (n_entries < 4 * block.n_channels))
    c.assume(~block.start | ~block.is_running)
    c.assume(~block.entry.valid | ~is_first | (entry.shift == 0))
    c.drive(block.buffer, 0)
    c.claim("entries of an open tile are taken at once, others not", block.entry.ready == is_open)
    written = c.register(moves(block.entry), "entry_before")
    shown = c.register(entry, "entry_held")
    first = c.register(is_first, "first_before")
    used = Cat(block.lane_data[lane].is_used & block.write_lane[lane] for lane in range(GROUP))
    c.claim("one slice a clock", (used == 0) | (used == 1) | (used == 2) | (used == 4) | (used == 8))
    c.claim("a used entry is written a clock later, and only then", used.any() == (written & shown.is_used))
    c.claim("nothing else is written", written | (block.write_lane == 0))
    row, filled = Signal.like(block.lane_address), Signal(range(GROUP + 1))
    opens = block.write_lane.all()
    lane = Signal(range(GROUP))
    m.d.comb += lane.eq(Mux(used[1], 1, Mux(used[2], 2, Mux(used[3], 3, 0))))
    with m.If(written):
        m.d.sync += [row.eq(block.lane_address), filled.eq(Mux(opens, 1, filled + 1))]
    c.claim(
        "a new row exactly where the key rises, a group is full, or a tile begins",
        ~written | (opens == (first | (shown.shift != 0) | (filled == GROUP))),
    )
    c.claim("rows from 0 on without gaps", ~written | (block.lane_address == Mux(first, 0, row + (opens & ~first))))
    c.claim("lanes without gaps", ~(written & used.any()) | (lane == Mux(opens, 0, filled)))
    c.claim("done with the last entry", block.done == (written & shown.last))
    c.claim("number of the last group", ~block.done | (block.tile.last_group == block.lane_address))
    c.cover("a second group", written & opens & ~first)
    c.cover("a full group", written & used[3])


PROPERTIES = [
    Property(
        "mixed_precision_core",
        "commands under way use different memories, buffers, regions and tiles; no deadlock",
        CommandIssuer,
        [SIZES],
        issues,
    ),
    Property(
        "mixed_precision_core", "every slice in one lane, lanes of one key, no gaps", GroupBuilder, [SIZES], builds
    ),
]
