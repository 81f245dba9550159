"""Scores of methods on rows that are as dirty as those they learned from.

Each score comes twice. On all rows as given it blames a method for wrong values, the more the surer
it was of the right one. On rows weighted by the probability that they are right it forgives rows
that no method understands. That probability is judged by all methods together, with an equal say
for each, so that no method is favoured: the mean of what they say is set beside a law of wrong
rows (`mtbayes.laws`), fitted to the test rows of all splits. Of classes it is the mean of log
probabilities; of numbers a mixture of Gaussians as wide as each method's usual error.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy import stats
from scipy.special import log_softmax

from mtbayes.fitting.units import Targets
from mtbayes.laws import WrongLabels, WrongTargets
from mtbayes.predictives import ClassPredictive, GaussianPredictive
from mtbayes.tables.contenders import Predicted
from mtbayes.types import Array, FloatArray

_GUESS = 0.01  # of a blind guess in every prediction, so that no single row decides a log score
_FAR = 1e12  # in units of the target: no prediction is worth more
_NARROW = 0.02  # the least spread of an error, in units of the target's


class Score(NamedTuple):
    """A score by name; better is up or down, or near to a number."""

    name: str
    unit: str = ""
    up: bool = True


ACCURACY, MEDIAN = Score("accuracy", "%"), Score("median error", up=False)
LOG, RMSE = Score("log score"), Score("RMSE", up=False)
INSIDE = Score("90 % interval", "%")
OF_CLASSES, OF_NUMBERS = (ACCURACY, LOG), (MEDIAN, RMSE, LOG, INSIDE)


class Trial(NamedTuple):
    """What all methods say about the test rows of one split."""

    y: Array
    predicted: dict[str, Predicted]


def scores(predicted: Predicted, y: Array, weight: FloatArray, units: Targets) -> dict[str, float]:
    """Scores of rows with weights; those that a method does not have are NaN.

    units: of the target, for the blind guess
    """
    if "mean" not in predicted:
        probs = _probs(predicted)
        hit = probs.argmax(axis=1) == y
        logs = np.log(probs[np.arange(len(y)), y])
        return {ACCURACY.name: _mean(hit, weight), LOG.name: _mean(logs, weight)}
    off = np.abs(y - predicted["mean"])
    middle = np.quantile(off, 0.5, weights=weight, method="inverted_cdf")
    with np.errstate(over="ignore"):
        found = {MEDIAN.name: float(middle), RMSE.name: float(np.sqrt(_mean(off**2, weight)))}
    if "log_prob" not in predicted:
        return found | {LOG.name: float("nan"), INSIDE.name: float("nan")}
    guess = stats.cauchy.logpdf(y, units.centre, units.scale)
    logs = np.logaddexp(np.log1p(-_GUESS) + predicted["log_prob"], np.log(_GUESS) + guess)
    inside = (predicted["low"] <= y) & (y <= predicted["high"])
    return found | {LOG.name: _mean(logs, weight), INSIDE.name: _mean(inside, weight)}


def believed(tests: Sequence[Trial]) -> list[FloatArray]:
    """Probability that each test row is right, for each split, as all methods together judge."""
    y = np.concatenate([test.y for test in tests])
    weight = np.ones(len(y))
    law: WrongLabels | WrongTargets
    if "mean" not in next(iter(tests[0].predicted.values())):
        # Logarithms: a method that knows nothing then takes no certainty from the others.
        logs = [
            np.mean([np.log(_probs(v)) for v in test.predicted.values()], axis=0) for test in tests
        ]
        classes = ClassPredictive(log_softmax(np.concatenate(logs), axis=1), np.zeros(len(y)))
        law = WrongLabels.fit(classes, y, weight)
        wrong = law.outlier_probability(classes, y)
    else:
        units = Targets.of(y)
        pairs = [_errors(test, units) for test in tests]
        means, stds = (np.concatenate(part, axis=1) for part in zip(*pairs, strict=True))
        numbers, z = GaussianPredictive(means, stds), units.apply(y)
        law = WrongTargets.fit(numbers, z, weight)
        wrong = law.outlier_probability(numbers, z)
    cuts = np.cumsum([len(test.y) for test in tests])[:-1]
    good = np.split(1 - wrong, cuts)
    return [part if part.sum() > 0 else np.ones(len(part)) for part in good]


def _errors(test: Trial, units: Targets) -> tuple[FloatArray, FloatArray]:
    """Every method's means, and the usual size of its errors, as Gaussians [methods, n]."""
    means = np.stack([units.apply(predicted["mean"]) for predicted in test.predicted.values()])
    means = np.clip(means, -_FAR, _FAR)  # `apply` clips too: two wild numbers are not one
    off = np.median(np.abs(units.apply(test.y) - means), axis=1, keepdims=True)
    # A method that errs by more than targets differ knows nothing, and must not excuse wild rows.
    return means, np.broadcast_to(np.clip(1.4826 * off, _NARROW, 1.0), means.shape)


def _probs(predicted: Predicted) -> FloatArray:
    """Class probabilities [n, C] with a blind guess among them."""
    probs = np.stack(list(predicted.values()), axis=1)
    return (1 - _GUESS) * probs + _GUESS / probs.shape[1]


def _mean(values: Array, weight: FloatArray) -> float:
    return float(np.average(values, weights=weight))


class Verdict(NamedTuple):
    """Which method is best by a score, and whether by more than splits scatter.

    other: ours, or the next best where ours is best; ahead: by how much, as a mean over splits
    beyond: None where one or two splits tell no scatter
    """

    best: str
    value: float
    other: str
    ahead: float
    beyond: bool | None


def verdict(values: dict[str, FloatArray], score: Score, ours: str, tested: float) -> Verdict:
    """The best by the mean over splits; values[method] has one for each split.

    Splits share rows, so that their scatter is smaller than that of new data: the variance of the
    mean difference is s²·(1/splits + tested), after Nadeau and Bengio (2003), and a difference is
    beyond the scatter where Student's t has less than 5 % for it.

    tested: test rows for each row that was learned from
    """
    known = {name: v if score.up else -v for name, v in values.items() if not np.isnan(v).any()}
    ranked = sorted(known, key=lambda name: -known[name].mean())
    best = ranked[0]
    other = ours if best != ours else ranked[1]
    gap = known[best] - known[other]
    ahead, splits = float(gap.mean()), len(gap)
    beyond = None
    if splits > 2:
        error = float(np.std(gap, ddof=1) * np.sqrt(1 / splits + tested))
        beyond = bool(ahead > stats.t.ppf(0.975, splits - 1) * error)
    return Verdict(best, float(values[best].mean()), other, ahead, beyond)
