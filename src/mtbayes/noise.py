"""What dirty rows look like beside a predictive: how many there are, and which they are.

A row is good with probability 1-ε and then follows the predictive, else it is wrong and follows a
noise law. Both laws here are fitted by maximum likelihood on rows that the predictive has not been
trained on, and both calibrate the predictive on the way: a fit at t < 1 is too sure of itself (in
the limit it is the escort of order 1/t of what it has seen), and wrong rows would hide by how much.

- `WrongLabels`: a wrong label is drawn from p(given | true), learned, near uniform where rows are
  few. The predictive is sharpened or flattened by a temperature.
- `WrongTargets`: a wrong target comes from a mixture of three laws that know nothing of x: uniform
  over the range of the targets, their marginal, a wide Cauchy. The spread of the members is scaled.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import brentq, minimize_scalar
from scipy.special import entr, log_softmax, logsumexp
from scipy.stats import cauchy, chi2

from mtbayes.mixtures import ClassPredictive, GaussianPredictive
from mtbayes.types import Array, FloatArray

_ROUNDS = 200
_TINY = 1e-300
# Wrong rows seen before p(given | true) of a class leaves the uniform half of the way.
_PSEUDO_WRONG = 20.0
_MOST_CLASSES = 200  # for which a matrix of confusions is learned
_FACTOR_SPREAD = 0.5  # of the log of a calibrating factor, before any row is seen


class Contamination(NamedTuple):
    """An estimated share of wrong rows, and the ends of its confidence interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class WrongLabels:
    """Good labels follow the predictive at a temperature, wrong ones p(given | true).

    epsilon: share of wrong labels
    temperature: the predictive's log probabilities are divided by it and normalised anew
    confusion: [C, C], p(given | true) of a wrong label, with a diagonal of 0; None if uniform
    """

    epsilon: float = 0.0
    temperature: float = 1.0
    confusion: FloatArray | None = None

    @classmethod
    def fit(cls, predictive: ClassPredictive, y: Array, weight: Array) -> WrongLabels:
        """By maximum likelihood from the predictive of labels y[n] with weights [n]."""
        log_probs = np.asarray(predictive.log_probs, float)
        classes = log_probs.shape[1]

        def at(log_temperature: float) -> tuple[float, float]:
            good = _tempered(log_probs, float(np.exp(log_temperature)))[np.arange(len(y)), y]
            both = np.stack([good, (1 - good) / (classes - 1)])
            shares = _shares(np.log(both + _TINY), weight)
            return float(shares[1]), float(
                np.average(np.log(shares @ both + _TINY), weights=weight)
            )

        best = _calibrate(lambda v: at(v)[1], weight)
        law = cls(at(best)[0], float(np.exp(best)))
        few = classes == 2 or classes > _MOST_CLASSES
        return law if few else law._with_confusion(predictive, y, weight)

    def _with_confusion(self, predictive: ClassPredictive, y: Array, weight: Array) -> WrongLabels:
        """The same with p(given | true) learned by EM, held near uniform by pseudo-counts."""
        probs = self._probs(predictive)
        classes = probs.shape[1]
        uniform = (1 - np.eye(classes)) / (classes - 1)
        law = WrongLabels(self.epsilon, self.temperature, uniform)
        for _ in range(_ROUNDS):
            wrong = law._wrong(probs, y)
            share = wrong / (law._good(probs, y) + wrong.sum(axis=1) + _TINY)[:, None]
            counts = np.zeros((classes, classes))
            np.add.at(counts.T, y, weight[:, None] * share)
            epsilon = float(counts.sum() / weight.sum())
            counts += _PSEUDO_WRONG * uniform
            done = abs(epsilon - law.epsilon) < 1e-5
            confusion = counts / counts.sum(axis=1, keepdims=True)
            law = WrongLabels(epsilon, self.temperature, confusion)
            if done:
                break
        return law

    def calibrated(self, predictive: ClassPredictive) -> ClassPredictive:
        """The predictive at the temperature; its doubt keeps its split in two kinds."""
        log_probs = log_softmax(np.asarray(predictive.log_probs, float) / self.temperature, axis=1)
        before = np.maximum(predictive.entropy, _TINY)
        after = entr(np.exp(log_probs)).sum(axis=1)
        return ClassPredictive(log_probs, np.asarray(predictive.aleatoric) * after / before)

    def score(self, predictive: ClassPredictive, y: Array) -> FloatArray:
        """Log probability of each given label under the whole law, [n]."""
        probs = self._probs(predictive)
        return np.log(self._good(probs, y) + self._wrong(probs, y).sum(axis=1) + _TINY)

    def outlier_probability(self, predictive: ClassPredictive, y: Array) -> FloatArray:
        """Probability that each given label is wrong, [n]."""
        probs = self._probs(predictive)
        wrong = self._wrong(probs, y).sum(axis=1)
        return wrong / (self._good(probs, y) + wrong + _TINY)

    def suggestion(self, predictive: ClassPredictive, y: Array) -> Any:
        """The most probable true label of each row, knowing the given one, [n]."""
        probs = self._probs(predictive)
        joint = self._wrong(probs, y)
        joint[np.arange(len(y)), y] = self._good(probs, y)
        return joint.argmax(axis=1)

    def contamination(
        self, predictive: ClassPredictive, y: Array, weight: Array, level: float = 0.95
    ) -> Contamination:
        """ε with a profile-likelihood interval, the confusion held fixed."""
        probs = self._probs(predictive)
        unit = WrongLabels(1.0, self.temperature, self.confusion)
        wrong = unit._wrong(probs, y).sum(axis=1)
        good = probs[np.arange(len(y)), y]
        return _profile(np.stack([good, wrong]), self.epsilon, weight, level)

    def _probs(self, predictive: ClassPredictive) -> FloatArray:
        return _tempered(np.asarray(predictive.log_probs, float), self.temperature)

    def _good(self, probs: FloatArray, y: Array) -> FloatArray:
        """p(label good, given = y), [n]."""
        return (1 - self.epsilon) * probs[np.arange(len(y)), y]

    def _wrong(self, probs: FloatArray, y: Array) -> FloatArray:
        """p(true = c, label wrong, given = y), [n, C]."""
        if self.confusion is not None:
            return self.epsilon * probs * self.confusion[:, y].T
        joint = self.epsilon * probs / (probs.shape[1] - 1)
        joint[np.arange(len(y)), y] = 0.0
        return joint


