"""How good people are who gave labels, for people."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.special import betaincinv

from mtbayes.laws.annotators import Annotators, Truth, Votes
from mtbayes.laws.quality import SHARES, Quality
from mtbayes.types import Array, FloatArray

_TAILS = (0.025, 0.975)
_TOGETHER = 3.0  # by which variances are larger as rows that look alike are judged alike
_MOST = 3  # confusions that are told of each
_SEEN = 0.5  # wrong labels that must be expected before one is told

GOOD, CHANCE, AGAINST = "better than chance", "no better than chance", "against"


class Confusion(NamedTuple):
    """A class that a person gives for another."""

    true: Any
    given: Any
    share: float
    """Of the rows of the true class."""


class Annotator(NamedTuple):
    """How good a person is who gave labels."""

    name: Any
    labels: int
    """How many labels the person gave."""
    quality: float
    """Probability that the next label is right, of any row; low, high: its 95 % interval."""
    low: float
    high: float
    right: float
    """Share of the labels given that are right; right_low, right_high: its 95 % interval."""
    right_low: float
    right_high: float
    verdict: str
    """"better than chance", "no better than chance" or "against": worse than a blind guess."""
    confuses: tuple[Confusion, ...]
    """What the person gives for what: first what makes most wrong labels, not the largest share."""


def annotators(
    law: Annotators,
    votes: Votes,
    log_probs: FloatArray,
    truth: Truth,
    names: Array,
    classes: Array,
) -> list[Annotator]:
    """How good each person is, in the order of their names."""
    people = votes.people
    labels = np.bincount(votes.who, minlength=people)
    good = truth.probs[votes.row, votes.label]
    hits = np.bincount(votes.who, good, minlength=people)
    right = hits / labels
    unsure = np.bincount(votes.who, good * (1 - good), minlength=people) / labels**2
    if people > 1:
        found = law.quality(log_probs, votes)
    else:  # judged by the law of wrong labels
        sure = hits[:, None] * np.log(SHARES) + (labels - hits)[:, None] * np.log1p(-SHARES)
        found = Quality.of(sure, 1 / votes.classes)
    quality, variance = found.mean, found.variance
    own = np.minimum(labels * variance / (quality * (1 - quality)), 1)  # what own labels count
    low, high = _interval(quality, variance + (_TOGETHER - 1) * unsure * own**2)
    right_low, right_high = _interval(right, _TOGETHER * unsure + (0.25 / labels) ** 2)
    chance = _blind(votes, truth)
    confusions = _confusions(law, votes, truth, classes)
    return [
        Annotator(
            names[j],
            int(labels[j]),
            float(quality[j]),
            float(low[j]),
            float(high[j]),
            float(right[j]),
            float(right_low[j]),
            float(right_high[j]),
            GOOD if low[j] > chance[j] else AGAINST if high[j] < chance[j] else CHANCE,
            confusions[j],
        )
        for j in range(people)
    ]


def _interval(mean: FloatArray, variance: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Ends of the interval of a share of a mean and a variance, by a Beta variable of these."""
    mean = np.clip(mean, 1e-6, 1 - 1e-6)
    variance = np.clip(variance, 1e-12, 0.999 * mean * (1 - mean))
    seen = mean * (1 - mean) / variance - 1
    low, high = (betaincinv(mean * seen, (1 - mean) * seen, q) for q in _TAILS)
    return np.asarray(low), np.asarray(high)


def _blind(votes: Votes, truth: Truth) -> FloatArray:
    """How often each person would be right without looking, with the labels they give, [A]."""
    given = np.zeros((votes.people, votes.classes))
    np.add.at(given, (votes.who, votes.label), 1.0)
    given /= given.sum(axis=1, keepdims=True)
    return np.asarray(given @ truth.probs.mean(axis=0))


def _confusions(
    law: Annotators, votes: Votes, truth: Truth, classes: Array
) -> list[tuple[Confusion, ...]]:
    """What each person gives for what, by how many wrong labels that makes of those seen.

    Rows of the true class times the share that is told: plain counts are not held by what all
    people share, as the shares are, and would put the lesser of two shares of one class first.
    """
    shape = (votes.people, votes.classes, votes.classes)
    counts = (votes.by_answer @ truth.probs[votes.row]).reshape(shape).transpose(0, 2, 1)
    share, told = law.skill.mean, classes.tolist()
    found = []
    for own, mean in zip(counts, share, strict=True):
        seen = (own >= _SEEN) & (np.eye(votes.classes) == 0)
        wrong = np.where(seen, own.sum(axis=1, keepdims=True) * mean, 0.0)
        order = np.argsort(-wrong, axis=None, kind="stable")[:_MOST]
        pairs = [divmod(int(k), votes.classes) for k in order if seen.flat[k]]
        found.append(tuple(Confusion(told[t], told[g], float(mean[t, g])) for t, g in pairs))
    return found
