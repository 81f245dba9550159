"""From numbers of several people to a consensus, as `mtbayes.fitting.crowd` does for labels."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtr
from threadpoolctl import threadpool_limits

from mtbayes._values import must, must_be_array, storable
from mtbayes.fitting.crowd import (
    LOOKS,
    TREES,
    Question,
    Target,
    judged,
    must_be_codes,
    share_of,
)
from mtbayes.fitting.fitted import Fitted
from mtbayes.laws import Contamination
from mtbayes.laws.raters import Level, Raters, Ratings, usual, usual_spread
from mtbayes.types import Array, FloatArray

_LEAF = 2
_AS_GAUSSIAN = 1.15  # a Gaussian's standard deviation by the scale of Student's t beside it


class Rater(NamedTuple):
    """How a person rates."""

    name: Any
    labels: int
    """How many ratings the person gave."""
    quality: float
    """Share of the variance of a rating that is the truth's; low, high: its 95 % interval."""
    low: float
    high: float
    bias: float
    """By how much a rating of an average row is too high."""
    scale: float
    """By how much a rating grows where the truth grows by 1."""
    spread: float
    """Standard deviation of the noise; spread_low, spread_high: its 95 % interval."""
    spread_low: float
    spread_high: float


@storable
@dataclass(frozen=True, eq=False)
class NumberCrowd:
    """Ratings of several people, what is true by them and by features, and how people rate.

    prior: mean and variance of each row by features alone, [n, 2]; level: by ratings too, [n, 2]
    """

    ratings: Ratings
    names: Array
    law: Raters
    prior: FloatArray
    level: FloatArray

    @classmethod
    def first(cls, x: Array, given: Any, seed: int) -> NumberCrowd:
        """By ratings and trees; given: what people said, `row`, `who`, `value`, `rows`, `names`."""
        value = np.asarray(given.value, float)
        ratings = Ratings(given.row, given.who, value, given.rows, len(given.names))
        law, truth = Raters.alone(ratings)
        prior = truth
        if ratings.people == 1:
            exact = np.stack([_sums(ratings) / _counts(ratings), np.zeros(ratings.rows)], axis=1)
            return cls(ratings, given.names, law, exact, exact)
        for look in range(LOOKS):
            prior = _by_trees(x, truth, seed + look)
            law = Raters.fit(prior, ratings)
            truth = law.truth(prior, ratings)
        return cls(ratings, given.names, law, np.stack(prior, axis=1), np.stack(truth, axis=1))

    @property
    def target(self) -> Target:
        """The mean of each row; a row of which much is open counts less."""
        if self.ratings.people == 1:
            return Target(self.consensus, None, None)
        noise = float(np.median(self.prior[:, 1]))
        return Target(self.consensus, noise / (noise + self.level[:, 1]), None)

    @property
    def consensus(self) -> FloatArray:
        """The most probable number of each row, [n]."""
        return self.level[:, 0]

    @property
    def probability(self) -> FloatArray:
        """That the consensus is nearer to the truth than one rating usually is, [n]."""
        usual = float(np.median(self.law.spread)) * _AS_GAUSSIAN
        spread = np.sqrt(np.maximum(self.level[:, 1], 1e-300))
        return np.asarray((1 - self.wrong) * (1 - 2 * ndtr(-usual / spread)))

    @cached_property
    def wrong(self) -> FloatArray:
        """Probability that nothing that was said of a row is about it, [n]; of one person, none."""
        if self.ratings.people == 1:
            return np.zeros(self.ratings.rows)
        return self.law.astray(Level(*self.prior.T), Level(*self.level.T), self.ratings)

    @property
    def contamination(self) -> Contamination:
        """The share of rows whose consensus is wrong, with its 95 % interval."""
        return share_of(self.wrong)

    def beside(self, fitted: Fitted) -> tuple[NumberCrowd, Fitted]:
        """With what a fit to the target says of rows unseen; and the fit."""
        if self.ratings.people == 1:
            return self, fitted
        unseen: Any = fitted.training
        said = np.asarray(unseen.prediction, float)
        floor = (1e-6 * usual_spread(self.ratings.bounded)) ** 2
        # The fit knows how far a consensus may lie, not how far the truth lies from that.
        variance = said[:, 1] ** 2 + np.median(self.level[:, 1])
        prior = Level(said[:, 0], np.maximum(variance, floor))
        law = Raters.fit(prior, self.ratings)
        truth = law.truth(prior, self.ratings)
        own = replace(self, law=law, prior=np.stack(prior, axis=1), level=np.stack(truth, axis=1))
        share = own.contamination
        return own, replace(
            fitted,
            training=judged(unseen, own.wrong, share),
            contamination=share,
            law=fitted.law.at(share.value),
        )

    @property
    def people(self) -> list[Rater]:
        """How each person rates."""
        law, near = self.law, usual(self.consensus)  # of one person it has all wild ratings
        centre, truths = float(near.mean()), float(np.var(near) + self.level[:, 1].mean())
        spread, ends = law.spread * _AS_GAUSSIAN, [e * _AS_GAUSSIAN for e in law.interval()]
        told = law.scale**2 * truths
        high, low = (told / (told + end**2) for end in ends)
        counts = np.bincount(self.ratings.who, minlength=self.ratings.people)
        columns = (
            told / (told + spread**2),
            low,
            high,
            law.bias + (law.scale - 1) * centre,
            law.scale,
            spread,
            *ends,
        )
        return [
            Rater(self.names[j], int(counts[j]), *(float(v[j]) for v in columns))
            for j in range(self.ratings.people)
        ]

    def spoken(self, row: int) -> list[tuple[Any, Any]]:
        """Who gave which number to a row."""
        own = np.flatnonzero(self.ratings.row == row)
        names = self.names[self.ratings.who[own]].tolist()
        return list(zip(names, self.ratings.value[own].tolist(), strict=True))

    def questions(self, budget: int, prior: FloatArray | None = None) -> list[Question]:
        """Whom to ask about which rows, at most once each, the most telling first."""
        variance = self.level[:, 1] if prior is None else self.law.factor * prior[:, 1]
        sharpness = (self.law.scale / (self.law.spread * _AS_GAUSSIAN)) ** 2
        telling = 0.5 * np.log1p(variance[:, None] * sharpness[None, :])
        if prior is None:
            telling[self.ratings.row, self.ratings.who] = -1.0
        whom = telling.argmax(axis=1)
        best = telling[np.arange(len(whom)), whom]
        order = np.argsort(-best, kind="stable")[:budget]
        return [
            Question(int(i), self.names[whom[i]], float(best[i])) for i in order if best[i] >= 0
        ]

    def check(self, rows: int | None) -> None:
        """Whether a file holds what such a crowd is made of."""
        what, own = "ratings of several people", self.ratings
        people, n = len(self.names), len(self.level)
        must((own.rows, own.people) == (n, people) and rows in (None, n), what)
        for codes, most in ((own.row, n), (own.who, people)):
            must_be_codes(codes, len(own.value), most, what)
        for values in (self.prior, self.level):
            must_be_array(values, (n, 2), what)
        self.law.check(people)