@dataclass(frozen=True)
class WrongTargets:
    """Good targets follow the predictive with its spread scaled, wrong ones laws without x.

    scale: factor on the members' standard deviations
    shares: of good rows, then of wrong ones that are uniform, from the marginal, and far away
    low, high: range of the targets; centres, width: their marginal as a mixture of Gaussians
    """

    scale: float
    shares: FloatArray
    low: float
    high: float
    centres: FloatArray
    width: float

    @property
    def epsilon(self) -> float:
        """Share of wrong targets."""
        return float(1 - self.shares[0])

    @classmethod
    def fit(cls, predictive: GaussianPredictive, y: Array, weight: Array) -> WrongTargets:
        """By maximum likelihood from the predictive of targets y[n] with weights [n]."""
        y = np.asarray(y, float)
        # The marginal: Gaussians at its quantiles, wide enough to be smooth.
        centres = np.quantile(y, (np.arange(50) + 0.5) / 50)
        spread = float(np.subtract(*np.quantile(y, [0.75, 0.25]))) / 1.349
        width = max(0.3 * spread, 1e-3 * float(np.ptp(y)), 1e-12)
        start = cls(1.0, np.array([1.0, 0, 0, 0]), float(y.min()), float(y.max()), centres, width)
        noise = start._log_noise(y)

        def at(log_scale: float) -> tuple[FloatArray, float]:
            good = start._scaled(predictive, float(np.exp(log_scale))).log_prob(y)
            logs = np.concatenate([good[None], noise])
            shares = _shares(logs, weight)
            total = logsumexp(logs, axis=0, b=shares[:, None])
            return shares, float(np.average(total, weights=weight))

        best = _calibrate(lambda v: at(v)[1], weight)
        return replace(start, scale=float(np.exp(best)), shares=at(best)[0])

    @classmethod
    def of_targets(cls, y: Array) -> WrongTargets:
        """No wrong row, and the laws they would follow beside targets y[n]."""
        y = np.asarray(y, float)
        # The marginal: Gaussians at its quantiles, wide enough to be smooth.
        centres = np.quantile(y, (np.arange(50) + 0.5) / 50)
        spread = float(np.subtract(*np.quantile(y, [0.75, 0.25]))) / 1.349
        width = max(0.3 * spread, 1e-3 * float(np.ptp(y)), 1e-12)
        none = np.array([1.0, 0.0, 0.0, 0.0])
        return cls(1.0, none, float(y.min()), float(y.max()), centres, width)

    def calibrated(self, predictive: GaussianPredictive) -> GaussianPredictive:
        """The predictive with its members' spread scaled."""
        return self._scaled(predictive, self.scale)

    @staticmethod
    def _scaled(predictive: GaussianPredictive, scale: float) -> GaussianPredictive:
        return GaussianPredictive(predictive.means, scale * predictive.stds)

    def _log_noise(self, y: FloatArray) -> FloatArray:
        """Log density of the three laws of wrong targets, [3, n]."""
        span = max(self.high - self.low, 1e-12)
        inside = (y >= self.low) & (y <= self.high)
        uniform = np.where(inside, -np.log(span), -np.inf)
        z = (y[:, None] - self.centres) / self.width
        marginal = logsumexp(-0.5 * z * z, axis=1) - np.log(
            len(self.centres) * self.width * np.sqrt(2 * np.pi)
        )
        middle = float(np.median(self.centres))
        return np.stack([uniform, marginal, cauchy.logpdf(y, middle, 3 * span)])

    def _logs(self, predictive: GaussianPredictive, y: Array) -> FloatArray:
        y = np.asarray(y, float)
        good = self.calibrated(predictive).log_prob(y)
        return np.concatenate([good[None], self._log_noise(y)])

    def score(self, predictive: GaussianPredictive, y: Array) -> FloatArray:
        """Log density of each target under the whole law, [n]."""
        return np.asarray(logsumexp(self._logs(predictive, y), axis=0, b=self.shares[:, None]))

    def outlier_probability(self, predictive: GaussianPredictive, y: Array) -> FloatArray:
        """Probability that each target is wrong, [n]."""
        logs = self._logs(predictive, y)
        wrong = logsumexp(logs[1:], axis=0, b=self.shares[1:, None])
        with np.errstate(divide="ignore"):
            good = logs[0] + np.log(self.shares[0])
        return np.asarray(np.exp(wrong - np.logaddexp(good, wrong)))

    def contamination(
        self, predictive: GaussianPredictive, y: Array, weight: Array, level: float = 0.95
    ) -> Contamination:
        """ε with a profile-likelihood interval, the wrong rows' law held fixed."""
        logs = self._logs(predictive, y)
        wrong = self.shares[1:]
        law = wrong / wrong.sum() if wrong.sum() > 0 else np.full(3, 1 / 3)
        both = np.stack([logs[0], logsumexp(logs[1:], axis=0, b=law[:, None])])
        return _profile(np.exp(both - both.max(axis=0)), self.epsilon, weight, level)


