"""Pseudo-likelihoods against high precision, scipy.stats and quadrature."""

import dataclasses
import math
from functools import cache, partial

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, special, stats

from mtbayes import InvalidInput
from mtbayes.likelihoods import Categorical, Gaussian
from mtbayes.rivals import BetaDivergence
from mtbayes.robust_likelihoods import BiTempered, Huber, StudentT, tempered_log_softmax

reproducible = settings(max_examples=40, deadline=None, derandomize=True)
NONE = jnp.zeros((1, 0))
T2S = [1.0, 1 + 1e-12, 1 + 1e-6, 1.01, 1.2, 1.5, 1.501, 2.0, 4.0, 10.0]
LOGITS = [
    (0.0, 0.0, 0.0),
    (1.0, -2.0, 0.5),
    (5.0, 4.9, -3.0),
    (30.0, 0.0, -30.0),
    (1e-7, 0.0, -1e-7),
    (1e4, -1e4, 0.0),
    (1e4, 1e4, -1e4),
    (-1e4, -1e4, -1e4 + 3),
]

mp = mpmath.mp.clone()
mp.dps = 60


@pytest.fixture
def x64():
    with jax.enable_x64(True):
        yield


# The bi-tempered loss, from its definition


@cache
def tempered_probabilities(logits, t2):
    """p_c = exp_t(a_c - λ), with λ by bisection in 60 digits."""
    a, s = [mp.mpf(float(v)) for v in logits], mp.mpf(float(t2)) - 1

    def p(shift):
        if s == 0:
            return [mp.exp(v - shift) for v in a]
        return [(1 - s * (v - shift)) ** (-1 / s) for v in a]

    # At λ = max a the largest p is 1; at the upper end each is at most 1/classes.
    n = mp.mpf(len(a))
    low = max(a)
    high = low + (mp.log(n) if s == 0 else (n**s - 1) / s)
    for _ in range(190):
        middle = (low + high) / 2
        low, high = (middle, high) if sum(p(middle)) > 1 else (low, middle)
    return p((low + high) / 2)


def log_t(x, t):
    a = 1 - mp.mpf(float(t))
    return mp.log(x) if a == 0 else (x**a - 1) / a


def bi_tempered_loss(logits, label, t1, t2):
    """The Bregman divergence between the one-hot label and p, term by term as published."""
    total, power = mp.mpf(0), 2 - mp.mpf(float(t1))
    for c, p in enumerate(tempered_probabilities(logits, t2)):
        y = mp.mpf(int(c == label))
        cross = -log_t(p, t1) if y else 0  # log_t(1) = 0
        total += cross - (y**power - p**power) / power
    return total


@pytest.mark.parametrize("t2", T2S)
def test_tempered_softmax_has_twelve_digits(x64, t2):
    got = tempered_log_softmax(jnp.array(LOGITS), t2)
    for logits, row in zip(LOGITS, np.asarray(got), strict=True):
        exact = [float(mp.log(p)) for p in tempered_probabilities(logits, t2)]
        np.testing.assert_allclose(row, exact, rtol=1e-12, atol=1e-14, err_msg=str(logits))


@pytest.mark.parametrize("classes", [2, 10, 1000])
@pytest.mark.parametrize("t2", [1.1, 1.5, 3.0, 10.0])
def test_tempered_softmax_sums_to_one(x64, classes, t2):
    rng = np.random.default_rng(0)
    scale = np.logspace(-3, 4, 40)[:, None]
    sparse = rng.random((40, classes)) < 0.3
    logits = np.concatenate([scale * rng.normal(size=(40, classes)), scale * sparse])
    log_p = tempered_log_softmax(jnp.array(logits), t2)
    np.testing.assert_allclose(np.exp(log_p).sum(-1), 1, rtol=1e-11)
    order = np.argsort(logits, axis=-1)
    assert (np.diff(np.take_along_axis(np.asarray(log_p), order, -1), axis=-1) >= 0).all()


@reproducible
@given(
    st.lists(st.floats(-50, 50), min_size=4, max_size=4),
    st.sampled_from([1.0, 1.2, 2.0, 5.0]),
    st.floats(-1e3, 1e3),
)
def test_tempered_softmax_ignores_a_shift(logits, t2, shift):
    with jax.enable_x64(True):
        a = jnp.array(logits)
        np.testing.assert_allclose(
            tempered_log_softmax(a + shift, t2), tempered_log_softmax(a, t2), rtol=0, atol=1e-9
        )


