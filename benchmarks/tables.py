"""The estimators as they come, beside their rivals as they come, on real tables made dirty.

    .venv/bin/python benchmarks/tables.py [--only TABLE,...] [--epsilons 0,0.1,...]
        [--seeds 0,1,...] [--out DIR] [--ours] [--write DOCS]

Tables are read from the folder `tables` in MTBAYES_DATA; the last column is the target. 70 % of the
rows, at random, are learned from: with a share ε of their labels flipped to any other class, or of
their numbers replaced uniformly over the range and one in ten of those times ten. The others stay
clean and are predicted. Everyone gets the numbers that `mtbayes fit` makes of the cells.
A run that was stopped goes on from tables.jsonl in DIR. After a change of the estimators --ours
measures them anew, beside what is kept of their rivals, who have not changed; docs/tables has the
cells of its page, to go on from in DIR. --write makes the page from what is there.

Probabilities below 1e-6 count as that. A rival that predicts a number alone is given a law of its
errors, those on a fifth of its rows that were held out. AUROC is of wrong rows, by cleanlab's
scores for its rivals. Everyone runs on one thread beside JAX's own. CatBoost, which takes minutes
where classes are many, has 500 rounds for more than two, and none where it would take longest.
"""

import json
import os
import time
import warnings
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import typer
from sklearn.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import HuberRegressor, LogisticRegression, RidgeCV
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import cross_val_predict
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from tables_page import write_page

from mtbayes import RobustClassifier, RobustRegressor
from mtbayes.data.contamination import flip_labels, replace_targets
from mtbayes.data.schema import learn_table
from mtbayes.metrics.calibration import expected_calibration_error

OURS = "mtbayes"
LEAST = 1e-6
SHARES = (0.1, 0.2, 0.4)
QUANTILES = (np.arange(99) + 1) / 100


class Cell(NamedTuple):
    """Rows to learn from, of which `wrong` are, and clean rows to predict."""

    task: str
    x: Any
    y: Any
    wrong: Any
    x_test: Any
    y_test: Any


def cell(path: Path, epsilon: float, seed: int) -> Cell:
    """A table, split and made dirty."""
    table = pq.read_table(path)
    order = np.random.default_rng(seed).permutation(table.num_rows)
    cut = round(0.7 * len(order))
    parts = [table.take(pa.array(some)) for some in (order[:cut], order[cut:])]
    schema, coded = learn_table(parts[0], table.column_names[-1], None)
    known = schema.targets(parts[1])
    x_test = schema.code(parts[1].filter(known.kept))
    y, y_test = coded.y, known.y
    if schema.task == "classes":
        labels = np.unique(np.concatenate([y, y_test]))
        y, y_test = np.searchsorted(labels, y), np.searchsorted(labels, y_test)
        dirty = flip_labels(y, epsilon, seed=seed)
    else:
        dirty = replace_targets(y, epsilon, seed=seed)
    data = np.array(dirty.data)
    if schema.task == "number":
        far = dirty.touched & (np.random.default_rng(seed).random(len(y)) < 0.1)
        data[far] *= 10
    return Cell(schema.task, coded.x, data, np.asarray(dirty.touched), x_test, y_test)


# Ours.


def ours(cell: Cell, seed: int) -> dict[str, Any]:
    """The default."""
    kind = RobustClassifier if cell.task == "classes" else RobustRegressor
    begin = time.perf_counter()
    model = kind(random_state=seed).fit(cell.x, cell.y)
    if cell.task == "classes":
        classes = _classes(cell)
        probs = np.zeros((len(cell.y_test), classes))
        probs[:, model.classes_] = model.predict_proba(cell.x_test)
        found = _class_scores(probs, cell)
        if not cell.wrong.any():
            found["epsilon error"] = _epsilon_error(model.fitted_.training.prediction)
    else:
        said = model.predictive(cell.x_test)
        low, high = said.interval(0.9)
        found = _number_scores(said.quantile(QUANTILES), said.quantile(0.5), low, high, cell)
    share = model.contamination_
    found |= {
        "seconds": time.perf_counter() - begin,
        "epsilon": share.value,
        "low": share.low,
        "high": share.high,
        "shares": model.shares_,
    }
    return found | _ranking(model.outlier_probability_, cell)


# Rivals.