def _tempered(log_probs: FloatArray, temperature: float) -> FloatArray:
    return np.exp(log_softmax(log_probs / temperature, axis=1))


def _calibrate(score: Callable[[float], float], weight: Array) -> float:
    """The log of the factor with the best mean score; few rows do not move it far from 0."""
    n = len(weight)

    def loss(log_factor: float) -> float:
        return -score(log_factor) + 0.5 * (log_factor / _FACTOR_SPREAD) ** 2 / n

    found = minimize_scalar(loss, bounds=(-2, 2), method="bounded", options={"xatol": 0.01})
    return float(found.x)


def _shares(logs: FloatArray, weight: Array) -> FloatArray:
    """Weights [k] of a mixture of known densities exp(logs[k, n]), by EM: a concave problem."""
    top = logs.max(axis=0)
    densities = np.exp(logs - top)
    shares = np.full(len(logs), 0.1 / max(len(logs) - 1, 1))
    shares[0] = 0.9
    mean_weight = weight / weight.sum()
    for _ in range(_ROUNDS):
        new = shares * ((densities / (shares @ densities + _TINY)) @ mean_weight)
        done = np.abs(new - shares).max() < 1e-6
        shares = new / new.sum()
        if done:
            break
    return shares


def _profile(densities: FloatArray, best: float, weight: Array, level: float) -> Contamination:
    """Where the log likelihood of ε in (1-ε)·good + ε·wrong is within a chi-square of its best."""

    def loss(epsilon: float) -> float:
        mixed = np.array([1 - epsilon, epsilon]) @ densities
        return float(-(weight * np.log(mixed + _TINY)).sum())

    lowest, allowed = loss(best), 0.5 * float(chi2.ppf(level, 1))

    def crossing(end: float) -> float:
        excess: Callable[[float], float] = lambda e: loss(e) - lowest - allowed  # noqa: E731
        if excess(end) <= 0:
            return end
        return float(brentq(excess, min(best, end), max(best, end)))

    return Contamination(best, crossing(0.0), crossing(1.0))
