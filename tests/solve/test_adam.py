"""Our Adam is optax's."""

import jax
import jax.numpy as jnp
import numpy as np
import optax

from mtbayes.solve import adam


def test_directions_and_moments_are_those_of_optax():
    rng, theirs = np.random.default_rng(0), optax.scale_by_adam()
    parameters = (jnp.zeros(5), jnp.zeros((2, 3)))
    ours, other = adam.begin(parameters), theirs.init(parameters)
    for scale in (1.0, 1e-6, 1e3, 0.0, 1.0):
        gradient = jax.tree.map(
            lambda v, scale=scale: jnp.asarray(scale * rng.normal(size=v.shape), v.dtype),
            parameters,
        )
        uphill, ours = jax.jit(adam.direction)(gradient, ours)
        expected, other = jax.jit(theirs.update)(gradient, other)
        for one, two in zip(
            jax.tree.leaves((uphill, ours)), jax.tree.leaves((expected, other)), strict=True
        ):
            np.testing.assert_allclose(one, two, rtol=1e-6)


def test_moments_begin_in_the_precision_that_is_trained_in():
    begun = adam.begin(np.zeros(3, np.float64))
    assert begun.mean.dtype == jnp.zeros(3).dtype
