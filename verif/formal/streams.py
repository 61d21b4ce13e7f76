"""The contract of streams: what a checker assumes of a block's inputs and claims of its outputs."""

from amaranth.hdl import Mux, Signal, Value

__all__ = ["bits", "moves", "obey", "one_to_one", "pipeline", "stable"]


def moves(stream):
    """A beat moves."""
    return stream.valid & stream.ready


def bits(payload):
    """A payload as a plain value, whatever its layout."""
    return Value.cast(payload)


def _keeps_waiting(c, stream, name):
    """A beat that waited in the clock before is still there, with the same payload."""
    waited = c.register(stream.valid & ~stream.ready, f"{name}_waited")
    before = c.register(bits(stream.payload), f"{name}_before")
    return ~waited | (stream.valid & (bits(stream.payload) == before))


def obey(c, *streams):
    """Assume that whoever drives these inputs follows the rules of streams."""
    for index, stream in enumerate(streams):
        c.assume(_keeps_waiting(c, stream, f"source_{index}"))


def stable(c, *, unless=0, **streams):
    """Claim that valid and payload of these outputs hold while they are stalled, ``unless`` something else happened."""
    for name, stream in streams.items():
        c.claim(f"{name} holds while stalled", unless | _keeps_waiting(c, stream, name))
        c.cover(f"{name} is stalled", c.register(stream.valid & ~stream.ready, f"{name}_was_stalled"))


def one_to_one(
    c,
    source,
    sink,
    *,
    capacity,
    latency,
    name="beat",
    expected=None,
    shown=bits,
    queueing=False,
    full_rate=True,
    bounded_wait=True,
    full=True,
):
    """Claim that every beat of ``source`` comes out of ``sink`` once, in order, right, and in time.

    At most ``capacity`` beats are inside. ``expected`` makes the payload that must come out of the one that went in
    (by default the same), as far as ``shown`` shows it. The solver picks any one beat and follows it. Where the sink
    takes what it is offered, the beat comes out exactly ``latency`` clocks later, or ``queueing``, one clock later for
    each beat ahead of it. With ``full_rate`` a ready sink makes the source ready. Without ``bounded_wait`` it may take
    longer; without ``full`` there need not be as many beats inside as the capacity.
    """
    m = c.m
    expected = expected or (lambda payload: payload)
    accepted, delivered = Signal(name=f"{name}_accepted"), Signal(name=f"{name}_delivered")
    inside = Signal(range(capacity + 2), name=f"{name}s_inside")
    m.d.comb += [accepted.eq(moves(source)), delivered.eq(moves(sink))]
    m.d.sync += inside.eq(inside + accepted - delivered)
    passes = (inside == 0) & accepted if latency == 0 else 0  # it goes through in the clock in which it comes
    is_there = (inside != 0) | (source.valid if latency == 0 else 0)
    c.claim(f"{name}: valid only with a beat inside", ~sink.valid | is_there)
    c.claim(f"{name}: at most {capacity} inside", inside <= capacity)
    if full:
        c.cover(f"{name}: {capacity} inside", inside == capacity)
    if full_rate:
        c.claim(f"{name}: a ready sink makes the source ready", ~sink.ready | source.ready)

    pick = c.free(1, f"{name}_pick")
    now, given = bits(expected(source.payload)), bits(shown(sink.payload))
    wanted = Signal(len(given), name=f"{name}_wanted")
    longest = latency + capacity + 1
    following, ahead = Signal(name=f"{name}_followed"), Signal(range(capacity + 2), name=f"{name}s_ahead")
    chances, age = Signal(range(longest + 1), name=f"{name}_chances"), Signal(range(latency + 2), name=f"{name}_age")
    bound = Signal(range(longest + 1), name=f"{name}_bound")
    start, is_next, due = Signal(name=f"{name}_start"), Signal(name=f"{name}_is_next"), Signal(name=f"{name}_due")
    m.d.comb += [
        start.eq(pick & accepted & ~following & ~(passes & delivered)),
        is_next.eq(following & (ahead == 0)),
        due.eq(following & sink.ready & (chances + 1 >= bound)),
    ]
    with m.If(start):
        beats_ahead = inside - delivered
        m.d.sync += [
            following.eq(1),
            ahead.eq(beats_ahead),
            wanted.eq(now),
            chances.eq(0),
            age.eq(1),
            bound.eq(latency + beats_ahead if queueing else max(latency, 1)),
        ]
    with m.Elif(following):
        m.d.sync += [
            ahead.eq(ahead - delivered),
            following.eq(~(is_next & delivered)),
            chances.eq(chances + sink.ready),
            age.eq(Mux(age < latency, age + 1, age)),
        ]
    c.claim(f"{name}: the right payload, once and in order", ~(is_next & sink.valid) | (given == wanted))
    if latency == 0:
        c.claim(f"{name}: the right payload on its way through", ~(passes & sink.valid) | (given == now))
    if bounded_wait:
        c.claim(
            f"{name}: out within {latency} clocks" + (" and one a beat ahead" if queueing else ""),
            ~due | (is_next & sink.valid),
        )
    c.claim(f"{name}: not before {latency} clocks", ~(is_next & sink.valid) | (age >= latency))
    c.cover(f"{name}: followed to the end", is_next & delivered)


def pipeline(c, source, sink, *, latency, gives=1, expected=None, shown=bits):
    """Claim that a block is a pipeline in lock step: all of it moves on unless a result waits for its sink.

    A beat for which ``gives`` holds comes out ``latency`` moves later, with the payload ``expected`` (a value that is
    known when the beat is accepted), as far as ``shown`` shows it; nothing else comes out. So no beat is lost, doubled,
    reordered or late, and where the sink is ready none waits.
    """
    m = c.m
    c.claim("all moves on unless a result waits", source.ready == (~sink.valid | sink.ready))
    valid, payload = source.valid & gives, expected
    for stage in range(1, latency + 1):
        valid = c.register(valid, f"valid_{stage}", enable=source.ready)
        if expected is not None:
            delayed = Signal.like(payload, name=f"expected_{stage}", reset_less=True)
            with m.If(source.ready):
                m.d.sync += delayed.eq(payload)
            payload = delayed
    c.claim(f"valid {latency} moves after its beat, and only then", sink.valid == valid)
    c.cover("a result comes out", moves(sink))
    if expected is not None:
        c.claim("the right payload", ~sink.valid | (bits(shown(sink.payload)) == payload))
        c.cover("a payload that is not 0", sink.valid & (payload != 0))
