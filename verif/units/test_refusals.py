"""The models of the units refuse what the hardware refuses: rows that are too long, sizes, formats, illegal words."""

import numpy as np
import pytest

from golden.arith.accumulator import Accumulator
from golden.arith.elementwise import elementwise, fused_multiply_add
from golden.arith.functions import exponential, gelu, reciprocal, reciprocal_root, silu
from golden.spec.formats import FP32
from golden.spec.vector_operations import VectorOp
from golden.units.data_aligner import transpose_tiles
from golden.units.dot_product_array import sampled_scores, schedule
from golden.units.hash_bank_mapper import search_multiplier
from golden.units.layer_norm_unit import decode_epsilon, encode_epsilon, layer_norm, normalise
from golden.units.softmax_unit import decode_scale, encode_scale, softmax
from golden.units.token_selector import beat_positions, changed, token_masks
from golden.units.vector_unit import Commands, VectorUnit
from hw.units.data_aligner import DataAligner
from hw.units.dot_product_array import DotProductArray
from hw.units.layer_norm_unit import LayerNormUnit
from hw.units.softmax_unit import SoftmaxUnit
from hw.units.token_selector import TokenSelector
from hw.units.vector_unit import VectorUnit as VectorUnitBlock

SCALE = encode_scale(0.25)
EPSILON = encode_epsilon(1e-5)
LARGEST = 0x7BFF


def row(n, word=0):
    return np.full((1, n), word, np.uint16)


def ones(n):
    return np.ones((1, n), bool)


@pytest.mark.parametrize("n", [0, 4097])
def test_layer_norm_refuses_rows_that_the_unit_cannot_have(n):
    with pytest.raises(ValueError, match=f"a row must have from 1 to 4096 elements, not {n}"):
        normalise(row(n), ones(n), EPSILON)
    with pytest.raises(ValueError, match=f"a row must have from 1 to 4096 elements, not {n}"):
        layer_norm(row(n), ones(n), row(n), row(n), EPSILON)


def test_the_longest_rows_of_layer_norm_are_right():
    """x = 1000 +- 1: the error was 0.34 with one element more than the unit has."""
    values = np.float16(1000 + np.where(np.arange(4096) % 2, 1, -1))[None].view(np.uint16)
    found = normalise(values, ones(4096), EPSILON).view(np.float16)
    assert np.abs(np.abs(found.astype(float)) - 1).max() < 2.0**-10
    with pytest.raises(ValueError, match="n_slots must be at most 4096 divided by n_lanes=4"):
        LayerNormUnit(n_lanes=4, n_slots=1025)


@pytest.mark.parametrize("n", [0, 16385, 262144])
def test_softmax_refuses_rows_that_the_unit_cannot_have(n):
    with pytest.raises(ValueError, match=f"a row must have from 1 to 16384 elements, not {n}"):
        softmax(row(n), ones(n), SCALE)


def test_the_longest_rows_of_softmax_are_right():
    found = softmax(row(16384), ones(16384), SCALE).values
    assert (found.view(np.float16) == 2.0**-14).all()
    with pytest.raises(ValueError, match="n_slots must be at most 16384 divided by n_banks=8"):
        SoftmaxUnit(n_banks=8, n_slots=2049)


@pytest.mark.parametrize(
    "values, message",
    [
        ({"scores": row(4).astype(np.float16)}, "scores must be integers, the words of the numbers, not float16"),
        ({"scores": row(4).astype(int) - 1}, "scores must be words of 16 bits, from 0 to 65535, not -1"),
        ({"scale": 1 << 19}, "scale must be words of 19 bits, from 0 to 524287, not 524288"),
        ({"scale": -1}, "scale must be words of 19 bits, from 0 to 524287, not -1"),
        ({"theta": 0x10000}, "theta must be words of 16 bits, from 0 to 65535, not 65536"),
        ({"theta": 0.5}, "theta must be integers, the words of the numbers, not float64"),
        ({"factor": np.float16([1])}, "factor must be integers, the words of the numbers, not float16"),
    ],
)
def test_softmax_refuses_what_are_no_words(values, message):
    with pytest.raises((TypeError, ValueError), match=message):
        softmax(**{"scores": row(4), "enable": ones(4), "scale": SCALE} | values)


