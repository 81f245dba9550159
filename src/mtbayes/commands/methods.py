"""Methods that `compare` sets side by side: each learns from rows and speaks about others.

Both networks have the hidden layers of ours and see features in its units. They are given what a
careful person would give them: a tenth of their rows decides when to stop. Trees are scikit-learn's
as they come. Nothing but ours knows that rows may be wrong.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from threadpoolctl import threadpool_limits

from mtbayes.commands.model import Settings
from mtbayes.criteria import Criterion
from mtbayes.estimators.scaling import Features, Targets
from mtbayes.likelihoods import Categorical, Gaussian
from mtbayes.mixtures import GaussianPredictive
from mtbayes.models import Model
from mtbayes.networks import mlp
from mtbayes.posteriors import Particles
from mtbayes.predictive import predictive
from mtbayes.solve import fit
from mtbayes.types import Array, FloatArray

OURS = "mtbayes"
COVERAGE = 0.9
_HIDDEN = (50, 50)
_BATCH = 128
_STEPS = 3000  # of a network, about, unless it is stopped before
_STOPS = 0.1  # of a network's rows, which decide when it stops


class Task(NamedTuple):
    """Rows to learn from, and rows to speak about.

    classes: how many, y being 0..classes-1; 0 if y are numbers
    """

    x: FloatArray
    y: Array
    x_test: FloatArray
    y_test: Array
    classes: int
    settings: Settings


Told = dict[str, FloatArray]
"""Of test rows: "0", "1" ..., the probability of each class; or mean, and log_prob, low, high."""


def ours(task: Task) -> Told:
    """The estimator that `fit` fits."""
    kind = "classes" if task.classes else "number"
    model = task.settings.estimator(kind, verbose=False).fit(task.x, task.y)
    if task.classes:
        return _by_class(model, task.x_test, task.classes)
    return _gaussian(model.predictive(task.x_test), model.log_prob(task.x_test, task.y_test))


def network(members: int) -> Callable[[Task], Told]:
    """Networks trained by the log loss, each by itself, and their mean: one, or a deep ensemble."""

    def told(task: Task) -> Told:
        features, targets = Features.of(task.x), Targets.of([0.0] if task.classes else task.y)
        likelihood = Categorical(task.classes) if task.classes else Gaussian("by_input", floor=0.02)
        model = Model(mlp((task.x.shape[1], *_HIDDEN, likelihood.outputs)), likelihood)
        posterior = Particles(members)
        x, y = features.apply(task.x), task.y if task.classes else targets.apply(task.y)
        order = np.random.default_rng(task.settings.seed).permutation(len(y))
        stops, learns = np.split(order, [max(1, round(_STOPS * len(y)))])
        key = jax.random.key(task.settings.seed)
        state = fit(
            model,
            x[learns],
            y[learns],
            Criterion(1, 1.0, math.inf),
            key=jax.random.fold_in(key, 0),
            posterior=posterior,
            epochs=task.settings.epochs or _epochs(len(learns)),
            batch_size=_BATCH,
            held_out=(x[stops], y[stops]),
        ).state
        drawn = jax.random.fold_in(key, 1)
        found = predictive(model, posterior, state, features.apply(task.x_test), key=drawn)
        if task.classes:
            return dict(zip(_names(task.classes), found.probs.T, strict=True))
        log_prob = found.log_prob(targets.apply(task.y_test)) - np.log(targets.scale)
        means = targets.centre + targets.scale * np.asarray(found.means, float)
        stds = targets.scale * np.asarray(found.stds, float)
        return _gaussian(GaussianPredictive(means, stds), log_prob)

    return told


def trees(classifier: Any, regressor: Any) -> Callable[[Task], Told]:
    """A model of scikit-learn as it comes; of a number it tells the mean alone."""

    def told(task: Task) -> Told:
        kind = classifier if task.classes else regressor
        # Trees split between values, in single precision: wild ones are as good as 1e30.
        x, x_test = (np.clip(v, -1e30, 1e30) for v in (task.x, task.x_test))
        with threadpool_limits(1):  # threads that wait for each other spin; --jobs shares work
            model = kind(random_state=task.settings.seed).fit(x, task.y)
            if task.classes:
                return _by_class(model, x_test, task.classes)
            return {"mean": model.predict(x_test)}

    return told


METHODS: dict[str, tuple[Callable[[Task], Told], float]] = {
    OURS: (ours, 10.0),
    "plain network": (network(1), 1.0),
    "deep ensemble": (network(10), 2.0),
    "random forest": (trees(RandomForestClassifier, RandomForestRegressor), 1.0),
    "gradient boosting": (
        trees(HistGradientBoostingClassifier, HistGradientBoostingRegressor),
        1.0,
    ),
}
"""By name, with the work that each is, about."""


def _epochs(rows: int) -> int:
    return int(np.clip(math.ceil(_STEPS / math.ceil(rows / _BATCH)), 10, 500))


def _by_class(model: Any, x: FloatArray, classes: int) -> Told:
    """Probabilities of all classes by a model that may not have met each."""
    met = {int(label): i for i, label in enumerate(model.classes_)}
    probs = model.predict_proba(x)
    none = np.zeros(len(x))
    return {str(c): probs[:, met[c]] if c in met else none for c in range(classes)}


def _names(classes: int) -> list[str]:
    return [str(c) for c in range(classes)]


def _gaussian(found: GaussianPredictive, log_prob: FloatArray) -> Told:
    low, high = found.interval(COVERAGE)
    return {"mean": found.mean, "log_prob": log_prob, "low": low, "high": high}
