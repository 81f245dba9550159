"""What devices tell each other, by the benchmark that counts it."""

import json
import os
import subprocess
import sys
from pathlib import Path

WORKER = Path(__file__).parents[2] / "benchmarks" / "scale_worker.py"


def test_a_step_exchanges_the_gradient_once_and_nothing_else():
    task = {
        "kind": "bytes", "sizes": [8, 10, 10, 1], "m": 1, "batch": 128, "processes": 1, "devices": 2
    }  # fmt: skip
    flags = {"XLA_FLAGS": "--xla_force_host_platform_device_count=2"}
    told = subprocess.run(
        [sys.executable, str(WORKER), json.dumps(task)],
        capture_output=True, text=True, env=os.environ | flags,
    )  # fmt: skip
    assert told.returncode == 0, told.stderr
    found = json.loads(told.stdout.splitlines()[-1])
    gradient = 4 * (9 * 10 + 11 * 10 + 11)  # four bytes a parameter
    assert found["parameters"] * 4 == gradient
    assert (found["collectives"], found["kinds"]) == (1, ["all-reduce"])
    assert gradient <= found["step_bytes"] <= gradient + 16  # and a term or two of the loss
    assert found["chunk_bytes"] == 0
