"""Families of modes beside each other: own loss, joint loss, a blend of both, shared weights.

    .venv/bin/python benchmarks/modes.py [--only DATASET] [--rows N] [--epochs K] [--out DIR]

A share ε of the training labels is flipped to any other class, test rows stay clean. All have the
same steps, t and prior, so that accuracy and NLL are at equal steps, and ten members in each but
for fewer points; `ms` is the time of a step. NLL is at the temperature that is best for the test
rows: what a law of wrong labels would choose.
Images are read from MTBAYES_DATA, tables from its folder `tables`. A run that was stopped goes on
from modes.csv; remove it to begin anew, with other rows or steps too. Writes modes.csv.
"""

import csv
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import jax
import numpy as np
import pyarrow.parquet as pq
import typer
from rich.console import Console
from rich.table import Table
from scipy.special import log_softmax

from mtbayes import Criterion, Mixture, Particles, fit, mean_field, predictive, prior
from mtbayes._files import atomic
from mtbayes.criteria import multi_sample_loss
from mtbayes.data.contamination import flip_labels
from mtbayes.data.schema import learn_table
from mtbayes.fitting.units import Features
from mtbayes.likelihoods import Categorical
from mtbayes.models import Model
from mtbayes.networks import cifar_cnn, mlp
from mtbayes.posteriors import Rank1

K, T, BETA, WIDTH = 10, 0.7, 50.0, 1.0
NARROW = 0.3  # a prior so much narrower is what beta by its square is for points
TABLES = ("heart", "tic_tac_toe", "segment", "led7digit", "contraceptive", "phoneme")
COLUMNS = ("data", "eps", "method", "accuracy", "nll", "ms", "seconds")
console = Console(width=110)


@dataclass(frozen=True)
class Blend(Criterion):
    """(1-λ) of each member's own loss and λ of the loss of all of them."""

    share: float = 0.5

    def rows(self, log_lik, log_integral, *numbers):
        own, joint = (multi_sample_loss(log_lik, m, *numbers) for m in (1, self.m))
        return (1 - self.share) * own + self.share * joint


METHODS = {
    "one mean field, m=10": (mean_field(), Criterion(K, T, K * BETA)),
    "Gaussians, own": (Mixture(K), Criterion(1, T, BETA)),
    "one point": (Particles(1), Criterion(1, T, BETA)),
    "two points, own": (Particles(2), Criterion(1, T, BETA)),
    "five points, own": (Particles(5), Criterion(1, T, BETA)),
    "points, own": (Particles(K), Criterion(1, T, BETA)),
    "points, joint": (Particles(K), Criterion(K, T, K * BETA)),
    "points, half and half": (Particles(K), Blend(K, T, K * BETA)),
    "shared weights, own": (Rank1(K), Criterion(1, T, BETA)),
    "points, own, narrow prior": (Particles(K), Criterion(1, T, NARROW**2 * BETA)),
    "shared weights, narrow prior": (Rank1(K), Criterion(1, T, NARROW**2 * BETA)),
}


def images(name: str, rows: int):
    with np.load(Path(os.environ["MTBAYES_DATA"]) / f"{name}.npz") as file:
        data, rng = dict(file), np.random.default_rng(0)
    kept = rng.permutation(len(data["y_train"]))[:rows]
    flat = not name.startswith("cifar")
    x, x_test = (
        v.reshape(len(v), -1) / 255 if flat else v / 255.0
        for v in (data["x_train"][kept], data["x_test"][:5000])
    )
    return x, data["y_train"][kept].astype(int), x_test, data["y_test"][:5000].astype(int)


def table(name: str, rows: int):
    whole = pq.read_table(Path(os.environ["MTBAYES_DATA"]) / "tables" / f"{name}.parquet")
    _, coded = learn_table(whole, "target", "classes")[:2]
    order = np.random.default_rng(0).permutation(len(coded.y))
    cut = int(0.7 * len(order))
    y = np.unique(coded.y, return_inverse=True)[1]
    return coded.x[order[:cut]], y[order[:cut]], coded.x[order[cut:]], y[order[cut:]]


