"""Beyond one machine: rows a second, bytes exchanged, memory and cost a row, and what follows.

    .venv/bin/python benchmarks/scale.py [--quick] [--only NAME] [--out DIR] [--scratch DIR]

NAME is `devices`, `bytes`, `stream` or `rows`. Every measurement has a process of its own. Rivals
take turns within a round, and a ratio is the median over rounds of the ratios within a round. Files
of rows are written to a folder below `scratch`, which is deleted at the end (0.8 GB; 0.1 quick).
"""

import csv
import json
import math
import os
import socket
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Annotated

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import typer
from rich.console import Console
from rich.table import Table

from mtbayes._files import atomic

WORKER = Path(__file__).parent / "scale_worker.py"
HOUSING = {"sizes": [8, 10, 10, 1], "m": 5, "batch": 128}
WIDE = {"sizes": [8, 50, 50, 1], "m": 10, "batch": 128}
PIXELS = {"sizes": [784, 25, 10], "m": 10, "batch": 128}
LATENCY = 25e-6  # seconds a message, of ordinary Ethernet
console = Console(width=100) if not sys.stdout.isatty() else Console()


def ask(cores: tuple[int, ...] = (0, 1), processes: int = 1, devices: int = 1, **task) -> dict:
    """A worker's answer; of many processes, which share the cores, the first one's."""
    port = free_port() if processes > 1 else 0
    task |= {"processes": processes, "port": port}
    workers = [started({**task, "index": i}, cores, devices) for i in range(processes)]
    answers = [worker.communicate() for worker in workers]
    if any(worker.returncode for worker in workers):
        raise SystemExit("\n".join(error[-2000:] for _, error in answers))
    return json.loads(answers[0][0].splitlines()[-1])


def started(task: dict, cores: tuple[int, ...], devices: int) -> subprocess.Popen:
    """A worker that knows of so many cores and devices."""
    own = os.sched_getaffinity(0)
    flags = {"XLA_FLAGS": f"--xla_force_host_platform_device_count={devices}"}
    os.sched_setaffinity(0, cores)
    try:
        return subprocess.Popen(
            [sys.executable, str(WORKER), json.dumps(task)],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ | flags,
        )  # fmt: skip
    finally:
        os.sched_setaffinity(0, own)


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


# Rows on disk.


def numbers(folder: Path, name: str, rows: int, seed: int) -> str:
    """A Parquet file of eight features and a target, 36 bytes a row."""
    random = np.random.default_rng(seed)
    x = random.normal(size=(rows, 8)).astype(np.float32)
    y = np.sin(x[:, 0]) + 0.1 * random.normal(size=rows).astype(np.float32)
    table = pa.table({**{f"x{j}": x[:, j] for j in range(8)}, "y": y.astype(np.float32)})
    path = folder / f"{name}.parquet"
    pq.write_table(table, path, row_group_size=2**17)
    return str(path)


def pixels(folder: Path, rows: int) -> str:
    """A Parquet file of 784 bytes, of which four in five are 0 as in MNIST, and a class a row."""
    random = np.random.default_rng(0)
    flat = random.integers(0, 256, rows * 784, np.uint8)
    flat[random.random(rows * 784, np.float32) < 0.8] = 0
    lists = pa.FixedSizeListArray.from_arrays(pa.array(flat), 784)
    path = folder / "pixels.parquet"
    pq.write_table(
        pa.table({"x": lists, "y": random.integers(0, 10, rows)}), path, row_group_size=2**15
    )
    return str(path)


# What is measured.


def devices(folder: Path, quick: bool) -> list[dict]:
    """Rows a second of one device, which is a core, and of two: in a process, and in two."""
    files = [numbers(folder, "devices", 300_000 if quick else 1_000_000, 0)]
    ways = {
        "1 device": {"cores": (0,)},
        "2 devices, 1 process": {"devices": 2},
        "2 processes": {"processes": 2},
    }
    found = []
    for batch in (128, 1024):
        rounds: dict[str, list[dict]] = {way: [] for way in ways}
        for _ in range(1 if quick else 3):
            for way, setting in ways.items():
                count = 1 if way == "1 device" else 2
                task = WIDE | {"batch": batch * count, "epochs": 1 if batch < 1024 else 3}
                answer = ask(kind="fit", files=files, lanes=2, **task, **setting)
                rounds[way].append(answer)
        for way, answers in rounds.items():
            gain = [a["rows_s"] / one["rows_s"]
                    for a, one in zip(answers, rounds["1 device"], strict=True)]  # fmt: skip
            found.append({
                "rows a device": batch, "way": way,
                "rows_s": round(statistics.median(a["rows_s"] for a in answers)),
                "step_ms": round(statistics.median(a["step_ms"] for a in answers), 3),
                "times one device": round(statistics.median(gain), 2),
            })  # fmt: skip
    return found


def exchanged(folder: Path, quick: bool) -> list[dict]:
    """Bytes that a device gives to collectives each step, against parameters."""
    found = []
    for m in (1, 10):
        for case in (HOUSING, WIDE, PIXELS):
            answer = ask(kind="bytes", devices=2, **(case | {"m": m}))
            found.append({
                "network": "-".join(map(str, case["sizes"])), "m": m,
                "parameters": answer["parameters"], "bytes a step": answer["step_bytes"],
                "bytes a parameter": round(answer["step_bytes"] / answer["parameters"], 1),
                "bytes a chunk beside": answer["chunk_bytes"],
                "collectives": f"{answer['collectives']} {', '.join(answer['kinds'])}",
            })  # fmt: skip
    return found


