"""Numbers to predict of which some are wrong."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.special import gammaincinv, logsumexp

from mtbayes._values import must, must_be_array, storable
from mtbayes.laws.estimation import (
    FACTOR_SPREAD,
    Contamination,
    calibrate,
    one_may_be,
    profile,
    with_good_rows,
    wrong_probability,
)
from mtbayes.laws.mixtures import explained
from mtbayes.predictives import GaussianPredictive, of_rows
from mtbayes.types import Array, FloatArray

_FREEDOMS = (math.inf, 8.0, 4.0, 2.5)
_TAIL_COST = 2.0  # nats that other tails than a Gaussian's must gain
_SKEWED = (8.0, 4.0)  # degrees of freedom of tails that may be longer on one side
_SKEW_COST = 3.0  # nats that such must gain beyond the best of the others
_MOST_SKEW, _SKEW_SPREAD, _SHIFT_SPREAD = 1.5, 1.0, 0.5  # before any row is seen
_FAR_OFF = 3.0  # nats that a rough guess of a skew may lose
_SKEW_JUDGES, _LOOKS = 800, 60  # rows by which, and how often, a skew is looked at
_WILD = 0.01  # of right targets, that no predictive foresees
_CORE = 0.4  # the least scale of other tails, in units of the Gaussian's
_WIDE = 3.0  # times nine tenths of targets is how far their range may reach from its middle
_SCALES = 50  # that make a Student's t, about
_JUDGES = 2000  # rows by which a predictive is calibrated


@storable
@dataclass(frozen=True)
class WrongTargets:
    """Good targets follow the predictive with its spread scaled, wrong ones laws without x.

    scale: factor on the members' standard deviations
    freedom: degrees of freedom of a good target's tails; infinite if Gaussian
    skew: by how much the upper tail is the longer one: Student's t is a Gaussian whose scale f
        varies, and where that is large its centre is skew · (f - 1) above. Wages, prices and times
        have such tails, and without it good rows far above would be called wrong
    shift: of the centre, in units of the spread: a robust fit is near the mode of such
    shares: of good rows, then of wrong ones that are uniform, from the marginal, and far away
    low, high: range of the targets; centres, width: their marginal as a mixture of Gaussians
    """

    scale: float
    shares: FloatArray
    low: float
    high: float
    centres: FloatArray
    width: float
    freedom: float = math.inf
    skew: float = 0.0
    shift: float = 0.0

    @property
    def epsilon(self) -> float:
        """Share of wrong targets."""
        return float(1 - self.shares[0])

    @classmethod
    def fit(cls, predictive: GaussianPredictive, y: Array, weight: Array) -> WrongTargets:
        """By maximum likelihood from the predictive of targets y[n] with weights [n].

        Where x hardly explains the targets, wrong ones look like good ones, and few rows would call
        many wrong. So some good rows are taken as seen before.
        """
        law = cls.none(y, weight)
        found = [law.beside(predictive, y, weight, freedom) for freedom in _FREEDOMS]
        # Counts would shrink a Student's t onto the most frequent one.
        least = _CORE * found[0][0].scale
        sound = [pair for pair in found if pair[0].scale >= least]
        law = max(sound, key=lambda pair: pair[1])[0]
        law = law.skewed(predictive, y, weight, least)
        logs_at, counted = with_good_rows(law.logs_at(predictive, y), weight)
        best = float(np.log(law.scale))
        wrong, n = explained(logs_at(best), counted)[0][1:], float(weight.sum())
        # A third of a row of each kind: one that no row has shown may yet come.
        kinds = (n * wrong + 1 / 3) / (n * wrong.sum() + 1)
        epsilon = one_may_be(float(wrong.sum()), n)
        return replace(law, shares=np.array([1 - epsilon, *(epsilon * kinds)]))

    def beside(
        self, predictive: GaussianPredictive, y: Array, weight: Array, freedom: float
    ) -> tuple[WrongTargets, float]:
        """The best scale beside some tails, and how well both explain rows; some rows will do."""
        law = replace(self, freedom=freedom)
        few, some, counted = _few(predictive, weight, _JUDGES)
        logs_at, counted = with_good_rows(law.logs_at(few, y[some]), counted)
        best = calibrate(logs_at, counted)
        gained = explained(logs_at(best), counted)[1] * counted.sum()
        return replace(law, scale=float(np.exp(best))), gained - _TAIL_COST * (freedom < math.inf)

    def skewed(
        self, predictive: GaussianPredictive, y: Array, weight: Array, least: float
    ) -> WrongTargets:
        """The same with a tail that is longer on one side, where rows clearly say so.

        least: of the scale
        """
        few, some, _ = _few(predictive, weight, _SKEW_JUDGES)
        # Not weighed as all rows: chance among few would speak for all.
        logs_of, counted = with_good_rows(self._logs_of(few, y[some]), weight[some])

        def leaning(at: Any, freedom: float) -> WrongTargets:
            scale, skew, shift = math.exp(at[0]), float(at[1]), float(at[2])
            return replace(self, scale=scale, freedom=freedom, skew=skew, shift=shift)

        def loss(at: Any, freedom: float) -> float:
            law = leaning(at, freedom)
            if abs(law.skew) > _MOST_SKEW or law.scale < least:
                return math.inf
            known = np.divide(at, (FACTOR_SPREAD, _SKEW_SPREAD, _SHIFT_SPREAD))
            gained = explained(logs_of(law), counted)[1] * counted.sum()
            return float(0.5 * np.square(known).sum() - gained)

        start = np.array([math.log(self.scale), 0.0, 0.0])
        best, law = loss(start, self.freedom) - _SKEW_COST, self
        sides = [start + np.array([-0.1, s, -0.1 * s]) for s in (-0.7, 0.7)]
        lean = [loss(side, _SKEWED[0]) for side in sides]
        if min(lean) > best + _SKEW_COST + _FAR_OFF:  # on neither side: a closer look costs time
            return self
        start = sides[int(np.argmin(lean))]
        steps = start + np.diag([0.2, start[1] / 2, 0.2])[[0, 0, 1, 2]] * [[0], [1], [1], [1]]
        for freedom in _SKEWED:
            how: Any = {"maxfev": _LOOKS, "xatol": 0.02, "fatol": 0.1, "initial_simplex": steps}
            found = minimize(
                partial(loss, freedom=freedom), start, method="Nelder-Mead", options=how
            )
            if found.fun < best:
                best, law = float(found.fun), leaning(found.x, freedom)
        return law

    @classmethod
    def of_pool(cls, predictive: GaussianPredictive, y: Array, weight: Array) -> WrongTargets:
        """The same beside what several say together."""
        return cls.fit(predictive, y, weight)

    @classmethod
    def none(cls, y: Array, weight: Array | None = None) -> WrongTargets:
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
        # Counts lie apart: a law that knew where would explain them better than any predictive.
        gaps = np.diff(np.unique(centres))
        width = max(0.3 * spread, float(np.median(gaps)) if len(gaps) else 0.0)
        # One that is wild would make the range so wide that no other wrong target is told from it.
        low, high = at([0.05, 0.95])
        within = y[np.abs(y - (low + high) / 2) <= _WIDE * max(high - low, spread)]
        return cls(1.0, none, float(within.min()), float(within.max()), centres, width)

    def check(self, shape: tuple[int, ...], classes: int) -> None:
        """Shares are shares and scales are scales."""
        what = "the law of wrong targets"
        must_be_array(self.shares, (4,), what)
        must(bool(np.all(self.shares >= 0)) and self.centres.ndim == 1, what)
        must(self.scale > 0 and self.width > 0 and self.freedom > 0 and self.low <= self.high, what)
        must(math.isfinite(self.skew) and math.isfinite(self.shift), what)

    def of_more(self, halves: Sequence[Any], y: Array, weight: Array) -> WrongTargets:
        """As it is: how the spread of numbers goes with the members was not measured."""
        return self

    def of_longer(
        self, before: GaussianPredictive, after: GaussianPredictive, y: Array, weight: Array
    ) -> WrongTargets:
        """By the few rows alone: all are in doubt, so they tell a spread well."""
        return self.fit(after, y, weight)

    def averaged(self, predictive: GaussianPredictive, y: Array, weight: Array) -> WrongTargets:
        """The same: the one law that explains rows best is what is told."""
        return self

    def at(self, epsilon: float) -> WrongTargets:
        """The same law with another share of wrong targets."""
        return replace(self, shares=np.array([1 - epsilon, *(epsilon * self._kinds)]))

    @property
    def _kinds(self) -> FloatArray:
        """Shares of the three laws among wrong targets; equal ones where there are none."""
        wrong = self.shares[1:]
        return wrong / wrong.sum() if wrong.sum() > 0 else np.full(3, 1 / 3)

    def calibrated(self, predictive: GaussianPredictive) -> GaussianPredictive:
        """The predictive with its members' spread scaled.

        Student's t is a mixture of Gaussians of all scales: members get those in turn, where they
        are few several each.
        """
        means, stds = predictive.means, self.scale * predictive.stds
        if math.isinf(self.freedom):
            return GaussianPredictive(means, stds)
        times = -(-_SCALES // len(means))
        factors = _scales(self.freedom, times * len(means))[:, None]
        means, stds = np.tile(means, (times, 1)), np.tile(stds, (times, 1))
        if self.skew or self.shift:
            means = means + (self.skew * (factors - 1) + self.shift) * stds
        return GaussianPredictive(means, factors * stds)

    def told(self, predictive: GaussianPredictive) -> GaussianPredictive:
        """As it is calibrated: its tails allow for surprises."""
        return self.calibrated(predictive)

    def _log_wrong(self, y: FloatArray) -> FloatArray:
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
        return self._logs_of(predictive, y)(self)

    def logs_at(self, predictive: GaussianPredictive, y: Array) -> Callable[[float], FloatArray]:
        """As `_logs_of`, by the log of the scale."""
        logs_of = self._logs_of(predictive, y)
        return lambda log_scale: logs_of(replace(self, scale=float(np.exp(log_scale))))

    def _logs_of(
        self, predictive: GaussianPredictive, y: Array
    ) -> Callable[[WrongTargets], FloatArray]:
        """Log density of targets that are good, and of the three kinds of wrong, [4, n].

        It is asked for by laws that differ in the spread of good targets alone. A target that is
        trusted is good, but may be as wild as a wrong one: a single number that is far off and yet
        right must not make all others uncertain.
        """
        y = np.asarray(y, float)
        wrong, trusted = self._log_wrong(y), predictive.trusted
        wild = np.full(len(y), -np.inf)
        if trusted is not None:
            wild = np.where(trusted, np.log(_WILD) + logsumexp(wrong, axis=0) - np.log(3), wild)
            wrong = np.where(trusted, -np.inf, wrong)

        def logs_of(law: WrongTargets) -> FloatArray:
            with np.errstate(over="ignore"):  # the square of a wild target
                good = np.logaddexp(law.calibrated(predictive).log_prob(y), wild)
                return np.concatenate([good[None], wrong])

        return logs_of

    def beside_all(
        self,
        predictives: Sequence[GaussianPredictive],
        y: Array,
        weight: Array,
        alone: Sequence[WrongTargets] = (),
    ) -> list[WrongTargets]:
        """A law for each of several predictives of the same rows: they share nothing."""
        return list(alone) or [self.fit(p, y, weight) for p in predictives]

    def alternative(self, predictive: GaussianPredictive, y: Array) -> tuple[FloatArray, None]:
        """The mean of each row, which is suggested in any case: no number is right to a digit."""
        return predictive.mean, None

    def good(self, predictive: GaussianPredictive, y: Array) -> FloatArray:
        """Log density of each target if it is good, [n]."""
        return self._logs(predictive, y)[0]

    def score(self, predictive: GaussianPredictive, y: Array) -> FloatArray:
        """Log density of each target under the whole law, [n]."""
        return np.asarray(logsumexp(self._logs(predictive, y), axis=0, b=self.shares[:, None]))

    def outlier_probability(self, predictive: GaussianPredictive, y: Array) -> FloatArray:
        """Probability that each target is wrong, [n]."""
        return wrong_probability(self._logs(predictive, y), self.shares)

    def contamination(
        self, predictive: GaussianPredictive, y: Array, weight: Array, level: float = 0.95
    ) -> Contamination:
        """ε of these rows with a profile-likelihood interval, the wrong rows' law held fixed."""
        law, logs_at = self._kinds, self.logs_at(predictive, y)

        def both_at(log_scale: float) -> FloatArray:
            logs = logs_at(log_scale)
            return np.stack([logs[0], logsumexp(logs[1:], axis=0, b=law[:, None])])

        return profile(*with_good_rows(both_at, weight), level)


def _few(
    predictive: GaussianPredictive, weight: Array, most: int
) -> tuple[GaussianPredictive, Array, FloatArray]:
    """All rows or so many at random: their predictive, places, and weights that add up alike."""
    n = len(weight)
    some = np.arange(n)
    if n > most:
        some = np.sort(np.random.default_rng(0).choice(n, most, replace=False))
    return of_rows(predictive, some), some, weight[some] * (weight.sum() / weight[some].sum())


@cache
def _scales(freedom: float, count: int) -> FloatArray:
    """So many scales of Gaussians that make a Student's t.

    In an order without a pattern: members that follow each other may be alike.
    """
    levels = (np.random.default_rng(0).permutation(count) + 0.5) / count
    return np.asarray(np.sqrt(freedom / (2 * gammaincinv(freedom / 2, levels))))
