"""One measurement of `scale.py` in a process of its own: a task as JSON in, figures as JSON out."""

import json
import re
import sys
import time
from pathlib import Path

import jax
import numpy as np
import pyarrow.dataset as ds

from mtbayes.criteria import Criterion
from mtbayes.data.sources import open_stream
from mtbayes.likelihoods import Categorical, Gaussian
from mtbayes.models import Model
from mtbayes.networks import mlp
from mtbayes.solve import fit
from mtbayes.solve.devices import Devices
from mtbayes.solve.feed import STEPS
from mtbayes.solve.gradient import Training
from mtbayes.solve.problem import Problem
from mtbayes.solve.program import streamed
from mtbayes.types import Rows

TASK = json.loads(sys.argv[1])
WIDTHS = {"f32": 4, "f64": 8, "s32": 4, "u32": 4, "s64": 8, "u64": 8, "pred": 1, "bf16": 2}
COLLECTIVES = "all-reduce|all-gather|reduce-scatter|all-to-all|collective-permute"


def model():
    likelihood = Categorical(10) if TASK["sizes"][-1] == 10 else Gaussian(0.1)
    return Model(mlp(tuple(TASK["sizes"])), likelihood)


def mesh():
    count = jax.device_count()
    return jax.make_mesh((count,), ("rows",)) if count > 1 else None


def rows_of_files():
    return open_stream(ds.dataset(TASK["files"]), "y", lanes=TASK.get("lanes", 1))


def rate(x, y, rows: int) -> dict:
    """Rows a second, without the first chunk of each length, which may be compiled."""
    batch, moments = TASK["batch"], [now()]
    batches = -(-rows // batch)
    lengths = [STEPS] * (batches // STEPS) + [batches % STEPS] * (batches % STEPS > 0)
    fit(
        model(), x, y, Criterion(m=TASK["m"], t=0.9), key=0, epochs=TASK["epochs"],
        batch_size=batch, mesh=mesh(), callback=lambda _: moments.append(now()),
    )  # fmt: skip
    steps, taken, seen = 0, np.zeros(2), set()
    for length, both in zip(lengths * TASK["epochs"], np.diff(moments, axis=0), strict=True):
        if length in seen:
            steps, taken = steps + length, taken + both
        seen.add(length)
    seconds, busy = taken
    return {
        "rows_s": steps * batch / seconds,
        "step_ms": 1e3 * seconds / steps,
        "cpu_us": 1e6 * busy / (steps * batch),
    }


def turns(rows: int) -> dict:
    """Rates of rows in memory and of a stream, in turn."""
    parts = list(rows_of_files().blocks())
    x, y = (np.concatenate([block[i] for block in parts]) for i in (0, 1))
    del parts
    return {"turns": [[rate(x, y, rows), rate(rows_of_files(), None, rows)]
                      for _ in range(TASK["rounds"])]}  # fmt: skip


def now() -> tuple[float, float]:
    """Seconds on the wall, and those that this process has kept a core busy."""
    return time.perf_counter(), time.process_time()


def peak() -> float:
    """The most memory this process has held, in MB."""
    status = Path("/proc/self/status").read_text()
    return int(re.search(r"VmHWM:\s+(\d+)", status)[1]) / 1024


def exchanged() -> dict:
    """Bytes that each device gives to collectives, a step and a chunk, by the compiled program."""
    features, size = TASK["sizes"][0], TASK["batch"]
    x, y = np.zeros((size, features), np.float32), np.zeros(size, np.float32)
    if TASK["sizes"][-1] == 10:
        y = y.astype(np.int32)
    criterion, given = Criterion(m=TASK["m"], t=0.9), Rows(x, y, None)
    problem = Problem(model(), criterion, given, epochs=1, batch_size=size, mesh=mesh())
    training = Training(problem, 0)
    devices = Devices.of(mesh())
    rows = devices.batches(Rows(*(np.stack([v] * 4) for v in (x, y, np.ones(size, np.float32)))))
    raw = jax.random.key_data(jax.random.key(0))
    count = np.int32(4)
    state, count, raw, hyper = devices.everywhere((training.start, count, raw, training.hyper))
    program = streamed(training.settings).lower(state, rows, count, raw, hyper).compile()
    inside, step, chunk, kinds = "", 0, 0, []
    for line in program.as_text().splitlines():
        if line and not line.startswith((" ", "}")):
            inside = line.split()[0]
        found = re.search(rf"= (.*?) ({COLLECTIVES})(-start)?\(", line)
        if found:
            parts = re.findall(r"(\w+)\[([\d,]*)\]", found[1])
            count = sum(WIDTHS[k] * int(np.prod([int(v) for v in d.split(",") if v]))
                        for k, d in parts)  # fmt: skip
            kinds.append(found[2])
            if inside == "ENTRY":
                chunk += count
            else:
                step += count
    return {"parameters": model().size, "step_bytes": step, "chunk_bytes": chunk,
            "kinds": sorted(set(kinds)), "collectives": len(kinds)}  # fmt: skip


def main() -> None:
    if TASK.get("processes", 1) > 1:
        address = f"127.0.0.1:{TASK['port']}"
        jax.distributed.initialize(address, TASK["processes"], TASK["index"])
    if TASK["kind"] == "bytes":
        print(json.dumps(exchanged()))
        return
    rows = ds.dataset(TASK["files"]).count_rows()
    if TASK["kind"] == "turns":
        print(json.dumps(turns(rows)))
    else:
        print(json.dumps(rate(rows_of_files(), None, rows) | {"peak_mb": peak()}))


main()
