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


def apart(fold: Array, y: Array) -> Array:
    """The fold of each row [n], with no class all of whose rows lie in one of them.

    A fit that has seen no row of a class cannot foresee its label: of classes with two rows each a
    fifth would look wrong. Other rows stay where they are, and so do targets that are numbers.

    >>> apart(np.array([1, 4, 1, 4, 0]), np.array([0, 0, 1, 2, 2])).tolist()
    [1, 4, 1, 4, 0]
    >>> apart(np.array([4, 4, 1, 4, 0]), np.array([0, 0, 1, 2, 2])).tolist()
    [4, 0, 1, 4, 0]
    """
    if y.dtype.kind not in "iu":
        return fold
    found, seen = fold.copy(), np.zeros((y.max() + 1, fold.max() + 1), bool)
    seen[y, fold] = True
    for label in np.flatnonzero(seen.sum(axis=1) == 1):
        own = np.flatnonzero(y == label)
        found[own] = (fold[own] + np.arange(len(own))) % seen.shape[1]
    return found


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
