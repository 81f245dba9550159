"""Labels of which some are wrong."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from scipy.special import entr, log_softmax

from mtbayes.mixtures import ClassPredictive
from mtbayes.noise.shares import (
    FACTOR_SPREAD,
    TINY,
    Contamination,
    calibrate,
    explained,
    profile,
)
from mtbayes.types import Array, FloatArray

# Wrong rows seen before p(given | true) of a class leaves the uniform half of the way.
_PSEUDO_WRONG = 2.0
_MOST_CLASSES = 100  # for which a matrix of confusions is learned
_CONFUSION_ROUNDS = 50
_TEMPERATURES = tuple(np.exp(np.linspace(-1.5, 0.5, 7)))
_JUDGES = 4000  # rows that say whether wrong labels prefer some classes


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
        best = calibrate(logs_at, weight)
        epsilon = float(explained(logs_at(best), weight)[0][1])
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
        before = np.maximum(predictive.entropy, TINY)
        after = entr(np.exp(log_probs)).sum(axis=1)
        return ClassPredictive(log_probs, np.minimum(predictive.aleatoric / before, 1) * after)

    def good(self, predictive: ClassPredictive, y: Array) -> FloatArray:
        """Log probability of each given label if it is good, [n]."""
        return np.asarray(self.calibrated(predictive).log_prob(y))

    def score(self, predictive: ClassPredictive, y: Array) -> FloatArray:
        """Log probability of each given label under the whole law, [n]."""
        probs = self._probs(predictive)
        return np.log(self._good(probs, y) + self._wrong(probs, y).sum(axis=1) + TINY)

    def outlier_probability(self, predictive: ClassPredictive, y: Array) -> FloatArray:
        """Probability that each given label is wrong, [n]."""
        probs = self._probs(predictive)
        wrong = self._wrong(probs, y).sum(axis=1)
        return wrong / (self._good(probs, y) + wrong + TINY)

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
        return profile(_labels_by_temperature(predictive, y, self.confusion), weight, level)

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
        return np.log(np.stack([good, wrong]) + TINY)

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
        share = wrong / (good + wrong.sum(axis=1) + TINY)[:, None]
        counts = (given @ share).T
        new = counts * off + _PSEUDO_WRONG * uniform
        new /= new.sum(axis=1, keepdims=True)
        moved = np.abs(new - law.confusion).max()
        law = WrongLabels(float(counts.sum() / weight.sum()), 1.0, new)
        if moved < 1e-3:
            break
    evidence = np.log(law._good(probs, y) + law._wrong(probs, y).sum(axis=1) + TINY) @ weight
    log_ratio = np.log(np.where(off > 0, np.asarray(law.confusion), 1.0) * (classes - 1) ** off)
    prior = _PSEUDO_WRONG * float(np.sum(uniform * log_ratio))
    spread = -0.5 * (np.log(temperature) / FACTOR_SPREAD) ** 2
    return float(evidence + prior + spread), np.asarray(law.confusion)
