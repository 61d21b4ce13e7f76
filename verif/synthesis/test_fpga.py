"""The FPGA flow: counts of small blocks, multipliers in DSPs, place and route where nextpnr is installed, errors."""

import json

import pytest

from hw import __main__ as command_line
from hw.cli.arguments import reporting_errors
from hw.registry import make_block
from hw.synthesis import fpga


def run(tmp_path, *arguments):
    return reporting_errors(lambda: command_line.main(["fpga", *arguments, "-o", str(tmp_path / "out")]))


def test_counts_and_a_sentence_where_nextpnr_is_missing(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(fpga, "find_nextpnr", lambda given: None)
    assert run(tmp_path, "hash_bank_mapper", "--config", "small") == 0
    output = capsys.readouterr().out
    assert "no frequency: nextpnr is not installed; `make fpga` installs it" in output
    report = json.loads((tmp_path / "out" / "hash_bank_mapper_small_200MHz_seed-1.json").read_text())
    assert 10 < report["luts"] < 100 and 10 < report["flip_flops"] < 40
    assert (report["dsps"], report["block_rams"], report["fmax_mhz"]) == (0, 0, None)


@pytest.mark.slow
def test_multipliers_are_dsps():
    block = make_block("dot_product_unit", None, {"n_lanes": 2, "format": "fp16"})
    report = fpga.implement("dot_product_unit", block, None, 100, 1, lambda stage: None)
    assert report["dsps"] == 2
    assert 300 < report["luts"] < 3000


@pytest.mark.slow
@pytest.mark.skipif(fpga.find_nextpnr(None) is None, reason="nextpnr is not installed (requirements-fpga.txt)")
def test_place_and_route(tmp_path, capsys):
    assert run(tmp_path, "hash_bank_mapper", "--config", "small") == 0
    report = json.loads((tmp_path / "out" / "hash_bank_mapper_small_200MHz_seed-1.json").read_text())
    assert report["device"] == "LFE5U-25F"
    assert 100 < report["fmax_mhz"] < 600
    assert report["tools"]["nextpnr"][0].isdigit()
    assert "note" not in report


@pytest.mark.parametrize(
    "option, message",
    [
        (("--frequency", "fast"), "frequency must be a whole number from 1 to 9999, not 'fast'"),
        (("--seed", "0"), "seed must be a whole number from 1 to 9999, not '0'"),
        (("--nextpnr", "nowhere/nextpnr"), "nextpnr 'nowhere/nextpnr' is not a program"),
    ],
)
def test_bad_options(tmp_path, capsys, option, message):
    assert run(tmp_path, "hash_bank_mapper", *option) == 2
    error = capsys.readouterr().err
    assert message in error and "Traceback" not in error
