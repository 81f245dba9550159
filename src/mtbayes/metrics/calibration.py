"""Whether probabilities mean what they say: of rows at confidence 0.8, 80 % should be right.

A row's confidence is its largest class probability, and the row is right if that class is its
label; of equal largest probabilities the first counts. Confidences are sorted into B bins of equal
width, of which bin k holds those in (k/B, (k+1)/B]. For numbers the question is how many lie
within so many standard deviations.

Rows may have weights: a row that is good with probability 0.9 counts as nine tenths of a row.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import ndtri

from mtbayes import _check
from mtbayes.errors import InvalidInput
from mtbayes.types import Array, FloatArray

_BINS_REMEDY = "15 is the usual number of bins."


class Reliability(NamedTuple):
    """What a reliability diagram shows, an entry for each bin; NaN where a bin holds no row."""

    confidence: FloatArray
    """Mean confidence of the bin's rows, [B]."""
    accuracy: FloatArray
    """Share of the bin's rows that are right, [B]."""
    counts: Array
    """Rows in the bin, or the sum of their weights, [B]."""


def reliability(probs: Array, y: Array, bins: int = 15, weight: Array | None = None) -> Reliability:
    """Confidence and accuracy, bin by bin.

    probs: [n, C], class probabilities; y: [n], labels in 0..C-1; bins: B; weight: [n]

    >>> probs = [[0.9, 0.1], [0.3, 0.7], [0.6, 0.4], [0.2, 0.8]]
    >>> found = reliability(probs, [0, 1, 1, 1], bins=4)
    >>> found.confidence.round(4), found.accuracy, found.counts
    (array([ nan,  nan, 0.65, 0.85]), array([nan, nan, 0.5, 1. ]), array([0, 0, 2, 2]))
    """
    probs, labels = _checked(probs, y)
    bins = _check.count(bins, "bins", _BINS_REMEDY)
    confidence, right = probs.max(axis=1), probs.argmax(axis=1) == labels
    upper = np.arange(1, bins) / bins
    which = np.searchsorted(upper, confidence, side="left")
    each = _check.row_weights(weight, len(labels))
    count = np.bincount(which, None if weight is None else each, bins)
    held = np.where(count > 0, count, np.nan)
    mean_confidence, accuracy = (np.bincount(which, each * v, bins) for v in (confidence, right))
    return Reliability(mean_confidence / held, accuracy / held, count)


def expected_calibration_error(
    probs: Array, y: Array, bins: int = 15, weight: Array | None = None
) -> float:
    """ECE = Σ_k n_k/n |accuracy_k - confidence_k| over the bins k, in [0, 1]; 0 is honest.

    probs: [n, C], class probabilities; y: [n], labels in 0..C-1; bins: B; weight: [n]

    >>> probs = [[0.9, 0.1], [0.3, 0.7], [0.6, 0.4], [0.2, 0.8]]
    >>> round(expected_calibration_error(probs, [0, 1, 1, 1], bins=4), 4)  # (0.15 + 0.15) / 2
    0.15
    """
    found = reliability(probs, y, bins, weight)
    gap = np.abs(found.accuracy - found.confidence)
    return float(np.nansum(gap * found.counts) / found.counts.sum())


def coverage(
    mean: Array, std: Array, y: Array, levels: Array, weight: Array | None = None
) -> FloatArray:
    """Share of numbers within mean ± z·std, at the z that holds each of the levels of a Gaussian.

    mean, std, y, weight: [n]; levels: [k], between 0 and 1. Returns [k], equal to the levels where
    the standard deviations are right and the shape is Gaussian.

    >>> coverage(np.zeros(4), np.ones(4), np.array([0.0, 0.5, -1.5, 3.0]), np.array([0.5, 0.9]))
    array([0.5 , 0.75])
    """
    mean, std, y = (
        _check.finite(name, values, "Drop such rows first.")
        for name, values in (("mean", mean), ("std", std), ("y", y))
    )
    inner = _check.finite("levels", levels, "0.9 is a usual one.")
    wrong = inner[(inner <= 0) | (inner >= 1)]
    if wrong.size:
        raise InvalidInput(
            f"levels must lie between 0 and 1, got {wrong.flat[0]:g}. 0.9 is a usual one."
        )
    z = ndtri((1 + inner) / 2)
    inside = np.abs(y - mean)[:, None] <= std[:, None] * z
    return np.asarray(np.average(inside, axis=0, weights=_check.row_weights(weight, len(y))))


def _checked(probs: Array, y: Array) -> tuple[FloatArray, Array]:
    array = _check.finite("probs", probs, "A row holds the probability of each class.")
    if array.ndim != 2 or 0 in array.shape:
        raise InvalidInput(
            f"probs must have shape [n, C] with n, C >= 1, got {array.shape}. "
            "A row of it holds the probability of each class."
        )
    _check.densities(array, "probs")
    off = np.abs(array.sum(axis=1) - 1)
    if off.max() > 1e-4:
        row = int(off.argmax())
        raise InvalidInput(
            f"probs must sum to 1 in each row, got a sum of {array[row].sum():.6g} in row {row}. "
            "Give probabilities, not logits."
        )
    n, classes = array.shape
    labels = _check.finite("y", y, f"Labels are whole numbers 0..{classes - 1}.")
    if labels.shape != (n,):
        raise InvalidInput(
            f"y must have shape ({n},), a label for each row of probs, got {labels.shape}."
        )
    strange = labels[(labels < 0) | (labels >= classes) | (labels % 1 != 0)]
    if strange.size:
        raise InvalidInput(
            f"y must hold whole numbers 0..{classes - 1}, got {strange[0]:g}. Code labels by the "
            "columns of probs."
        )
    return array, labels