def rivals(task: str, seed: int) -> dict[str, Any]:
    """Methods of others, as they come."""
    import lightgbm

    common: dict[str, Any] = {"random_state": seed}
    if task == "classes":
        found = {
            "boosting": HistGradientBoostingClassifier(**common),
            "forest": RandomForestClassifier(300, **common),
            "extra trees": ExtraTreesClassifier(300, **common),
            "logistic": make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)),
            "network": make_pipeline(
                StandardScaler(), MLPClassifier((50, 50), early_stopping=True, **common)
            ),
            "LightGBM": lightgbm.LGBMClassifier(verbose=-1, n_jobs=1, **common),
        }
    else:
        found = {
            "boosting": HistGradientBoostingRegressor(**common),
            "boosting L1": HistGradientBoostingRegressor(loss="absolute_error", **common),
            "forest": RandomForestRegressor(300, **common),
            "extra trees": ExtraTreesRegressor(300, **common),
            "ridge": make_pipeline(StandardScaler(), RidgeCV()),
            "Huber": make_pipeline(StandardScaler(), HuberRegressor(max_iter=1000)),
            "network": make_pipeline(
                StandardScaler(),
                MLPRegressor(hidden_layer_sizes=(50, 50), early_stopping=True, **common),
            ),
            "LightGBM": lightgbm.LGBMRegressor(verbose=-1, n_jobs=1, **common),
        }
    try:
        import catboost
    except ImportError:
        return found
    kind = catboost.CatBoostClassifier if task == "classes" else catboost.CatBoostRegressor
    return found | {
        "CatBoost": kind(verbose=0, thread_count=1, random_seed=seed, allow_writing_files=False)
    }


def _affordable(models: dict[str, Any], cell: Cell) -> dict[str, Any]:
    """Without hours of CatBoost."""
    classes = _classes(cell) if cell.task == "classes" else 1
    if classes > 2 and classes * cell.x.size > 300_000:
        models.pop("CatBoost", None)
    elif classes > 2 and "CatBoost" in models:
        models["CatBoost"].set_params(iterations=500)
    return models


