"""Likelihoods against scipy.stats, and the integrals of their powers against brute force."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate, stats

from mtbayes import InvalidInput
from mtbayes.likelihoods import Bernoulli, Categorical, Gaussian

NONE = jnp.zeros((1, 0))
POWERS = [0.5, 1.0, 1.1, 1.5, 2.0, 3.0]


@pytest.fixture
def x64():
    with jax.enable_x64(True):
        yield


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def probabilities(logits):
    weight = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return weight / weight.sum(axis=-1, keepdims=True)


# Labels


def test_categorical_log_lik(x64, rng):
    logits, y = 3 * rng.normal(size=(4, 6, 5)), rng.integers(0, 5, 6)
    got = Categorical(5).log_lik(jnp.array(logits), NONE, jnp.array(y))
    law = stats.multinomial(1, probabilities(logits))
    np.testing.assert_allclose(got, law.logpmf(np.eye(5)[y]), rtol=1e-10)


@pytest.mark.parametrize("power", POWERS)
def test_categorical_integral_is_a_sum(x64, rng, power):
    logits = 3 * rng.normal(size=(4, 6, 5))
    got = Categorical(5).log_power_integral(jnp.array(logits), NONE, power)
    np.testing.assert_allclose(np.exp(got), (probabilities(logits) ** power).sum(-1), rtol=1e-12)


def test_bernoulli_log_lik(x64, rng):
    logits, y = 3 * rng.normal(size=(4, 6, 1)), rng.integers(0, 2, 6)
    law = stats.bernoulli(1 / (1 + np.exp(-logits[..., 0])))
    for labels in (y, y.astype(bool), y.astype(float)):
        got = Bernoulli().log_lik(jnp.array(logits), NONE, jnp.array(labels))
        np.testing.assert_allclose(got, law.logpmf(y), rtol=1e-12)


@pytest.mark.parametrize("power", POWERS)
def test_bernoulli_integral_is_a_sum(x64, rng, power):
    logits = 3 * rng.normal(size=(4, 6, 1))
    got = Bernoulli().log_power_integral(jnp.array(logits), NONE, power)
    p = 1 / (1 + np.exp(-logits[..., 0]))
    np.testing.assert_allclose(np.exp(got), p**power + (1 - p) ** power, rtol=1e-12)


def test_bernoulli_is_categorical_with_a_logit_of_nought(x64, rng):
    logit, y = rng.normal(size=(2, 3, 1)), np.array([0, 1, 1])
    both = np.concatenate([np.zeros_like(logit), logit], axis=-1)

    @partial(jax.jit, static_argnums=0)
    def said(likelihood, outputs):
        log_lik = likelihood.log_lik(outputs, NONE, y)
        return log_lik, likelihood.log_power_integral(outputs, NONE, 1.7)

    for one, two in zip(said(Bernoulli(), logit), said(Categorical(2), both), strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("likelihood", [Categorical(3), Bernoulli()])
def test_huge_logits_are_finite(likelihood):
    outputs = 1e4 * jnp.array([[[1.0, -1.0, 0.0], [-1.0, 1.0, 1.0]]])[..., : likelihood.outputs]
    y = jnp.array([1, 1])

    def total(v):
        log_lik = likelihood.log_lik(v, NONE, y)
        return jnp.sum(log_lik + likelihood.log_power_integral(v, NONE, 1.5))

    value, slope = jax.jit(jax.value_and_grad(total))(outputs)
    assert value.dtype == jnp.float32
    assert np.isfinite(value)
    assert np.isfinite(slope).all()


@pytest.mark.parametrize(
    ("likelihood", "y", "words"),
    [
        (Categorical(3), np.array([0, 3]), ["0..2", "got 3", "classes"]),
        (Categorical(3), np.array([-1, 0]), ["0..2", "got -1"]),
        (Categorical(3), np.array([0.0, 1.0]), ["whole numbers", "float64", "LabelEncoder"]),
        (Categorical(3), np.array(["a"]), ["whole numbers", "LabelEncoder"]),
        (Bernoulli(), np.array([0, 2]), ["0 and 1", "got 2"]),
        (Bernoulli(), np.array([0, np.nan]), ["0 and 1", "nan"]),
        (Gaussian(), np.array([0.0, np.nan]), ["y must be finite", "nan", "[1]", "impute"]),
        (Gaussian(), np.array([np.inf]), ["y must be finite", "inf"]),
    ],
)
def test_impossible_targets_are_named(likelihood, y, words):
    with pytest.raises(InvalidInput) as error:
        likelihood.check(y)
    for word in words:
        assert word in str(error.value)


@pytest.mark.parametrize(
    ("likelihood", "y"),
    [
        (Categorical(3), np.array([0, 2], np.uint8)),
        (Bernoulli(), np.array([True, False])),
        (Gaussian(), np.array([-1e30, 3.0])),
    ],
)
def test_possible_targets_pass(likelihood, y):
    likelihood.check(y)


# Numbers


def outputs_and_scale(likelihood, rng):
    """Outputs [4, 6, k], own [4, size], and what mean and standard deviation must be."""
    outputs = rng.normal(size=(4, 6, likelihood.outputs))
    own = rng.normal(size=(4, likelihood.size))
    raw = {"learned": own, "by_input": outputs[..., -1]}.get(likelihood.std)
    scale = likelihood.std if raw is None else likelihood.floor + np.log1p(np.exp(raw))
    return jnp.array(outputs), jnp.array(own), outputs[..., 0], np.broadcast_to(scale, (4, 6))


GAUSSIANS = [Gaussian(0.3), Gaussian("learned", 0.05), Gaussian("by_input", 0.2)]


@pytest.mark.parametrize("likelihood", GAUSSIANS)
def test_gaussian_log_lik(x64, rng, likelihood):
    outputs, own, mean, std = outputs_and_scale(likelihood, rng)
    y = rng.normal(size=6)
    got = likelihood.log_lik(outputs, own, jnp.array(y))
    np.testing.assert_allclose(got, stats.norm(mean, std).logpdf(y), rtol=1e-12)


@pytest.mark.parametrize("likelihood", GAUSSIANS)
@pytest.mark.parametrize("power", POWERS)
def test_gaussian_integral_is_a_quadrature(x64, rng, likelihood, power):
    outputs, own, mean, std = outputs_and_scale(likelihood, rng)
    got = likelihood.log_power_integral(outputs, own, jnp.array(power))
    assert got.shape == (4, 6)
    law = stats.norm(mean[1, 2], std[1, 2])
    exact, _ = integrate.quad(
        lambda y: law.pdf(y) ** power, *law.mean() + law.std() * np.array([-30, 30]), limit=500
    )
    np.testing.assert_allclose(np.exp(got[1, 2]), exact, rtol=1e-8)


@pytest.mark.parametrize("std", ["learned", "by_input"])
def test_the_floor_is_respected(std):
    likelihood = Gaussian(std, floor=0.2)
    lowest = jnp.full((1, 1, likelihood.outputs), -1e4), jnp.full((1, likelihood.size), -1e4)
    np.testing.assert_allclose(likelihood.moments(*lowest)[1], 0.2, rtol=1e-6)
    peak = likelihood.log_lik(*lowest, jnp.array([-1e4]))
    np.testing.assert_allclose(np.exp(peak), stats.norm(0, 0.2).pdf(0), rtol=1e-5)


def test_a_learned_scale_starts_at_one_and_the_floor():
    likelihood = Gaussian("learned", floor=0.25)
    _, std = likelihood.moments(jnp.zeros((1, 1, 1)), likelihood.initial()[None])
    np.testing.assert_allclose(std, 1.25, rtol=1e-6)


@pytest.mark.parametrize("likelihood", [Categorical(4), Bernoulli(), *GAUSSIANS])
def test_shapes(likelihood):
    assert likelihood.initial().shape == (likelihood.size,)
    outputs, own = jnp.zeros((2, 3, likelihood.outputs)), jnp.zeros((2, likelihood.size))
    y = jnp.array([0, 1, 1])
    for got in (
        jax.jit(likelihood.log_lik)(outputs, own, y),
        jax.jit(likelihood.log_power_integral)(outputs, own, 1.5),
    ):
        assert (got.shape, got.dtype) == ((2, 3), jnp.float32)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: Categorical(1), ["classes must be at least 2", "got 1"]),
        (lambda: Categorical(2.5), ["classes must be a whole number", "2.5"]),
        (lambda: Gaussian(0), ["std must be", "got 0"]),
        (lambda: Gaussian("lerned"), ["std must be one of 'learned'", "'lerned'"]),
        (lambda: Gaussian(floor=0.0), ["floor must be", "0.0", "bounded"]),
    ],
)
def test_bad_settings_are_named(call, words):
    with pytest.raises(InvalidInput) as error:
        call()
    for word in words:
        assert word in str(error.value)


@pytest.mark.parametrize(
    ("likelihood", "own"),
    [
        (Categorical(3), 0),
        (Gaussian(0.7), 0),
        (Gaussian("by_input"), 0),
        (Gaussian("learned"), 1),
    ],
)
def test_slopes_are_those_of_log_lik(likelihood, own):
    rng = np.random.default_rng(1)
    outputs, extra = rng.normal(size=(2, 5, likelihood.outputs)), rng.normal(size=(2, own))
    y = np.array([0, 2, 1, 1, 0])

    def total(outputs, extra):
        return likelihood.log_lik(outputs, extra, y).sum()

    with jax.enable_x64(True):
        log_lik = jax.jit(likelihood.log_lik)(outputs, extra, y)
        by_outputs = jax.jit(jax.grad(total))(outputs, extra)
        by_own = jax.jit(jax.jacobian(lambda e: likelihood.log_lik(outputs, e, y)))(extra)
    found, found_by_outputs, found_by_own = likelihood.slopes(outputs, extra, y)
    np.testing.assert_allclose(found, log_lik, rtol=1e-10)
    np.testing.assert_allclose(found_by_outputs, by_outputs, rtol=1e-9, atol=1e-12)
    own_alone = np.stack([by_own[s, :, s] for s in range(2)])  # of a member by its own parameters
    np.testing.assert_allclose(found_by_own, own_alone, rtol=1e-9)
