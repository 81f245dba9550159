"""Numbers that several people gave: each person has a bias, a scale and a spread.

A rating is bias + scale · truth + noise, and the noise has the tails of Student's t, so that a slip
of the hand does not move what is known of a person or a row. What the features say of a row, by a
fit that has not seen it, is the prior of its truth. Bias, scale and spread are held near those of
all, as strongly as the ratings of all people ask for. A bias or a scale that all people share
cannot be told from the truth: biases are drawn around 0 and scales around 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import expit, gammaincinv, gammaln, logit, softmax

from mtbayes._values import must, must_be_array, storable
from mtbayes.types import Array, FloatArray

_ROUNDS = 200
_SETTLED = 1e-4  # a change of any row's truth, in units of the spread of all ratings
_TAILS = 4.0  # degrees of freedom of the noise
_HOLDS = (2.0, 5.0, 15.0, 50.0, 200.0)  # ratings that the spread of all may count as
_WIDTHS = np.geomspace(1e-3, 2, 16)  # how far apart people may lie, in spreads of all ratings
_WIDTHS_BEFORE = np.log(_WIDTHS) - np.log1p((_WIDTHS / 0.3) ** 2)  # as half a Cauchy variable
_LOOKS = 15  # at who lies far from the others
_HELD = 0.2  # how strongly the predictive's own variance is held, in rows by row
_OWN = 0.5  # of a rating, what it tells of a spread beside a truth that is not known
_LEAST = 1e-3  # of the spread of all ratings: nobody's noise is smaller
_WIDE = 3.0  # times nine tenths of ratings is how far from their middle one tells of their spread
_WILD = 1e150  # what a larger rating is taken for; the square of such is a number
_ASTRAY = 0.02  # of ratings, that are of something else, before any are seen
_STEPS = 30  # towards the share of ratings that are


@storable
class Ratings(NamedTuple):
    """K numbers: of which row, by whom, which; rows and people are counted from 0."""

    row: Array
    who: Array
    value: FloatArray
    rows: int
    people: int

    @property
    def bounded(self) -> FloatArray:
        """The numbers, such that their squares are numbers."""
        return np.clip(self.value, -_WILD, _WILD)


class Level(NamedTuple):
    """What is known of the true number of rows, [n] each."""

    mean: FloatArray
    variance: FloatArray


@storable
@dataclass(frozen=True)
class Raters:
    """How A people rate rows of which a predictive knows something.

    bias, scale, spread: of each person, [A]
    seen: degrees of freedom of the spread, [A]
    factor: by which the predictive's variance is multiplied
    """

    bias: FloatArray
    scale: FloatArray
    spread: FloatArray
    seen: FloatArray
    factor: float = 1.0

    @classmethod
    def fit(cls, prior: Level, ratings: Ratings) -> Raters:
        """By the likelihood of ratings, from means and variances by fits without the row."""
        unit, people = usual_spread(ratings.bounded), ratings.people
        law = cls(np.zeros(people), np.ones(people), np.full(people, unit), np.ones(people))
        before = prior.mean
        for _ in range(_ROUNDS):
            truth = law.truth(prior, ratings)
            law = _improved(law, prior, truth, ratings, unit)
            if np.abs(truth.mean - before).max() < _SETTLED * unit:
                break
            before = truth.mean
        return law

    @classmethod
    def alone(cls, ratings: Ratings) -> tuple[Raters, Level]:
        """Without features: all rows have the median and the variance of all ratings."""
        mean, variance = np.median(ratings.value), usual_spread(ratings.bounded) ** 2
        prior = Level(np.full(ratings.rows, mean), np.full(ratings.rows, variance))
        law = cls.fit(prior, ratings)
        return law, law.truth(prior, ratings)

    def truth(self, prior: Level, ratings: Ratings) -> Level:
        """The true number of rows by their predictive and their ratings, in two looks.

        The second look knows which ratings lie far from the rest.
        """
        variance = self.factor * prior.variance
        found = Level(prior.mean, variance)
        for _ in range(3):
            weight = self.believed(found, ratings) / self.spread[ratings.who] ** 2
            scale = self.scale[ratings.who]
            pull = weight * scale * (ratings.bounded - self.bias[ratings.who])
            precision = 1 / variance + _over(ratings.row, weight * scale**2, ratings.rows)
            total = prior.mean / variance + _over(ratings.row, pull, ratings.rows)
            found = Level(total / precision, 1 / precision)
        return found

    def believed(self, truth: Level, ratings: Ratings) -> FloatArray:
        """How much each rating counts, [K]: less, the further it lies from what is expected."""
        off = self.residual(truth, ratings)
        scale = self.scale[ratings.who]
        square = off**2 + scale**2 * truth.variance[ratings.row]
        with np.errstate(over="ignore"):  # a wild rating counts nothing
            return np.asarray((_TAILS + 1) / (_TAILS + square / self.spread[ratings.who] ** 2))

    def residual(self, truth: Level, ratings: Ratings) -> FloatArray:
        """Ratings less what is expected of them, [K]."""
        expected = self.bias[ratings.who] + self.scale[ratings.who] * truth.mean[ratings.row]
        return np.asarray(ratings.bounded - expected)

    def astray(self, prior: Level, truth: Level, ratings: Ratings) -> FloatArray:
        """Probability that no rating of a row is about that row, [n].

        A rating that is not lies anywhere that ratings of its person lie. How often that is so is
        half belief and half found, since what a careless person says of a row looks the same. That
        it is so of several of a row at once, however far the features are, is hardly likely.
        """
        row, who = ratings.row, ratings.who
        off, spread = self.residual(truth, ratings), self.spread[who]
        near = usual(truth.mean)
        centre = self.bias[who] + self.scale[who] * near.mean()
        wide = np.hypot(self.scale[who] * usual_spread(near), spread)
        ratio = _log_t(ratings.bounded - centre, wide) - _log_t(off, spread)  # of both laws
        # Of the truths that a row may have, those that its ratings allow.
        variance = self.factor * prior.variance
        left = 0.5 * (np.log(truth.variance / variance) - (truth.mean - prior.mean) ** 2 / variance)
        share = _ASTRAY
        for _ in range(_STEPS):
            odds = logit(share) + ratio
            # log of Π (1 - share + share · ratio) over Π share · ratio, beside `left`
            all_of_row = expit(-left - _over(row, np.logaddexp(0.0, -odds), ratings.rows))
            each = all_of_row[row] + (1 - all_of_row[row]) * expit(odds)
            share = 0.5 * (float(each.mean()) + _ASTRAY)
        return all_of_row

    def interval(self, level: float = 0.95) -> tuple[FloatArray, FloatArray]:
        """Low and high ends of the spreads, [A] each."""
        tail = (1 - level) / 2
        ends = (np.sqrt(self.seen / (2 * gammaincinv(self.seen / 2, q))) for q in (1 - tail, tail))
        low, high = (self.spread * end for end in ends)
        return low, high

    def check(self, people: int) -> None:
        """Whether a file holds what such a law is made of."""
        what = "the law of raters"
        for values in (self.bias, self.scale, self.spread, self.seen):
            must_be_array(values, (people,), what)
        must(bool(np.all(self.spread > 0) and np.all(self.seen > 0) and self.factor > 0), what)


def _improved(law: Raters, prior: Level, truth: Level, ratings: Ratings, unit: float) -> Raters:
    """The law by what is known of the truth; unit: the spread of all ratings."""
    believed, who, people = law.believed(truth, ratings), ratings.who, ratings.people
    bias, scale = _lines(law, truth, ratings, believed, unit)
    moved = Raters(bias, scale, law.spread, law.seen, law.factor)
    square = moved.residual(truth, ratings) ** 2
    square = square + scale[who] ** 2 * truth.variance[ratings.row]
    squares, counts = _over(who, believed * square, people), np.bincount(who, minlength=people)
    squares = np.maximum(squares, counts * (_LEAST * unit) ** 2)
    held = [(k, _common(squares, counts, k)) for k in _HOLDS]
    hold, common = max(held, key=lambda pair: float(_evidence(squares, counts, *pair)))
    spread = np.sqrt((squares + hold * common) / (counts + hold))
    ratio = ((truth.mean - prior.mean) ** 2 + truth.variance) / prior.variance
    factor = float((ratio.mean() + _HELD) / (1 + _HELD))
    return Raters(bias, scale, spread, np.asarray(_OWN * (counts + hold), float), factor)


def _lines(
    law: Raters, truth: Level, ratings: Ratings, believed: FloatArray, unit: float
) -> tuple[FloatArray, FloatArray]:
    """Bias and scale of each person, [A] each, around what people have in common."""
    who, people = ratings.who, ratings.people
    centre = truth.mean.mean()  # biases are told apart from scales where truths are
    z, variance = truth.mean[ratings.row] - centre, truth.variance[ratings.row]
    weight = believed / law.spread[who] ** 2
    off = ratings.bounded - centre - z
    n, first = _over(who, weight, people), _over(who, weight * z, people)
    second = _over(who, weight * (z**2 + variance), people)
    level = _over(who, weight * off, people)
    lean = _over(who, weight * (off * z - variance), people)
    determinant = np.maximum(n * second - first**2, 1e-12 * n * second)
    shift = (second * level - first * lean) / determinant
    tilt = (n * lean - first * level) / determinant
    shift = around_centre(shift, second / determinant, unit)
    tilt = around_centre(tilt, n / determinant, 1.0)
    return shift - tilt * centre, 1 + tilt


def around_centre(value: FloatArray, variance: FloatArray, unit: float) -> FloatArray:
    """What is one's own of each person's value, [A], beside what people have in common.

    Values lie around a centre, which is the truth's, as Student's t by a width that is not known:
    all widths are tried, each counts by its evidence. A person weighs 1 / (width² + variance) in
    the centre, so the precise count more where people hardly differ, and all alike where they do;
    who lies far from the rest counts less.

    value: as if nothing were known of others; variance: what is open of it; unit: a large width
    """
    width = (unit * _WIDTHS[:, None]) ** 2
    total = width + variance
    belief = np.ones_like(total)
    for _ in range(_LOOKS):
        weight = belief / total
        off = value - np.average(
            np.broadcast_to(value, total.shape), axis=1, weights=weight, keepdims=True
        )
        belief = (_TAILS + 1) / (_TAILS + off**2 / total)
    own = width / (width + belief * variance) * off
    return np.asarray(softmax(_fit_of(off, total, weight) + _WIDTHS_BEFORE) @ own)


def _fit_of(off: FloatArray, total: FloatArray, weight: FloatArray) -> FloatArray:
    """Log evidence of each width, the centre being anywhere."""
    each = 0.5 * np.log(total) + 0.5 * (_TAILS + 1) * np.log1p(off**2 / total / _TAILS)
    return np.asarray(-each.sum(axis=1) - 0.5 * np.log(weight.sum(axis=1)))


def _common(squares: FloatArray, counts: Array, hold: float) -> float:
    """The square of the spread around which those of all people lie, as they are best explained.

    The harmonic mean of what is known of each: who is careless says little of how precise another
    is. It is where `_evidence` is highest.
    """
    found = float(np.sum(squares) / np.sum(counts))
    for _ in range(_LOOKS):
        found = len(counts) / float(np.sum((hold + counts) / (hold * found + squares)))
    return found


def _evidence(squares: FloatArray, counts: Array, hold: float, common: float) -> FloatArray:
    """Log probability of sums of squares under spreads around a common one."""
    own = gammaln((hold + counts) / 2) - gammaln(hold / 2)
    with_all = 0.5 * hold * np.log(hold * common)
    return np.sum(own + with_all - 0.5 * (hold + counts) * np.log(hold * common + squares))


def _log_t(off: FloatArray, scale: FloatArray) -> FloatArray:
    """Log density of Student's t that has the tails of the noise, but for a constant."""
    return np.asarray(-np.log(scale) - 0.5 * (_TAILS + 1) * np.log1p((off / scale) ** 2 / _TAILS))


def _over(where: Array, values: FloatArray, size: int) -> FloatArray:
    return np.asarray(np.bincount(where, values, minlength=size), float)


def usual(values: FloatArray) -> FloatArray:
    """Those of the numbers that are not wild: within three ranges of nine tenths of them.

    The tails of the noise bound the pull of one rating in units of a spread. One that may set the
    spread itself has no bound, and all people would be taken for as bad as that one.

    >>> usual(np.array([*range(20), 1e30])).max()
    np.float64(19.0)
    """
    low, high = np.quantile(values, (0.05, 0.95), method="inverted_cdf")
    apart = np.abs(values - (low + high) / 2)
    reach = _WIDE * (high - low)
    if reach == 0:  # nine tenths are one number: the others tell how far apart numbers are
        reach = _WIDE * np.median(apart[apart > 0]) if np.any(apart > 0) else 0.0
    return np.asarray(values[apart <= reach])


def usual_spread(values: FloatArray) -> float:
    """Standard deviation of the numbers that are not wild; never 0."""
    near = usual(values)
    return max(float(np.std(near)), 1e-12 * float(np.abs(near).max()), 1e-300)
