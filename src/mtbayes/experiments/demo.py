"""The main job on handwritten digits: three labels in ten are wrong, and four ways to learn.

All four train one network, 64-50-10, on the same rows for as many epochs: a single network, a deep
ensemble, Bayes, and `RobustClassifier`. They are judged on rows whose labels are right.

Two things to know when reading the numbers. So many epochs let the plain network and the deep
ensemble learn the wrong labels by heart; both are also measured after a tenth of the epochs, where
their accuracy comes near ours. And all but ours predict the labels as given, wrong ones included:
they are not told of the noise, so that much of their ECE and NLL is the noise itself.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from mtbayes.criteria import Criterion
from mtbayes.data.contamination import flip_labels
from mtbayes.estimators import RobustClassifier
from mtbayes.estimators.base import TRUST
from mtbayes.experiments.results import Row, write_columns, write_rows
from mtbayes.fitting.units import Features
from mtbayes.learners import Place
from mtbayes.likelihoods import Categorical
from mtbayes.maths import draws
from mtbayes.metrics import expected_calibration_error, reliability
from mtbayes.models import Model
from mtbayes.networks import mlp
from mtbayes.posteriors import Particles, Posterior, mean_field, prior
from mtbayes.predicting import predictive
from mtbayes.predictives import ClassPredictive
from mtbayes.progress import Callback, Progress, part
from mtbayes.solve import fit
from mtbayes.types import Array, BoolArray

EPSILON = 0.3
SEED = 0
EPOCHS = 300
HIDDEN = 50
CLASSES = 10
BINS = 15
SUSPECTS = 20
SIDE = 8
"""Height and width of a digit."""

_WEAK = 1e9  # beta: the prior counts for nothing
_PRIOR = 2.0  # standard deviation of a weight in units of 1/√inputs, as in RobustClassifier


class Rival(NamedTuple):
    """A way to learn beside ours."""

    name: str
    posterior: Posterior
    criterion: Criterion
    share: float
    """Of the demo's time, about."""
    early: bool
    """Whether it is also measured after a tenth of the epochs."""


RIVALS = (
    Rival("plain network", Particles(1), Criterion(m=1, t=1.0, beta=_WEAK), 0.1, True),
    Rival("deep ensemble", Particles(10), Criterion(m=1, t=1.0, beta=_WEAK), 0.13, True),
    Rival("Bayes", mean_field(), Criterion(m=1, t=1.0, beta=1.0), 0.1, False),
)
OURS = "ours"
NAMES = (*(rival.name for rival in RIVALS), OURS)


class Digits(NamedTuple):
    """Dirty rows to learn from, and clean ones to be judged on."""

    x: Array
    given: Array
    true: Array
    wrong: BoolArray
    row: Array
    """Which rows of scikit-learn's digits the training rows are."""
    test_x: Array
    test_y: Array
    seed: int


def digits(seed: int = SEED) -> Digits:
    """7 of 10 rows to train on, with EPSILON of their labels flipped to another class."""
    x, y = load_digits(return_X_y=True)
    train, test = train_test_split(np.arange(len(y)), test_size=0.3, random_state=seed, stratify=y)
    dirty = flip_labels(y[train], EPSILON, seed=seed, how="other")
    return Digits(x[train], dirty.data, y[train], dirty.touched, train, x[test], y[test], seed)


def run(out: Path, callback: Callback, seed: int = SEED) -> None:
    """Write the measures, reliability diagrams and most suspicious digits below `out/demo`."""
    folder = out / "demo"
    folder.mkdir(parents=True, exist_ok=True)  # a folder that cannot be written shows up now
    data = digits(seed)
    learned, early, model = learn(data, EPOCHS, callback)
    criteria = {rival.name: rival.criterion for rival in RIVALS} | {OURS: _criterion(model)}
    rows, diagrams = [], {}
    for name, found in learned.items():
        measured = _measures(found, data.test_y)
        if name in early:
            stopped = _measures(early[name], data.test_y)
            measured |= {f"{metric}_early": value for metric, value in stopped.items()}
        if name == OURS:
            measured |= _found(model, data)
        rows += [_row(name, criteria[name], seed, *each) for each in measured.items()]
        for column, values in reliability(found.probs, data.test_y, BINS)._asdict().items():
            diagrams[f"{name} {column}"] = values
    write_rows(folder / "results.csv", rows)
    write_columns(folder / "reliability.csv", diagrams)
    write_columns(folder / "suspects.csv", suspects(model, data))
    callback(Progress(1.0, "done"))