def predicted(measured: list[dict], sent: list[dict]) -> list[dict]:
    """Rows a second for each device as a share of one alone, by a model of the exchange.

    A ring moves 2(D-1)/D of the bytes over each link, and a tree of messages takes 2 log2(D) times
    the latency. Nothing is overlapped with computation.
    """
    wide = next(s for s in sent if s["network"] == "8-50-50-1" and s["m"] == 10)
    found = []
    for row in measured:
        if row["way"] != "1 device":
            continue
        alone = row["step_ms"] / 1e3
        for gigabits in (10, 100):
            for count in (8, 64, 512):
                moved = 2 * (count - 1) / count * wide["bytes a step"] * 8 / (gigabits * 1e9)
                waited = 2 * math.log2(count) * LATENCY
                share = alone / (alone + moved + waited)
                found.append({
                    "rows a device": row["rows a device"], "Gb/s": gigabits, "devices": count,
                    "step_ms": round(1e3 * alone, 3), "moved_ms": round(1e3 * moved, 3),
                    "waited_ms": round(1e3 * waited, 3), "efficiency": round(share, 2),
                    "rows_s": round(count * row["rows a device"] / (alone + moved + waited)),
                })  # fmt: skip
    return found


def stream(folder: Path, quick: bool) -> list[dict]:
    """Rows a second from Parquet beside rows in memory, taking turns."""
    rows = 300_000 if quick else 1_000_000
    files = {"numbers": [numbers(folder, "stream", rows, 1)]}
    files["pixels"] = [pixels(folder, 100_000)]
    found = []
    for name, case, kind, epochs in (
        ("8-10-10-1, m = 5", HOUSING, "numbers", 1),
        ("8-50-50-1, m = 10", WIDE, "numbers", 1),
        ("784-25-10, m = 10", PIXELS, "pixels", 4),
    ):
        rounds = 1 if quick else 7
        both = ask(kind="turns", files=files[kind], epochs=epochs, rounds=rounds, **case)["turns"]
        ratios = [s["rows_s"] / m["rows_s"] for m, s in both]
        found.append({
            "workload": name,
            "memory rows_s": round(statistics.median(m["rows_s"] for m, _ in both)),
            "stream rows_s": round(statistics.median(s["rows_s"] for _, s in both)),
            "stream/memory": round(statistics.median(ratios), 2),
            "lowest": round(min(ratios), 2), "highest": round(max(ratios), 2),
        })  # fmt: skip
    return found


def growth(folder: Path, quick: bool) -> list[dict]:
    """Peak memory and cost a row against the number of rows, one epoch or at least a million."""
    each = 1_000_000
    files = [numbers(folder, "small", 100_000, 0)]
    most = 2 if quick else 20
    many = [numbers(folder, f"rows-{i:02d}", each, i) for i in range(most)]
    found = []
    for rows, chosen in [(100_000, files)] + [
        (k * each, many[:k]) for k in (1, 2, 5, 10, 20) if k <= most
    ]:
        epochs = max(1, each // rows)
        answer = ask(kind="fit", files=chosen, epochs=epochs, **HOUSING)
        found.append({
            "rows": rows, "rows_s": round(answer["rows_s"]),
            "us a row": round(1e6 / answer["rows_s"], 3),
            "cpu us a row": round(answer["cpu_us"], 3),
            "peak_mb": round(answer["peak_mb"]),
        })  # fmt: skip
    first = next(f for f in found if f["rows"] == each)
    for row in found:
        row["memory / 1 million"] = round(row["peak_mb"] / first["peak_mb"], 3)
        row["cpu / 1 million"] = round(row["cpu us a row"] / first["cpu us a row"], 2)
    return found


MEASURES = {"devices": devices, "bytes": exchanged, "stream": stream, "rows": growth}


def show(name: str, rows: list[dict], out: Path) -> None:
    with atomic(out / f"{name}.csv") as temporary, temporary.open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    table = Table(*rows[0], title=name)
    for row in rows:
        table.add_row(*map(str, row.values()))
    console.print(table)


def main(
    quick: Annotated[bool, typer.Option(help="Fewer rows and rounds.")] = False,
    only: Annotated[str | None, typer.Option(help="devices, bytes, stream or rows.")] = None,
    out: Annotated[Path, typer.Option(help="Folder of the tables.")] = Path("results/scale"),
    scratch: Annotated[Path | None, typer.Option(help="Where rows are written.")] = None,
) -> None:
    if only is not None and only not in MEASURES:
        raise typer.BadParameter(f"only must be one of {', '.join(MEASURES)}, got {only!r}.")
    out.mkdir(parents=True, exist_ok=True)
    found = {}
    for name, measure in MEASURES.items():
        if only in (None, name):
            with tempfile.TemporaryDirectory(dir=scratch) as folder:
                found[name] = measure(Path(folder), quick)
            show(name, found[name], out)
    if "devices" in found and "bytes" in found:
        show("prediction", predicted(found["devices"], found["bytes"]), out)


if __name__ == "__main__":
    typer.run(main)
