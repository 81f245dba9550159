"""The methods of the robustness benchmark: each learns from dirty rows and predicts clean ones.

A method takes a `Task` and gives an `Answer`. Ours is as it comes. Networks of rivals all have the
same hidden layer and number of epochs, and all rivals but the trees see scaled features. Nothing
but ours is calibrated: the law of wrong rows that does it is a part of the estimators.
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from cleanlab.filter import find_label_issues
from cleanlab.rank import get_label_quality_scores
from scipy.stats import norm
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import HuberRegressor, LogisticRegression, Ridge
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.neural_network import MLPClassifier, MLPRegressor
from threadpoolctl import threadpool_limits

from mtbayes import Criterion
from mtbayes.estimators import RobustClassifier, RobustRegressor
from mtbayes.fitting.units import Features, Targets
from mtbayes.likelihoods import Categorical, Gaussian
from mtbayes.models import Model
from mtbayes.networks import mlp
from mtbayes.posteriors import Particles, mean_field, prior
from mtbayes.predicting import predictive
from mtbayes.predictives import GaussianPredictive
from mtbayes.rivals import generalised_cross_entropy
from mtbayes.solve import fit

HIDDEN = (50,)
BATCH, RATE = 128, 0.01
MEMBERS = 10
POINTS = 1e9  # beta of a deep ensemble: no prior to speak of
PRIOR = 2.0  # of ours, in units of a weight at the start
WIDE = 100  # features above which boosting makes fewer rounds
MANY = 20  # classes above which it is left out of wide data: a tree for each, an hour a fit


@dataclass(frozen=True)
class Task:
    """Dirty training rows x, y and clean test rows; classes is 0 for a regression."""

    x: np.ndarray
    y: np.ndarray
    x_test: np.ndarray
    y_test: np.ndarray
    classes: int
    epochs: int
    seed: int


@dataclass(frozen=True)
class Answer:
    """What a method says about the test rows, and about the training rows if it judges them.

    probs: [n, C] of a classifier; else mean, log_prob, low, high: [n] of a regressor
    wrong: a score of each training row, high where the row looks wrong
    """

    probs: np.ndarray | None = None
    mean: np.ndarray | None = None
    log_prob: np.ndarray | None = None
    low: np.ndarray | None = None
    high: np.ndarray | None = None
    wrong: np.ndarray | None = None
    contamination: float | None = None
    t: float | None = None


Method = Callable[[Task], Answer]


# Ours, and what else the engine trains.


def ours(t: float | str) -> Method:
    def answer(task: Task) -> Answer:
        kind = RobustClassifier if task.classes else RobustRegressor
        model = kind(t=t, random_state=task.seed).fit(task.x, task.y)
        judged = {
            "wrong": model.outlier_probability_,
            "contamination": model.contamination_.value,
            "t": model.t_,
        }
        if task.classes:
            return Answer(probs=columns(model, task.x_test, task.classes), **judged)
        return gaussian(model.predictive(task.x_test), task.y_test, **judged)

    return answer


def engine(posterior: Any, criterion: Criterion) -> Method:
    """A fit of the engine, not calibrated."""

    def answer(task: Task) -> Answer:
        features, targets = Features.of(task.x), Targets.of(task.y)
        likelihood = Categorical(task.classes) if task.classes else Gaussian("by_input", floor=0.02)
        model = Model(mlp((task.x.shape[1], *HIDDEN, likelihood.outputs)), likelihood)
        key = jax.random.key(task.seed)
        state = fit(
            model,
            features.apply(task.x),
            task.y if task.classes else targets.apply(task.y),
            criterion,
            key=jax.random.fold_in(key, 0),
            posterior=posterior,
            prior=prior(0.0, PRIOR * model.scale()),
            learning_rate=RATE,
            epochs=task.epochs,
            batch_size=BATCH,
        ).state
        drawn = jax.random.fold_in(key, 1)
        found = predictive(model, posterior, state, features.apply(task.x_test), key=drawn)
        if task.classes:
            return Answer(probs=found.probs)
        means = targets.centre + targets.scale * np.asarray(found.means, float)
        stds = targets.scale * np.asarray(found.stds, float)
        return gaussian(GaussianPredictive(means, stds), task.y_test)

    return answer


def bayes() -> Method:
    return engine(mean_field(), Criterion(m=1, t=1.0, beta=1.0))


def robust_gibbs(t: float) -> Method:
    return engine(mean_field(), Criterion(m=1, t=t, beta=1.0))


def gaussian(found: GaussianPredictive, y: np.ndarray, **judged: Any) -> Answer:
    low, high = found.interval(0.9)
    return Answer(mean=found.mean, log_prob=found.log_prob(y), low=low, high=high, **judged)


# scikit-learn and cleanlab.


def columns(model: Any, x: np.ndarray, classes: int) -> np.ndarray:
    """Probabilities [n, classes] of a model that may not have met every class."""
    probs = np.zeros((len(x), classes))
    probs[:, np.asarray(model.classes_, int)] = model.predict_proba(x)
    return probs


def plain(build: Callable[[Task], Any], *, scaled: bool = True) -> Method:
    """A model of scikit-learn; a regressor's density has the spread of its training residuals.

    One thread: two wait for each other for minutes where a processor is shared.
    """

    def answer(task: Task) -> Answer:
        features = Features.of(task.x)
        x, x_test = (features.apply(v) if scaled else v for v in (task.x, task.x_test))
        targets = None if task.classes else Targets.of(task.y)
        with threadpool_limits(1), quiet():
            model = build(task).fit(x, task.y if targets is None else targets.apply(task.y))
            if targets is None:
                return Answer(probs=columns(model, x_test, task.classes))
            mean, own = (targets.centre + targets.scale * model.predict(v) for v in (x_test, x))
        std = max(float(np.std(task.y - own)), 1e-12)
        half = norm.ppf(0.95) * std
        log_prob = norm.logpdf(task.y_test, mean, std)
        return Answer(mean=mean, log_prob=log_prob, low=mean - half, high=mean + half)

    return answer


def network(task: Task) -> Any:
    """At scikit-learn's own step size: on wrong labels it does better than at ours."""
    kind = MLPClassifier if task.classes else MLPRegressor
    return kind(
        hidden_layer_sizes=HIDDEN,
        batch_size=BATCH,
        max_iter=task.epochs,
        tol=0.0,
        n_iter_no_change=task.epochs + 1,
        random_state=task.seed,
    )


