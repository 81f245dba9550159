"""The defaults beside a deep ensemble of ten, on images and housing, clean and with wrong rows.

    .venv/bin/python benchmarks/defaults.py [--only DATASET] [--seeds 0,1,2] [--out DIR]

Ours is the estimator with nothing set (for CIFAR-10 the paper's network: its rows are images). The
deep ensemble has ten networks with the layers and units of ours, trained on the log loss by the
same steps as a network of ours that is fitted alone; of three weights of its prior, none among
them, the one with the lowest loss of a tenth of the dirty training rows is taken. A share ε of the
training labels is flipped to any other class, or of the targets replaced uniformly over their
range; all test rows are clean. NLL of housing is in units of y. Data are read from MTBAYES_DATA,
cifar10.npz if it is there and cifar10_10k.npz else. A run that was stopped goes on from
defaults.csv; remove it after a change of the estimators. Writes defaults.csv, defaults.md.
"""

import csv
import time
from pathlib import Path
from typing import Annotated

import jax
import numpy as np
import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from mtbayes import Criterion, Particles, RobustClassifier, RobustRegressor, fit, predictive, prior
from mtbayes._files import atomic
from mtbayes.data.contamination import flip_labels, replace_targets
from mtbayes.data.datasets import load
from mtbayes.fitting.units import Features, Targets
from mtbayes.likelihoods import Categorical, Gaussian
from mtbayes.metrics.calibration import expected_calibration_error
from mtbayes.models import Model
from mtbayes.networks import cifar_cnn, mlp

ROWS = {"mnist": 20_000, "emnist": 20_000, "cifar10": 10_000, "housing": 16_000}
MODES, HIDDEN = 10, (50, 50)
EPOCHS, STEPS = 40, 6000  # of the rival, whichever is less
WEIGHTS = (np.inf, 50.0, 5.0)  # beta of the rival's prior N(0, 1/inputs)
COLUMNS = ("data", "eps", "seed", "method", "accuracy", "nll", "ece", "eps_hat", "seconds", "words")
console = Console(width=120)


def split(name: str, seed: int):
    """Clean rows: x, y, x_test, y_test; so many for the fit, and all others or all test rows."""
    rng, data = np.random.default_rng(100 + seed), load("california" if name == "housing" else name)
    if name == "housing":
        x, y = (np.concatenate(both) for both in ((data.x, data.test_x), (data.y, data.test_y)))
        train, test = np.split(rng.permutation(len(y)), [ROWS[name]])
        return x[train].astype(float), y[train].astype(float), x[test].astype(float), y[test]
    train = rng.permutation(len(data.y))[: ROWS[name]]
    shape = (-1, *data.x.shape[1:]) if name.startswith("cifar") else (-1, 28 * 28)
    x, x_test = (rows.reshape(shape) / 255.0 for rows in (data.x[train], data.test_x))
    return x, data.y[train].astype(int), x_test, data.test_y.astype(int)


def ours(name: str, x, y, x_test, y_test, seed: int) -> dict:
    kind = RobustRegressor if name == "housing" else RobustClassifier
    images = {"network": cifar_cnn()} if x.ndim > 2 else {}
    model = kind(random_state=seed, **images).fit(x, y)
    words = " ".join(f"{who} {share:.2f}" for who, share in model.shares_.items())
    known = {"eps_hat": model.contamination_.value, "words": f"t = {model.t_:g}: {words}"}
    if name == "housing":
        return {"nll": -float(model.log_prob(x_test, y_test).mean()), **known}
    return of_classes(model.predict_proba(x_test), y_test) | known


