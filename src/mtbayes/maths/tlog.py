"""The t-logarithm, its inverse, and the logarithm of that inverse.

All three answer in the kind they are given: NumPy numbers in double precision, JAX arrays in
JAX's own precision, differentiable in every argument (t too, also at t = 1).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.custom_derivatives import SymbolicZero

from mtbayes import _check
from mtbayes.types import Array


def log_t(x: Array, t: Array) -> Array:
    """The t-logarithm log_t(x) = (x^(1-t) - 1)/(1-t), and log x at t = 1; eq. (1) of the paper.

    x: at least 0, any shape; log_t(0) is -1/(1-t), and -inf at t = 1
    t: in [0, 1], broadcast against x; may be traced

    The slope x^(-t) is infinite at x = 0 unless t = 0. Train with `log_t_from_log`, whose slope
    is finite everywhere.

    >>> float(log_t(0.25, 0.5))
    -1.0
    """
    _check.loss_order(t)
    xp = namespace(x, t)
    if xp is jnp:
        return _log_t_jax(*_same_kind(x, t))
    with np.errstate(divide="ignore"):
        return _log_t_value(np, np.log(np.asarray(x, float)), np.asarray(t, float))


def log_t_from_log(log_x: Array, t: Array) -> Array:
    """The t-logarithm of x, given log x: (x^(1-t) - 1)/(1-t), and log x at t = 1.

    log_x: any shape, -inf stands for x = 0
    t: in [0, 1], broadcast against log_x; may be traced

    >>> float(log_t_from_log(jnp.log(0.25), 0.5))
    -1.0
    """
    _check.loss_order(t)
    return log_t_of_any_order(log_x, t)


def exp_t(y: Array, t: Array) -> Array:
    """The inverse of log_t: (1 + (1-t) y)^(1/(1-t)) where that base is positive, else 0.

    >>> float(exp_t(-1.0, 0.5)), float(exp_t(-2.5, 0.5))
    (0.25, 0.0)
    """
    _check.loss_order(t)
    if namespace(y, t) is jnp:
        return _exp_t_jax(*_same_kind(y, t))
    return np.exp(log_exp_t(y, t))


def log_exp_t(y: Array, t: Array) -> Array:
    """The logarithm of exp_t(y): log(1 + (1-t) y)/(1-t), and y at t = 1.

    It turns Tsallis quantities into Rényi ones: H^R_t = log exp_t(H_t) and
    D^R_t = -log exp_t(-D_t), for any order t >= 0.

    >>> float(log_exp_t(0.3, 1.0))
    0.3
    """
    if namespace(y, t) is jnp:
        return _log_exp_t_jax(*_same_kind(y, t))
    return _log_exp_t_value(np, np.asarray(y, float), np.asarray(t, float))


def log_t_of_any_order(log_x: Array, t: Array) -> Array:
    """`log_t_from_log` without the rule t <= 1: divergences have orders above 1."""
    if namespace(log_x, t) is jnp:
        return _log_t_from_log_jax(*_same_kind(log_x, t))
    with np.errstate(over="ignore"):
        return _log_t_value(np, np.asarray(log_x, float), np.asarray(t, float))


def namespace(*values: Any) -> Any:
    """jax.numpy if any value belongs to JAX, else numpy."""
    return jnp if any(isinstance(v, jax.Array) for v in values) else np


def _same_kind(*values: Any) -> tuple[Any, ...]:
    dtype = jnp.result_type(float, *values)
    return tuple(jnp.asarray(v, dtype) for v in values)


# One minus t is exact in floating point for t in [1/2, 2], and expm1 and log1p keep every digit
# for small arguments: that is all the stability near t = 1 there is to it.


def _log_t_value(xp: Any, log_x: Array, t: Array) -> Array:
    a = 1 - t
    safe = xp.where(a == 0, 1.0, a)
    return xp.where(a == 0, log_x, xp.expm1(safe * log_x) / safe)


def _log_exp_t_value(xp: Any, y: Array, t: Array) -> Array:
    a = 1 - t
    safe = xp.where(a == 0, 1.0, a)
    z = safe * y
    inside = z > -1
    root = xp.log1p(xp.where(inside, z, 0.0)) / safe
    return xp.where(a == 0, y, xp.where(inside, root, -xp.inf * xp.sign(safe)))


def _series(z: Array, coefficients: list[float]) -> Array:
    total = jnp.zeros_like(z)
    for c in reversed(coefficients):
        total = total * z + c
    return total


def _along(value: Array, *terms: tuple[Any, Callable[[], Array]]) -> Array:
    """Sum of slope times tangent; an argument held fixed adds nothing, infinite slope or not."""
    moved = [slope() * d for d, slope in terms if not isinstance(d, SymbolicZero)]
    return sum(moved, start=jnp.zeros_like(value))


@jax.custom_jvp
def _log_t_from_log_jax(log_x: Array, t: Array) -> Array:
    return _log_t_value(jnp, log_x, t)


@partial(_log_t_from_log_jax.defjvp, symbolic_zeros=True)
def _log_t_from_log_jvp(primals: Any, tangents: Any) -> Any:
    (log_x, t), (d_log_x, d_t) = primals, tangents
    value = _log_t_from_log_jax(log_x, t)
    return value, _along(
        value,
        (d_log_x, lambda: _power(log_x, 1 - t)),
        (d_t, lambda: _log_t_slope_in_t(log_x, t)),
    )


def _power(log_x: Array, a: Array) -> Array:
    """x^a from log x, with 0^0 = 1."""
    return jnp.exp(jnp.where(a == 0, 0.0, a * jnp.where(a == 0, 0.0, log_x)))


# With z = (1-t) log x the slope in t is -log(x)^2 ((z-1) e^z + 1)/z^2, a 0/0 at z = 0.
_LOG_T_SERIES = [1 / (math.factorial(k) * (k + 2)) for k in range(13)]


def _log_t_slope_in_t(log_x: Array, t: Array) -> Array:
    a = 1 - t
    z = a * jnp.where(jnp.isinf(log_x) & (a == 0), 0.0, log_x)
    small = jnp.abs(z) < 0.3
    near = log_x**2 * _series(jnp.where(small, z, 0.0), _LOG_T_SERIES)
    bounded = jnp.maximum(z, -700.0)  # e^z is 0 below, and 0 times -inf must not be NaN
    far = ((bounded - 1) * jnp.exp(bounded) + 1) / jnp.where(small, 1.0, a) ** 2
    return -jnp.where(small, near, far)


@jax.custom_jvp
def _log_t_jax(x: Array, t: Array) -> Array:
    return _log_t_value(jnp, jnp.log(x), t)


@partial(_log_t_jax.defjvp, symbolic_zeros=True)
def _log_t_jvp(primals: Any, tangents: Any) -> Any:
    (x, t), (d_x, d_t) = primals, tangents
    value = _log_t_jax(x, t)
    return value, _along(
        value,
        (d_x, lambda: jnp.where(t == 0, 1.0, x ** -jnp.where(t == 0, 1.0, t))),
        (d_t, lambda: _log_t_slope_in_t(jnp.log(x), t)),
    )


@jax.custom_jvp
def _log_exp_t_jax(y: Array, t: Array) -> Array:
    return _log_exp_t_value(jnp, y, t)


@partial(_log_exp_t_jax.defjvp, symbolic_zeros=True)
def _log_exp_t_jvp(primals: Any, tangents: Any) -> Any:
    (y, t), (d_y, d_t) = primals, tangents
    value = _log_exp_t_jax(y, t)
    inside = (1 - t) * y > -1
    slope_in_y = jnp.where(inside, 1 / jnp.where(inside, 1 + (1 - t) * y, 1.0), 0.0)
    return value, _along(
        value, (d_y, lambda: slope_in_y), (d_t, lambda: _log_exp_t_slope_in_t(y, t))
    )


# With z = (1-t) y the slope in t is y^2 (log(1+z) - z/(1+z))/z^2, again a 0/0 at z = 0.
_LOG_EXP_T_SERIES = [(-1) ** k * (k + 1) / (k + 2) for k in range(16)]


def _log_exp_t_slope_in_t(y: Array, t: Array) -> Array:
    a = 1 - t
    z = a * y
    small = jnp.abs(z) < 0.1
    inside = z > -1
    near = y**2 * _series(jnp.where(small, z, 0.0), _LOG_EXP_T_SERIES)
    w = jnp.where(inside & ~small, z, 1.0)
    far = (jnp.log1p(w) - w / (1 + w)) / jnp.where(small, 1.0, a) ** 2
    return jnp.where(small, near, jnp.where(inside, far, 0.0))


@jax.custom_jvp
def _exp_t_jax(y: Array, t: Array) -> Array:
    return jnp.exp(_log_exp_t_jax(y, t))


@partial(_exp_t_jax.defjvp, symbolic_zeros=True)
def _exp_t_jvp(primals: Any, tangents: Any) -> Any:
    (y, t), (d_y, d_t) = primals, tangents
    value = _exp_t_jax(y, t)
    inside = (1 - t) * y > -1
    log_value = _log_exp_t_jax(jnp.where(inside, y, 0.0), t)
    slope_in_y = jnp.where(inside, jnp.exp(t * log_value), 0.0)
    return value, _along(
        value, (d_y, lambda: slope_in_y), (d_t, lambda: value * _log_exp_t_slope_in_t(y, t))
    )