def rival(model: Any, cell: Cell, clean: bool) -> dict[str, Any]:
    """Its scores; clean: with cleanlab's search for wrong labels before it."""
    begin = time.perf_counter()
    x, y, found = cell.x, cell.y, dict[str, Any]()
    if clean:
        from cleanlab.filter import find_label_issues
        from cleanlab.rank import get_label_quality_scores

        labels, codes = np.unique(y, return_inverse=True)
        unseen = cross_val_predict(model, x, codes, method="predict_proba")
        found = _ranking(-get_label_quality_scores(codes, unseen), cell)
        issues = find_label_issues(codes, unseen)
        found["epsilon"] = float(issues.mean())
        x, y = x[~issues], labels[codes][~issues]
    if cell.task == "classes":
        probs = np.zeros((len(cell.y_test), _classes(cell)))
        fitted = model.fit(x, y)
        probs[:, np.asarray(fitted.classes_).astype(int).ravel()] = fitted.predict_proba(
            cell.x_test
        )
        found |= _class_scores(probs, cell)
    else:
        order = np.random.default_rng(0).permutation(len(y))
        held = order[: len(y) // 5]
        seen = order[len(y) // 5 :]
        errors = y[held] - np.ravel(model.fit(x[seen], y[seen]).predict(x[held]))
        point = np.ravel(model.fit(x, y).predict(cell.x_test))
        every = point[:, None] + np.quantile(errors, QUANTILES)
        ends = point[:, None] + np.quantile(errors, [0.05, 0.95])
        found = _number_scores(every, point, *ends.T, cell)
    return found | {"seconds": time.perf_counter() - begin}


# Scores.


def _classes(cell: Cell) -> int:
    return int(max(cell.y.max(), cell.y_test.max())) + 1


def _class_scores(probs: Any, cell: Cell) -> dict[str, Any]:
    y, row = cell.y_test, np.arange(len(cell.y_test))
    probs = np.maximum(probs, LEAST)
    probs = probs / probs.sum(axis=1, keepdims=True)
    rng = np.random.default_rng(0)
    drawn = [(probs.cumsum(axis=1) > rng.random((len(y), 1))).argmax(axis=1) for _ in range(20)]
    floor = np.mean([expected_calibration_error(probs, each) for each in drawn])
    return {
        "nll": float(-np.log(probs[row, y]).mean()),
        "accuracy": float((probs.argmax(axis=1) == y).mean()),
        "ece": float(expected_calibration_error(probs, y)),
        "ece floor": float(floor),
    }


def _epsilon_error(probs: Any) -> dict[str, float]:
    """Standard errors of ε by whoever knows the probabilities [n, C] of all rows, at some ε.

    Cramér and Rao's: a label is c with probability (1-ε) p_c + ε (1-p_c) / (C-1).
    """
    other = (1 - probs) / (probs.shape[1] - 1)
    found = {}
    for epsilon in SHARES:
        mixed = np.maximum((1 - epsilon) * probs + epsilon * other, LEAST)
        found[f"{epsilon:g}"] = float(np.sum((other - probs) ** 2 / mixed) ** -0.5)
    return found


def _number_scores(quantiles: Any, point: Any, low: Any, high: Any, cell: Cell) -> dict[str, Any]:
    y, unit = cell.y_test, float(np.std(cell.y_test))
    off = y[:, None] - quantiles
    pinball = np.maximum(QUANTILES * off, (QUANTILES - 1) * off)
    return {
        "mae": float(np.abs(y - point).mean() / unit),
        "crps": float(2 * pinball.mean() / unit),
        "coverage": float(np.mean((y >= low) & (y <= high))),
    }


def _ranking(suspicion: Any, cell: Cell) -> dict[str, Any]:
    return {"auroc": float(roc_auc_score(cell.wrong, suspicion))} if cell.wrong.any() else {}


# The run.


def measured(path: Path, epsilon: float, seed: int, others: dict[str, Any]) -> dict[str, Any]:
    """All methods on one cell, or ours alone beside what is known of others."""
    given = cell(path, epsilon, seed)
    found = others | {OURS: ours(given, seed)}
    if others:
        return _row(path, epsilon, seed, given, found)
    models = _affordable(rivals(given.task, seed), given)
    for name, model in models.items():
        found[name] = rival(model, given, clean=False)
    if given.task == "classes":
        for name in ("forest", "boosting", "logistic"):
            found[f"cleanlab, {name}"] = rival(models[name], given, clean=True)
    return _row(path, epsilon, seed, given, found)


def _row(path: Path, epsilon: float, seed: int, given: Cell, found: dict[str, Any]) -> Any:
    return {
        "table": path.stem,
        "epsilon": epsilon,
        "seed": seed,
        "task": given.task,
        "rows": len(given.y),
        "methods": found,
    }


def main(
    only: Annotated[str, typer.Option(help="Tables, with commas between; all if none.")] = "",
    epsilons: Annotated[str, typer.Option(help="Shares of wrong rows.")] = "0,0.1,0.2,0.4",
    seeds: Annotated[str, typer.Option(help="Splits of each table.")] = "0,1",
    out: Annotated[Path, typer.Option(help="Where results are kept.")] = Path("results/tables"),
    again: Annotated[bool, typer.Option("--ours", help="Measure ours anew.")] = False,
    write: Annotated[Path | None, typer.Option(help="Write the page into this folder.")] = None,
) -> None:
    """Measure cells that have not been, then write the page."""
    folder = Path(os.environ.get("MTBAYES_DATA", "data")) / "tables"
    paths = sorted(folder.glob("*.parquet"), key=lambda path: path.stat().st_size)
    if only:
        paths = [path for path in paths if path.stem in only.split(",")]
    out.mkdir(parents=True, exist_ok=True)
    kept = out / "tables.jsonl"
    lines = kept.read_text().splitlines() if kept.exists() else []
    done = {(r["table"], r["epsilon"], r["seed"]): r["methods"] for r in map(json.loads, lines)}
    for seed in map(int, seeds.split(",")):
        for epsilon in map(float, epsilons.split(",")):
            for path in paths:
                others = done.get((path.stem, epsilon, seed), {})
                if others and not again:
                    continue
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    row = measured(path, epsilon, seed, others)
                with kept.open("a") as file:
                    file.write(json.dumps(row) + "\n")
                own = row["methods"][OURS]
                shown = {k: round(v, 3) for k, v in own.items() if isinstance(v, float)}
                typer.echo(f"{path.stem} ε={epsilon:g} seed {seed}: {shown}")
    if write is not None and kept.exists():
        rows = [json.loads(line) for line in kept.read_text().splitlines()]
        last = {(r["table"], r["epsilon"], r["seed"]): r for r in rows}
        write_page(list(last.values()), write)


if __name__ == "__main__":
    typer.run(main)
