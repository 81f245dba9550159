"""mtbayes side by side with its rivals: milliseconds a step, and how many times ours they take.

    .venv/bin/python benchmarks/speed.py [--quick] [--only NAME] [--out DIR]

Every rival lives in a process of its own with the same two processors, and they take turns: one
measures while the others sleep. A ratio is the median over rounds of rival/ours within a round.
NAME is the beginning of a workload's name (mnist, emnist, housing, multimodal, cifar), a growth
(m, batch, width, modes), `main`, `ten modes` for deep ensembles of the five networks, or `fresh`
for what a fresh process pays. Writes steps.csv, fresh.csv and
growth.png. Use a quiet machine: the column `others` says how many processors were busy with
something else meanwhile.
"""

import csv
import json
import os
import statistics
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import fresh
import matplotlib as mpl
import numpy as np
import psutil
import typer
from rich.console import Console
from rich.table import Table
from worker import RIVALS, THREADS
from workloads import MAIN, MNIST, MODES, Workload, growth, step_flops

from mtbayes._files import atomic

mpl.use("Agg")
import matplotlib.pyplot as plt

FOLDER = Path(__file__).parent
NOISY = 0.15
OURS, OUR_ENSEMBLE = "mtbayes", "mtbayes, ensemble"
SLOW_TO_BUILD = ("torch.compile", "torch.compile, pool", "torch.compile, ensemble")
ENSEMBLES = (OUR_ENSEMBLE, "torch, ensemble", "torch.compile, ensemble")
GROWING = (
    OURS,
    "torch, weights drawn",
    "torch, rows drawn",
    "torch, pool",
    "torch.compile",
    "torch.compile, pool",
    "bayesian-torch",
    "numpyro",
)
COLUMNS = (
    *("case", "sweep", "m", "batch", "width", "rival", "rounds", "threads"),
    *("ms", "ms_lowest", "ms_highest", "ratio", "ratio_lowest", "ratio_highest"),
    *("compile_s", "others", "note"),
)
console = Console(width=100) if not sys.stdout.isatty() else Console()


class Worker:
    """A process that runs one rival."""

    def __init__(self, rival: str) -> None:
        self.rival = rival
        threads = {f"{kind}_NUM_THREADS": str(THREADS) for kind in ("OMP", "MKL", "OPENBLAS")}
        self.process = subprocess.Popen(
            [sys.executable, str(FOLDER / "worker.py"), rival],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env={**os.environ, **threads},
        )

    def ask(self, **command) -> dict:
        """Its answer, with `others`: processors that were busy with something else meanwhile."""
        begin, busy, own = time.perf_counter(), busy_seconds(), self.seconds()
        try:
            self.process.stdin.write(json.dumps(command) + "\n")
            self.process.stdin.flush()
            answer = json.loads(self.process.stdout.readline())
        except (BrokenPipeError, json.JSONDecodeError):
            return {"cannot": "its process ended"}
        foreign = (busy_seconds() - busy) - (self.seconds() - own)
        return {**answer, "others": max(0.0, foreign / (time.perf_counter() - begin))}

    def seconds(self) -> float:
        try:
            times = psutil.Process(self.process.pid).cpu_times()
        except psutil.Error:
            return 0.0
        return times.user + times.system

    def close(self) -> None:
        self.process.stdin.close()
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            self.process.kill()


def busy_seconds() -> float:
    times = psutil.cpu_times()
    return times.user + times.system


