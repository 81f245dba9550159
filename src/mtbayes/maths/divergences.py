"""Entropies, divergences and escort distributions, on discrete distributions and on grids.

`p` and `q` hold probabilities along `axis`, or densities on an even grid whose `spacing` is
given: a sum becomes an integral by the rectangle rule. Orders are at least 0; order 1 is the
Shannon or Kullback-Leibler limit, reached without loss of digits. What is infinite is inf.
Like the t-logarithm, each function answers in the kind it is given (NumPy or JAX).
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy.special

from mtbayes import _check
from mtbayes.maths.tlog import log_exp_t, log_t_of_any_order, namespace
from mtbayes.types import Array


def tsallis_entropy(p: Array, t: Array, *, spacing: float = 1.0, axis: int = -1) -> Array:
    """H_t(p) = -∫ p^t log_t p.

    >>> float(tsallis_entropy(np.array([0.5, 0.5]), 2.0))
    0.5
    """
    xp, p = _prepare(t, p)
    log_p = _log_on_support(xp, p)
    # p^t log_t p = p log_(2-t) p: of the two, take the one whose factors cannot overflow.
    factor = xp.exp(xp.minimum(t, 1.0) * log_p)
    terms = xp.where(p > 0, factor * log_t_of_any_order(log_p, xp.minimum(t, 2 - t)), 0.0)
    return -spacing * xp.sum(terms, axis=axis)


def renyi_entropy(p: Array, t: Array, *, spacing: float = 1.0, axis: int = -1) -> Array:
    """H^R_t(p) = log(∫ p^t)/(1-t).

    >>> float(renyi_entropy(np.array([0.5, 0.5]), 0.3))  # log 2 at every order
    0.6931471805599...
    """
    return log_exp_t(tsallis_entropy(p, t, spacing=spacing, axis=axis), t)


def tsallis_divergence(
    p: Array, q: Array, t: Array, *, spacing: float = 1.0, axis: int = -1
) -> Array:
    """D_t(p||q) = ∫ p^t (log_t p - log_t q), the paper's with the sign put right.

    >>> float(tsallis_divergence(np.array([1.0, 0.0]), np.array([0.25, 0.75]), 0.5))
    1.0
    """
    xp, p, q = _prepare(t, p, q)
    log_ratio = xp.where(
        (p > 0) & (q > 0), _log_on_support(xp, q) - _log_on_support(xp, p), -xp.inf
    )
    # p^t (log_t p - log_t q) = -p log_t(q/p) by the quotient rule.
    terms = xp.where(p > 0, -p * log_t_of_any_order(xp.where(p > 0, log_ratio, 0.0), t), 0.0)
    return spacing * xp.sum(terms, axis=axis)


def renyi_divergence(
    p: Array, q: Array, t: Array, *, spacing: float = 1.0, axis: int = -1
) -> Array:
    """D^R_t(p||q) = log(∫ p^t q^(1-t))/(t-1).

    >>> float(renyi_divergence(np.array([1.0, 0.0]), np.array([0.25, 0.75]), 0.5))
    1.386294361119...
    """
    xp, p, q = _prepare(t, p, q)
    a = 1 - t
    log_q = xp.where(q > 0, a * _log_on_support(xp, q), xp.where(a < 0, xp.inf, -xp.inf))
    exponent = xp.where(p > 0, t * _log_on_support(xp, p) + log_q, -xp.inf)
    log_integral = _logsumexp(xp, exponent, axis) + np.log(spacing)
    # Near order 1, or for close p and q, through the Tsallis divergence; elsewhere the integral
    # itself, which keeps its digits when p and q hardly overlap. Where it is not used, the Tsallis
    # divergence is that of p from p, so that it does not overflow and spoil the gradient.
    near = (a == 0) | (xp.abs(log_integral) < 0.5)
    q_near = xp.where(xp.expand_dims(near, axis), q, p)
    tsallis = tsallis_divergence(p, q_near, t, spacing=spacing, axis=axis)
    return xp.where(near, -log_exp_t(-tsallis, t), log_integral / -xp.where(near, 1.0, a))


def kl_divergence(p: Array, q: Array, *, spacing: float = 1.0, axis: int = -1) -> Array:
    """D_1(p||q) = ∫ p log(p/q), infinite where p has mass and q has none.

    >>> float(kl_divergence(np.array([0.5, 0.5]), np.array([1.0, 0.0])))
    inf
    """
    return tsallis_divergence(p, q, 1.0, spacing=spacing, axis=axis)


def escort(p: Array, t: Array, *, spacing: float = 1.0, axis: int = -1) -> Array:
    """The escort distribution of order t: p^t / ∫ p^t.

    Order 1/t is where (m,t)-robust learning goes for many members and much data.

    >>> escort(np.array([0.2, 0.8]), 2.0).round(4).tolist()
    [0.0588, 0.9412]
    """
    xp, p = _prepare(t, p)
    exponent = xp.where(p > 0, t * _log_on_support(xp, p), -xp.inf)
    total = xp.expand_dims(_logsumexp(xp, exponent, axis), axis)
    return xp.exp(exponent - total) / spacing


def gaussian_kl_divergence(mean_q: Array, std_q: Array, mean_p: Array, std_p: Array) -> Array:
    """KL(N(mean_q, std_q²) || N(mean_p, std_p²)), element by element.

    The divergence of diagonal Gaussians is the sum over coordinates.

    >>> float(gaussian_kl_divergence(1.0, 1.0, 0.0, 1.0))
    0.5
    """
    xp = namespace(mean_q, std_q, mean_p, std_p)
    spread = 0.5 * (std_q / std_p) ** 2 - 0.5 - xp.log(std_q / std_p)
    return spread + 0.5 * ((mean_q - mean_p) / std_p) ** 2


def gaussian_renyi_divergence(
    mean_q: Array, std_q: Array, mean_p: Array, std_p: Array, t: Array
) -> Array:
    """Rényi's D^R_t(N(mean_q, std_q²) || N(mean_p, std_p²)), element by element.

    Order t is at least 0; above 1 the divergence is infinite where t std_p² <= (t-1) std_q².
    The divergence of diagonal Gaussians is the sum over coordinates.

    >>> float(gaussian_renyi_divergence(2.0, 1.0, 0.0, 1.0, 0.5))
    1.0
    >>> float(gaussian_renyi_divergence(0.0, 2.0, 0.0, 1.0, 2.0))
    inf
    """
    _check.order(t)
    xp = namespace(mean_q, std_q, mean_p, std_p, t)
    if xp is np:
        mean_q, std_q, mean_p, std_p, t = (
            np.asarray(v, float) for v in (mean_q, std_q, mean_p, std_p, t)
        )
    excess = (std_q / std_p) ** 2 - 1
    blend = 1 + (1 - t) * excess  # variance of the tilted Gaussian, in units of std_p²
    finite = blend > 0
    e = xp.where(finite, excess, 0.0)
    spread = 0.5 * log_exp_t(e, t) - xp.log(std_q / std_p)
    shift = 0.5 * t * ((mean_q - mean_p) / std_p) ** 2 / xp.where(finite, blend, 1.0)
    return xp.where(finite, spread + shift, xp.inf)


def _prepare(t: Array, *densities: Array) -> tuple[Any, ...]:
    _check.order(t)
    for name, p in zip("pq", densities, strict=False):
        _check.densities(p, name)
    xp = namespace(t, *densities)
    return xp, *(xp.asarray(p) if xp is jnp else np.asarray(p, float) for p in densities)


def _log_on_support(xp: Any, p: Array) -> Array:
    return xp.log(xp.where(p > 0, p, 1.0))


def _logsumexp(xp: Any, x: Array, axis: int) -> Array:
    if xp is jnp:
        return jax.scipy.special.logsumexp(x, axis=axis)
    return scipy.special.logsumexp(x, axis=axis)
