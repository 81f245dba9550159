"""What learners share that are refitted with weights, each fit without a fold of the rows.

-log_t p is concave in log p, so that its tangent at the current fit lies above it: a refit by the
log loss with weights p^(1-t) cannot raise the loss that it bounds (docs/mathematics.md). Where a
learner can know rows by heart, p comes from fits that have not seen the row; and the p that weigh
a fit without fold k come from fits without fold k, so that no row of k has a say in what is then
said of it.
"""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from mtbayes.maths.majorise import refit_weights
from mtbayes.maths.tlog import log_t_from_log
from mtbayes.types import Array, FloatArray

FOLDS = 5
"""That rows are dealt into, where members each leave one out."""
FLOOR = 0.02
"""The least standard deviation of a number, in units of all numbers'."""
_MAD = 1.4826  # from a median of absolute values to a Gaussian's standard deviation


def seed_of(key: Array) -> int:
    """A whole number below 2³¹ and above 2³⁰ from a JAX key, for what takes numbers."""
    return int(np.asarray(jax.random.key_data(key)).ravel()[-1]) % 2**30 + 2**30


def dealt(order: Array, y: Array, count: int = FOLDS) -> Array:
    """The fold of each row [n]: rows are dealt in an order, those of a class one after the other.

    So each fold has its share of every class. Where one had more of a class than the others, fits
    without it would expect less of that class there than elsewhere, and seem worse than chance
    where columns tell little; and a class whose rows lie in one fold would be foreseen by nobody.
    Targets that are numbers are dealt as they come.

    >>> dealt(np.array([3, 0, 4, 1, 2]), np.array([1, 0, 1, 0, 1]), 2).tolist()
    [0, 1, 0, 0, 1]
    """
    if y.dtype.kind in "iu":
        order = order[np.argsort(y[order], kind="stable")]
    fold = np.empty(len(y), int)
    fold[order] = np.arange(len(y)) % count
    return fold


def pull(inner: FloatArray | None, t: float, trusted: Array | None = None) -> FloatArray:
    """p^(1-t) from log p [folds, n], the largest 1 in each fold; ones where none is known.

    trusted: [n], rows whose target is known to be right, which pull as at t = 1
    """
    if inner is None:
        return np.ones((1, 1))
    found = np.stack([refit_weights(own[None] - own.max(), t)[0] for own in inner])
    return found if trusted is None else np.where(trusted, 1.0, found)


def log_density(residual: FloatArray, weight: Array, spread: Any = 1.0) -> FloatArray:
    """Log density of residuals under a Gaussian at 0, as wide as their middle, less a constant.

    spread: of each residual beside the others', [n]; a row that is uncertain is no outlier
    """
    scaled = residual / spread
    return -0.5 * np.square(scaled / middle_width(scaled, weight))


def middle_width(residual: FloatArray, weight: Array) -> float:
    """A standard deviation that a few wild residuals do not move, at least `FLOOR`."""
    middle = np.quantile(np.abs(residual), 0.5, weights=weight, method="inverted_cdf")
    return max(_MAD * float(middle), FLOOR)


def mean_log_t(log_p: FloatArray, t: float, weight: Array) -> float:
    """The (1,t) criterion's data term, negative: what a fit is to make large on unseen rows."""
    return float(np.average(log_t_from_log(log_p, t), weights=weight))


def class_shares(y: Array, weight: Array, classes: int) -> FloatArray:
    """Of classes 0..C-1 among rows, [C], none of them 0."""
    counts = np.bincount(y, weight, classes) + 0.5
    return counts / counts.sum()
