"""The grid posterior: its divergence, and the minimiser of a linear loss beside it."""

import jax
import numpy as np
import pytest

from mtbayes.posteriors import grid


@pytest.mark.parametrize("t_p", [0.05, 0.3, 0.5, 0.9, 1 - 1e-6, 1.0])
@pytest.mark.parametrize("scale", [0.1, 3.0, 1000.0])
def test_tilt_minimises(t_p, scale):
    rng = np.random.default_rng(0)
    prior = rng.dirichlet(np.ones(30))
    gain = scale * rng.standard_normal(30)

    def value(q):
        return float(grid.divergence(q, prior, t_p)) - q @ gain

    q = np.exp(grid.tilt(np.log(prior), gain, t_p))
    assert q.sum() == pytest.approx(1, abs=1e-12)
    best = value(q)
    tolerance = 1e-12 * max(1, abs(best))
    for size in (1e-3, 0.1, 1.0):
        for _ in range(20):
            other = q * np.exp(size * rng.standard_normal(30))
            assert value(other / other.sum()) >= best - tolerance
    assert value(prior) >= best


def test_tilt_is_continuous_at_order_one():
    rng = np.random.default_rng(0)
    prior, gain = rng.dirichlet(np.ones(30)), rng.standard_normal(30)
    near, at = (np.exp(grid.tilt(np.log(prior), gain, t_p)) for t_p in (1 - 1e-9, 1.0))
    np.testing.assert_allclose(near, at, rtol=1e-7)


def test_tilt_of_constant_gain_is_the_prior():
    prior = np.array([0.2, 0.3, 0.5])
    for t_p in (0.4, 1.0):
        np.testing.assert_allclose(np.exp(grid.tilt(np.log(prior), np.full(3, 7.0), t_p)), prior)


def test_sample_frequencies():
    """5 standard deviations of a binomial: fails with probability below 1e-6."""
    q = np.array([0.7, 0.1, 0.2])
    draws = np.asarray(grid.sample(jax.random.key(0), q, 20_000))
    counts = np.bincount(draws, minlength=3)
    assert np.all(np.abs(counts - 20_000 * q) < 5 * np.sqrt(20_000 * q * (1 - q)))
