"""Adam, as optax has it, whose other hundred optimisers take longer to import than a small fit."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from mtbayes.types import Array

_MEAN, _SQUARE = 0.9, 0.999  # what is kept of the moments in a step
_LEAST = 1e-8  # a slope


class Moments(NamedTuple):
    """Running means of the gradient and of its square, and of how many steps."""

    count: Array
    mean: Any
    square: Any


def begin(parameters: Any) -> Moments:
    """Before the first step; NumPy's, so that no program is compiled for it."""
    nothing = jax.tree.map(
        lambda v: np.zeros(v.shape, jax.dtypes.canonicalize_dtype(v.dtype)), parameters
    )
    return Moments(np.zeros((), np.int32), nothing, nothing)


def direction(gradient: Any, before: Moments) -> tuple[Any, Moments]:
    """Uphill, about 1 for each parameter, and the moments after this step."""
    count = before.count + 1
    mean = jax.tree.map(lambda g, m: (1 - _MEAN) * g + _MEAN * m, gradient, before.mean)
    square = jax.tree.map(lambda g, v: (1 - _SQUARE) * g**2 + _SQUARE * v, gradient, before.square)
    # Both begin at 0, of which they keep less and less.
    first, second = 1 - _MEAN**count, 1 - _SQUARE**count

    def step(m: Array, v: Array) -> Array:
        return (m / first.astype(m.dtype)) / (jnp.sqrt(v / second.astype(v.dtype)) + _LEAST)

    return jax.tree.map(step, mean, square), Moments(count, mean, square)
