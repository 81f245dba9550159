"""What dirty rows look like beside a predictive: how many there are, and which they are.

A row is good with probability 1-ε and then follows the predictive, else it is wrong and follows a
noise law. All laws here are fitted by maximum likelihood on rows that the predictive has not been
trained on, and all calibrate the predictive on the way: a fit at t < 1 is too sure of itself (in
the limit it is the escort of order 1/t of what it has seen), and wrong rows would hide by how much.

- `WrongLabels`: a wrong label is any other class, each as likely, or drawn from p(given | true)
  where rows clearly say so. The predictive is sharpened or flattened by a temperature.
- `WrongTargets`: a wrong target comes from a mixture of three laws that know nothing of x: uniform
  over the range of the targets, their marginal, a wide Cauchy. The spread of the members is scaled.
- `WrongPoints`: a wrong row of a density is uniform over the box of the rows, or comes from wide
  Cauchys, one a column, as often. The spread of the members is scaled.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import brentq, minimize, minimize_scalar
from scipy.sparse import csr_array
from scipy.special import entr, log_softmax, logsumexp
from scipy.stats import chi2

from mtbayes.mixtures import ClassPredictive, GaussianPredictive
from mtbayes.types import Array, FloatArray

_TINY = 1e-300
# Wrong rows seen before p(given | true) of a class leaves the uniform half of the way.
_PSEUDO_WRONG = 2.0
_MOST_CLASSES = 100  # for which a matrix of confusions is learned
_CONFUSION_ROUNDS = 50
_TEMPERATURES = tuple(np.exp(np.linspace(-1.5, 0.5, 7)))
_JUDGES = 4000  # rows that say whether wrong labels prefer some classes
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
        """By maximum likelihood from the predictive of labels y[n] with weights [n].

        p(given | true) is learned only where that explains rows clearly better which have not been
        learned from: beside one learned from few rows, ε comes out too large.
        """
        classes = np.shape(predictive.log_probs)[1]
        if classes == 2 or classes > _MOST_CLASSES or not cls._confused(predictive, y, weight):
            return cls.beside(predictive, y, weight, None)
        return cls._learned(predictive, y, weight)

    @classmethod
    def beside(
        cls, predictive: ClassPredictive, y: Array, weight: Array, confusion: FloatArray | None
    ) -> WrongLabels:
        """ε and the temperature beside a confusion."""
        logs_at = _labels_by_temperature(predictive, y, confusion)
        best = _calibrate(logs_at, weight)
        epsilon = float(_explained(logs_at(best), weight)[0][1])
        return cls(epsilon, float(np.exp(best)), confusion)

    @classmethod
    def _learned(cls, predictive: ClassPredictive, y: Array, weight: Array) -> WrongLabels:
        """With the confusion of the temperature that explains rows best."""
        found = [_confusion(predictive, y, weight, v) for v in _TEMPERATURES]
        _, confusion = max(found, key=lambda pair: pair[0])
        return cls.beside(predictive, y, weight, confusion)

    @classmethod
    def _confused(cls, predictive: ClassPredictive, y: Array, weight: Array) -> bool:
        """Whether a confusion from one half of the rows explains the other half better."""
        some = np.arange(0, len(y), -(-len(y) // _JUDGES))
        halves = some[::2], some[1::2]
        gains = []
        for one, other in (halves, halves[::-1]):
            seen, unseen = (ClassPredictive(*(v[h] for v in predictive)) for h in (one, other))
            learned, plain = (
                cls._learned(seen, y[one], weight[one]),
                cls.beside(seen, y[one], weight[one], None),
            )
            gains.append(learned.score(unseen, y[other]) - plain.score(unseen, y[other]))
        gain, share = np.concatenate(gains), weight[np.concatenate(halves[::-1])]
        mean = np.average(gain, weights=share)
        error = np.sqrt(np.average((gain - mean) ** 2, weights=share) / len(gain))
        return bool(mean > 2 * error)

    def at(self, epsilon: float) -> WrongLabels:
        """The same law with another share of wrong labels."""
        return replace(self, epsilon=epsilon)

    def calibrated(self, predictive: ClassPredictive) -> ClassPredictive:
        """The predictive at the temperature; its doubt keeps its split in two kinds."""
        log_probs = log_softmax(np.asarray(predictive.log_probs, float) / self.temperature, axis=1)
        before = np.maximum(predictive.entropy, _TINY)
        after = entr(np.exp(log_probs)).sum(axis=1)
        return ClassPredictive(log_probs, np.minimum(predictive.aleatoric / before, 1) * after)

    def good(self, predictive: ClassPredictive, y: Array) -> FloatArray:
        """Log probability of each given label if it is good, [n]."""
        return np.asarray(self.calibrated(predictive).log_prob(y))

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
        """ε of these rows with a profile-likelihood interval, the confusion held fixed."""
        return _profile(_labels_by_temperature(predictive, y, self.confusion), weight, level)

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
        law = cls.of_targets(y, weight)
        logs_at = law._logs_at(predictive, y)
        best = _calibrate(logs_at, weight)
        return replace(law, scale=float(np.exp(best)), shares=_explained(logs_at(best), weight)[0])

    @classmethod
    def of_targets(cls, y: Array, weight: Array | None = None) -> WrongTargets:
        """No wrong row, and the laws they would follow beside targets y[n] with weights [n]."""
        y = np.asarray(y, float)

        def at(levels: Any) -> FloatArray:
            return np.asarray(np.quantile(y, levels, weights=weight, method="inverted_cdf"))

        # The marginal: Gaussians at its quantiles, wide enough to be smooth.
        spread = float(np.subtract(*at([0.75, 0.25]))) / 1.349
        if spread == 0:  # half of the targets are one number
            mean = np.average(y, weights=weight)
            spread = float(np.sqrt(np.average(np.square(y - mean), weights=weight))) or 1.0
        none = np.array([1.0, 0.0, 0.0, 0.0])
        centres = at((np.arange(50) + 0.5) / 50)
        return cls(1.0, none, float(y.min()), float(y.max()), centres, 0.3 * spread)

    def at(self, epsilon: float) -> WrongTargets:
        """The same law with another share of wrong targets."""
        return replace(self, shares=np.array([1 - epsilon, *(epsilon * self._kinds)]))

    @property
    def _kinds(self) -> FloatArray:
        """Shares of the three laws among wrong targets; equal ones where there are none."""
        wrong = self.shares[1:]
        return wrong / wrong.sum() if wrong.sum() > 0 else np.full(3, 1 / 3)

    def calibrated(self, predictive: GaussianPredictive) -> GaussianPredictive:
        """The predictive with its members' spread scaled."""
        return GaussianPredictive(predictive.means, self.scale * predictive.stds)

    def _log_noise(self, y: FloatArray) -> FloatArray:
        """Log density of the three laws of wrong targets, [3, n]."""
        span = max(self.high - self.low, self.width)
        inside = (y >= self.low) & (y <= self.high)
        uniform = np.where(inside, -np.log(span), -np.inf)
        z = (y[:, None] - self.centres) / self.width
        with np.errstate(over="ignore"):
            marginal = logsumexp(-0.5 * z * z, axis=1) - np.log(
                len(self.centres) * self.width * np.sqrt(2 * np.pi)
            )
        far = (y - float(np.median(self.centres))) / (3 * span)
        cauchy = -2 * np.log(np.hypot(1, far)) - np.log(np.pi * 3 * span)
        return np.stack([uniform, marginal, cauchy])

    def _logs(self, predictive: GaussianPredictive, y: Array) -> FloatArray:
        return self._logs_at(predictive, y)(float(np.log(self.scale)))

    def _logs_at(self, predictive: GaussianPredictive, y: Array) -> Callable[[float], FloatArray]:
        """Log density of targets that are good, and of the three kinds of wrong, [4, n]."""
        y = np.asarray(y, float)
        noise = self._log_noise(y)

        def logs_at(log_scale: float) -> FloatArray:
            law = replace(self, scale=float(np.exp(log_scale)))
            with np.errstate(over="ignore"):  # the square of a wild target
                return np.concatenate([law.calibrated(predictive).log_prob(y)[None], noise])

        return logs_at

    def good(self, predictive: GaussianPredictive, y: Array) -> FloatArray:
        """Log density of each target if it is good, [n]."""
        return self._logs(predictive, y)[0]

    def score(self, predictive: GaussianPredictive, y: Array) -> FloatArray:
        """Log density of each target under the whole law, [n]."""
        return np.asarray(logsumexp(self._logs(predictive, y), axis=0, b=self.shares[:, None]))

    def outlier_probability(self, predictive: GaussianPredictive, y: Array) -> FloatArray:
        """Probability that each target is wrong, [n]."""
        return _wrong_probability(self._logs(predictive, y), self.shares)

    def contamination(
        self, predictive: GaussianPredictive, y: Array, weight: Array, level: float = 0.95
    ) -> Contamination:
        """ε of these rows with a profile-likelihood interval, the wrong rows' law held fixed."""
        law, logs_at = self._kinds, self._logs_at(predictive, y)

        def both_at(log_scale: float) -> FloatArray:
            logs = logs_at(log_scale)
            return np.stack([logs[0], logsumexp(logs[1:], axis=0, b=law[:, None])])

        return _profile(both_at, weight, level)