def share_two_processors() -> None:
    """All processes started from here on inherit the same two processors."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:THREADS])


def rivals_for(case: Workload, quick: bool) -> list[str]:
    names = GROWING if case.sweep else [name for name in RIVALS if name not in ENSEMBLES]
    names = list(ENSEMBLES if case.modes else names)
    return [n for n in names if not (quick and case.sweep and n in SLOW_TO_BUILD)]


def measured(case: Workload, workers: dict[str, Worker], rounds: int, budget: float) -> list[dict]:
    """One line of the result for each rival."""
    ready = {}
    for rival, worker in workers.items():
        with console.status(f"{case.name}: {rival} gets ready"):
            ready[rival] = worker.ask(case=case.to_json(), budget=budget)
    able = [rival for rival in workers if "cannot" not in ready[rival]]
    turns: dict[str, list[dict]] = {rival: [] for rival in able}
    for number in range(rounds):
        # Each round starts with another rival, so that none always follows the same one.
        for rival in able[number % len(able) :] + able[: number % len(able)]:
            with console.status(f"{case.name}: round {number + 1} of {rounds}, {rival}"):
                turns[rival].append(workers[rival].ask(steps=ready[rival]["steps"]))
    return [line(case, rival, ready[rival], turns) for rival in workers]


def line(case: Workload, rival: str, ready: dict, turns: dict[str, list[dict]]) -> dict:
    common = {
        "case": case.name,
        "sweep": case.sweep,
        "m": case.m,
        "batch": case.batch,
        "width": case.sizes[1],
        "rival": rival,
    }
    if rival not in turns or any("ms" not in turn for turn in turns[rival]):
        return {**common, "note": ready.get("cannot", "failed in a round")}
    ms = [turn["ms"] for turn in turns[rival]]
    return {
        **common,
        "rounds": len(ms),
        **spread("ms", ms),
        **ratios(rival, ms, turns),
        "threads": ready["threads"],
        "compile_s": ready["compile_s"],
        "others": statistics.median(turn["others"] for turn in turns[rival]),
        "note": "",
    }


def ratios(rival: str, ms: list[float], turns: dict[str, list[dict]]) -> dict:
    """Rival over ours, round by round; an ensemble is compared with our ensemble."""
    base = turns.get(OUR_ENSEMBLE if "ensemble" in rival else OURS)
    if base is None or any("ms" not in turn for turn in base):
        return {}
    return spread("ratio", [a / b["ms"] for a, b in zip(ms, base, strict=True)])


def spread(name: str, values: list[float]) -> dict:
    return {
        name: statistics.median(values),
        f"{name}_lowest": min(values),
        f"{name}_highest": max(values),
    }


def table_of(case: Workload, lines: list[dict]) -> Table:
    title = f"{case.name}: {'-'.join(map(str, case.sizes))}, m={case.m}, batch {case.batch}"
    missing = "\n".join(f"{row['rival']}: {row['note']}" for row in lines if row["note"])
    table = Table(title=title, title_justify="left", caption=missing, caption_justify="left")
    table.add_column("rival", no_wrap=True)
    for heading in ("ms", "lowest-highest", "rival/ours", "threads", "compile", "others"):
        table.add_column(heading, justify="right", no_wrap=True)
    for row in lines:
        if not row["note"]:
            table.add_row(*cells(row))
    return table


def cells(row: dict) -> list[str]:
    return [
        row["rival"],
        f"{row['ms']:.2f}",
        f"{row['ms_lowest']:.2f}-{row['ms_highest']:.2f}",
        f"{row['ratio']:.2f}" if "ratio" in row else "?",
        str(row["threads"]),
        f"{row['compile_s']:.1f} s",
        f"{row['others']:.2f}",
    ]


def write_csv(path: Path, columns, lines: list[dict]) -> None:
    with atomic(path) as temporary, temporary.open("w", newline="") as file:
        writer = csv.DictWriter(file, columns)
        writer.writeheader()
        writer.writerows(lines)


def draw(path: Path, lines: list[dict]) -> None:
    """Milliseconds a step against m, batch and width."""
    sweeps = [
        s for s in ("m", "batch", "width", "modes") if any(row["sweep"] == s for row in lines)
    ]
    if not sweeps:
        return
    figure, axes = plt.subplots(
        1, len(sweeps), figsize=(4.5 * len(sweeps), 4), squeeze=False, layout="constrained"
    )
    for ax, sweep in zip(axes[0], sweeps, strict=True):
        draw_growth(ax, sweep, [row for row in lines if row["sweep"] == sweep and not row["note"]])
    pairs = [ax.get_legend_handles_labels() for ax in axes[0]]
    named = {label: handle for pair in pairs for handle, label in zip(*pair, strict=True)}
    figure.legend(named.values(), named.keys(), loc="outside lower center", ncols=4)
    with atomic(path) as temporary:
        figure.savefig(temporary, dpi=150)
    plt.close(figure)


def draw_growth(ax, sweep: str, lines: list[dict]) -> None:
    size = "m" if sweep == "modes" else sweep
    for rival in (*GROWING, *ENSEMBLES):
        points = [(row[size], row["ms"]) for row in lines if row["rival"] == rival]
        if points:
            ours = rival in (OURS, OUR_ENSEMBLE)
            style = {"color": "black", "linewidth": 2.5, "zorder": 3} if ours else {}
            ax.plot(*zip(*points, strict=True), marker="o", markersize=4, label=rival, **style)
    ax.set(
        xscale="log", yscale="log", xlabel=sweep, ylabel="ms a step", title=f"Growth with {sweep}"
    )
    sizes = sorted({row[size] for row in lines})
    ax.set_xticks(sizes, labels=[str(size) for size in sizes])
    ax.minorticks_off()


def sgemm_rate(size: int = 2048) -> float:
    """Billions of operations a second that NumPy reaches in a product of square matrices."""
    a = np.ones((size, size), np.float32)
    best = min(timed(lambda: a @ a) for _ in range(8))
    return 2 * size**3 / best / 1e9


def timed(action) -> float:
    begin = time.perf_counter()
    action()
    return time.perf_counter() - begin


def report_rate(lines: list[dict], rate: float) -> None:
    """The share of the machine's rate of products that our MNIST step reaches."""
    console.print(f"sgemm 2048³: {rate:.0f} GFLOP/s")
    ours = [r for r in lines if r["case"] == MNIST.name and r["rival"] == OURS and not r["note"]]
    for row in ours:
        achieved = step_flops(MNIST) / row["ms"] / 1e6
        console.print(f"mnist step: {achieved:.1f} GFLOP/s, {achieved / rate:.0%} of that")