@pytest.mark.parametrize("scale", [0, -0.18, 1e-5, 11.4, float("inf"), float("nan")])
def test_scales_that_have_no_word_are_refused(scale):
    with pytest.raises(ValueError, match=f"scale must be from 0.00017 to 11, not {scale}"):
        encode_scale(scale)


def test_the_ends_of_the_scales_have_words():
    for word in (0, 1, (1 << 19) - 1):
        assert encode_scale(decode_scale(word) * np.log(2)) in (word, max(0, word - 1), word + 1)


@pytest.mark.parametrize("epsilon", [0, -1e-5, 1e-15, 65600, float("inf"), float("nan")])
def test_epsilons_that_have_no_word_are_refused(epsilon):
    with pytest.raises(ValueError, match="epsilon must be from 4e-15 to 65528, not"):
        encode_epsilon(epsilon)
    assert encode_epsilon(decode_epsilon(0)) == 0


@pytest.mark.parametrize(
    "values, message",
    [
        ({"values": row(4) * 1.0}, "values must be integers"),
        ({"epsilon": 1 << 18}, "epsilon must be words of 18 bits, from 0 to 262143, not 262144"),
        ({"epsilon": 1e-5}, "epsilon must be integers"),
        ({"gamma": row(4) * 1.0}, "gamma must be integers"),
        ({"beta": row(4).astype(int) + 65536}, "beta must be words of 16 bits"),
    ],
)
def test_layer_norm_refuses_what_are_no_words(values, message):
    legal = {"values": row(4), "enable": ones(4), "gamma": row(4), "beta": row(4), "epsilon": EPSILON}
    with pytest.raises((TypeError, ValueError), match=message):
        layer_norm(**legal | values)


@pytest.mark.parametrize(
    "values, message",
    [
        ({"format": "fp32"}, "format must be one of fp16, bf16, not 'fp32'"),
        ({"align_width": 21}, "align_width must be an integer from 22 to 40, not 21"),
        ({"align_width": 41}, "align_width must be an integer from 22 to 40, not 41"),
        ({"max_terms": 3}, "max_terms must be a power of two from 1 to 1048576, not 3"),
        ({"n_engines": 3}, "n_engines must be a power of two from 1 to 128, not 3"),
        ({"n_lanes": 129}, "n_lanes must be an integer from 1 to 128, not 129"),
        ({"bank_depth": 0}, "bank_depth must be an integer from 1 to 16777216, not 0"),
        ({"n_engines": 64, "n_lanes": 64}, "n_lanes must be at most 20 with n_engines 64"),
        ({"align_width": 40, "max_terms": 1 << 20}, "align_width must be at most 35 with max_terms 1048576"),
        ({"operations": ()}, "operations must be different names out of add, sub, "),
        ({"operations": ("add", "add")}, r"to_fp16, exp, .*, not \('add', 'add'\)"),
        ({"operations": ("divide",)}, r"operations must be different names out of .*, not \('divide',\)"),
        ({"operations": ("spmm",)}, "operations must be write_bank together with read_bank or spmm, or none of the"),
        ({"operations": ("add", "write_bank")}, "operations must be write_bank together with read_bank or spmm"),
        (
            {"scopes": ("banks",)},
            r"scopes must be none, or different names out of lanes, engine, all, not \('banks',\)",
        ),
        ({"operations": ("add",), "scopes": ("all",)}, "scopes must be none without one of the operations sum, "),
        ({"operations": ("add",), "totals": ("single",)}, "totals must be none without one of the operations sum, "),
        ({"special_lanes": 5}, "special_lanes must be at most n_lanes=4, not 5"),
        ({"special_lanes": 0}, "special_lanes must be none, or an integer from 1 to 128, not 0"),
        (
            {"operations": ("add",), "special_lanes": 1},
            "special_lanes must be none without one of the operations exp, ",
        ),
        ({"operations": ("add",), "early_values": True}, "early_values must be false where all results are values"),
        ({"operations": ("sum",), "early_values": True}, "early_values must be false where all results are values"),
    ],
)
def test_vector_unit(values, message):
    for cls in (VectorUnit, VectorUnitBlock):
        with pytest.raises(ValueError, match=message):
            cls(**values)
    inner = set(values) & {"format", "align_width", "max_terms"}
    if len(values) == len(inner) == 1:
        with pytest.raises(ValueError, match=message):
            Accumulator(**values)


