"""The error rate of an ensemble, by what is known of its members.

The whole ensemble p_q = E_q p_θ errs on a row only where p_q(y|x) <= 1/2, so that its error rate is
at most each of

- first order:   2 E_q[1 - p_θ(y|x)];
- second order:  4 E_{θ,θ'}[(1 - p_θ(y|x)) (1 - p_θ'(y|x))], the square of the same, inside the mean;
- log_t:         R_t^m(q) / (-log_t ½), for t < 1;
- margin:        the share of rows on which M drawn members favour the label by less than γ, plus
  exp(-Mγ²/2)/δ. For where p_q errs, another class is at least as probable, and by Hoeffding M
  members say otherwise by more than γ with probability exp(-Mγ²/2) or less; Markov's inequality
  turns that into a share of rows with probability 1-δ over the members.
"""

from __future__ import annotations

import math
from dataclasses import replace

import jax.numpy as jnp

from mtbayes.maths import log_t
from mtbayes.theory.bounds import Bound
from mtbayes.types import Array

_ADDED = ("empirical risk", "Monte Carlo error", "for ")


def joint_doubt(log_lik: Array) -> Array:
    """Π_j (1 - p_θj(y|x)) of k members, [k, n] -> [n]: the loss of order k.

    >>> joint_doubt(jnp.log(jnp.array([[0.5], [0.8]]))).round(2)
    Array([0.1], dtype=float32)
    """
    return jnp.prod(-jnp.expm1(log_lik), axis=0)


def order_factor(k: int) -> float:
    """What a bound on E of `joint_doubt` is multiplied with: 2^k."""
    return 2.0**k


def log_t_factor(t: float) -> float:
    """What a bound on R_t^m is multiplied with: 1/(-log_t ½).

    >>> round(log_t_factor(0.5), 3)
    1.707
    """
    return -1 / float(log_t(0.5, t))


def beyond_margin(members: int, margin: float, delta: float) -> float:
    """exp(-Mγ²/2)/δ: rows on which M members may be sure and yet the whole ensemble errs.

    >>> round(beyond_margin(100, 0.5, 0.01), 5)
    0.00037
    """
    return math.exp(-members * margin**2 / 2) / delta


def times(bound: Bound, factor: float) -> Bound:
    """The bound on a risk that is at most `factor` times the bounded one."""
    terms = {
        name: factor * v if isinstance(v, float) and name.startswith(_ADDED) else v
        for name, v in bound.terms.items()
    }
    return replace(bound, value=factor * bound.value, terms=terms)
