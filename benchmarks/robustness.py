"""How the estimators bear wrong labels and targets, beside their rivals, on clean test rows.

    .venv/bin/python benchmarks/robustness.py [--quick] [--only DATASET] [--seeds K] [--out DIR]

A share ε of the training labels is flipped to any other class, or of the targets replaced uniformly
over their range; test rows stay clean. For the digits also to the next class, and on one side of a
plane alone. Ours are the estimators as they come, but for t where it is fixed; the networks of all
rivals have the same hidden layer and epochs. The oracle t is the fixed t with the lowest loss on
the clean test rows, which nobody knows in practice. Images: `benchmarks/defaults.py`.
Writes robustness.csv, aims.csv and robustness.png. A run that was stopped goes on from the CSV;
remove it to start anew, and do so after a change of the estimators. Housing is read from the folder
in MTBAYES_DATA and left out where it is not set.
"floor" is the ECE that right probabilities would show on so few test rows.
Seconds are of the wall clock, predictions and compilation included: use a quiet machine. Those of
scikit-learn are of one thread. Quick knows three fixed t only, so that auto may beat the oracle.
"""

import math
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, NamedTuple

import numpy as np
import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from robustness_rivals import BATCH, Answer, Method, Task, ours, rivals
from robustness_tables import (
    AUTO,
    FIXED,
    FIXED_QUICK,
    ORACLE,
    Row,
    Verdict,
    aims_table,
    draw,
    markdown,
    read_rows,
    table_of,
    verdicts,
    write_csv,
)
from sklearn import datasets
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split

from mtbayes._files import atomic
from mtbayes.data.contamination import flip_labels, replace_targets
from mtbayes.metrics.calibration import expected_calibration_error

EPSILONS, EPSILONS_QUICK = (0.0, 0.1, 0.2, 0.3, 0.4), (0.0, 0.3)
console = Console(width=170) if not sys.stdout.isatty() else Console()


# Data.


class Split(NamedTuple):
    """Clean rows."""

    x: np.ndarray
    y: np.ndarray
    x_test: np.ndarray
    y_test: np.ndarray


class Source(NamedTuple):
    """Where a data set comes from.

    load: a clean split by seed and the most training rows
    rows, rows_quick: training rows at most; None for 70 % of all
    cost: seconds a share ε takes, about, for the time left
    spoil: gives dirty targets of clean rows, and which were touched, for a share ε and a seed
    """

    load: Callable[[int, int | None], Split]
    classes: int
    spoil: Callable[[Split, float, int], tuple[np.ndarray, np.ndarray]]
    rows: int | None = None
    rows_quick: int | None = None
    cost: float = 1.0
    stored: bool = False


def small(load: Callable) -> Callable[[int, int | None], Split]:
    def split(seed: int, rows: int | None) -> Split:
        x, y = load(return_X_y=True)
        classes = np.issubdtype(y.dtype, np.integer)
        x, x_test, y, y_test = train_test_split(
            x, y, test_size=0.3, random_state=seed, stratify=y if classes else None
        )
        return Split(x, y, x_test, y_test)

    return split


def housing(seed: int, rows: int | None) -> Split:
    data = stored("california_housing")
    order = np.random.default_rng(seed).permutation(len(data["y"]))
    x, y = data["X"][order].astype(float), data["y"][order].astype(float)
    return Split(x[:rows], y[:rows], x[rows:], y[rows:])


def stored(name: str) -> dict[str, np.ndarray]:
    with np.load(Path(os.environ["MTBAYES_DATA"]) / f"{name}.npz") as file:
        return dict(file)


def other_class(clean: Split, eps: float, seed: int):
    return flip_labels(clean.y, eps, seed=seed)


def next_class(clean: Split, eps: float, seed: int):
    """Every wrong label is that of the next class."""
    return flip_labels(clean.y, eps, seed=seed, how="pair")


def one_side(clean: Split, eps: float, seed: int):
    """Wrong labels on one side of a random plane through the rows alone, twice as often there."""
    direction = np.random.default_rng(seed).normal(size=clean.x.shape[1])
    along = (clean.x - clean.x.mean(axis=0)) @ direction
    side = np.flatnonzero(along > np.median(along))
    y, touched = clean.y.copy(), np.zeros(len(clean.y), bool)
    classes = np.unique(clean.y)
    y[side], touched[side] = flip_labels(clean.y[side], 2 * eps, seed=seed, classes=classes)
    return y, touched


def any_target(clean: Split, eps: float, seed: int):
    return replace_targets(clean.y, eps, seed=seed)


DIGITS = small(datasets.load_digits)
SOURCES = {
    "wine": Source(small(datasets.load_wine), 3, other_class),
    "breast_cancer": Source(small(datasets.load_breast_cancer), 2, other_class),
    "digits": Source(DIGITS, 10, other_class, cost=2),
    "digits, pairs": Source(DIGITS, 10, next_class, cost=2),
    "digits, one side": Source(DIGITS, 10, one_side, cost=2),
    "diabetes": Source(small(datasets.load_diabetes), 0, any_target),
    "housing": Source(housing, 0, any_target, 10_000, 5_000, cost=8, stored=True),
}


# One data set at one share of wrong rows.


def dirty(source: Source, clean: Split, eps: float, seed: int, quick: bool):
    """A task, and which of its training rows were touched."""
    y, touched = source.spoil(clean, eps, seed)
    batches = math.ceil(len(y) / BATCH)
    steps, least, most = (600, 5, 100) if quick else (3000, 10, 500)
    epochs = int(np.clip(math.ceil(steps / batches), least, most))
    return Task(clean.x, y, clean.x_test, clean.y_test, source.classes, epochs, seed), touched


