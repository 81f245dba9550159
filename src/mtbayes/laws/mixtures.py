"""Shares of known densities that explain rows best."""

from __future__ import annotations

import numpy as np
from scipy.optimize import nnls

from mtbayes.types import Array, FloatArray

TINY = 1e-300
_STEPS = 100  # of Newton's, at most
_EM_STEPS = 10  # before Newton's
_ENOUGH = 1e-11  # nats a row, that a further step would gain
_LEAST = 1e-12  # of a row's largest density: a step must not leave one without any
_RIDGE = 1e-10  # of the curvature: densities may be alike


def explained(logs: FloatArray, weight: Array) -> tuple[FloatArray, float]:
    """The best shares [k] of densities exp(logs[k, n]), and the mean log density of a row."""
    densities, top = _densities(logs)
    shares = _best_shares(densities, weight)
    return shares, _mean_log(densities, top, shares, weight)


def explained_below(logs: FloatArray, weight: Array, most: float) -> tuple[FloatArray, float]:
    """As `explained` for good and wrong rows, [2, n], with a share of wrong ones up to `most`."""
    densities, top = _densities(logs)
    shares = _best_shares(densities, weight)
    if shares[1] > most:  # the likelihood is concave in the share
        shares = np.array([1 - most, most])
    return shares, _mean_log(densities, top, shares, weight)


def mixture_shares(logs: FloatArray, weight: Array) -> FloatArray:
    """Weights [k] of the mixture of known densities exp(logs[k, n]) that explains rows best.

    The problem is concave. Its dual variable is known, so that the weights need only be kept above
    0: they sum to 1 at the best by themselves. A step of Newton's is then a least squares problem
    of k numbers that are not negative.
    """
    return _best_shares(_densities(logs)[0], weight)


def _densities(logs: FloatArray) -> tuple[FloatArray, FloatArray]:
    """In units of each row's largest, [k, n], and the log of that, [n]."""
    top = logs.max(axis=0)
    return np.exp(logs - top), top


def _mean_log(densities: FloatArray, top: FloatArray, shares: FloatArray, weight: Array) -> float:
    """Of a mixture, over rows."""
    return float((np.log(shares @ densities + TINY) + top) @ weight / weight.sum())


def _best_shares(densities: FloatArray, weight: Array) -> FloatArray:
    """As `mixture_shares`, of densities [k, n]."""
    mean_weight, count = weight / weight.sum(), len(densities)
    if count == 2:
        second = _second_share(densities[0], densities[1], mean_weight)
        return np.array([1 - second, second])

    def mixed(shares: FloatArray) -> tuple[FloatArray, FloatArray, float]:
        """Shares, the density of each row, and how badly they explain rows."""
        rows = shares @ densities + _LEAST
        return shares, rows, float(shares.sum() - np.log(rows) @ mean_weight)

    shares = np.full(count, 1 / count)
    for _ in range(_EM_STEPS):  # from afar Newton's would leave rows without what explains them
        shares = shares * (densities @ (mean_weight / (shares @ densities + _LEAST)))
    shares, rows, value = mixed(shares)
    for _ in range(_STEPS):
        pull = densities / rows
        slope, curve = 1 - pull @ mean_weight, (pull * mean_weight) @ pull.T
        step = _newton_step(shares, slope, curve)
        gain, size = -float(slope @ step), 1.0
        if gain <= _ENOUGH:
            break
        new = mixed(shares + step)
        while gain * size > _ENOUGH and new[2] > value - 0.1 * size * gain:
            size /= 2
            new = mixed(shares + size * step)
        if gain * size <= _ENOUGH:
            break
        shares, rows, value = new
    return np.asarray(shares / shares.sum())


def _newton_step(at: FloatArray, slope: FloatArray, curve: FloatArray) -> FloatArray:
    """To the least value of a quadratic function where nothing is below 0."""
    root = np.linalg.cholesky(curve + _RIDGE * np.trace(curve) * np.eye(len(at)))
    aim = at @ root - np.linalg.solve(root, slope)
    return np.asarray(nnls(root.T, aim)[0] - at)


def _second_share(first: FloatArray, second: FloatArray, weight: FloatArray) -> float:
    """The share of the second of two densities: Newton's steps on a concave function of it."""
    gap, low, high, share = second - first, 0.0, 1.0, 0.5
    if float(gap / (first + TINY) @ weight) <= 0:
        return 0.0
    if float(gap / (second + TINY) @ weight) >= 0:
        return 1.0
    for _ in range(_STEPS):
        pull = gap / (first + share * gap + TINY)
        slope = float(pull @ weight)
        low, high = (share, high) if slope > 0 else (low, share)
        new = share + slope / max(float(pull**2 @ weight), TINY)
        new = new if low < new < high else 0.5 * (low + high)
        if abs(new - share) < 1e-12:
            break
        share = new
    return share