def _tempered(log_probs: FloatArray, temperature: float) -> FloatArray:
    return np.exp(log_softmax(log_probs / temperature, axis=1))


def _labels_by_temperature(
    predictive: ClassPredictive, y: Array, confusion: FloatArray | None
) -> Callable[[float], FloatArray]:
    """Log probabilities of good labels and of wrong ones, [2, n], by log temperature."""
    log_probs = np.asarray(predictive.log_probs, float)

    def logs_at(log_temperature: float) -> FloatArray:
        probs = _tempered(log_probs, float(np.exp(log_temperature)))
        good = probs[np.arange(len(y)), y]
        if confusion is None:
            wrong = (1 - good) / (log_probs.shape[1] - 1)
        else:
            wrong = np.sum(probs * confusion[:, y].T, axis=1)
        return np.log(np.stack([good, wrong]) + _TINY)

    return logs_at


def _confusion(
    predictive: ClassPredictive, y: Array, weight: Array, temperature: float
) -> tuple[float, FloatArray]:
    """p(given | true) of wrong labels at a temperature by EM, and how well it explains rows.

    Pseudo-counts hold it near uniform; they are a Dirichlet prior, which the evidence includes.
    """
    probs = _tempered(np.asarray(predictive.log_probs, float), temperature)
    classes = probs.shape[1]
    off = 1 - np.eye(classes)
    uniform = off / (classes - 1)
    given = csr_array((weight, (y, np.arange(len(y)))), shape=(classes, len(y)))
    law = WrongLabels(0.1, 1.0, uniform)
    for _ in range(_CONFUSION_ROUNDS):
        wrong, good = law._wrong(probs, y), law._good(probs, y)
        share = wrong / (good + wrong.sum(axis=1) + _TINY)[:, None]
        counts = (given @ share).T
        new = counts * off + _PSEUDO_WRONG * uniform
        new /= new.sum(axis=1, keepdims=True)
        moved = np.abs(new - law.confusion).max()
        law = WrongLabels(float(counts.sum() / weight.sum()), 1.0, new)
        if moved < 1e-3:
            break
    explained = np.log(law._good(probs, y) + law._wrong(probs, y).sum(axis=1) + _TINY) @ weight
    log_ratio = np.log(np.where(off > 0, np.asarray(law.confusion), 1.0) * (classes - 1) ** off)
    prior = _PSEUDO_WRONG * float(np.sum(uniform * log_ratio))
    spread = -0.5 * (np.log(temperature) / _FACTOR_SPREAD) ** 2
    return float(explained + prior + spread), np.asarray(law.confusion)


