"""Methods that are compared: each learns from rows and predicts others.

Both networks have the hidden layers of ours and see features in its units. They are given what a
careful person would give them: a tenth of their rows decides when to stop. Trees are scikit-learn's
as they come. Nothing but ours knows that rows may be wrong.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from threadpoolctl import threadpool_limits

from mtbayes.criteria import Criterion
from mtbayes.fitting.units import Features, Targets
from mtbayes.likelihoods import Categorical, Gaussian
from mtbayes.maths import draws
from mtbayes.models import Model
from mtbayes.networks import mlp
from mtbayes.posteriors import Particles
from mtbayes.predicting import predictive
from mtbayes.predictives import GaussianPredictive
from mtbayes.solve import fit
from mtbayes.tables.model import Settings
from mtbayes.types import Array, FloatArray

OURS = "mtbayes"
COVERAGE = 0.9
_HIDDEN = (50, 50)
_BATCH = 128
_STEPS = 3000  # of a network, about, unless it is stopped before
_STOPS = 0.1  # of a network's rows, which decide when it stops


class Split(NamedTuple):
    """Rows to learn from, and rows to speak about.

    classes: how many, y being 0..classes-1; 0 if y are numbers
    """

    x: FloatArray
    y: Array
    x_test: FloatArray
    y_test: Array
    classes: int
    settings: Settings


Predicted = dict[str, FloatArray]
"""Of test rows: "0", "1" ..., the probability of each class; or mean, and log_prob, low, high."""


def ours(split: Split) -> Predicted:
    """The estimator that `fit` fits."""
    kind = "classes" if split.classes else "number"
    model = split.settings.estimator(kind, verbose=False).fit(split.x, split.y)
    if split.classes:
        return _by_class(model, split.x_test, split.classes)
    return _gaussian(model.predictive(split.x_test), model.log_prob(split.x_test, split.y_test))


def network(members: int) -> Callable[[Split], Predicted]:
    """Networks trained by the log loss, each by itself, and their mean: one, or a deep ensemble."""

    def predicted(split: Split) -> Predicted:
        features, targets = Features.of(split.x), Targets.of([0.0] if split.classes else split.y)
        likelihood = (
            Categorical(split.classes) if split.classes else Gaussian("by_input", floor=0.02)
        )
        model = Model(mlp((split.x.shape[1], *_HIDDEN, likelihood.outputs)), likelihood)
        posterior = Particles(members)
        x, y = features.apply(split.x), split.y if split.classes else targets.apply(split.y)
        order = np.random.default_rng(split.settings.seed).permutation(len(y))
        stops, learns = np.split(order, [max(1, round(_STOPS * len(y)))])
        key = draws.key(split.settings.seed)
        state = fit(
            model,
            x[learns],
            y[learns],
            Criterion(1, 1.0, math.inf),
            key=draws.child(key, 0),
            posterior=posterior,
            epochs=split.settings.epochs or _epochs(len(learns)),
            batch_size=_BATCH,
            held_out=(x[stops], y[stops]),
        ).state
        drawn = draws.child(key, 1)
        found = predictive(model, posterior, state, features.apply(split.x_test), key=drawn)
        if split.classes:
            return dict(zip(_names(split.classes), found.probs.T, strict=True))
        log_prob = found.log_prob(targets.apply(split.y_test)) - np.log(targets.scale)
        means = targets.centre + targets.scale * np.asarray(found.means, float)
        stds = targets.scale * np.asarray(found.stds, float)
        return _gaussian(GaussianPredictive(means, stds), log_prob)

    return predicted


def trees(classifier: Any, regressor: Any) -> Callable[[Split], Predicted]:
    """A model of scikit-learn as it comes; of a number it tells the mean alone."""

    def predicted(split: Split) -> Predicted:
        kind = classifier if split.classes else regressor
        # Trees split between values, in single precision: wild ones are as good as 1e30.
        x, x_test = (np.clip(v, -1e30, 1e30) for v in (split.x, split.x_test))
        with threadpool_limits(1):  # threads that wait for each other spin; --jobs shares work
            model = kind(random_state=split.settings.seed).fit(x, split.y)
            if split.classes:
                return _by_class(model, x_test, split.classes)
            return {"mean": model.predict(x_test)}

    return predicted


CONTENDERS: dict[str, tuple[Callable[[Split], Predicted], float]] = {
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


def _by_class(model: Any, x: FloatArray, classes: int) -> Predicted:
    """Probabilities of all classes by a model that may not have met each."""
    met = {int(label): i for i, label in enumerate(model.classes_)}
    probs = model.predict_proba(x)
    none = np.zeros(len(x))
    return {str(c): probs[:, met[c]] if c in met else none for c in range(classes)}


def _names(classes: int) -> list[str]:
    return [str(c) for c in range(classes)]


def _gaussian(found: GaussianPredictive, log_prob: FloatArray) -> Predicted:
    low, high = found.interval(COVERAGE)
    return {"mean": found.mean, "log_prob": log_prob, "low": low, "high": high}