@pytest.mark.parametrize("function", [exponential, reciprocal, reciprocal_root, gelu, silu])
def test_functions_have_no_tables_for_fp32(function):
    with pytest.raises(ValueError, match="format must be one of fp16, bf16, not 'fp32'"):
        function(row(4), FP32)


def test_functions_take_words():
    for function in (exponential, reciprocal, reciprocal_root, gelu, silu):
        with pytest.raises(TypeError, match="words must be integers, not float16"):
            function(np.float16([1.0]))


@pytest.mark.parametrize(
    "field, value, message",
    [
        ("operation", 32, "operation must be words of 5 bits, from 0 to 31, not 32"),
        ("scope", 4, "scope must be words of 2 bits, from 0 to 3, not 4"),
        ("a", 0x10000, "a must be words of 16 bits, from 0 to 65535, not 65536"),
        ("b", -1, "b must be words of 16 bits, from 0 to 65535, not -1"),
        ("c", 0.5, "c must be integers"),
    ],
)
def test_commands_of_the_vector_unit(field, value, message):
    commands = Commands.empty(2, 4, 4)
    setattr(commands, field, np.full(np.shape(getattr(commands, field)), value))
    with pytest.raises((TypeError, ValueError), match=message):
        VectorUnit().execute(commands)


def test_sets_of_names_are_kept_in_order():
    unit = VectorUnit(operations={"mul", "add"})
    assert unit.operations == ("add", "mul") == VectorUnit.parse({"operations": "mul,add"}).operations
    assert VectorUnitBlock(operations=["mul", "add"]).key == VectorUnitBlock(operations=("add", "mul")).key
    with pytest.raises(ValueError, match=r"operations must be different names out of .*, not \('mul', 'and'\)"):
        VectorUnit.parse({"operations": "mul,and"})
    with pytest.raises(TypeError, match="operations must be different names out of .*, not 5 of type int"):
        VectorUnit(operations=5)


def test_absent_operations_give_zeros_and_absent_scopes_no_totals():
    unit = VectorUnit(operations=("mul", "sum"), scopes=("lanes", "all"), totals=("rounded",))
    commands = Commands.empty(4, 4, 4)
    commands.operation[:] = [VectorOp.MUL, VectorOp.ADD, VectorOp.SUM, VectorOp.SUM]
    for name in "abc":
        getattr(commands, name)[:] = 0x3C00
    commands.scope[:] = [0, 0, 0, 1]
    commands.first[:] = commands.last[:] = True
    results = unit.execute(commands)
    assert (results.values[0] == 0x3C00).all() and not results.values[1:].any()
    assert (results.rounded[2] == 0x4400).all() and not results.rounded[[0, 1, 3]].any()
    assert results.single.shape == (4, 0) and len(results.command) == 4
    with pytest.raises(ValueError, match=r"scope must be 0 \(LANES\), the only one of the unit, not 1"):
        VectorUnit(operations=("sum",), scopes=("lanes",)).execute(commands)


def test_lanes_have_no_operands_in_fp32():
    with pytest.raises(ValueError, match="format must be one of fp16, bf16, not 'fp32'"):
        elementwise(VectorOp.MAX, row(4), row(4), row(4), FP32)
    with pytest.raises(ValueError, match="format must be one of fp16, bf16, not 'fp32'"):
        fused_multiply_add(row(4), row(4), row(4), FP32)


@pytest.mark.parametrize("n", [1, 3, 128])
def test_data_aligner(n):
    message = f"n must be a power of two from 2 to 64, not {n}"
    with pytest.raises(ValueError, match=message):
        transpose_tiles(np.zeros((n, n)), n)
    with pytest.raises(ValueError, match=message):
        DataAligner(n=n)


