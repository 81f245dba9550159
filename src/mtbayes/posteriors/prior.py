"""The Gaussian prior p(θ) = N(mean, std²), diagonal."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from mtbayes.errors import InvalidInput
from mtbayes.types import Array


class Prior(NamedTuple):
    """Mean and standard deviation of each parameter: scalars, or [P]."""

    mean: Array
    std: Array


def prior(mean: Any = 0.0, std: Any = 1.0, *, like: Any = None) -> Prior:
    """A Gaussian prior; each of mean and std is a number, a vector [P], or a tree of leaves.

    like: a tree of parameters (`model.unravel(theta)`), needed where mean or std is a tree; each
        leaf of theirs is spread over the leaf of that place.

    >>> prior(0.0, 0.1).std.item()
    0.1...
    """
    mean, std = (_flat(name, v, like) for name, v in (("mean", mean), ("std", std)))
    if not np.all(np.isfinite(np.asarray(mean))):
        raise InvalidInput("prior mean must be finite, got NaN or infinity. 0 is usual.")
    if not np.all(np.asarray(std) > 0) or not np.all(np.isfinite(np.asarray(std))):
        raise InvalidInput(
            f"prior std must be finite and above 0, got {float(np.min(np.asarray(std))):g}. A "
            "prior without spread leaves nothing to learn."
        )
    return Prior(mean, std)


def _flat(name: str, value: Any, like: Any) -> Array:
    if jax.tree_util.all_leaves([value]) and np.ndim(value) <= 1:
        return np.asarray(value, dtype=jnp.result_type(float))
    if like is None:
        raise InvalidInput(
            f"prior {name} must be a number or a vector unless `like` is given, got a "
            f"{type(value).__name__}. Pass like=model.unravel(theta)."
        )
    try:
        spread = jax.tree.map(lambda v, p: jnp.broadcast_to(v, jnp.shape(p)), value, like)
    except ValueError as error:
        raise InvalidInput(f"prior {name} must be a tree like the parameters: {error}") from None
    return ravel_pytree(spread)[0]
