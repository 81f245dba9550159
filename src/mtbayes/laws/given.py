"""What a predictive says of given labels of which some are wrong."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.sparse import csr_array

from mtbayes.laws.mixtures import TINY
from mtbayes.maths.softmax import softmax
from mtbayes.predictives import ClassPredictive
from mtbayes.types import Array, FloatArray

MOST_CLASSES = 100
"""For which a matrix of confusions is learned."""
# Of the log temperature, before any row is seen. A learner is calibrated to the labels that it was
# given: beside a share of .4 of wrong ones, two classes of clean ones ask for a temperature of .1.
SPREAD = 1.0
# Wrong rows seen before p(given | true) of a class leaves the uniform half of the way.
_PSEUDO_WRONG = 2.0
_CONFUSION_ROUNDS = 50
# Of the mean share of a class, below which it is rare: 1 by this.
_RARE = 5.0


def untrusted(predictive: ClassPredictive, values: Array) -> Array:
    """Values [..., n], 0 for rows whose label is known to be right."""
    return values if predictive.trusted is None else np.where(predictive.trusted, 0, values)


def doubt_of(predictive: ClassPredictive) -> FloatArray:
    """Entropy of each row's label by that of a blind guess, [n]."""
    return predictive.entropy / np.log(np.shape(predictive.log_probs)[1])


def tempered(log_probs: FloatArray, temperature: float) -> FloatArray:
    """Probabilities of classes at a temperature, [n, C]."""
    return softmax(log_probs / temperature, axis=1)


def joint_of(
    probs: FloatArray, y: Array, share: float | FloatArray, confusion: FloatArray | None
) -> tuple[FloatArray, FloatArray]:
    """p(label good, given = y), [n], and p(true = c, label wrong, given = y), [n, C].

    share: of wrong labels, of all rows or of each, [n, 1]
    """
    own = np.arange(len(y)), y
    good = (1 - np.ravel(share)) * probs[own]
    if confusion is not None:
        return good, share * probs * confusion[:, y].T
    wrong = share * probs / (probs.shape[1] - 1)
    wrong[own] = 0.0
    return good, wrong


def labels_by_temperature(
    predictive: ClassPredictive, y: Array, confusion: FloatArray | None
) -> Callable[[float], FloatArray]:
    """Log probabilities of good labels and of wrong ones, [2, n], by log temperature."""
    log_probs = np.asarray(predictive.log_probs, float)
    given_at = given_by_temperature(log_probs, y)
    mistaken = None if confusion is None else confusion.T[y]

    def logs_at(log_temperature: float) -> FloatArray:
        temperature = float(np.exp(log_temperature))
        good = given_at(temperature)
        if mistaken is None:
            wrong = (1 - good) / (log_probs.shape[1] - 1)
        else:
            wrong = np.einsum("ik,ik->i", tempered(log_probs, temperature), mistaken)
        return np.log(np.stack([good, untrusted(predictive, wrong)]) + TINY)

    return logs_at


def beside_rare(y: Array, weight: Array, classes: int) -> FloatArray | None:
    """p(given | true) of wrong labels of which none is likelier, [C, C]; None if all are alike.

    There are no more wrong labels of a class than labels of it. Were they alike, a class of one
    row, a typing error, would say that next to none is wrong anywhere.

    >>> beside_rare(np.array([0, 1, 2, 0, 1, 2]), np.ones(6), 3) is None
    True
    >>> beside_rare(np.array([0, 1] * 50 + [2]), np.ones(101), 3).round(2)[0]
    array([0.  , 0.87, 0.13])
    """
    if not 2 < classes <= MOST_CLASSES:
        return None
    shares = np.bincount(y, weight, classes) / np.sum(weight)
    room = np.minimum(_RARE * classes * shares, 1.0)
    if room.min() == 1.0:
        return None
    found = (room + TINY) * (1 - np.eye(classes))
    return np.asarray(found / found.sum(axis=1, keepdims=True))


def given_by_temperature(log_probs: FloatArray, y: Array) -> Callable[[float], FloatArray]:
    """Probabilities of the given labels, [n], by temperature.

    A law looks at a hundred temperatures. With thousands of classes that is most of the time of a
    fit: one exponential of [n, C] each, in one place of memory, and no more; in single precision,
    which takes a fifth of the time, where classes are many.
    """
    kind = np.float32 if log_probs.shape[1] > MOST_CLASSES else np.float64
    below = (log_probs - log_probs.max(axis=1, keepdims=True)).astype(kind, copy=False)
    own, scratch = below[np.arange(len(y)), y], np.empty_like(below)

    def given_at(temperature: float) -> FloatArray:
        np.exp(np.divide(below, kind(temperature), out=scratch), out=scratch)
        return np.asarray(np.exp(own / kind(temperature)) / scratch.sum(axis=1), float)

    return given_at


def confusion_at(
    predictive: ClassPredictive, y: Array, weight: Array, temperature: float
) -> tuple[float, FloatArray]:
    """p(given | true) of wrong labels at a temperature by EM, and how well it explains rows.

    Pseudo-counts hold it near uniform; they are a Dirichlet prior, which the evidence includes.
    """
    probs = tempered(np.asarray(predictive.log_probs, float), temperature)
    classes = probs.shape[1]
    off = 1 - np.eye(classes)
    uniform = off / (classes - 1)
    given = csr_array((weight, (y, np.arange(len(y)))), shape=(classes, len(y)))
    epsilon, confusion = 0.1, uniform

    def joint(epsilon: float, confusion: FloatArray) -> tuple[FloatArray, FloatArray]:
        good, wrong = joint_of(probs, y, epsilon, confusion)
        return good, untrusted(predictive, wrong.T).T

    for _ in range(_CONFUSION_ROUNDS):
        good, wrong = joint(epsilon, confusion)
        counts = (given @ (wrong / (good + wrong.sum(axis=1) + TINY)[:, None])).T
        new = counts * off + _PSEUDO_WRONG * uniform
        new /= new.sum(axis=1, keepdims=True)
        moved = np.abs(new - confusion).max()
        epsilon, confusion = float(counts.sum() / weight.sum()), new
        if moved < 1e-3:
            break
    good, wrong = joint(epsilon, confusion)
    evidence = np.log(good + wrong.sum(axis=1) + TINY) @ weight
    log_ratio = np.log(np.where(off > 0, confusion, 1.0) * (classes - 1) ** off)
    prior = _PSEUDO_WRONG * float(np.sum(uniform * log_ratio))
    spread = -0.5 * (np.log(temperature) / SPREAD) ** 2
    return float(evidence + prior + spread), confusion
