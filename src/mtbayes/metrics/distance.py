"""Distances between two densities on one even grid, each with an estimate of its own error.

The grid reaches from its first to its last point and integrals follow the trapezoid rule. The
error has two parts:

(a) the rule's: the difference between the grid and its every second point, the larger of the
    two ways to start. Richardson would divide it by 3, as the rule's error falls with spacing²;
    undivided it leaves a margin, and also covers a density that jumps, where the error falls with
    the spacing itself.
(b) the mass off the grid, |1 - ∫p| + |1 - ∫q|, scaled as each function says. Densities that are
    not normalised show up here too.

p[..., x] and q[..., x] share their last axis, the others broadcast; the distances are [...].
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from mtbayes import _check
from mtbayes.errors import InvalidInput
from mtbayes.maths import kl_divergence
from mtbayes.types import Array, FloatArray


class Distance(NamedTuple):
    """A distance and an estimate of how far the integration may have put it off."""

    value: Any
    error: Any


def total_variation(p: Array, q: Array, spacing: float) -> Distance:
    """1/2 ∫|p - q|, in [0, 1].

    Between points p - q is taken for linear and split where it changes sign, since the kink there
    would make (a) blind. Off the grid at most half the missing mass can be added, which is (b).

    >>> x = np.linspace(-8, 9, 1701)
    >>> p, q = (np.exp(-0.5 * (x - mean) ** 2) / np.sqrt(2 * np.pi) for mean in (0, 1))
    >>> tv = total_variation(p, q, 0.01)
    >>> round(float(tv.value), 4), bool(tv.error < 1e-4)
    (0.3829, True)
    """
    p, q, spacing = _grids(p, q, spacing)
    value, error = _with_error(_integral_of_size, p - q, spacing)
    missing = _missing(p, q, spacing)
    return Distance(np.minimum(0.5 * value, 1.0), 0.5 * (error + missing))


def hellinger(p: Array, q: Array, spacing: float) -> Distance:
    """sqrt(1/2 ∫(√p - √q)²), in [0, 1].

    The square is off by at most e = (a) + half the missing mass (b); the error is the larger way
    from the distance H to sqrt(H² ± e), so that near H = 0 it is sqrt(e).

    >>> x = np.linspace(-8, 9, 1701)
    >>> p, q = (np.exp(-0.5 * (x - mean) ** 2) / np.sqrt(2 * np.pi) for mean in (0, 1))
    >>> h = hellinger(p, q, 0.01)
    >>> bool(abs(h.value**2 - (1 - np.exp(-1 / 8))) < 1e-9), bool(h.error < 1e-9)
    (True, True)
    """
    p, q, spacing = _grids(p, q, spacing)
    square, error = _with_error(_trapezoid, 0.5 * (np.sqrt(p) - np.sqrt(q)) ** 2, spacing)
    error = error + 0.5 * _missing(p, q, spacing)
    value = np.sqrt(square)
    down = value - np.sqrt(np.maximum(square - error, 0.0))
    up = np.sqrt(square + error) - value
    return Distance(np.minimum(value, 1.0), np.maximum(down, up))


def kl(p: Array, q: Array, spacing: float) -> Distance:
    """∫ p log(p/q); inf, with error inf, where q is 0 (or has underflowed) and p is not.

    Nothing bounds what the missing mass (b) would add, since a tail can hold any divergence. The
    estimate multiplies it by 1 + the largest |log(p/q)| on the grid: 1 for a wrong normalisation,
    the rest as if the ratio went on beyond the grid as at its worst on it.

    >>> x = np.linspace(-8, 9, 1701)
    >>> p, q = (np.exp(-0.5 * (x - mean) ** 2) / np.sqrt(2 * np.pi) for mean in (0, 1))
    >>> d = kl(p, q, 0.01)
    >>> bool(abs(d.value - 0.5) < 1e-9), bool(d.error < 1e-9)
    (True, True)
    """
    p, q, spacing = _grids(p, q, spacing)
    terms = kl_divergence(p[..., None], q[..., None])
    value, error = _with_error(_trapezoid, terms, spacing)
    both = (p > 0) & (q > 0)
    log_ratio = np.log(np.where(both, p, 1.0)) - np.log(np.where(both, q, 1.0))
    worst = np.abs(log_ratio).max(axis=-1)
    return Distance(value, error + (1 + worst) * _missing(p, q, spacing))


def _grids(p: Array, q: Array, spacing: float) -> tuple[FloatArray, FloatArray, float]:
    remedy = "It holds the density at each point of an even grid."
    p, q = _check.finite("p", p, remedy), _check.finite("q", q, remedy)
    spacing = _check.positive(spacing, "spacing", "It is the step of the grid: x[1] - x[0].")
    for name, density in (("p", p), ("q", q)):
        _check.densities(density, name)
        if density.ndim == 0 or density.shape[-1] < 5:
            raise InvalidInput(
                f"{name} must have at least 5 points on its last axis, got shape {density.shape}. "
                "Take a finer grid: every second point has to give an estimate too."
            )
    try:
        shape = np.broadcast_shapes(p.shape, q.shape)
    except ValueError:
        raise InvalidInput(
            f"p and q must be given on one grid, got shapes {p.shape} and {q.shape}. "
            "Evaluate both densities at the same points."
        ) from None
    return np.broadcast_to(p, shape), np.broadcast_to(q, shape), spacing


def _trapezoid(values: FloatArray, spacing: float) -> Any:
    return np.trapezoid(values, dx=spacing, axis=-1)


def _integral_of_size(values: FloatArray, spacing: float) -> Any:
    """∫|f| for the f that is linear between its values."""
    left, right = values[..., :-1], values[..., 1:]
    size = np.abs(left) + np.abs(right)
    split = (left**2 + right**2) / np.where(size > 0, size, 1.0)
    crossing = np.sign(left) * np.sign(right) < 0
    return 0.5 * spacing * np.where(crossing, split, size).sum(axis=-1)


def _with_error(
    rule: Callable[[FloatArray, float], Any], values: FloatArray, spacing: float
) -> tuple[Any, Any]:
    """The rule's integral, and how far it is from the ones on every second point."""
    fine = rule(values, spacing)
    with np.errstate(invalid="ignore"):
        errors = [np.abs(fine - _coarse(rule, values, spacing, start)) for start in (0, 1)]
    return fine, np.where(np.isfinite(fine), np.maximum(*errors), np.inf)[()]


def _coarse(
    rule: Callable[[FloatArray, float], Any], values: FloatArray, spacing: float, start: int
) -> Any:
    """The rule on every second point from `start`, and on the single steps left at the ends."""
    last = start + (values.shape[-1] - 1 - start) // 2 * 2
    ends = rule(values[..., : start + 1], spacing) + rule(values[..., last:], spacing)
    return ends + rule(values[..., start : last + 1 : 2], 2 * spacing)


def _missing(p: FloatArray, q: FloatArray, spacing: float) -> Any:
    return np.abs(1 - _trapezoid(p, spacing)) + np.abs(1 - _trapezoid(q, spacing))