def _calibrate(logs_at: Callable[[float], FloatArray], weight: Array) -> float:
    """The log of the factor that explains rows best; few rows do not move it far from 0."""

    def loss(log_factor: float) -> float:
        return -_evidence(logs_at, weight, log_factor)

    found = minimize_scalar(loss, bounds=(-2, 2), method="bounded", options={"xatol": 0.01})
    return float(found.x)


def _evidence(logs_at: Callable[[float], FloatArray], weight: Array, log_factor: float) -> float:
    """Log likelihood of all rows at the best shares, with the factor's prior."""
    prior = -0.5 * (log_factor / _FACTOR_SPREAD) ** 2
    return float(_explained(logs_at(log_factor), weight)[1] * weight.sum() + prior)


def _explained(logs: FloatArray, weight: Array) -> tuple[FloatArray, float]:
    """The best shares [k] of densities exp(logs[k, n]), and the mean log density of a row."""
    shares = mixture_shares(logs, weight)
    total = logsumexp(logs, axis=0, b=shares[:, None])
    return shares, float(np.average(total, weights=weight))


def mixture_shares(logs: FloatArray, weight: Array) -> FloatArray:
    """Weights [k] of the mixture of known densities exp(logs[k, n]) that explains rows best.

    The problem is concave. Its dual variable is known, so that the weights need only be kept above
    0: they sum to 1 at the best by themselves.
    """
    densities = np.exp(logs - logs.max(axis=0))
    mean_weight = weight / weight.sum()

    def loss(shares: FloatArray) -> tuple[float, FloatArray]:
        mixed = shares @ densities + _TINY
        return float(shares.sum() - np.log(mixed) @ mean_weight), 1 - densities @ (
            mean_weight / mixed
        )

    start = np.full(len(logs), 1 / len(logs))
    found = minimize(
        loss, start, jac=True, method="L-BFGS-B", bounds=[(0, 1)] * len(logs), tol=1e-10
    ).x
    return np.asarray(found / found.sum())