@pytest.mark.parametrize(
    "sizes, message",
    [
        ({"n_units": 3}, "n_units must be a power of two from 2 to 64, not 3"),
        ({"n_slots": 4097}, "n_slots must be an integer from 1 to 4096, not 4097"),
        ({"max_beats": 2049}, "max_beats must be an integer from 1 to 2048, not 2049"),
        (
            {"max_beats": 5, "n_lanes": 4, "max_terms": 16},
            "max_beats must be no more than max_terms divided by n_lanes",
        ),
        ({"format": "int8"}, "format must be one of fp16, bf16, not 'int8'"),
    ],
)
def test_dot_product_array(sizes, message):
    with pytest.raises(ValueError, match=message):
        DotProductArray(**sizes)
    shape = {"n_units": 2, "n_slots": 2, "max_beats": 1, "n_lanes": 1} | sizes
    query = np.zeros((1, shape["max_beats"], shape["n_lanes"]), int)
    keys = np.zeros((shape["n_units"], shape["n_slots"], *query.shape[1:]), int)
    options = {"format": shape.get("format", "fp16"), "max_terms": shape.get("max_terms")}
    with pytest.raises(ValueError, match=message):
        sampled_scores(np.ones((1, shape["n_units"], shape["n_slots"])), query, keys, **options)


@pytest.mark.parametrize(
    "values, message",
    [
        ({"run_ahead": 9}, "run_ahead must be an integer from 0 to 8, not 9"),
        ({"run_ahead": -1}, "run_ahead must be an integer from 0 to 8, not -1"),
        ({"n_beats": 0}, "max_beats must be an integer from 1 to 2048, not 0"),
        ({"query_beats": 65}, "query_beats must be none, or an integer from 1 to 64, not 65"),
    ],
)
def test_schedule_of_the_array(values, message):
    legal = {"n_beats": 1, "run_ahead": 8, "query_beats": 1, "score_latency": 7}
    with pytest.raises(ValueError, match=message):
        schedule(np.ones((3, 2), int), **legal | values)


@pytest.mark.parametrize(
    "sizes, message",
    [
        ({"width": 1025}, "width must be an integer from 1 to 1024, not 1025"),
        ({"height": 1025}, "height must be an integer from 1 to 1024, not 1025"),
        ({"channels": 65}, "channels must be an integer from 1 to 64, not 65"),
        ({"patch": 65}, "patch must be an integer from 1 to 64, not 65"),
        ({"patch": 0}, "patch must be an integer from 1 to 64, not 0"),
    ],
)
def test_latents(sizes, message):
    size = {"width": 2, "height": 2, "channels": 1, "patch": 1} | sizes
    latents = np.zeros((2, size["channels"], size["height"], size["width"]), int)
    with pytest.raises(ValueError, match=message):
        token_masks(latents, 0, size["patch"])
    with pytest.raises(ValueError, match=message):
        beat_positions(**size, n_values=16, channel_order="inner")
    with pytest.raises(ValueError, match=message):
        TokenSelector(**size)


def test_order_of_a_latent():
    with pytest.raises(ValueError, match="channel_order must be one of inner, outer, not 'any'"):
        beat_positions(2, 2, 1, 1, 16, "any")
    with pytest.raises(ValueError, match="n_values must be large enough that a row of the latent takes at most 4096"):
        beat_positions(1024, 1, 64, 1, 8, "inner")
    with pytest.raises(ValueError, match="reference must be one of previous, last, not 'first'"):
        token_masks(np.zeros((2, 1, 2, 2), int), 0, 1, reference="first")


def test_values_of_a_latent():
    with pytest.raises(ValueError, match="values must be words of 16 bits, from 0 to 65535, not 65536"):
        changed(0x10000, 0, 0)
    with pytest.raises(TypeError, match="values must be integers, the words of the numbers, not complex128"):
        changed(1j, 0, 0)
    assert changed(LARGEST, 0, 0)


def test_search_of_a_multiplier():
    with pytest.raises(ValueError, match="n_banks must be a power of two from 1 to 65536, not 6"):
        search_multiplier(np.ones((4, 8), bool), 6)
