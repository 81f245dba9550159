"""Predictions made by hand."""

import numpy as np
from scipy.special import expit


def of_labels(rng, n):
    """Labels, a tenth of them swapped, and a method that knows the true probabilities."""
    p = expit(6 * rng.normal(size=n))
    true = (rng.random(n) < p).astype(int)
    swapped = rng.random(n) < 0.1
    return np.where(swapped, 1 - true, true), swapped, {"0": 1 - p, "1": p}
