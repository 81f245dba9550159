"""Influence in closed form: q = N(φ, spread²), the model N(θ, 1), and how far a row can pull.

Where p_q is known, so is R: for m = ∞ the predictive is N(φ, 1 + spread²), for m = 1 the mean of a
power of a Gaussian is one too. With u = z - φ and a = 1 - t both have

    ∂_φ R(z) = -A·b·u·exp(-a·b·u²/2),

    m = ∞: b = 1/(1 + spread²),   A = (b/2π)^(a/2)
    m = 1: b = 1/(1 + a·spread²), A = (1/2π)^(a/2) √b.

At t = 1 it grows like u, without bound. Below it is largest at u = 1/√(a·b), and falls to 0 beyond:
a row far away does nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy.optimize import brentq

from mtbayes import _check
from mtbayes.criteria import Criterion
from mtbayes.errors import InvalidInput
from mtbayes.types import FloatArray

_SPACING = 0.05  # of the places between the extreme rows where a minimum is looked for
_MOST = 20_000  # of them


def contamination_term(
    criterion: Criterion, z: FloatArray, phi: float | FloatArray, spread: float = 1.0
) -> FloatArray:
    """∂_φ R(z) for each z, broadcast against φ; Figure 3 draws its size.

    >>> contamination_term(Criterion(math.inf, 1.0, math.inf), np.array([4.0]), 0.0)
    array([-2.])
    """
    a, b, scale = _shape(criterion, spread)
    u = np.asarray(z, float) - phi
    return -scale * b * u * np.exp(-a * b * u**2 / 2)


def gaussian_minimum(
    criterion: Criterion, x: FloatArray, spread: float = 1.0, prior_std: float = 3.0
) -> float:
    """φ*, where J = mean_i R(x_i) + m/(n·beta) KL(N(φ, spread²) || N(0, prior_std²)) is least.

    Below t = 1 there may be several minima; the lowest is found, from many starts.

    >>> round(gaussian_minimum(Criterion(math.inf, 1.0, math.inf), np.array([1.0, 5.0])), 6)
    3.0
    """
    x = _points(x)
    _check.positive(prior_std, "prior_std", "It is the prior's standard deviation.")
    pull = criterion.regulariser_weight(len(x)) / prior_std**2

    def slope(phi: float) -> float:
        return float(np.mean(contamination_term(criterion, x, phi, spread)) + pull * phi)

    def value(phi: float) -> float:
        return _mean_loss(criterion, x, phi, spread) + pull * phi**2 / 2

    low, high = min(x.min(), 0.0) - 1, max(x.max(), 0.0) + 1
    grid = np.linspace(low, high, min(_MOST, math.ceil((high - low) / _SPACING)))
    terms = contamination_term(criterion, x[:, None], grid, spread)
    slopes = terms.mean(axis=0) + pull * grid
    turns = np.flatnonzero((slopes[:-1] < 0) & (slopes[1:] >= 0))
    return min((_root(slope, grid[i], grid[i + 1]) for i in turns), key=value)


def _root(slope: Callable[[float], float], low: float, high: float) -> float:
    """Where the slope turns from minus to plus; an end where it is 0 but for rounding counts."""
    if slope(low) >= 0:
        return float(low)
    return float(high if slope(high) <= 0 else brentq(slope, low, high, xtol=1e-14))


def gaussian_influence(
    criterion: Criterion,
    x: FloatArray,
    z: FloatArray,
    spread: float = 1.0,
    prior_std: float = 3.0,
) -> FloatArray:
    """dφ*/dγ for each row z: -[∂R(z) - mean_i ∂R(x_i)] / J''(φ*).

    >>> gaussian_influence(Criterion(math.inf, 1.0, math.inf), np.array([1.0, 5.0]), [9.0])
    array([6.])
    """
    phi, mean, bend = _at_minimum(criterion, _points(x), spread, prior_std)
    rows = _check.finite("z", z, "A row at infinity has no density.")
    return -(contamination_term(criterion, rows, phi, spread) - mean) / bend


def gross_error_sensitivity(
    criterion: Criterion, x: FloatArray, spread: float = 1.0, prior_std: float = 3.0
) -> float:
    """The supremum over z of |dφ*/dγ|: how far the worst row can pull, per share of the data.

    It is infinite at t = 1, where one row can carry φ* anywhere.

    criterion: m is 1 or math.inf, and with m = 1 any beta
    x: the data [n]; spread: q's standard deviation; prior_std: the prior's, around 0

    >>> x = np.array([-2.0, -1.0, 0.0, 1.0, 2.0])
    >>> [round(gross_error_sensitivity(Criterion(1, t, math.inf), x), 2) for t in (1.0, 0.9, 0.5)]
    [inf, 2.65, 2.94]
    """
    phi, mean, bend = _at_minimum(criterion, _points(x), spread, prior_std)
    a, b, _ = _shape(criterion, spread)
    if a == 0:
        return math.inf
    # The term takes all values from minus to plus its largest, which is at u = 1/√(a·b).
    largest = abs(contamination_term(criterion, np.array(phi + 1 / math.sqrt(a * b)), phi, spread))
    return float((largest + abs(mean)) / bend)


def _at_minimum(
    criterion: Criterion, x: FloatArray, spread: float, prior_std: float
) -> tuple[float, float, float]:
    """φ*, mean_i ∂R(x_i) there, and J''(φ*)."""
    phi = gaussian_minimum(criterion, x, spread, prior_std)
    a, b, scale = _shape(criterion, spread)
    u = x - phi
    bend = np.mean(scale * b * (1 - a * b * u**2) * np.exp(-a * b * u**2 / 2))
    bend += criterion.regulariser_weight(len(x)) / prior_std**2
    return phi, float(np.mean(contamination_term(criterion, x, phi, spread))), float(bend)


def _mean_loss(criterion: Criterion, x: FloatArray, phi: float, spread: float) -> float:
    """mean_i R(x_i), up to a constant."""
    a, b, scale = _shape(criterion, spread)
    square = b * np.square(x - phi) / 2
    # -log_t of A^(1/a)·exp(-square): (1 - A·exp(-a·square))/a, and the square at a = 0.
    each = square if a == 0 else -scale * np.expm1(-a * square) / a
    return float(np.mean(each))


def _shape(criterion: Criterion, spread: float) -> tuple[float, float, float]:
    """A = 1 - t, b and the amplitude A of the docstring above."""
    _check.positive(spread, "spread", "It is q's standard deviation.")
    a = 1 - float(criterion.t)
    if math.isinf(criterion.m):
        b = 1 / (1 + spread**2)
        return a, b, (b / (2 * math.pi)) ** (a / 2)
    if criterion.m == 1:
        b = 1 / (1 + a * spread**2)
        return a, b, (2 * math.pi) ** (-a / 2) * math.sqrt(b)
    raise InvalidInput(
        f"m must be 1 or math.inf for a closed form, got {criterion.m!r}. For others use "
        "mtbayes.theory.influence.Influence with members."
    )


def _points(x: FloatArray) -> FloatArray:
    x = _check.finite("x", x, "Drop such rows first.")
    if x.ndim != 1 or not len(x):
        raise InvalidInput(f"x must have shape (n,) with n >= 1, got {x.shape}.")
    return x
