"""Units in and out of an estimator: robust scales, so that wild values do not set them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from mtbayes._values import must, must_be_array, storable
from mtbayes.predictives import ClassPredictive, GaussianPredictive
from mtbayes.types import Array, FloatArray

_BEND = 3.0
_FAR = 1e15  # for a target; its square is a number in single precision
_WIDE = 10.0  # ranges of nine tenths of targets, from their middle: one farther off says no more
_WILD = 1e300  # what a larger target is taken for; sums of such are numbers
_ENOUGH = 10_000  # rows for a quantile


@storable
class Features(NamedTuple):
    """Columns centred at their median, scaled by their interquartile range, and bent at 3.

    A column with a range between quartiles of 0 (a pixel that is mostly black) is scaled by half of
    its range; a constant one becomes 0. z/√(1 + (z/3)²) leaves the middle alone and lets no value
    through that is larger than 3, however wild it was.

    >>> wild = np.array([[0.0], [1.0], [2.0], [3.0], [1e300]])
    >>> Features.of(wild).apply(wild).ravel().round(2)
    array([-0.95, -0.49,  0.  ,  0.49,  3.  ], dtype=float32)
    """

    centre: FloatArray
    scale: FloatArray

    @classmethod
    def of(cls, x: Array, weight: Array | None = None) -> Features:
        """From rows x[n, ...]; images [n, h, w, c] get one scale for each channel."""
        flat = np.asarray(x, float)
        if flat.ndim > 2:
            if weight is not None:
                weight = np.repeat(weight, flat[0].size // flat.shape[-1])
            flat = flat.reshape(-1, flat.shape[-1])
        low, middle, high = _quantiles(flat, (0.25, 0.5, 0.75), weight)
        with np.errstate(over="ignore"):
            between, half = high - low, flat.max(axis=0) / 2 - flat.min(axis=0) / 2
        scale = np.where(between > 0, between, np.where(half > 0, half, 1.0))
        return cls(middle, np.minimum(scale, np.finfo(float).max))

    def check(self, shape: tuple[int, ...]) -> None:
        """Refuse, as read from a file, units that rows of a shape cannot have."""
        for values in self:
            must_be_array(values, (shape[-1],), "units of columns")
        must(bool(np.all(self.scale > 0)), "units of columns")

    def apply(self, x: Array) -> Array:
        """Rows in the network's units, single precision."""
        with np.errstate(over="ignore"):
            # Subtracted first: a centre far from 0 costs no digits. Halved: 1e308 is no overflow.
            z = (np.asarray(x, float) / 2 - self.centre / 2) / self.scale * 2
            z = np.clip(np.nan_to_num(z, posinf=1e30, neginf=-1e30), -1e30, 1e30)
        return (z / np.hypot(1, z / _BEND)).astype(np.float32)


@storable
class Given(NamedTuple):
    """Columns as they are given, for a learner that scales them itself or not at all."""

    def apply(self, x: Array) -> Array:
        """The same rows."""
        return x


@storable
class Targets(NamedTuple):
    """A target centred at its median and scaled by its interquartile range.

    low, high: what a learner takes a wilder target for: trees and the first round of a fit go by
        squares, and one target could decide both
    """

    centre: float
    scale: float
    low: float
    high: float

    @classmethod
    def of(cls, y: Array, weight: Array | None = None) -> Targets:
        """From targets y[n]; the scale is that of a standard deviation for a Gaussian."""
        y = np.clip(np.asarray(y, float), -_WILD, _WILD)
        levels = (0.05, 0.25, 0.5, 0.75, 0.95)
        least, low, middle, high, most = (float(v) for v in _quantiles(y, levels, weight))
        spread = (high / 2 - low / 2) / 1.349 * 2 or _std(y - middle, weight) or 1.0
        spread = max(spread, 1 / _WILD)
        at, far = least / 2 + most / 2, _WIDE * max(most - least, spread)
        return cls(middle, spread, max(at - far, -_WILD), min(at + far, _WILD))

    def apply(self, y: Array) -> FloatArray:
        """Targets in units of the scale; one that is wild is as good as _FAR, whose square fits."""
        with np.errstate(over="ignore"):
            z = np.clip(np.asarray(y, float), -_WILD, _WILD) - self.centre
            return np.clip(z / self.scale, -_FAR, _FAR)

    def check(self, shape: tuple[int, ...]) -> None:
        """Refuse, as read from a file, what is no scale."""
        must(bool(np.isfinite(self).all()) and self.scale > 0, "units of the target")
        must(self.low < self.high, "units of the target")

    def code(self, y: Array) -> Array:
        """Targets as a learner takes them."""
        return self.apply(np.clip(y, self.low, self.high)).astype(np.float32)

    def value(self, z: Array) -> FloatArray:
        """Numbers in the user's units."""
        return self.centre + self.scale * np.asarray(z, float)

    def prediction(self, found: GaussianPredictive) -> FloatArray:
        """Mean and standard deviation of each row in the user's units, [n, 2]."""
        both = np.stack([found.mean, found.std], axis=1)
        with np.errstate(over="ignore"):  # of targets near 1e308
            return self.scale * both + np.array([self.centre, 0.0])


