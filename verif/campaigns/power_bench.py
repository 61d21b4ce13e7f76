"""The cocotb test behind ``python -m verif.campaigns.power``: one batch at full rate, and when it began and ended."""

import json
import os
from pathlib import Path

import cocotb
from cocotb.utils import get_sim_time

from verif.bench.harness import load_bench
from verif.bench.testbench import Testbench


@cocotb.test()
async def play_at_full_rate(dut):
    job = json.loads(Path(os.environ["BENCH_JOB"]).read_text())
    player = Testbench(dut, load_bench(job["unit"], job["parameters"], job["seed"]), job["seed"])
    await player.start()
    begin, first_cycle = get_sim_time("ps"), player.cycle
    await player.play(job["count"], "none", "none")
    result = {
        "failed": player.failed,
        "messages": player.messages,
        "results": player.sinks[0].checked,
        "cycles": player.cycle - first_cycle,
        "begin_ps": begin,
        "end_ps": get_sim_time("ps"),
    }
    Path(job["result"]).write_text(json.dumps(result))