@pytest.mark.parametrize("t2", [1.0, 1 + 1e-9, 1.2, 4.0])
def test_bi_tempered_is_the_published_loss(x64, t2):
    logits, y = 3 * LOGITS, np.repeat(range(3), len(LOGITS))
    for t1 in (0.0, 0.5, 0.8, 1 - 1e-9, 1.0):
        got = BiTempered(3, t1, t2).log_lik(jnp.array(logits)[None], NONE, jnp.array(y))[0]
        exact = [-float(bi_tempered_loss(*row, t1, t2)) for row in zip(logits, y, strict=True)]
        np.testing.assert_allclose(got, exact, rtol=1e-11, atol=1e-13, err_msg=f"t1 = {t1}")


def test_bi_tempered_without_tempering_is_the_cross_entropy(x64):
    rng = np.random.default_rng(1)
    logits, y = rng.normal(size=(2, 5, 4)), rng.integers(0, 4, 5)
    got = BiTempered(4, 1.0, 1.0).log_lik(jnp.array(logits), NONE, jnp.array(y))
    exact = np.take_along_axis(special.log_softmax(logits, axis=-1), y[None, :, None], -1)[..., 0]
    np.testing.assert_allclose(got, exact, rtol=1e-12)


@pytest.mark.parametrize("order", [0.2, 0.7, 1.0])
def test_bi_tempered_is_a_beta_divergence_when_t2_is_one(x64, order):
    logits, y = np.array(LOGITS[:5])[None], np.array([0, 1, 2, 1, 0])
    criterion, categorical = BetaDivergence(order), Categorical(3)

    @jax.jit
    def both(logits, y):
        integral = categorical.log_power_integral(logits, NONE, criterion.power)
        rival = criterion.rows(categorical.log_lik(logits, NONE, y), integral)
        return BiTempered(3, 1 - order, 1.0).log_lik(logits, NONE, y)[0], rival

    got, rival = both(logits, y)
    np.testing.assert_allclose(-(1 + order) * got, rival, rtol=1e-11)


