"""Mistakes as people make them, and weak models: does the interval of the share of wrong labels
hold the truth, and are wrong rows ranked as well as by cleanlab around the same model.

    .venv/bin/python benchmarks/weak.py [--only MODEL] [--kinds other,confusable]
        [--epsilons 0.1,0.3] [--seeds K] [--out DIR]

Models: digits with one network of 2 hidden units; small CNNs, with the modes that they come with,
on 2,000 images of MNIST and of CIFAR-10; MNIST, 20,000 rows, as the estimator comes. Kinds: any
other class; the next class; one side, where wrong labels of the upper half of the classes are the
first class; confusable, where a forest of other, clean rows decides by its doubt which rows are
wrong and by its probabilities which class they get. cleanlab ranks by what the same networks,
trained on the log loss (t = 1), say of unseen rows; "with ours" by what ours say.
Data are read from MTBAYES_DATA. A run that was stopped goes on
from weak.jsonl in DIR; remove it after a change of the estimators. Writes weak.md.
"""

import json
import os
import time
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from cleanlab.rank import get_label_quality_scores
from sklearn.datasets import load_digits
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.metrics import roc_auc_score

from mtbayes import RobustClassifier
from mtbayes.data.contamination import flip_labels

CNN = {"network": "cnn", "hidden": (25,)}
MODELS: dict[str, tuple[str, int, dict[str, Any]]] = {
    "digits, 2 units": ("digits", 1200, {"hidden": (2,), "modes": 1}),
    "MNIST, CNN": ("mnist", 2000, CNN),
    "CIFAR-10, CNN": ("cifar10", 2000, CNN),
    "MNIST, default": ("mnist", 20_000, {}),
}
"""Data, rows to learn from and parameters of the estimator."""
KINDS = ("other", "pair", "one side", "confusable")
OTHERS = 8000  # clean rows of the reference, at most


def rows_of(name: str, rows: int, seed: int) -> tuple[Any, Any, Any]:
    """Rows, true labels, and what a forest of other rows says of them."""
    if name == "digits":
        x, y = load_digits(return_X_y=True)
    else:
        with np.load(Path(os.environ["MTBAYES_DATA"]) / f"{name}.npz") as file:
            x, y = file["x_train"] / 255.0, file["y_train"].astype(int)
    order = np.random.default_rng(seed).permutation(len(y))
    own, others = order[:rows], order[rows:][:OTHERS]
    forest = ExtraTreesClassifier(300, min_samples_leaf=2, random_state=seed)
    forest.fit(x[others].reshape(len(others), -1), y[others])
    return x[own], y[own], forest.predict_proba(x[own].reshape(rows, -1))


def dirty(y: Any, probs: Any, kind: str, epsilon: float, seed: int) -> Any:
    """Labels of which a share is wrong."""
    classes = probs.shape[1]
    if kind == "confusable":
        return flip_labels(y, epsilon, seed=seed, how="confusable", probs=probs).data
    if kind != "one side":
        return flip_labels(y, epsilon, seed=seed, how=kind).data
    upper = y >= classes // 2
    law = np.tile(np.eye(classes)[0], (classes, 1))
    share = min(1.0, epsilon / upper.mean())
    given = y.copy()
    given[upper] = flip_labels(y[upper], share, seed=seed, how=law, classes=np.arange(classes)).data
    return given


def measured(name: str, kind: str, epsilon: float, seed: int) -> dict[str, Any]:
    """Ours and cleanlab on one set of labels."""
    data, rows, settings = MODELS[name]
    x, y, probs = rows_of(data, rows, seed)
    if not settings:
        x = x.reshape(len(x), -1)
    given = dirty(y, probs, kind, epsilon, seed)
    wrong = given != y
    begin = time.perf_counter()
    model = RobustClassifier(random_state=seed, **settings).fit(x, given)
    seconds = time.perf_counter() - begin
    plain = RobustClassifier(random_state=seed, t=1.0, **settings).fit(x, given)
    share = model.contamination_
    scores = {
        "ours": model.outlier_probability_,
        "cleanlab": -get_label_quality_scores(given, plain.unseen_prediction_),
        "with ours": -get_label_quality_scores(given, model.unseen_prediction_),
    }
    return {
        "model": name,
        "kind": kind,
        "epsilon": epsilon,
        "seed": seed,
        "share": float(wrong.mean()),
        "value": share.value,
        "low": share.low,
        "high": share.high,
        "at least": bool(share.at_least),
        "accuracy": float((model.unseen_prediction_.argmax(axis=1) == y).mean()),
        "t": model.t_,
        "auroc": {who: float(roc_auc_score(wrong, score)) for who, score in scores.items()},
        "seconds": seconds,
    }


def page(found: list[dict[str, Any]]) -> str:
    """A table, and how often intervals hold the truth."""
    covered = sum(r["low"] <= r["share"] <= r["high"] for r in found)
    confused = [r["auroc"] for r in found if r["kind"] == "confusable"]
    ahead = sum(a["ours"] >= a["cleanlab"] for a in confused)
    lines = [
        "# Weak models, and mistakes as people make them",
        "",
        "Written by `benchmarks/weak.py`, which says how all was measured.",
        f"The 95 % interval holds the share of wrong labels in {covered} of {len(found)} cells.",
        f"Under confusable noise wrong rows are ranked at least as well as by cleanlab in {ahead} "
        f"of {len(confused)}.",
        "",
        "| model | wrong labels | seed | share | told | 95 % interval | accuracy, unseen | AUROC | "
        "cleanlab | cleanlab with ours |",
        "|---" * 10 + "|",
    ]
    for r in found:
        told = f"{r['value']:.3f}{', at least' * r['at least']}"
        auroc = " | ".join(f"{r['auroc'][who]:.3f}" for who in ("ours", "cleanlab", "with ours"))
        lines.append(
            f"| {r['model']} | {r['kind']} | {r['seed']} | {r['share']:.3f} | {told} | "
            f"{r['low']:.3f} to {r['high']:.3f} | {r['accuracy']:.3f} | {auroc} |"
        )
    return "\n".join(lines) + "\n"


def main(
    only: Annotated[list[str] | None, typer.Option(help="A model; may be repeated.")] = None,
    kinds: Annotated[str, typer.Option(help="Kinds, with commas between.")] = ",".join(KINDS),
    epsilons: Annotated[str, typer.Option(help="Shares of wrong labels.")] = "0.1,0.3",
    seeds: Annotated[int, typer.Option(help="Splits.")] = 1,
    out: Annotated[Path, typer.Option(help="Where results are kept.")] = Path("results/weak"),
) -> None:
    """Measure what has not been, then write the page."""
    out.mkdir(parents=True, exist_ok=True)
    kept = out / "weak.jsonl"
    found = [json.loads(line) for line in kept.read_text().splitlines()] if kept.exists() else []
    done = {(r["model"], r["kind"], r["epsilon"], r["seed"]) for r in found}
    cells = (
        (name, kind, epsilon, seed)
        for seed in range(seeds)
        for name in only or MODELS
        for epsilon in map(float, epsilons.split(","))
        for kind in kinds.split(",")
    )
    for cell in cells:
        if cell in done:
            continue
        found.append(measured(*cell))
        with kept.open("a") as file:
            file.write(json.dumps(found[-1]) + "\n")
        typer.echo(json.dumps(found[-1]))
    (out / "weak.md").write_text(page(found))


if __name__ == "__main__":
    typer.run(main)
