"""Gaussians over rows."""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import norm

from mtbayes import InvalidInput
from mtbayes.learners.cloud import Cloud
from mtbayes.members import Points


def test_member_is_a_gaussian_up_to_the_unit_of_volume():
    rng = np.random.default_rng(0)
    theta, x = rng.normal(size=(3, 4)), rng.normal(size=(5, 2))
    cloud = Cloud(2)
    own = cloud.log_lik(Points(jnp.asarray(theta)), jnp.asarray(x), np.zeros(5))
    std = 0.05 + np.log1p(np.exp(theta[:, None, 2:]))
    expected = norm.logpdf(x, theta[:, None, :2], std).sum(axis=-1) + np.log(2 * np.pi * np.e)
    np.testing.assert_allclose(own, expected, atol=1e-4)
    assert hash(cloud) == hash(Cloud(2))
    assert cloud.initial(np.ones(cloud.size)).shape == cloud.scale().shape == (cloud.size,)


def test_member_refuses_other_columns_and_integrals():
    with pytest.raises(InvalidInput, match=r"shape \(n, 2\)"):
        Cloud(2).check(np.zeros((4, 3)), np.zeros(4))
    with pytest.raises(InvalidInput, match="Criterion"):
        Cloud(2).log_power_integral(Points(np.zeros((1, 4))), np.zeros((3, 2)), 0.5)