def pruned(task: Task) -> Answer:
    """cleanlab: rows that a cross-validated network disputes are left out, and it is refitted."""
    features = Features.of(task.x)
    x = features.apply(task.x)
    with threadpool_limits(1), quiet():
        folds = StratifiedKFold(5, shuffle=True, random_state=task.seed)
        unseen = cross_val_predict(network(task), x, task.y, cv=folds, method="predict_proba")
        keep = ~find_label_issues(task.y, unseen, n_jobs=1)
        model = network(task).fit(x[keep], task.y[keep])
    quality = get_label_quality_scores(task.y, unseen)
    probs = columns(model, features.apply(task.x_test), task.classes)
    return Answer(probs=probs, wrong=1 - quality, contamination=float(np.mean(~keep)))


def linear(task: Task) -> Any:
    return LogisticRegression() if task.classes else Ridge()


def forest(task: Task) -> Any:
    kind = RandomForestClassifier if task.classes else RandomForestRegressor
    return kind(n_jobs=2, random_state=task.seed)


def boosting(task: Task) -> Any:
    kind = HistGradientBoostingClassifier if task.classes else HistGradientBoostingRegressor
    rounds = 20 if task.x.shape[1] > WIDE else 100
    return kind(max_iter=rounds, random_state=task.seed)


def quiet() -> Any:
    """Networks end at their last epoch as planned; nobody needs to hear of it."""
    return warnings.catch_warnings(action="ignore", category=ConvergenceWarning)


def rivals(task: Task, t: float, quick: bool) -> dict[str, Method]:
    """All methods but ours, by name; t is that of the robust Gibbs posterior."""
    particles = Particles(MEMBERS)
    found: dict[str, Method] = {
        "Bayes": bayes(),
        "robust Gibbs": robust_gibbs(t),
        "deep ensemble": engine(particles, Criterion(m=1, t=1.0, beta=POINTS)),
    }
    if task.classes:
        found["GCE ensemble"] = engine(particles, generalised_cross_entropy(0.7, POINTS))
        found["cleanlab"] = pruned
    found["sklearn MLP"] = plain(network)
    found["logistic regression" if task.classes else "ridge"] = plain(linear)
    if not task.classes:
        found["Huber"] = plain(lambda _: HuberRegressor(max_iter=1000))
    found["random forest"] = plain(forest, scaled=False)
    slow = task.x.shape[1] > WIDE and (quick or task.classes > MANY)
    if not slow:
        found["gradient boosting"] = plain(boosting, scaled=False)
    return found
