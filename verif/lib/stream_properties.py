"""Register slice, skid buffer, queue, fork and join: nothing lost, doubled, reordered or late."""

from amaranth.hdl import Cat, Signal, Value

from hw.lib.stream import RegisterSlice, SkidBuffer, StreamFork, StreamJoin, StreamQueue
from verif.formal.properties import Property
from verif.formal.streams import moves, obey, one_to_one, stable


def register_slice(c, block):
    obey(c, block.source)
    stable(c, sink=block.sink)
    one_to_one(c, block.source, block.sink, capacity=1, latency=1)


def skid_buffer(c, block):
    obey(c, block.source)
    stable(c, sink=block.sink)
    one_to_one(c, block.source, block.sink, capacity=1, latency=0, full_rate=False, queueing=True)
    # The path of ready is cut: it depends on the clock before only.
    kept = c.register(block.sink.valid & ~block.sink.ready, "kept")
    c.claim("ready is that of the clock before", block.source.ready == ~kept)


def queue(c, block):
    obey(c, block.source)
    stable(c, sink=block.sink)
    one_to_one(
        c,
        block.source,
        block.sink,
        capacity=block.depth,
        latency=block.latency,
        queueing=True,
        full_rate=block.depth == 1,
    )
    inside = Signal(range(block.depth + 1))
    c.m.d.sync += inside.eq(inside + moves(block.source) - moves(block.sink))
    if block.depth > 1:
        c.claim("refuses beats only when full", block.source.ready == (inside != block.depth))


def fork(c, block):
    obey(c, block.source)
    stable(c, **{f"sink_{index}": sink for index, sink in enumerate(block.sink)})
    taken = moves(block.source)
    done = []
    for index, sink in enumerate(block.sink):
        served = Signal(name=f"served_{index}")
        c.m.d.sync += served.eq((served | moves(sink)) & ~taken)
        c.claim(f"sink {index} is offered the beat until it has it", sink.valid == (block.source.valid & ~served))
        c.claim(f"sink {index} gets the payload", ~sink.valid | (sink.payload == block.source.payload))
        done.append(served | moves(sink))
    c.claim("done when all have the beat", ~block.source.valid | (block.source.ready == Cat(done).all()))
    if block.n > 1:
        c.cover("the sinks take the beat in different clocks", taken & ~moves(block.sink[0]))


def join(c, block):
    obey(c, *block.source)
    stable(c, sink=block.sink)
    all_valid = Cat(source.valid for source in block.source).all()
    c.claim("valid when all are", block.sink.valid == all_valid)
    c.claim("payloads side by side", block.sink.payload == Cat(Value.cast(source.payload) for source in block.source))
    for index, source in enumerate(block.source):
        c.claim(f"source {index} is taken with the joined beat", moves(source) == moves(block.sink))
        c.claim(f"source {index} waits for the others and the sink", source.ready == (all_valid & block.sink.ready))


CONTRACT = "stable while stalled; nothing lost, doubled, reordered or late"

PROPERTIES = [
    Property("stream_helpers", CONTRACT, RegisterSlice, [{"width": 1}, {"width": 8}], register_slice, quick=True),
    Property("stream_helpers", CONTRACT, SkidBuffer, [{"width": 1}, {"width": 8}], skid_buffer, quick=True),
    Property(
        "stream_helpers",
        CONTRACT,
        StreamQueue,
        [{"width": 2, "depth": depth} for depth in (1, 2, 3, 5)],
        queue,
        quick=True,
    ),
    Property(
        "stream_helpers",
        CONTRACT,
        StreamQueue,
        [{"width": 2, "depth": depth, "storage": "memory"} for depth in (3, 4, 5, 6, 9)],
        queue,
        quick=True,
    ),
    Property("stream_helpers", CONTRACT, StreamFork, [{"width": 4, "n": n} for n in (1, 2, 3, 5)], fork, quick=True),
    Property("stream_helpers", CONTRACT, StreamJoin, [{"width": 4, "n": n} for n in (1, 2, 3, 5)], join, quick=True),
]