def measures(answer: Answer, task: Task, touched: np.ndarray) -> dict[str, float]:
    y = task.y_test
    if answer.probs is not None:
        own = answer.probs[np.arange(len(y)), y]
        found = {
            "accuracy": float(np.mean(answer.probs.argmax(axis=1) == y)),
            "nll": float(-np.log(np.maximum(own, 1e-12)).mean()),
            "ece": 100 * expected_calibration_error(answer.probs, y),
            "floor": 100 * honest_error(answer.probs, task.seed),
        }
    else:
        found = {
            "rmse": float(np.sqrt(np.mean((answer.mean - y) ** 2))),
            "nll": float(-np.mean(answer.log_prob)),
            "coverage": float(np.mean((answer.low <= y) & (y <= answer.high))),
        }
    if answer.contamination is not None:
        found["contamination"] = answer.contamination
    if answer.t is not None:
        found["t"] = answer.t
    if answer.wrong is not None and touched.any():
        found["auroc"] = float(roc_auc_score(touched, answer.wrong))
    return found


def honest_error(probs: np.ndarray, seed: int) -> float:
    """The ECE that as many test rows would show if the probabilities were right."""
    random = np.random.default_rng(seed)
    upto = probs.cumsum(axis=1) / probs.sum(axis=1, keepdims=True)
    draws = [(random.random((len(probs), 1)) > upto[:, :-1]).sum(axis=1) for _ in range(20)]
    return float(np.mean([expected_calibration_error(probs, y) for y in draws]))


def compared(task: Task, touched: np.ndarray, quick: bool, tell: Callable[[str], None]):
    """Measures by method; the oracle is the best of the fixed t."""
    found: dict[str, dict[str, float]] = {}

    def run(name: str, method: Method) -> None:
        tell(name)
        begin = time.perf_counter()
        answer = method(task)
        seconds = time.perf_counter() - begin
        found[name] = {**measures(answer, task, touched), "seconds": seconds}

    fixed = {f"ours, t={t:g}": t for t in (FIXED_QUICK if quick else FIXED)}
    for name, t in fixed.items():
        run(name, ours(t))
    run(AUTO, ours("auto"))
    oracle = min(fixed, key=lambda name: found[name]["nll"])
    found[ORACLE] = found[oracle]
    for name, method in rivals(task, fixed[oracle], quick).items():
        run(name, method)
    return found


def run_all(names: list[str], quick: bool, seeds: int, out: Path) -> None:
    """Rows of these data sets into the CSV; what is there stays, and is not computed again."""
    epsilons = EPSILONS_QUICK if quick else EPSILONS
    rows = read_rows(out)
    done = {(row.dataset, row.seed, row.eps) for row in rows}
    cells = [(n, s, e) for n in names for s in range(seeds) for e in epsilons]
    missing = [cell for cell in cells if cell not in done]
    columns = TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn()
    with Progress(*columns, console=console) as progress:
        bar = progress.add_task("", total=sum(SOURCES[name].cost for name, _, _ in missing))
        for name, seed, eps in missing:
            source = SOURCES[name]
            clean = source.load(seed, source.rows_quick if quick else source.rows)
            task, touched = dirty(source, clean, eps, seed, quick)
            where = f"{name}, ε={eps:g}, seed {seed}"

            def tell(method: str, where: str = where) -> None:
                progress.update(bar, description=f"{where}: {method}")

            for method, found in compared(task, touched, quick, tell).items():
                rows += [Row(name, eps, seed, method, *item) for item in found.items()]
            write_csv(out / "robustness.csv", Row._fields, rows)
            progress.advance(bar, source.cost)
    for name in names:
        for eps in epsilons:
            console.print(table_of(rows, name, eps))


def chosen(only: list[str] | None) -> list[str]:
    for name in only or []:
        if name not in SOURCES:
            sys.exit(f"--only must be one of {', '.join(SOURCES)}, got {name!r}.")
    names = [name for name in SOURCES if not only or name in only]
    if "MTBAYES_DATA" in os.environ:
        return names
    missing = [name for name in names if SOURCES[name].stored]
    if missing:
        console.print(
            f"Without {', '.join(missing)}: set MTBAYES_DATA to the folder of their files."
        )
    return [name for name in names if name not in missing]


def main(
    quick: Annotated[bool, typer.Option(help="Few rows, epochs and shares of wrong rows.")] = False,
    only: Annotated[list[str] | None, typer.Option(help="A data set; may be repeated.")] = None,
    seeds: Annotated[int | None, typer.Option(min=1, help="3 by default, 1 if quick.")] = None,
    out: Annotated[Path, typer.Option(help="Folder for the tables and the plot.")] = Path(
        "results/robustness"
    ),
    redraw: Annotated[bool, typer.Option(help="Train nothing: tables from the CSV there.")] = False,
) -> None:
    if not redraw:
        names = chosen(only)
        if not names:
            return
        run_all(names, quick, seeds or (1 if quick else 3), out)
    rows = read_rows(out)
    found = verdicts(rows)
    write_csv(out / "aims.csv", Verdict._fields, found)
    with atomic(out / "robustness.md") as temporary:
        temporary.write_text(markdown(rows, found))
    console.print(aims_table(found))
    console.print(f"{sum(v.met for v in found)} of {len(found)} aims are met.")
    draw(out / "robustness.png", rows)


if __name__ == "__main__":
    typer.run(main)
