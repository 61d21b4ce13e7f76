"""Interfaces and arrays of ports, taken apart into the streams and plain ports of the emitted module."""

from amaranth.hdl import Module
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out, Signature

from hw.emit import contract
from hw.emit.contract import flat_ports
from hw.lib.block import Block
from hw.lib.ports import leaf_ports, port_name


class _Control(Signature):
    members_doc = {"start": "begin", "word": "a word", "done": "all is done"}

    def __init__(self):
        super().__init__({"start": Out(1), "word": Out(stream.Signature(3)), "done": In(1)})


class _Unit(Block):
    members_doc = {"control": "what to do", "score": "numbers", "flag": "bits"}

    @staticmethod
    def members(p):
        return {"control": In(_Control()), "score": Out(stream.Signature(5)).array(2), "flag": In(2).array(1, 2)}

    def circuit(self):
        return Module()


def test_names():
    assert port_name(("score", 0, "payload")) == "score_0__payload"
    assert port_name(("control", "word", "valid")) == "control__word__valid"


def test_every_port_has_its_direction_and_sentence():
    found = [(port.name, port.flow, port.is_stream, port.shape, port.doc) for port in leaf_ports(_Unit())]
    assert found == [
        ("control__start", In, False, 1, "begin"),
        ("control__word", In, True, 3, "a word"),
        ("control__done", Out, False, 1, "all is done"),
        ("score_0", Out, True, 5, "numbers"),
        ("score_1", Out, True, 5, "numbers"),
        ("flag_0_0", In, False, 2, "bits"),
        ("flag_0_1", In, False, 2, "bits"),
    ]


def test_the_contract_has_the_ports_of_the_module():
    """Streams, with their three ports each, and plain ports are what Verilog gets, in the same direction."""
    block = _Unit()
    expected = {}
    for member in contract.members(block):
        if member["kind"] == "stream":
            forward, back = member["direction"], {"input": "output", "output": "input"}[member["direction"]]
            directions = {"payload": forward, "valid": forward, "ready": back}
            expected |= {f"{member['name']}__{part}": direction for part, direction in directions.items()}
        else:
            expected[member["name"]] = member["direction"]
    assert {name: direction for name, (direction, _) in flat_ports(block).items()} == expected