def _profile(logs_at: Callable[[float], FloatArray], weight: Array, level: float) -> Contamination:
    """Where the log likelihood of ε, at its best factor, is within a chi-square of its best.

    logs_at: log densities [2, n] of good and wrong rows by the log of the calibrating factor
    """
    factor = _calibrate(logs_at, weight)
    best = float(_explained(logs_at(factor), weight)[0][1])
    # Factors to look at: some standard errors of it on both sides.
    step = 0.05
    bend = np.diff([_evidence(logs_at, weight, factor + d) for d in (-step, 0, step)], 2)[0]
    error = min(1 / np.sqrt(max(-bend / step**2, _TINY)), _FACTOR_SPREAD)
    looks = factor + error * np.linspace(-3, 3, 13)
    logs = np.stack([logs_at(v) for v in looks])
    densities = np.exp(logs - logs.max(axis=1, keepdims=True))
    top = logs.max(axis=1) @ weight - 0.5 * (looks / _FACTOR_SPREAD) ** 2

    def loss(epsilon: float) -> float:
        mixed = (1 - epsilon) * densities[:, 0] + epsilon * densities[:, 1]
        return float(-(np.log(mixed + _TINY) @ weight + top).max())

    lowest, allowed = loss(best), 0.5 * float(chi2.ppf(level, 1))

    def crossing(end: float) -> float:
        excess: Callable[[float], float] = lambda e: loss(e) - lowest - allowed  # noqa: E731
        if excess(end) <= 0:
            return end
        return float(brentq(excess, min(best, end), max(best, end)))

    return Contamination(best, crossing(0.0), crossing(1.0))


def _wrong_probability(logs: FloatArray, shares: FloatArray) -> FloatArray:
    """Probability [n] that a row is wrong, from log densities [k, n] with the good ones first."""
    wrong = logsumexp(logs[1:], axis=0, b=shares[1:, None])
    with np.errstate(divide="ignore"):
        good = logs[0] + np.log(shares[0])
    impossible = np.isneginf(wrong)
    wrong = np.where(impossible, 0.0, wrong)
    return np.where(impossible, 0.0, np.exp(wrong - np.logaddexp(good, wrong)))