def deep_ensemble(name: str, x, y, x_test, y_test, seed: int) -> dict:
    numbers = name == "housing"
    features = Features.of(x)
    inside, outside = features.apply(x), features.apply(x_test)
    targets = Targets.of(y) if numbers else None
    aims = targets.apply(y) if numbers else y
    likelihood = Gaussian("by_input", floor=0.02) if numbers else Categorical(int(y.max()) + 1)
    network = cifar_cnn() if x.ndim > 2 else mlp((x.shape[1], *HIDDEN, likelihood.outputs))
    model, posterior = Model(network, likelihood), Particles(MODES)
    seen = np.random.default_rng(seed).random(len(y)) > 0.1

    def fitted(beta: float, rows, share: float = 1.0):
        epochs = max(1, round(share * min(EPOCHS, STEPS / -(-len(rows) // 128))))
        return fit(
            model, inside[rows], aims[rows], Criterion(1, 1.0, beta, joint=False), key=seed,
            posterior=posterior, prior=prior(0.0, model.scale()), epochs=epochs,
        ).state  # fmt: skip

    def said(state, rows):
        return predictive(model, posterior, state, rows, key=jax.random.key(0))

    looks = {
        beta: float(
            said(fitted(beta, np.flatnonzero(seen), 0.25), inside[~seen])
            .log_prob(aims[~seen])
            .mean()
        )
        for beta in WEIGHTS
    }
    beta = max(looks, key=looks.__getitem__)
    found = said(fitted(beta, np.arange(len(y))), outside)
    if numbers:
        log_prob = found.log_prob(targets.apply(y_test)) - np.log(targets.scale)
        return {"nll": -float(log_prob.mean()), "words": f"beta = {beta:g}"}
    return of_classes(found.probs, y_test) | {"words": f"beta = {beta:g}"}


def of_classes(probs, y) -> dict:
    true = np.maximum(probs[np.arange(len(y)), y], 1e-12)
    return {
        "accuracy": float(np.mean(probs.argmax(axis=1) == y)),
        "nll": -float(np.log(true).mean()),
        "ece": float(expected_calibration_error(probs, y)),
    }


METHODS = {"ours": ours, "deep ensemble": deep_ensemble}


def written(rows: list[dict], out: Path) -> None:
    out.mkdir(parents=True, exist_ok=True)
    with atomic(out / "defaults.csv") as temporary, temporary.open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS)
        writer.writeheader()
        writer.writerows(rows)
    lines = ["| data | ε | method | accuracy | NLL | ECE | ε̂ | seconds | seeds |", "|---" * 9 + "|"]
    for key in dict.fromkeys((r["data"], float(r["eps"]), r["method"]) for r in rows):
        some = [r for r in rows if (r["data"], float(r["eps"]), r["method"]) == key]

        def cell(column: str, form: str, some=some) -> str:
            values = [float(r[column]) for r in some if r.get(column) not in (None, "")]
            if not values:
                return ""
            spread = f" ± {format(np.std(values, ddof=1), form)}" if len(values) > 1 else ""
            return format(np.mean(values), form) + spread

        cells = (("accuracy", ".2%"), ("nll", ".3f"), ("ece", ".2%"), ("eps_hat", ".3f"))
        told = [cell(*each) for each in cells]
        name, eps, method = key
        row = [name, f"{eps:g}", method, *told, cell("seconds", ".0f"), str(len(some))]
        lines.append("| " + " | ".join(row) + " |")
    with atomic(out / "defaults.md") as temporary:
        temporary.write_text("\n".join(lines) + "\n")


def main(
    only: Annotated[list[str] | None, typer.Option(help="A data set; may be repeated.")] = None,
    seeds: Annotated[str, typer.Option(help="Of splits, starts and wrong rows.")] = "0,1,2",
    epsilons: Annotated[str, typer.Option(help="Shares of wrong rows.")] = "0,0.3",
    method: Annotated[list[str] | None, typer.Option(help="ours or deep ensemble.")] = None,
    out: Annotated[Path, typer.Option(help="Folder for the table.")] = Path("results/defaults"),
) -> None:
    file = out / "defaults.csv"
    rows = list(csv.DictReader(file.open())) if file.exists() else []
    done = {(r["data"], float(r["eps"]), int(r["seed"]), r["method"]) for r in rows}
    cells = [
        (name, eps, seed, how)
        for seed in map(int, seeds.split(","))
        for name in only or ROWS
        for eps in map(float, epsilons.split(","))
        for how in method or METHODS
        if (name, eps, seed, how) not in done
    ]
    columns = TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn()
    with Progress(*columns, console=console) as bar:
        task = bar.add_task("", total=len(cells))
        for name, eps, seed, how in cells:
            bar.update(task, description=f"{name} ε={eps:g} seed {seed}: {how}")
            x, y, *test = split(name, seed)
            spoil = replace_targets if name == "housing" else flip_labels
            dirty = spoil(y, eps, seed=seed).data if eps else y
            begin = time.perf_counter()
            found = METHODS[how](name, x, dirty, *test, seed)
            own = {"data": name, "eps": eps, "seed": seed, "method": how}
            rows.append(own | found | {"seconds": time.perf_counter() - begin})
            written(rows, out)
            console.print(rows[-1])
            bar.advance(task)


if __name__ == "__main__":
    typer.run(main)
