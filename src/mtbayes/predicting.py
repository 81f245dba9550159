"""From a fitted posterior to a predictive distribution for new rows.

The members are drawn once and serve all rows. Rows are evaluated in chunks of one shape, members in
groups, so that the memory needed beside the result does not grow with either number.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np

from mtbayes import _check
from mtbayes.errors import InvalidInput
from mtbayes.maths import draws
from mtbayes.members import Points
from mtbayes.posteriors import Posterior
from mtbayes.predictives import ClassPredictive, GaussianPredictive
from mtbayes.types import Array

__all__ = ["ClassPredictive", "GaussianPredictive", "Predictive", "predictive"]

_GROUP = 8


class Predictive(Protocol):
    """What every predictive distribution offers; it is a NamedTuple of arrays."""

    @property
    def row_axis(self) -> int:
        """The axis of its arrays along which rows lie."""

    def log_prob(self, y: Any) -> Any:
        """Log probability or density of targets y[n], as [n]."""

    def sample(self, key: Array, size: int) -> Any:
        """Targets [size, n]."""


def predictive(
    model: Any,
    posterior: Posterior,
    state: Any,
    x: Any,
    *,
    key: Array | int,
    members: int = 100,
    chunk: int = 256,
) -> Any:
    """The predictive distribution p_q(y|x) = E_q p_θ(y|x) of rows x, by members drawn from q.

    model: a `Model`, whose likelihood has a `mixture`
    posterior, state: the family q and its parameters, `Solution.state`
    x: rows [n, ...] as in training
    key: a JAX key, or an int; the same key gives the same members
    members: how many, rounded up so that each of the posterior's components has as many; a
        posterior of points draws none: its points are the members
    chunk: rows evaluated at once; less needs less memory

    Returns the likelihood's `Predictive`: a `ClassPredictive` for classes, a `GaussianPredictive`
    for Gaussian targets, with NumPy arrays.

    >>> from mtbayes.likelihoods import Categorical
    >>> from mtbayes.models import Model
    >>> from mtbayes.networks import mlp
    >>> from mtbayes.posteriors import mean_field
    >>> model, key = Model(mlp((4, 5, 3)), Categorical(3)), jax.random.key(0)
    >>> state = mean_field().init(key, model)
    >>> predictive(model, mean_field(), state, np.ones((2, 4)), key=key).probs.shape
    (2, 3)
    """
    _check.count(members, "members", "100 is the default.")
    _check.count(chunk, "chunk", "256 is the default.")
    _check_offers(model)
    rows = _checked(model, x, chunk)
    theta = _members(model, posterior, state, draws.key(key), members)
    # A power of 2 where rows are few: calls of many sizes share a few compiled programs, and rows
    # one by one or together give the same numbers to the last bit, as far as there are 32 of them.
    at_once = min(chunk, max(32, 1 << (len(rows) - 1).bit_length()))
    evaluate = _in_numpy(model) if hasattr(model.network, "layers") else _program(model)
    kind = jnp.result_type(float)
    parts = []
    for begin in range(0, len(rows), at_once):
        picked = np.arange(begin, begin + at_once) % len(rows)  # the last chunk is padded
        part = evaluate(theta, rows[picked].astype(kind))
        keep = (slice(None),) * part.row_axis + (slice(len(rows) - begin),)
        parts.append(jax.tree.map(lambda v, keep=keep: np.asarray(v)[keep], part))
    axis = parts[0].row_axis
    return jax.tree.map(lambda *each: np.concatenate(each, axis), *parts)


def _in_numpy(model: Any) -> Callable[[Array, Array], Any]:
    """The mixture of members θ[S, P] on a chunk of rows, where nothing need be compiled."""

    def evaluate(theta: Array, x: Array) -> Any:
        groups = [theta[begin : begin + _GROUP] for begin in range(0, len(theta), _GROUP)]
        parts = [model.outputs(Points(group), x) for group in groups]
        outputs, own = (np.concatenate(each) for each in zip(*parts, strict=True))
        return model.likelihood.mixture(outputs, own)

    return evaluate


@lru_cache(maxsize=64)
def _program(model: Any) -> Callable[[Array, Array], Any]:
    """The compiled mixture of members θ[S, P] on a chunk of rows."""

    def evaluate(theta: Array, x: Array) -> Any:
        members, size = theta.shape
        groups = -(-members // _GROUP)
        each = -(-members // groups)
        theta = theta[jnp.arange(groups * each) % members].reshape(groups, each, size)
        grouped = jax.lax.map(lambda group: model.outputs(Points(group), x), theta)
        outputs, own = (v.reshape(v.shape[0] * v.shape[1], *v.shape[2:])[:members] for v in grouped)
        return model.likelihood.mixture(outputs, own)

    return jax.jit(evaluate)


def _members(model: Any, posterior: Posterior, state: Any, key: Array, members: int) -> Array:
    """θ[S, P], as many from each component."""
    k = posterior.components
    held = getattr(state, "components", "no")
    if held != k or not isinstance(state, posterior.state):
        raise InvalidInput(
            f"state must be one of {posterior!r}, got {type(state).__name__} with {held} "
            "components. Name the posterior that was fitted."
        )
    known = jax.tree.map(np.asarray, state)  # NumPy's in, NumPy's out
    theta = posterior.sample(key, known, -(-members // k) * k if posterior.drawn else k)
    if theta.shape[1] != model.size:
        raise InvalidInput(
            f"state must hold {model.size} parameters for this model, got {theta.shape[1]}. "
            "Predict with the model that was fitted."
        )
    if not np.isfinite(np.asarray(theta)).all():
        raise InvalidInput(
            "state must be finite, got parameters that are NaN or infinite. The fit has failed: "
            "read its status, or lower the learning rate."
        )
    return theta


def _checked(model: Any, x: Any, chunk: int) -> Any:
    """x as an array of finite rows that fit the model."""
    rows = np.asarray(x)
    if rows.ndim < 1 or len(rows) == 0:
        raise InvalidInput(
            f"x must have at least one row, got shape {rows.shape}. For one row pass x[None]."
        )
    if rows.dtype.kind not in "biuf":
        rows = _check.finite("x", rows, "Code text and categories as numbers.")
    kind = jnp.result_type(float)
    for begin in range(0, len(rows), chunk):
        with np.errstate(over="ignore"):  # what overflows is found here
            part = rows[begin : begin + chunk].astype(kind)
        if not np.isfinite(part).all():
            _check.finite("x", part, "Impute, rescale or drop such rows first.")
    model.check_rows(rows)
    return rows


def _check_offers(model: Any) -> None:
    if not hasattr(model, "outputs"):
        raise InvalidInput(
            f"model must give a network's outputs, got {type(model).__name__}, which knows "
            "log p(y|x) alone. Predict with a Model(network, likelihood)."
        )
    if not hasattr(model.likelihood, "mixture"):
        raise InvalidInput(
            "likelihood must have a method mixture(outputs, own), got "
            f"{type(model.likelihood).__name__}, which has none. Let it return a NamedTuple of "
            "arrays with a row_axis, log_prob and sample, as in mtbayes.predictives."
        )