class PointPredictive(NamedTuple):
    """Rows of a density beside Gaussian members whose spread may yet be scaled."""

    squares: FloatArray
    """Squared distance of each row from each member in the member's stds, [S, n]."""
    log_peaks: FloatArray
    """Log density at the middle of each member, [S, n], or [S, 1] where rows share members."""

    def log_prob(self, scale: float, dimensions: int) -> FloatArray:
        """Log density [n] of the equal mixture of members, their stds times `scale`."""
        logs = self.log_peaks - 0.5 * self.squares / scale**2
        shift = dimensions * np.log(scale) + np.log(len(logs))
        return np.asarray(logsumexp(logs, axis=0) - shift)


@dataclass(frozen=True)
class WrongPoints:
    """Good rows follow the members with their spread scaled, wrong ones a law that is broad.

    low, high: the box of the rows, [d] each; centre: their median, [d]
    scale: factor on the members' standard deviations
    epsilon: share of wrong rows
    """

    low: FloatArray
    high: FloatArray
    centre: FloatArray
    scale: float = 1.0
    epsilon: float = 0.0

    @classmethod
    def of_points(cls, x: Array) -> WrongPoints:
        """No wrong row, and the law they would follow beside rows x[n, d]; no side is below 1."""
        x = np.asarray(x, float)
        low, high = x.min(axis=0), x.max(axis=0)
        short = np.maximum(1 - (high - low), 0) / 2
        return cls(low - short, high + short, np.median(x, axis=0))

    def fit(self, predictive: PointPredictive, x: Array, weight: Array) -> WrongPoints:
        """Scale and ε by maximum likelihood from rows x[n, d] with weights [n]."""
        logs_at = self._logs_at(predictive, x)
        best = _calibrate(logs_at, weight)
        epsilon = float(_explained(logs_at(best), weight)[0][1])
        return replace(self, scale=float(np.exp(best)), epsilon=epsilon)

    def _logs_at(self, predictive: PointPredictive, x: Array) -> Callable[[float], FloatArray]:
        """Log densities of good and wrong rows, [2, n], by the log of the scale."""
        x = np.asarray(x, float)
        span = self.high - self.low
        inside = np.all((x >= self.low) & (x <= self.high), axis=1)
        uniform = np.where(inside, -np.log(span).sum(), -np.inf)
        far = -2 * np.log(np.hypot(1, (x - self.centre) / span)) - np.log(np.pi * span)
        wrong = np.logaddexp(uniform, far.sum(axis=1)) - np.log(2)
        return lambda log_scale: np.stack(
            [predictive.log_prob(float(np.exp(log_scale)), len(span)), wrong]
        )

    def _logs(self, predictive: PointPredictive, x: Array) -> FloatArray:
        return self._logs_at(predictive, x)(float(np.log(self.scale)))

    @property
    def _shares(self) -> FloatArray:
        return np.array([1 - self.epsilon, self.epsilon])

    def good(self, predictive: PointPredictive, x: Array) -> FloatArray:
        """Log density of each row if it is good, [n]."""
        return self._logs(predictive, x)[0]

    def score(self, predictive: PointPredictive, x: Array) -> FloatArray:
        """Log density of each row under the whole law, [n]."""
        shares = self._shares[:, None]
        return np.asarray(logsumexp(self._logs(predictive, x), axis=0, b=shares))

    def outlier_probability(self, predictive: PointPredictive, x: Array) -> FloatArray:
        """Probability that each row is wrong, [n]."""
        return _wrong_probability(self._logs(predictive, x), self._shares)

    def contamination(
        self, predictive: PointPredictive, x: Array, weight: Array, level: float = 0.95
    ) -> Contamination:
        """ε of these rows with a profile-likelihood interval."""
        return _profile(self._logs_at(predictive, x), weight, level)