class Learned(NamedTuple):
    """What the methods predict for the test rows, by name, and ours as it was fitted."""

    full: dict[str, ClassPredictive]
    early: dict[str, ClassPredictive]
    """After a tenth of the epochs."""
    model: RobustClassifier


def learn(data: Digits, epochs: int, callback: Callback) -> Learned:
    """Fit all methods, each for so many epochs."""
    learned: dict[str, ClassPredictive] = {}
    early: dict[str, ClassPredictive] = {}
    done = 0.0
    for rival in RIVALS:
        share = rival.share * (0.6 if rival.early else 1.0)
        heard = part(callback, done, share, rival.name)
        heard(Progress(0.0))
        learned[rival.name] = _rival(rival, data, epochs, heard)
        if rival.early:
            rest = rival.share - share
            heard = part(callback, done + share, rest, f"{rival.name}, stopped early")
            early[rival.name] = _rival(rival, data, stopped_after(epochs), heard)
        done += rival.share
    heard = part(callback, done, 1 - done, f"{OURS}, and its choice of t")
    heard(Progress(0.0))
    model = RobustClassifier(hidden=(HIDDEN,), epochs=epochs, random_state=data.seed)
    model.fitted_ = model.learned(data.x, data.given, place=Place(callback=heard))
    learned[OURS] = model.predictive(data.test_x)
    return Learned(learned, early, model)


def stopped_after(epochs: int) -> int:
    """Epochs of a network that is stopped early."""
    return max(1, epochs // 10)


def suspects(model: RobustClassifier, data: Digits) -> dict[str, Any]:
    """The SUSPECTS training rows that are most likely wrong, as columns."""
    worst = np.argsort(-model.outlier_probability_, kind="stable")[:SUSPECTS]
    suggestion = model.find_outliers(data.x, data.given).suggestion
    return {
        "row": data.row[worst],
        "probability": model.outlier_probability_[worst],
        "given": data.given[worst],
        "suggested": suggestion[worst],
        "true": data.true[worst],
        **{f"pixel{i}": data.x[worst, i] for i in range(SIDE * SIDE)},
    }


def _rival(rival: Rival, data: Digits, epochs: int, callback: Callback) -> ClassPredictive:
    units = Features.of(data.x)
    model = Model(mlp((SIDE * SIDE, HIDDEN, CLASSES)), Categorical(CLASSES))
    solution = fit(
        model,
        units.apply(data.x),
        data.given,
        rival.criterion,
        key=draws.key(data.seed),
        posterior=rival.posterior,
        prior=prior(0.0, _PRIOR * model.scale()),
        epochs=epochs,
        callback=callback,
    )
    rows, key = units.apply(data.test_x), draws.key(data.seed + 1)
    found: ClassPredictive = predictive(model, rival.posterior, solution.state, rows, key=key)
    return found


def _measures(found: ClassPredictive, y: Array) -> dict[str, float]:
    return {
        "accuracy": float(np.mean(found.labels == y)),
        "ece": expected_calibration_error(found.probs, y, BINS),
        "nll": -float(np.mean(found.log_prob(y))),
    }


def _found(model: RobustClassifier, data: Digits) -> dict[str, float]:
    """What ours says about the training rows, beside the truth."""
    value, low, high = model.contamination_
    flagged = model.outlier_probability_ > 0.5
    return {
        "contamination": float(value),
        "contamination_low": float(low),
        "contamination_high": float(high),
        "contamination_true": float(data.wrong.mean()),
        "t_chosen": float(model.t_),
        "wrong": float(data.wrong.sum()),
        "found": float((flagged & data.wrong).sum()),
        "false_alarms": float((flagged & ~data.wrong).sum()),
        "train_rows": float(len(data.given)),
        "test_rows": float(len(data.test_y)),
        "epochs": float(model.epochs),
    }


def _criterion(model: RobustClassifier) -> Criterion:
    """The criterion of ours, with the t that it chose; of several learners each has its own."""
    return Criterion(m=1, t=model.t_, beta=TRUST, joint=False)


def _row(name: str, criterion: Criterion, seed: int, metric: str, value: float) -> Row:
    m, t, t_p, beta = criterion.m, criterion.t, criterion.t_p, criterion.beta
    return Row("demo", name, "digits", m, t, t_p, beta, EPSILON, seed, metric, value)
