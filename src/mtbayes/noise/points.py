"""Rows of a density of which some are outliers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp

from mtbayes.noise.shares import (
    Contamination,
    calibrate,
    explained,
    one_may_be,
    profile,
    wrong_probability,
)
from mtbayes.types import Array, FloatArray


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
        best = calibrate(logs_at, weight)
        epsilon = one_may_be(float(explained(logs_at(best), weight)[0][1]), weight.sum())
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
        return wrong_probability(self._logs(predictive, x), self._shares)

    def contamination(
        self, predictive: PointPredictive, x: Array, weight: Array, level: float = 0.95
    ) -> Contamination:
        """ε of these rows with a profile-likelihood interval."""
        return profile(self._logs_at(predictive, x), weight, level)
