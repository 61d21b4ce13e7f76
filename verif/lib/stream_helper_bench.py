"""Stimulus and expectation for the stream helpers: random beats that must come out unchanged and in order."""

from hw.lib import stream
from verif.bench.batch import Batch, Bench
from verif.bench.packing import join


class StreamHelperBench(Bench):
    """For every block of :mod:`hw.lib.stream`; the job's parameters name the block's class as ``block``."""

    unit = "stream_helper"
    required_bins = frozenset({"all zeros", "all ones"})

    @classmethod
    def make_block(cls, parameters):
        parameters = dict(parameters)
        return getattr(stream, parameters.pop("block"))(**parameters)

    def streams(self):
        def names(role):
            member = self.block.signature.members[role]
            return [f"{role}_{i}" for i in range(*member.dimensions)] if member.dimensions else [role]

        return {"inputs": names("source"), "outputs": names("sink")}

    def batch(self, count):
        width, names = self.parameters.width, self.streams()
        corners = [0, (1 << width) - 1]
        inputs = {name: [*corners, *(self._beat(width) for _ in range(count))] for name in names["inputs"]}
        side_by_side = [join(*((beat, width) for beat in beats)) for beats in zip(*inputs.values(), strict=True)]
        first = names["inputs"][0]
        return Batch(
            inputs=inputs,
            outputs={name: side_by_side for name in names["outputs"]},
            bins={"all zeros": side_by_side.count(0), "all ones": side_by_side.count((1 << width * len(inputs)) - 1)},
            causes={name: (first, list(range(len(side_by_side)))) for name in names["outputs"]},
        )

    def _beat(self, width):
        return int.from_bytes(self.rng.bytes(-(-width // 8)), "little") & ((1 << width) - 1)