def measured(data, posterior, criterion, epochs: int) -> dict:
    x, y, x_test, y_test = data
    classes = int(max(y.max(), y_test.max())) + 1
    network = mlp((x.shape[1], 50, 50, classes)) if x.ndim == 2 else cifar_cnn()
    model = Model(network, Categorical(classes))
    stamps = []
    begin = time.perf_counter()
    state = fit(
        model,
        x,
        y,
        criterion,
        key=0,
        posterior=posterior,
        prior=prior(0.0, WIDTH * model.scale()),
        epochs=epochs,
        callback=lambda p: stamps.append((p.share, time.perf_counter())),
    ).state
    seconds = time.perf_counter() - begin
    steps = epochs * -(-len(x) // 128)
    (first, start), (last, end) = stamps[0], stamps[-1]
    logs = np.log(predictive(model, posterior, state, x_test, key=jax.random.key(1)).probs + 1e-12)
    at = np.arange(len(y_test)), y_test
    factors = np.geomspace(0.25, 4, 33)
    return {
        "accuracy": float(np.mean(logs.argmax(axis=1) == y_test)),
        "nll": min(float(-log_softmax(f * logs, axis=1)[at].mean()) for f in factors),
        "ms": 1000 * (end - start) / ((last - first) * steps),
        "seconds": seconds,
    }


def drawn(name: str, rows: int, eps: float):
    """Rows in a network's units with wrong labels among them, and clean rows for a test."""
    x, y, *test = (table if name in TABLES else images)(name, rows)
    features = Features.of(x)
    dirty = flip_labels(y, eps, seed=0).data.astype(np.int32)
    return features.apply(x), dirty, features.apply(test[0]), test[1]


def shown(lines: list[dict]) -> Table:
    found = Table()
    for heading in COLUMNS:
        found.add_column(heading)
    for line in lines:
        numbers = (f"{float(line[key]):.3f}" for key in COLUMNS[3:])
        found.add_row(line["data"], str(line["eps"]), line["method"], *numbers)
    return found


def main(
    only: Annotated[list[str] | None, typer.Option(help="A data set; may be repeated.")] = None,
    rows: Annotated[int, typer.Option(help="Training rows of images, at most.")] = 10_000,
    epochs: Annotated[int, typer.Option(help="Passes over images.")] = 20,
    steps: Annotated[int, typer.Option(help="Steps of 128 rows over tables.")] = 1500,
    eps: Annotated[float, typer.Option(help="Share of wrong labels.")] = 0.3,
    method: Annotated[list[str] | None, typer.Option(help="A family; may be repeated.")] = None,
    out: Annotated[Path, typer.Option(help="Folder for the table.")] = Path("results/modes"),
) -> None:
    file = out / "modes.csv"
    lines = list(csv.DictReader(file.open())) if file.exists() else []
    done = {(line["data"], float(line["eps"]), line["method"]) for line in lines}
    out.mkdir(parents=True, exist_ok=True)
    for name in only or ("mnist", "emnist47", "cifar10_10k", *TABLES):
        data = drawn(name, rows, eps)
        passes = max(1, round(steps / -(-len(data[0]) // 128))) if name in TABLES else epochs
        for label in method or METHODS:
            if (name, eps, label) in done:
                continue
            found = measured(data, *METHODS[label], passes)
            lines.append({"data": name, "eps": eps, "method": label, **found})
            with atomic(file) as temporary, temporary.open("w", newline="") as sheet:
                writer = csv.DictWriter(sheet, COLUMNS)
                writer.writeheader()
                writer.writerows(lines)
        console.print(shown([line for line in lines if line["data"] == name]))


if __name__ == "__main__":
    typer.run(main)