@storable
class Labels(NamedTuple):
    """Classes, whose codes are their places."""

    classes: Array

    def check(self, shape: tuple[int, ...]) -> None:
        """Refuse, as read from a file, classes that are not in order, each once."""
        must(self.classes.ndim == 1 and len(self.classes) > 1, "classes")
        must(len(set(self.classes.tolist())) == len(self.classes), "classes")
        must(self.classes.tolist() == np.sort(self.classes).tolist(), "classes")

    def code(self, y: Array) -> Array:
        """Labels as whole numbers 0..C-1; all are known."""
        return np.searchsorted(self.classes, y).astype(np.int32)

    def value(self, codes: Array) -> Array:
        """The labels of codes."""
        return self.classes[codes]

    def prediction(self, found: ClassPredictive) -> FloatArray:
        """Probability of each class, [n, C]."""
        return found.probs


@storable
class Columns(NamedTuple):
    """Columns centred at their median and scaled by their interquartile range, and not bent.

    The scale is that of a standard deviation for a Gaussian. A column whose quartiles agree is
    scaled by half of its range; a constant one by 1.
    """

    centre: FloatArray
    scale: FloatArray

    @classmethod
    def of(cls, x: Array, weight: Array | None = None) -> Columns:
        """From rows x[n, d] with weights [n]."""
        found = Features.of(x, weight)
        between = np.subtract(*_quantiles(np.asarray(x, float), (0.75, 0.25), weight))
        return cls(found.centre, np.where(between > 0, found.scale / 1.349, found.scale))

    def check(self, shape: tuple[int, ...]) -> None:
        """Refuse, as read from a file, units that rows of a shape cannot have."""
        for values in self:
            must_be_array(values, (shape[-1],), "units of columns")
        must(bool(np.all(self.scale > 0)), "units of columns")

    def apply(self, x: Array) -> FloatArray:
        """Rows in these units; what is wild is as good as 1e150, whose square is a number."""
        with np.errstate(over="ignore"):
            z = (np.asarray(x, float) / 2 - self.centre / 2) / self.scale * 2
        return np.clip(z, -1e150, 1e150)

    def undo(self, z: Array) -> FloatArray:
        """Rows in the user's units."""
        return self.centre + self.scale * np.asarray(z, float)

    # A density's rows are their own targets, and nothing is predicted of them.

    def code(self, x: Array) -> FloatArray:
        """As `apply`."""
        return self.apply(x)

    def value(self, nothing: None) -> None:
        """Nothing is put in the place of a row."""

    def prediction(self, found: Any) -> None:
        """Nothing is predicted."""


def _quantiles(x: FloatArray, levels: tuple[float, ...], weight: Array | None) -> FloatArray:
    """Quantiles over the rows [n, ...], such that a row of weight 2 counts as two rows."""
    if len(x) > 2 * _ENOUGH:  # drawn: every k-th would be one and the same pixel of each image
        drawn = np.random.default_rng(0).integers(len(x), size=_ENOUGH)
        x, weight = x[drawn], None if weight is None else np.asarray(weight)[drawn]
    if weight is not None and np.ptp(weight) == 0:  # the same, and several times faster
        weight = None
    return np.asarray(np.quantile(x, levels, axis=0, weights=weight, method="inverted_cdf"))


def _std(x: FloatArray, weight: Array | None) -> float:
    """Standard deviation of x[n], without overflow."""
    top = float(np.abs(x).max()) or 1.0
    mean = np.average(x / top, weights=weight)
    return top * float(np.sqrt(np.average(np.square(x / top - mean), weights=weight)))
