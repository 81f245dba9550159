"""The grid posterior: q is a probability vector over G support points of any dimension."""

from __future__ import annotations

import jax
import numpy as np
from scipy.optimize import brentq
from scipy.special import logsumexp

from mtbayes.maths import kl_divergence, renyi_divergence
from mtbayes.types import Array, FloatArray


def sample(key: Array, q: Array, m: int) -> Array:
    """Indices [m] of independent members from q[G].

    >>> sample(jax.random.key(0), np.array([0.0, 1.0]), 3).tolist()
    [1, 1, 1]
    """
    return jax.random.choice(key, len(q), (m,), p=jax.numpy.asarray(q))


def divergence(q: FloatArray, prior: FloatArray, t_p: float) -> FloatArray:
    """Rényi's divergence of order t_p from the prior, KL at t_p = 1; q[..., G] -> [...].

    >>> float(divergence(np.array([1.0, 0.0]), np.array([0.5, 0.5]), 1.0))
    0.69314718...
    """
    result: FloatArray
    result = kl_divergence(q, prior) if t_p == 1 else renyi_divergence(q, prior, t_p)
    return result


def tilt(log_prior: FloatArray, gain: FloatArray, t_p: float) -> FloatArray:
    """log q of the q that minimises D^R_{t_p}(q||p) - Σ_g q_g gain_g, for t_p in (0, 1].

    At t_p = 1 it is p·exp(gain), normalised: one application of Theorem 1's operator. Below 1
    setting the derivative to zero gives a power law with one unknown number,

        q ∝ p (mu - gain)^(-1/(1-t_p)),   mu = E_q[gain] + t_p/(1-t_p) > max gain,

    and mu is the only root of a monotone equation.

    >>> q = np.exp(tilt(np.log([0.5, 0.5]), np.array([0.0, -1.0]), 1.0))
    >>> bool(np.isclose(q[0] / q[1], np.e))
    True
    """
    gap = gain.max() - gain
    if t_p == 1:
        return _normalised(log_prior - gap)
    room = t_p / (1 - t_p)

    def power_law(x: float) -> FloatArray:
        return _normalised(log_prior - np.log1p(gap / x) / (1 - t_p))

    def excess(x: float) -> float:
        return x + float(np.exp(power_law(x)) @ gap) - room

    # At x = room the excess is not negative; it tends to -room as x falls to 0.
    low = room
    while excess(low) > 0:
        low /= 16
    if low == room:
        return power_law(room)
    return power_law(brentq(excess, low, room, xtol=1e-300, rtol=1e-14))


def _normalised(log_q: FloatArray) -> FloatArray:
    result: FloatArray = log_q - logsumexp(log_q)
    return result
