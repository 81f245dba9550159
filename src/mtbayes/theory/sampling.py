"""What bounds need of Gaussian posteriors: divergences, density ratios, losses of drawn members.

A state has mean and log_std, [K, P] each: K components, mean field being one. So has the prior's,
component by component, which is what a fit leaves behind. Members are as many from each component
as far as that goes; since KL is jointly convex, m of them cost m times the components' mean KL.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from mtbayes.criteria import multi_sample_loss
from mtbayes.maths import gaussian_kl_divergence
from mtbayes.members import Points
from mtbayes.theory.votes import joint_doubt
from mtbayes.types import Array, FloatArray

# Groups of members at most and at least, rows for each, and random numbers in all, about.
_GROUPS, _FEWEST, _ROWS, _NUMBERS = 4000, 200, 256, 2e9
_AT_ONCE = 100

Loss = Callable[[Any, tuple[Array, Array], Array], Array]
"""The loss of each row, [n], of a model with outputs [m, n, k] and its own [m, size], on y[n]."""


def divergence(state: Any, prior: Any) -> float:
    """KL(q||p) of one member, in double precision: the mean over components, a bound for K > 1."""
    mean, std = _moments(state)
    return float(np.sum(gaussian_kl_divergence(mean, std, *_moments(prior))) / len(mean))


def log_ratio(theta: Array, state: Any, prior: Any) -> float:
    """log dQ/dP of drawn members θ[S, P], of which j is from component j mod K."""
    theta = np.asarray(theta, float)
    density = []
    for mean, std in (_moments(state), _moments(prior)):
        which = np.arange(len(theta)) % len(mean)
        z = (theta - mean[which]) / std[which]
        density.append(-0.5 * np.sum(z * z) - np.sum(np.log(std[which])))
    return float(density[0] - density[1])


def mean_losses(
    model: Any, loss: Loss, state: Any, x: Array, y: Array, *, members: int, key: Array
) -> FloatArray:
    """Monte Carlo values [S] of E_Q of the mean loss of rows x, y, for Q = q^members.

    Each is of a group of members drawn for it, on 256 rows drawn for it (on all rows, where those
    are fewer). So they are independent, and each has the mean loss as its expectation.
    """
    groups = int(np.clip(_NUMBERS / (members * model.size), _FEWEST, _GROUPS))
    evaluate = _program(model, loss, members, len(y) < _ROWS)
    state, x, y = jax.tree.map(jnp.asarray, (state, x, y))
    keys = jax.random.split(key, (-(-groups // _AT_ONCE), _AT_ONCE))
    return np.concatenate([np.asarray(evaluate(part, state, x, y), float) for part in keys])


def wrong(model: Any, outputs: tuple[Array, Array], y: Array) -> Array:
    """1 where the class with the highest mean probability is not the label."""
    return jnp.argmax(model.likelihood.mixture(*outputs).log_probs, axis=-1) != y


def doubt(model: Any, outputs: tuple[Array, Array], y: Array) -> Array:
    """The members' joint doubt about the label."""
    return joint_doubt(_log_lik(model, outputs, y))


@lru_cache
def log_t_loss(t: float) -> Loss:
    """-log_t of the members' mean likelihood."""
    return partial(_log_t_loss, t)


def _log_t_loss(t: float, model: Any, outputs: tuple[Array, Array], y: Array) -> Array:
    log_lik = _log_lik(model, outputs, y)
    return multi_sample_loss(log_lik, log_lik.shape[0], t)


def _log_lik(model: Any, outputs: tuple[Array, Array], y: Array) -> Array:
    """[m, n]; the label -1, which no class has, has no probability."""
    log_lik = model.likelihood.log_lik(*outputs, y)
    return jnp.where(y < 0, -jnp.inf, log_lik) if jnp.issubdtype(y.dtype, jnp.integer) else log_lik


def _moments(state: Any) -> tuple[FloatArray, FloatArray]:
    return np.asarray(state.mean, float), np.exp(np.asarray(state.log_std, float))


@lru_cache(maxsize=32)
def _program(model: Any, loss: Loss, members: int, all_rows: bool) -> Callable[..., Array]:
    """Mean losses of groups of members, one for each key."""

    def group(key: Array, state: Any, x: Array, y: Array) -> Array:
        which, around, rows = jax.random.split(key, 3)
        if not all_rows:
            picked = jax.random.randint(rows, (_ROWS,), 0, len(y))
            x, y = x[picked], y[picked]
        k, parameters = state.mean.shape
        component = jax.random.permutation(which, jnp.arange(-(-members // k) * k) % k)[:members]
        normal = jax.random.normal(around, (members, parameters))
        theta = state.mean[component] + jnp.exp(state.log_std[component]) * normal
        return jnp.mean(loss(model, model.outputs(Points(theta), x), y))

    def groups(keys: Array, state: Any, x: Array, y: Array) -> Array:
        return jax.lax.map(lambda key: group(key, state, x, y), keys)

    return jax.jit(groups)
