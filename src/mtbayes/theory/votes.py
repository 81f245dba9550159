"""The error rate of an ensemble, by what is known of its members.

The whole ensemble p_q = E_q p_θ errs on a row only where p_q(y|x) <= 1/2, so that its error rate is
at most each of

- first order:   2 E_q[1 - p_θ(y|x)];
- second order:  4 E_{θ,θ'}[(1 - p_θ(y|x)) (1 - p_θ'(y|x))], its square;
- log_t:         R_t^m(q) / (-log_t ½), for t < 1;
- margin:        the share of rows on which M drawn members favour the label by less than γ, plus
  exp(-Mγ²/2)/δ. For where p_q errs, another class is at least as probable, and by Hoeffding M
  members say otherwise by more than γ with probability exp(-Mγ²/2) or less; Markov's inequality
  turns that into a share of rows with probability 1-δ over the members.
"""

from __future__ import annotations

import math

import jax.numpy as jnp

from mtbayes.maths import log_t
from mtbayes.theory.bounds import Bound, sentence
from mtbayes.types import Array

_ADDED = ("empirical risk", "Monte Carlo error", "for ")


def joint_doubt(log_lik: Array) -> Array:
    """Π_j (1 - p_θj(y|x)) of k members, [k, n] -> [n]: the loss of order k.

    >>> joint_doubt(jnp.log(jnp.array([[0.5], [0.5]]))).tolist()
    [0.25]
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


def margin_for(members: int, share: float, delta: float) -> float:
    """The γ for which exp(-Mγ²/2)/δ is the given share of rows.

    >>> round(margin_for(500, 0.001, 0.01), 3)
    0.215
    """
    return math.sqrt(-2 * math.log(share * delta) / members)


def times(bound: Bound, factor: float, of: str) -> Bound:
    """The bound on an error rate that is at most `factor` times the bounded risk."""
    value = factor * bound.value
    terms: dict[str, float | str] = {
        name: factor * v if isinstance(v, float) and name.startswith(_ADDED) else v
        for name, v in bound.terms.items()
    }
    terms |= {"bounds": of, "least loss": 0.0, "largest loss": 1.0}
    return Bound(value, terms, sentence(value, terms))
