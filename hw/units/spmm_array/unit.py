"""SpmmArray: engines that scan their parts of sparse rows independently, and the reduction over them."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from hw.arith.trees import tree_latency
from hw.lib.block import Block
from hw.lib.stream import StreamQueue
from hw.units.spmm_array.engine import SpmmEngine
from hw.units.spmm_array.layouts import SpmmArrayParameters
from hw.units.spmm_array.reduction import ReductionLane

__all__ = ["SpmmArray"]

_ACTIVITY = ("terms", "waits_for_probability", "waits_for_engines", "waits_for_reduction", "waits_for_result")


class SpmmArray(Block):
    """``result(i, c) = sum(probability(i, e, s) * bank[e][value_base + c * value_stride + s])`` over the set bits.

    A row i is a bitmap with n_slots bits for each engine e. It is worked through in ``passes`` passes; pass c
    multiplies the row's probabilities by words of n_lanes values, and its result has n_lanes elements. An engine
    accumulates its set bits by rising slot, exactly; the engines' sums are aligned, added and rounded once. A row
    without set bits gives +0.

    Members (element 0 in the lowest bits):

    * ``write`` writes a word of one bank: ``values`` (n_lanes elements), ``address`` (below bank_depth) and ``engine``.
      It is always ready.
    * ``write_lane`` writes an element into one lane of a word of every bank: ``elements`` (n_engines, the first one for
      engine 0), ``address`` and ``lane``. It is ready while no ``write`` comes.
    * A row uses the words written before its bitmap was accepted. Others may be written at any time.
    * ``start`` sets the place of every engine's next probability to ``first_probability``; only while every row is
      done, that is, while all results of its passes were taken.
    * ``passes``, ``value_base`` and ``value_stride`` may change only then.
    * ``bitmap``: one transfer a row, n_engines words of n_slots bits.
    * ``probability_*``: reads of n_engines banks. A bank is read when its ``enable`` and its ``ready`` are set; its
      ``word`` comes a clock later. An engine reads one probability for each set bit, in each pass again from the row's
      first one, one place after the other modulo probability_depth.
    * ``result``: one transfer a pass, in order: ``rounded``, ``single`` (with ``wide``), and ``last_of_row``.
    * ``activity``: for each engine whether it issues a term, or a term waits: for the probability, or for room in the
      engine's queues while others are behind, while the reduction is at work, or while results are not taken; delayed
      by one clock.

    Timing: a term a clock and engine without a bubble between passes and rows; an engine without set bits in a row
    spends one clock on each pass. An engine may be run_ahead passes ahead of the slowest one, and further while the
    reduction keeps up. The reduction takes a pass every ``reduction_clocks`` clocks, once all engines have done it.
    An engine waits only for its probability and for room in its queues.

    Defined by :func:`golden.units.spmm_array.spmm` and, in time, by :func:`golden.units.spmm_array.schedule`.
    """

    Parameters = SpmmArrayParameters

    members_doc = {
        "write": "a word for one engine's bank; always ready",
        "write.values": "n_lanes {format} numbers",
        "write.address": "word of the bank, below bank_depth",
        "write.engine": "number of the engine",
        "write_lane": "a number for one lane of a word of each engine's bank; ready while no write comes",
        "write_lane.elements": "one {format} number for each engine",
        "write_lane.address": "word of the banks",
        "write_lane.lane": "which lane of it",
        "start": "the next row's first probability is at first_probability; only while no row is in flight",
        "first_probability": "word of the banks of probabilities",
        "passes": "passes over each row, at least one; changes only while no row is in flight",
        "value_base": "word of the banks that holds slot 0 in the first pass; as passes",
        "value_stride": "words of the banks from a pass to the next one; as passes",
        "bitmap": "which columns the next row has",
        "bitmap.bitmap": "one word an engine, bit s for slot s",
        "probability_enable": "engines that read a probability",
        "probability_address": "word to read",
        "probability_address.elements": "of each engine",
        "probability_ready": "engines whose read is accepted in this clock",
        "probability_word": "what was read in the clock before",
        "probability_word.elements": "a {format} number for each engine",
        "result": "rows of the product, n_lanes elements a pass",
        "result.rounded": "rounded to {format}",
        "result.single": "FP32",
        "result.last_of_row": "the last pass of its row",
        "activity": "what each engine did in the clock before, engine 0 in bit 0",
        "activity.terms": "it issued a term",
        "activity.waits_for_probability": "its probability could not be read",
        "activity.waits_for_engines": "its queues were full, and others were behind",
        "activity.waits_for_reduction": "its queues were full, and the reduction had not got on",
        "activity.waits_for_result": "its queues were full, and results were not taken",
    }

    @staticmethod
    def members(p):
        word = p.float_format.width
        vector, column = data.ArrayLayout(word, p.n_lanes), data.ArrayLayout(word, p.n_engines)
        address = p.value_address_width
        write = {"values": vector, "address": address, "engine": ceil_log2(p.n_engines)}
        write_lane = {"elements": column, "address": address, "lane": ceil_log2(p.n_lanes)}
        result = {"rounded": vector} | ({"single": data.ArrayLayout(32, p.n_lanes)} if p.wide else {})
        return {
            "write": In(stream.Signature(data.StructLayout(write))),
            "write_lane": In(stream.Signature(data.StructLayout(write_lane))),
            "start": In(1),
            "first_probability": In(p.probability_address_width),
            "passes": In(range(p.max_passes + 1)),
            "value_base": In(address),
            "value_stride": In(address),
            "bitmap": In(stream.Signature(data.StructLayout({"bitmap": data.ArrayLayout(p.n_slots, p.n_engines)}))),
            "probability_enable": Out(p.n_engines),
            "probability_address": Out(data.ArrayLayout(p.probability_address_width, p.n_engines)),
            "probability_ready": In(p.n_engines),
            "probability_word": In(column),
            "result": Out(stream.Signature(data.StructLayout(result | {"last_of_row": 1}))),
            "activity": Out(data.StructLayout(dict.fromkeys(_ACTIVITY, p.n_engines))),
        }

    def prepare(self):
        if not self.wide:
            self.members_doc = {name: text for name, text in self.members_doc.items() if name != "result.single"}

    @property
    def latency(self):
        """Clocks from the acceptance of a bitmap without or with single bits to its result, in an idle array."""
        return SpmmEngine.latency + 1 + self.parameters.to_result

    def circuit(self):
        m = Module()
        p = self.parameters
        engines = [SpmmEngine(**p.engine()) for _ in range(self.n_engines)]
        for index, engine in enumerate(engines):
            m.submodules[f"engine_{index}"] = engine
            m.d.comb += [
                getattr(engine, name).eq(getattr(self, name))
                for name in ("start", "first_probability", "passes", "value_base", "value_stride")
            ]
            m.d.comb += [
                engine.bitmap.payload.eq(self.bitmap.payload.bitmap[index]),
                engine.bitmap.valid.eq(self.bitmap.valid & self.bitmap.ready),
                self.probability_enable[index].eq(engine.probability_enable),
                self.probability_address[index].eq(engine.probability_address),
                engine.probability_ready.eq(self.probability_ready[index]),
                engine.probability.eq(self.probability_word[index]),
            ]
        m.d.comb += self.bitmap.ready.eq(Cat(engine.bitmap.ready for engine in engines).all())
        self._write(m, engines)
        self._take(m, engines)
        self._read(m, engines)
        self._reduce(m, engines)
        self._report(m, engines)
        return m

    def _write(self, m, engines):
        word, lane = self.write.payload, self.write_lane.payload
        writes_word = self.write.valid
        address = Signal(self.parameters.value_address_width, name="write_address")
        lane_enable = Signal(self.n_lanes)
        m.d.comb += [
            self.write.ready.eq(1),
            self.write_lane.ready.eq(~writes_word),
            address.eq(Mux(writes_word, word.address, lane.address)),
            lane_enable.eq(Cat(self.write_lane.valid & (lane.lane == index) for index in range(self.n_lanes))),
        ]
        for index, engine in enumerate(engines):
            m.d.comb += [
                engine.write_enable.eq(Mux(writes_word, (word.engine == index).replicate(self.n_lanes), lane_enable)),
                engine.write_address.eq(address),
                engine.write_values.eq(Mux(writes_word, word.values, lane.elements[index].replicate(self.n_lanes))),
            ]

    def _take(self, m, engines):
        """The reduction takes a pass that all engines have done if there will be room for its result."""
        p = self.parameters
        clocks = p.reduction_clocks
        unfinished = self._unfinished = Signal(range(p.result_depth + 1), name="unfinished")
        takes = Signal(name="takes")
        chain = [takes]
        for stage in range(1, p.to_rounder + ReductionLane.rounder_latency + 1):
            delayed = Signal(name=f"took_{stage}")
            m.d.sync += delayed.eq(chain[-1])
            chain.append(delayed)
        # A pass reads the exponents' queues for so many clocks, and again from second_read on. Passes that follow each
        # other keep to multiples of these clocks, at which a second read never meets a first one.
        is_busy = Cat(chain[ago] for ago in range(1, p.second_read + 1) if ago % clocks).any() if clocks > 1 else 0
        self._all_done = Signal(name="all_done")
        m.d.comb += [
            self._all_done.eq(Cat(engine.has_pass for engine in engines).all()),
            takes.eq(self._all_done & (unfinished != p.result_depth) & ~is_busy),
        ]
        m.d.sync += unfinished.eq(unfinished + takes - (self.result.valid & self.result.ready))
        for engine in engines:
            m.d.comb += [engine.takes.eq(takes), engine.frees.eq(chain[p.freed_delay])]
        self._took = chain

    def _read(self, m, engines):
        """Places are read by the number of the pass, in each clock by one engine of every group."""
        p, took = self.parameters, self._took
        clocks = p.reduction_clocks
        begins = {"status": 0, "again": p.second_read, "totals": p.second_read + 1}
        place = {}
        for name, begin in begins.items():
            place[name] = Signal(range(max(2, p.queue_depth)), name=f"{name}_place")
            with m.If(took[begin + clocks - 1]):
                m.d.sync += place[name].eq(Mux(place[name] == p.queue_depth - 1, 0, place[name] + 1))
        for index, engine in enumerate(engines):
            reads = {name: took[begin + index % clocks] for name, begin in begins.items()}
            m.d.comb += [engine.totals_enable.eq(reads["totals"]), engine.totals_place.eq(place["totals"])]
            if clocks == 1:
                m.d.comb += [engine.status_enable.eq(reads["status"]), engine.status_place.eq(place["status"])]
                m.d.comb += [engine.again_enable.eq(reads["again"]), engine.again_place.eq(place["again"])]
            else:
                m.d.comb += [
                    engine.status_enable.eq(reads["status"] | reads["again"]),
                    engine.status_place.eq(Mux(reads["again"], place["again"], place["status"])),
                ]

    def _reduce(self, m, engines):
        p, took = self.parameters, self._took
        clocks = p.reduction_clocks
        result = self.result.payload
        results = Signal.like(result, name="reduced")
        m.submodules.results = queue = StreamQueue(
            width=len(Cat(result.as_value())) - 1, depth=p.result_depth, storage="memory"
        )
        for index in range(self.n_lanes):
            m.submodules[f"reduction_{index}"] = lane = ReductionLane(**p.to_dict())
            m.d.comb += [
                lane.status.as_value().eq(Cat(engine.status[index] for engine in engines)),
                lane.totals.as_value().eq(Cat(engine.totals[index] for engine in engines)),
                results.rounded[index].eq(lane.rounded),
            ]
            if p.wide:
                m.d.comb += results.single[index].eq(lane.single)
            if clocks == 1:
                m.d.comb += lane.again.as_value().eq(Cat(engine.again[index].exponent for engine in engines))
                continue
            again, totals = p.second_read + 1, p.second_read + 2
            m.d.comb += [
                lane.select_status.eq(Cat(took[1 : 1 + clocks])),
                lane.first_status.eq(took[1 + p.exponent_stages]),
                lane.last_status.eq(took[clocks + p.exponent_stages]),
                lane.select_again.eq(Cat(took[again : again + clocks])),
                lane.select_totals.eq(Cat(took[totals : totals + clocks])),
                lane.first_total.eq(took[totals + 1 + tree_latency(p.n_groups)]),
            ]
        # What the queue holds is without the last bit, last_of_row.
        number = Signal(range(self.max_passes))
        is_last = number + 1 == self.passes
        m.d.comb += [
            queue.source.payload.eq(results.as_value()[:-1]),
            queue.source.valid.eq(took[-1]),
            self.result.payload.as_value().eq(Cat(queue.sink.payload, is_last)),
            self.result.valid.eq(queue.sink.valid),
            queue.sink.ready.eq(self.result.ready),
        ]
        with m.If(self.result.valid & self.result.ready):
            m.d.sync += number.eq(Mux(is_last, 0, number + 1))

    def _report(self, m, engines):
        activity = Signal.like(self.activity, name="activity_register")
        no_room = Cat(engine.waits_for_room for engine in engines)
        for_result = self._unfinished == self.parameters.result_depth
        causes = {
            "waits_for_engines": ~self._all_done & ~for_result,
            "waits_for_reduction": self._all_done & ~for_result,
            "waits_for_result": for_result,
        }
        m.d.sync += [
            activity.terms.eq(Cat(engine.issues for engine in engines)),
            activity.waits_for_probability.eq(Cat(engine.waits_for_probability for engine in engines)),
            *(
                getattr(activity, name).eq(no_room & is_cause.replicate(len(no_room)))
                for name, is_cause in causes.items()
            ),
        ]
        m.d.comb += self.activity.eq(activity)
