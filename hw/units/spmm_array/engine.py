"""SpmmEngine: the lanes that share a probability, with their bank of values, their scanner and their queues."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, signed
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out, connect, flipped
from amaranth.utils import ceil_log2

from golden.spec.formats import float_format
from hw.lib.block import Block
from hw.lib.memory import MemoryBank
from hw.lib.pipeline import Pipeline
from hw.lib.stream import StreamQueue
from hw.units.spmm_array.factor import SpmmFactor
from hw.units.spmm_array.lane import SpmmLane
from hw.units.spmm_array.layouts import SpmmEngineParameters, left_layout, status_layout
from hw.units.spmm_array.scanner import SpmmScanner

__all__ = ["SpmmEngine"]

_CONTROL = ("start", "first_probability", "passes", "value_base", "value_stride")


class SpmmEngine(Block):
    """Sums of the passes over an engine's bits of each row, in queues of its own.

    A pass's exponents and specials are queued one clock before its sums. The queues are rings in memories whose places
    are filled in order; who reads them counts them, too, and says which pass it has taken and which place is free. What
    a place holds is read by its number, so it may be read more than once.

    The lanes never wait: the last term of a pass is issued when its place is free.
    """

    Parameters = SpmmEngineParameters
    members_doc = {name: SpmmScanner.members_doc[name] for name in _CONTROL} | {
        "bitmap": "bits of successive rows",
        "write_enable": "write these lanes of write_values to write_address of the bank",
        "write_address": "word of the bank",
        "write_values": "n_lanes elements",
        "probability_enable": "read probability_address",
        "probability_address": "place of a probability",
        "probability_ready": "it can be read in this clock",
        "probability": "the one read last, from one clock after its read on",
        "has_pass": "a pass is in the queues that was not taken",
        "takes": "it is taken",
        "frees": "the oldest place becomes free",
        "status_enable": "read place status_place",
        "status_place": "a place of the queues",
        "status": "exponents and specials of the pass read last, by lane",
        "again_enable": "read place again_place",
        "again_place": "a place of the queues",
        "again": "the same, of another pass",
        "totals_enable": "read place totals_place",
        "totals_place": "a place of the queues",
        "totals": "sums of the pass read last, by lane",
        "issues": "a term with factors is issued",
        "waits_for_probability": "a term waits for its probability",
        "waits_for_room": "a pass waits for a place in the queues",
    }

    @staticmethod
    def members(p):
        scanner = SpmmScanner.members(p)
        word = float_format(p.format).width
        place = max(1, ceil_log2(p.passes_queued))
        status = data.ArrayLayout(status_layout(p.arithmetic), p.n_lanes)
        again = {"again_enable": In(1), "again_place": In(place), "again": Out(status)}
        return {
            **{name: scanner[name] for name in _CONTROL},
            "bitmap": In(stream.Signature(p.n_slots)),
            "write_enable": In(p.n_lanes),
            "write_address": In(p.value_address_width),
            "write_values": In(p.n_lanes * word),
            "probability_enable": Out(1),
            "probability_address": Out(p.probability_address_width),
            "probability_ready": In(1),
            "probability": In(word),
            "has_pass": Out(1),
            "takes": In(1),
            "frees": In(1),
            "status_enable": In(1),
            "status_place": In(place),
            "status": Out(status),
            **(again if p.reads_at_once else {}),
            "totals_enable": In(1),
            "totals_place": In(place),
            "totals": Out(data.ArrayLayout(signed(p.arithmetic.sum_width), p.n_lanes)),
            "issues": Out(1),
            "waits_for_probability": Out(1),
            "waits_for_room": Out(1),
        }

    def prepare(self):
        if not self.reads_at_once:
            self.members_doc = {name: text for name, text in self.members_doc.items() if not name.startswith("again")}

    latency = StreamQueue(width=1, depth=3, storage="memory").latency + SpmmScanner.latency + SpmmLane.latency

    def circuit(self):
        m = Module()
        p = self.parameters
        names = SpmmScanner.Parameters.__dataclass_fields__
        m.submodules.scanner = scanner = SpmmScanner(**{name: getattr(p, name) for name in names})
        m.submodules.bitmaps = bitmaps = StreamQueue(width=p.n_slots, depth=p.rows_queued, storage="memory")
        connect(m, flipped(self.bitmap), bitmaps.source)
        connect(m, bitmaps.sink, scanner.bitmap)
        m.d.comb += [getattr(scanner, name).eq(getattr(self, name)) for name in _CONTROL]
        m.d.comb += [
            scanner.ready.eq(self.probability_ready | ~scanner.takes_part),
            self.probability_enable.eq(scanner.issues & scanner.takes_part),
            self.probability_address.eq(scanner.probability),
            self.issues.eq(scanner.issues & scanner.takes_part),
            self.waits_for_probability.eq(scanner.wants & ~scanner.ready),
            self.waits_for_room.eq(scanner.wants & scanner.ready & ~scanner.issues),
        ]
        values = self._bank(m, scanner)
        left, start, ends = self._left(m, scanner)
        lanes = [SpmmLane(**p.lane()) for _ in range(self.n_lanes)]
        for index, (lane, value) in enumerate(zip(lanes, values, strict=True)):
            m.submodules[f"lane_{index}"] = lane
            m.d.comb += [lane.value.eq(value), lane.left.eq(left), lane.start.eq(start)]
        self._queues(m, lanes, ends)
        self._count(m, scanner, ends)
        return m

    def _bank(self, m, scanner):
        p = self.parameters
        word = p.float_format.width
        m.submodules.values = bank = MemoryBank(
            depth=self.bank_depth, width=self.n_lanes * word, granularity=word if self.n_lanes > 1 else None
        )
        m.d.comb += [
            bank.write_enable.eq(self.write_enable),
            bank.write_address.eq(self.write_address),
            bank.write_data.eq(self.write_values),
            bank.read_enable.eq(scanner.issues & scanner.takes_part),
            bank.read_address.eq(scanner.value),
        ]
        return [bank.read_data.word_select(index, word) for index in range(self.n_lanes)]

    def _left(self, m, scanner):
        """Stage 1: the probability is split up once for all lanes; returns what the lanes need in stage 2."""
        p = self.parameters.arithmetic
        pipe = Pipeline(m, advance=Const(1, 1))
        takes_part = pipe.control(scanner.issues & scanner.takes_part, name="takes_part_1")
        start = pipe.control(scanner.issues & scanner.first, name="start_1")
        ends = pipe.control(scanner.issues & scanner.last, name="ends_1")
        m.submodules.left_factor = factor = SpmmFactor(format=self.format)
        left, split = Signal(left_layout(p)), factor.factor
        significand = split.significand & takes_part.replicate(p.precision)
        m.d.comb += [
            factor.word.eq(self.probability),
            left.once.eq(significand),
            left.triple.eq(significand + Cat(Const(0, 1), significand)),
            left.exponent.eq(split.exponent),
            left.sign.eq(split.sign),
            left.is_inf.eq(split.is_inf & takes_part),
            left.is_nan.eq(split.is_nan & takes_part),
            left.takes_part.eq(takes_part),
        ]
        return (
            pipe.register(left, name="left_2"),
            pipe.control(start, name="start_2"),
            pipe.control(ends, name="ends_2"),
        )

    def _queues(self, m, lanes, ends):
        """The status is written in stage 3, the sums in stage 4."""
        n_places = self.passes_queued
        place = Signal(range(max(2, n_places)), name="place")
        totals_place = Signal.like(place, name="totals_place_register", reset_less=True)
        pushes_status, pushes_totals = Signal(), Signal()
        m.d.sync += [pushes_status.eq(ends), pushes_totals.eq(pushes_status), totals_place.eq(place)]
        with m.If(pushes_status):
            m.d.sync += place.eq(Mux(place == n_places - 1, 0, place + 1))
        self._pushes = pushes_status
        status, totals = Cat(lane.status for lane in lanes), Cat(lane.total for lane in lanes)
        queues = [("status", status, pushes_status, place), ("totals", totals, pushes_totals, totals_place)]
        if self.reads_at_once:
            queues.append(("again", *queues[0][1:]))
        for name, value, pushes, at in queues:
            m.submodules[f"{name}_queue"] = queue = MemoryBank(depth=n_places, width=len(value))
            m.d.comb += [
                queue.write_enable.eq(pushes),
                queue.write_address.eq(at),
                queue.write_data.eq(value),
                queue.read_enable.eq(getattr(self, f"{name}_enable")),
                queue.read_address.eq(getattr(self, f"{name}_place")),
                getattr(self, name).eq(queue.read_data),
            ]

    def _count(self, m, scanner, ends):
        """Places that are in use or promised, and passes that can be taken."""
        used, queued = (Signal(range(self.passes_queued + 1), name=name) for name in ("used", "queued"))
        m.d.comb += [scanner.has_room.eq(used != self.passes_queued), self.has_pass.eq(queued != 0)]
        m.d.sync += [
            used.eq(used + (scanner.issues & scanner.last) - self.frees),
            queued.eq(queued + self._pushes - self.takes),
        ]