def _by_trees(x: Array, truth: Level, seed: int) -> Level:
    """Mean and variance of each row by trees that have not seen it."""
    from sklearn.ensemble import ExtraTreesRegressor

    noise = float(np.var(truth.mean)) + 1e-300
    weight = noise / (noise + truth.variance)
    trees = ExtraTreesRegressor(
        TREES, min_samples_leaf=_LEAF, bootstrap=True, oob_score=True, random_state=seed
    )
    with threadpool_limits(1):
        trees.fit(np.asarray(x).reshape(len(x), -1), truth.mean, sample_weight=weight)
    mean = trees.oob_prediction_
    middle = 1.4826 * float(np.median(np.abs(truth.mean - mean)))
    # The mean of a truth lies nearer to the trees than the truth: what is open of it is added. Left
    # out, trees grow surer of themselves with each look, and few ratings a row then count nothing.
    variance = middle**2 + float(np.median(truth.variance))
    return Level(mean, np.full(len(mean), max(variance, 1e-6 * noise)))


def _sums(ratings: Ratings) -> FloatArray:
    return np.asarray(np.bincount(ratings.row, ratings.value, minlength=ratings.rows), float)


def _counts(ratings: Ratings) -> FloatArray:
    return np.bincount(ratings.row, minlength=ratings.rows).astype(float)