@pytest.mark.parametrize(("t1", "t2"), [(0.8, 1.2), (0.0, 1.0), (0.5, 4.0)])
def test_bi_tempered_gradients(x64, t1, t2):
    likelihood = BiTempered(3, t1, t2)
    y, at = jnp.array([2]), np.array([1.0, -2.0, 0.5])

    @jax.jit
    def loss(a):
        return -likelihood.log_lik(a[None, None], NONE, y)[0, 0]

    slope = jax.jit(jax.grad(loss))
    np.testing.assert_allclose(slope(at), finite_differences(loss, at), rtol=1e-7, atol=1e-10)
    curvature = np.array([finite_differences(lambda a, c=c: slope(a)[c], at) for c in range(3)])
    np.testing.assert_allclose(jax.jit(jax.hessian(loss))(at), curvature, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize(
    ("t1", "t2"), [(0.0, 1.0), (0.8, 1.2), (1 - 1e-6, 1 + 1e-9), (1.0, 1 + 1e-4), (0.8, 10.0)]
)
def test_bi_tempered_is_finite_in_single_precision(t1, t2):
    likelihood = BiTempered(3, t1, t2)
    outputs, y = jnp.array(LOGITS)[None], jnp.array([1, 0, 2, 2, 1, 1, 2, 0])
    values, pullback = jax.vjp(jax.jit(lambda v: likelihood.log_lik(v, NONE, y)[0]), outputs)
    (slope,) = pullback(jnp.ones(len(LOGITS)))
    assert values.dtype == slope.dtype == jnp.float32
    assert np.isfinite(slope).all()
    for logits, label, got in zip(LOGITS, y, values, strict=True):
        exact = bi_tempered_loss(logits, int(label), t1, t2)
        # t1 itself is rounded to single precision, which near 1 costs most.
        np.testing.assert_allclose(-got, float(exact), rtol=2e-4, atol=1e-6)


def test_bi_tempered_loss_is_bounded():
    logits, y = jnp.array([[[1e4, -1e4]]]), jnp.array([1])
    for t1 in (0.0, 0.5, 0.8):
        lowest = float(BiTempered(2, t1, 1.2).log_lik(logits, NONE, y)[0, 0])
        assert -1 / (1 - t1) <= lowest < -0.9 / (1 - t1) + 0.5


def test_bi_tempered_labels_and_integral():
    with pytest.raises(InvalidInput, match="got 3"):
        BiTempered(3).check(np.array([0, 3]))
    BiTempered(3).check(np.array([0, 2]))
    with pytest.raises(InvalidInput, match=r"must be a density.*BiTempered.*Categorical"):
        BiTempered(3).log_power_integral(jnp.zeros((1, 1, 3)), NONE, 1.5)


# Student's t and Huber's density

POINTS = np.array([-40.0, -2.0, -0.3, 0.0, 0.8, 3.0, 1e3])
DENSITIES = [StudentT(1.0, 0.7), StudentT(4.0, 2.0), StudentT(30.0, 0.1)]
DENSITIES += [Huber(0.3, 0.7), Huber(1.345, 2.0), Huber(4.0, 0.1)]


def at(likelihood, y, location=0.4):
    outputs = jnp.full((1, len(y), 1), location)
    return np.asarray(jax.jit(likelihood.log_lik)(outputs, NONE, jnp.array(y)))[0]


@pytest.mark.parametrize("df", [0.5, 1.0, 4.0, 200.0])
def test_student_is_scipys(x64, df):
    np.testing.assert_allclose(
        at(StudentT(df, 0.7), POINTS), stats.t(df, 0.4, 0.7).logpdf(POINTS), rtol=1e-12
    )


def test_student_with_many_degrees_is_gaussian(x64):
    near = POINTS[1:-1]
    np.testing.assert_allclose(
        at(StudentT(1e12, 0.7), near), stats.norm(0.4, 0.7).logpdf(near), rtol=1e-9
    )


def test_student_is_finite_for_absurd_residuals():
    @jax.jit
    @jax.value_and_grad
    def log_lik(y):
        return StudentT(4.0, 0.01).log_lik(jnp.zeros((1, 1, 1)), NONE, y[None])[0, 0]

    for y in (0.0, 1e-30, 1e6, 1e25, 1e35):
        value, slope = log_lik(jnp.float32(y))
        np.testing.assert_allclose(value, stats.t(4, 0, 0.01).logpdf(y), rtol=1e-5)
        np.testing.assert_allclose(slope, -5 * y / (4e-4 + y**2), rtol=1e-5)


@pytest.mark.parametrize("delta", [0.2, 1.345, 3.0])
@pytest.mark.parametrize("std", [0.5, 2.0])
def test_huber_is_hubers_loss(x64, delta, std):
    got = at(Huber(delta, std), POINTS) - at(Huber(delta, std), np.array([0.4]))
    np.testing.assert_allclose(got, -special.huber(delta, (POINTS - 0.4) / std), rtol=1e-11)


def test_huber_between_gauss_and_laplace(x64):
    near = POINTS[1:-1]
    np.testing.assert_allclose(
        at(Huber(20.0, 0.7), near), stats.norm(0.4, 0.7).logpdf(near), rtol=1e-12
    )
    np.testing.assert_allclose(
        at(Huber(1e-6, 1e-6), near), stats.laplace(0.4, 1.0).logpdf(near), rtol=1e-5
    )


def test_huber_pull_is_bounded(x64):
    likelihood = Huber(1.5, 0.5)
    slope = jax.grad(lambda y: likelihood.log_lik(jnp.zeros((1, 1, 1)), NONE, y[None])[0, 0])
    pull = jax.jit(jax.vmap(slope))
    y = np.array([-100.0, -0.75, -0.2, 0.0, 0.4, 0.75, 9.0])
    np.testing.assert_allclose(pull(y), -np.clip(y / 0.25, -3.0, 3.0), rtol=1e-12)


@pytest.mark.parametrize("likelihood", DENSITIES)
def test_integrals_of_powers(x64, likelihood):
    spread = likelihood.scale if isinstance(likelihood, StudentT) else likelihood.std
    # Half the line, by Simpson's rule on either side of Huber's corner; z = sinh(u) for the tails.
    corner = np.arcsinh(getattr(likelihood, "delta", 1.0))
    halves = np.linspace([0, corner], [corner, 45.0], 10001, axis=1)
    z = np.sinh(halves).ravel()
    density = np.exp(at(likelihood, spread * z, location=0.0)).reshape(halves.shape)
    for power in (1.0, 1.1, 1.5, 2.0, 3.0):
        values = 2 * spread * density**power * np.cosh(halves)
        exact = sum(integrate.simpson(values[i], x=halves[i]) for i in range(2))
        got = likelihood.log_power_integral(jnp.zeros((1, 1, 1)), NONE, jnp.array(power))
        # JAX's log beta function has seven digits.
        np.testing.assert_allclose(np.exp(got), [[exact]], rtol=1e-6)
        if power == 1:
            assert abs(exact - 1) < 1e-9


@pytest.mark.parametrize("kind", [StudentT, Huber])
def test_scale_is_learned_as_a_gaussians(x64, kind):
    field = "scale" if kind is StudentT else "std"
    rng = np.random.default_rng(0)
    for how in ("learned", "by_input"):
        likelihood, gaussian = kind(**{field: how, "floor": 0.2}), Gaussian(how, 0.2)
        assert (likelihood.outputs, likelihood.size) == (gaussian.outputs, gaussian.size)
        assert np.array_equal(likelihood.initial(), gaussian.initial())
        outputs = rng.normal(size=(1, 1, likelihood.outputs))
        own, y = rng.normal(size=(1, likelihood.size)), np.array([2.0])
        _, std = jax.jit(gaussian.moments)(outputs, own)
        fixed = kind(**{field: float(std[0, 0])})

        @partial(jax.jit, static_argnums=0)
        def values(lik, outputs, own, y=y):
            integrals = [lik.log_power_integral(outputs, own, power) for power in (1.3, 2.0)]
            return *integrals, lik.log_lik(outputs, own, y)

        expected = values(fixed, outputs[..., :1], NONE)
        for got, want in zip(values(likelihood, outputs, own), expected, strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-12)
        slope = jax.grad(lambda v, lik=likelihood, y=y: lik.log_lik(v[0], v[1], y)[0, 0])
        assert all(np.all(np.asarray(g) != 0) for g in jax.jit(slope)((outputs, own)))


@pytest.mark.parametrize("kind", [StudentT, Huber])
def test_targets_are_checked(kind):
    with pytest.raises(InvalidInput, match="y must be finite, got nan"):
        kind().check(np.array([1.0, np.nan]))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: BiTempered(1), ["classes must be at least 2", "1"]),
        (lambda: BiTempered(3, t1=1.1), ["t1 must lie in [0, 1]", "1.1", "robust"]),
        (lambda: BiTempered(3, t1=-0.1), ["t1 must lie in [0, 1]", "-0.1"]),
        (lambda: BiTempered(3, t2=0.9), ["t2 must lie in [1, 10]", "0.9", "softmax"]),
        (lambda: BiTempered(3, t2=11), ["t2 must lie in [1, 10]", "11"]),
        (lambda: BiTempered(3, t2=math.nan), ["t2 must", "nan"]),
        (lambda: BiTempered(3, t2="warm"), ["t2 must", "'warm'"]),
        (lambda: tempered_log_softmax(jnp.zeros(2), 0.5), ["t2 must lie in [1, 10]", "0.5"]),
        (lambda: StudentT(df=0), ["df must be", "got 0", "tails"]),
        (lambda: StudentT(df=math.inf), ["df must be", "inf"]),
        (lambda: StudentT(scale=-1.0), ["scale must be", "-1.0"]),
        (lambda: StudentT(scale="lerned"), ["scale must be one of 'learned'", "'lerned'"]),
        (lambda: StudentT(floor=0), ["floor must be", "got 0", "bounded"]),
        (lambda: Huber(delta=0.0), ["delta must be", "0.0", "1.345"]),
        (lambda: Huber(std=0), ["std must be", "got 0"]),
        (lambda: Huber(std="learnt"), ["std must be one of 'learned'", "'learnt'"]),
    ],
)
def test_bad_settings_are_named(call, words):
    with pytest.raises(InvalidInput) as error:
        call()
    for word in words:
        assert word in str(error.value)


@pytest.mark.parametrize("likelihood", [BiTempered(3), StudentT(), Huber()])
def test_frozen_and_hashable(likelihood):
    assert likelihood == dataclasses.replace(likelihood)
    assert hash(likelihood) == hash(dataclasses.replace(likelihood))
    with pytest.raises(dataclasses.FrozenInstanceError):
        likelihood.floor = 1.0


@pytest.mark.parametrize("likelihood", [BiTempered(3), StudentT(), Huber(std="learned")])
def test_shapes(likelihood):
    outputs, own = jnp.ones((2, 4, likelihood.outputs)), jnp.zeros((2, likelihood.size))
    got = jax.jit(likelihood.log_lik)(outputs, own, jnp.array([0, 1, 1, 2]))
    assert (got.shape, got.dtype) == ((2, 4), jnp.float32)
    if not isinstance(likelihood, BiTempered):
        got = jax.jit(likelihood.log_power_integral)(outputs, own, 1.5)
        assert (got.shape, got.dtype) == ((2, 4), jnp.float32)


def finite_differences(f, at, h=1e-5):
    steps = h * np.eye(len(at))
    return np.array([float(f(at + s) - f(at - s)) / (2 * h) for s in steps])
