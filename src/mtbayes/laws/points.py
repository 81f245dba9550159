"""Rows of a density of which some are outliers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from scipy.special import logsumexp

from mtbayes._values import must, must_be_array, storable
from mtbayes.laws.estimation import (
    Contamination,
    calibrate,
    one_may_be,
    profile,
    wrong_probability,
)
from mtbayes.laws.mixtures import explained
from mtbayes.types import Array, FloatArray


class PointPredictive(NamedTuple):
    """Rows of a density beside Gaussian members whose spread may yet be scaled."""

    squares: FloatArray
    """Squared distance of each row from each member in the member's stds, [S, n]."""
    log_peaks: FloatArray
    """Log density at the middle of each member, [S, n], or [S, 1] where rows share members."""

    @property
    def row_axis(self) -> int:
        """Rows come second."""
        return 1

    def log_prob(self, x: Any = None) -> FloatArray:
        """Log density [n] of the equal mixture of members; the rows are known already."""
        return self.log_prob_scaled(1.0, 0)

    def log_prob_scaled(self, scale: float, dimensions: int) -> FloatArray:
        """The same with the members' stds times `scale`."""
        logs = self.log_peaks - 0.5 * self.squares / scale**2
        shift = dimensions * np.log(scale) + np.log(len(logs))
        return np.asarray(logsumexp(logs, axis=0) - shift)


@storable
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
    def of_pool(cls, predictive: PointPredictive, x: Array, weight: Array) -> WrongPoints:
        """The same beside what several say together."""
        return cls.fit(predictive, x, weight)

    @classmethod
    def none(cls, x: Array, weight: Array | None = None) -> WrongPoints:
        """No wrong row, and the law they would follow beside rows x[n, d]; no side is below 1."""
        x = np.asarray(x, float)
        low, high = x.min(axis=0), x.max(axis=0)
        short = np.maximum(1 - (high - low), 0) / 2
        return cls(low - short, high + short, np.median(x, axis=0))

    @classmethod
    def fit(cls, predictive: PointPredictive, x: Array, weight: Array) -> WrongPoints:
        """Scale and ε by maximum likelihood from rows x[n, d] with weights [n]."""
        law = cls.none(x, weight)
        logs_at = law.logs_at(predictive, x)
        best = calibrate(logs_at, weight)
        epsilon = one_may_be(float(explained(logs_at(best), weight)[0][1]), weight.sum())
        return replace(law, scale=float(np.exp(best)), epsilon=epsilon)

    def beside_all(
        self,
        predictives: Sequence[PointPredictive],
        x: Array,
        weight: Array,
        alone: Sequence[WrongPoints] = (),
    ) -> list[WrongPoints]:
        """A law for each of several predictives of the same rows: they share nothing."""
        return list(alone) or [self.fit(p, x, weight) for p in predictives]

    def check(self, shape: tuple[int, ...], classes: int) -> None:
        """A box and a centre of rows."""
        for values in (self.low, self.high, self.centre):
            must_be_array(values, shape, "the law of wrong rows")
        must(self.scale > 0 and 0 <= self.epsilon <= 1, "the law of wrong rows")

    def of_more(self, halves: Sequence[Any], y: Array, weight: Array) -> WrongPoints:
        """As it is: how the spread of numbers goes with the members was not measured."""
        return self

    def of_longer(
        self, before: PointPredictive, after: PointPredictive, x: Array, weight: Array
    ) -> WrongPoints:
        """By the few rows alone."""
        return self.fit(after, x, weight)

    def averaged(self, predictive: PointPredictive, x: Array, weight: Array) -> WrongPoints:
        """The same: the one law that explains rows best is what is told."""
        return self

    def at(self, epsilon: float) -> WrongPoints:
        """The same law with another share of wrong rows."""
        return replace(self, epsilon=epsilon)

    def calibrated(self, predictive: PointPredictive) -> PointPredictive:
        """The predictive with its members' spread scaled."""
        shift = len(self.low) * np.log(self.scale)
        return PointPredictive(predictive.squares / self.scale**2, predictive.log_peaks - shift)

    def told(self, predictive: PointPredictive) -> PointPredictive:
        """As it is calibrated: its tails allow for surprises."""
        return self.calibrated(predictive)

    def alternative(self, predictive: PointPredictive, x: Array) -> tuple[None, None]:
        """A row that does not belong has nothing in its place."""
        return None, None

    def logs_at(self, predictive: PointPredictive, x: Array) -> Callable[[float], FloatArray]:
        """Log densities of good and wrong rows, [2, n], by the log of the scale."""
        x = np.asarray(x, float)
        span = self.high - self.low
        inside = np.all((x >= self.low) & (x <= self.high), axis=1)
        uniform = np.where(inside, -np.log(span).sum(), -np.inf)
        far = -2 * np.log(np.hypot(1, (x - self.centre) / span)) - np.log(np.pi * span)
        wrong = np.logaddexp(uniform, far.sum(axis=1)) - np.log(2)
        return lambda log_scale: np.stack(
            [predictive.log_prob_scaled(float(np.exp(log_scale)), len(span)), wrong]
        )

    def _logs(self, predictive: PointPredictive, x: Array) -> FloatArray:
        return self.logs_at(predictive, x)(float(np.log(self.scale)))

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
        return wrong_probability(self._logs(predictive, x), self._shares)

    def contamination(
        self, predictive: PointPredictive, x: Array, weight: Array, level: float = 0.95
    ) -> Contamination:
        """ε of these rows with a profile-likelihood interval."""
        return profile(self.logs_at(predictive, x), weight, level)