def report_fresh(out: Path, repeats: int) -> None:
    table = Table(title="A fresh process", title_justify="left")
    table.add_column("what")
    table.add_column("numbers")
    lines = []
    for title, numbers in fresh.measure(repeats):
        table.add_row(title, ", ".join(f"{name} {value:.3g}" for name, value in numbers.items()))
        lines += [{"what": title, "name": n, "value": v} for n, v in numbers.items()]
    console.print(table)
    write_csv(out / "fresh.csv", ("what", "name", "value"), lines)


def chosen(quick: bool, only: str | None) -> list[Workload]:
    cases = [*MAIN, *MODES, *growth(quick)]
    if only is None:
        return cases
    if only in ("main", "ten modes"):
        return list(MAIN if only == "main" else MODES)
    grown = [c for c in cases if c.sweep == only]
    return grown or [c for c in (*MAIN, *MODES) if c.name.startswith(only)]


def check_agreement() -> None:
    with console.status("Do the rivals compute the same objective?"):
        done = subprocess.run(
            [sys.executable, str(FOLDER / "agree.py")], capture_output=True, text=True
        )
    if done.returncode:
        console.print(done.stdout, done.stderr)
        sys.exit("The rivals do not compute the same objective; see above.")
    console.print("The rivals compute the same objective on the same draws, to 1e-4.")


def run_cases(cases: list[Workload], quick: bool, out: Path) -> list[dict]:
    lines: list[dict] = []
    with ExitStack() as stack:
        workers: dict[str, Worker] = {}
        for case in cases:
            for rival in rivals_for(case, quick):
                if rival not in workers:
                    workers[rival] = Worker(rival)
                    stack.callback(workers[rival].close)
            present = {rival: workers[rival] for rival in rivals_for(case, quick)}
            new = measured(case, present, rounds=3 if quick else 7, budget=0.3 if quick else 1.0)
            console.print(table_of(case, new))
            lines += new
            write_csv(out / "steps.csv", COLUMNS, lines)
    return lines


def main(
    quick: Annotated[bool, typer.Option(help="Fewer rounds and sizes, no check.")] = False,
    only: Annotated[str | None, typer.Option(help="One workload, growth, main or fresh.")] = None,
    out: Annotated[Path, typer.Option(help="Folder for the tables and the plot.")] = Path(
        "results/speed"
    ),
) -> None:
    share_two_processors()
    cases = chosen(quick, only)
    if not cases and only != "fresh":
        sys.exit(f"--only must name a workload, a growth, main or fresh, got {only!r}.")
    if cases and not quick:
        check_agreement()
    rate = sgemm_rate()
    if only in (None, "fresh"):
        report_fresh(out, repeats=1 if quick else 5)
    lines = run_cases(cases, quick, out)
    report_rate(lines, rate)
    draw(out / "growth.png", lines)
    if any(row.get("others", 0) > NOISY for row in lines):
        console.print("[bold red]The machine was busy with other work: do not quote these.[/]")


if __name__ == "__main__":
    typer.run(main)
