from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mtbayes.errors import InvalidInput
from mtbayes.maths import (
    escort,
    gaussian_kl_divergence,
    gaussian_renyi_divergence,
    kl_divergence,
    renyi_divergence,
    renyi_entropy,
    tsallis_divergence,
    tsallis_entropy,
)

ORDERS = [0.0, 0.01, 0.3, 0.5, 0.9, 1 - 1e-9, 1.0, 1 + 1e-9, 1.3, 2.0, 5.0]
DIVERGENCES = [tsallis_divergence, renyi_divergence]
# Probabilities in multiples of a power of 2 sum to exactly 1, as the definitions near order 1
# need: a sum of 1 + 1e-16 moves log(∫p^t)/(1-t) by 1e-7 at t = 1 - 1e-9.
P = np.array([5, 3, 8, 1, 15]) / 32
Q = np.array([1, 9, 6, 14, 2]) / 32

by_order = pytest.mark.parametrize("t", ORDERS)
reproducible = settings(max_examples=100, deadline=None, derandomize=True)


@cache
def slopes(f, places=0):
    """Its derivatives, compiled once for all orders."""
    return jax.jit(jax.grad(f, places))


@st.composite
def distributions(draw, size=5):
    cuts = sorted(draw(st.lists(st.integers(0, 1024), min_size=size - 1, max_size=size - 1)))
    return np.diff([0, *cuts, 1024]) / 1024


class Definitions:
    """The paper's definitions for positive p and q, misprint 3 put right, in 60 digits."""

    def __init__(self, exact):
        self.exact = exact

    def tsallis_entropy(self, p, t):
        return -sum(x ** self.exact(t) * self.exact.log_t(x, t) for x in map(self.exact, p))

    def renyi_entropy(self, p, t):
        if t == 1:
            return self.tsallis_entropy(p, 1)
        t = self.exact(t)
        return self.exact.mp.log(sum(self.exact(x) ** t for x in p)) / (1 - t)

    def tsallis_divergence(self, p, q, t):
        log_t = self.exact.log_t
        return sum(
            self.exact(x) ** self.exact(t) * (log_t(x, t) - log_t(y, t))
            for x, y in zip(p, q, strict=True)
        )

    def renyi_divergence(self, p, q, t):
        if t == 1:
            return self.tsallis_divergence(p, q, 1)
        t = self.exact(t)
        pairs = zip(map(self.exact, p), map(self.exact, q), strict=True)
        return self.exact.mp.log(sum(x**t * y ** (1 - t) for x, y in pairs)) / (t - 1)


@pytest.fixture(scope="module")
def define(exact):
    return Definitions(exact)


def normal(x, mean, std):
    return np.exp(-0.5 * ((x - mean) / std) ** 2) / (std * np.sqrt(2 * np.pi))


# Discrete distributions


@by_order
def test_against_the_definitions(exact, define, kind, t):
    p, q = kind(P), kind(Q)
    for got, want in [
        (tsallis_entropy(p, t), define.tsallis_entropy(P, t)),
        (renyi_entropy(p, t), define.renyi_entropy(P, t)),
        (tsallis_divergence(p, q, t), define.tsallis_divergence(P, Q, t)),
        (renyi_divergence(p, q, t), define.renyi_divergence(P, Q, t)),
    ]:
        assert exact.error(got, want, least=0.01) < 1e-13  # both divergences are 0 at order 0


@pytest.mark.parametrize("t", [0.3, 1 - 1e-9, 1 + 1e-9, 2.0])
def test_relations_between_tsallis_and_renyi(exact, t):
    a, log = 1 - exact(t), exact.mp.log
    entropy, divergence = exact(tsallis_entropy(P, t)), exact(tsallis_divergence(P, Q, t))
    assert exact.error(renyi_entropy(P, t), log(1 + a * entropy) / a) < 1e-13
    assert exact.error(renyi_divergence(P, Q, t), -log(1 - a * divergence) / a) < 1e-13


@pytest.mark.parametrize("step", [1e-9, -1e-9, 1e-12, -1e-12])
def test_shannon_and_kl_are_reached_without_loss(exact, step):
    shannon = -sum(exact(x) * exact.mp.log(x) for x in P)
    kl = sum(exact(x) * exact.mp.log(exact(x) / exact(y)) for x, y in zip(P, Q, strict=True))
    assert exact.error(kl_divergence(P, Q), kl) < 1e-14
    for f, args, limit in [
        (tsallis_entropy, (P,), shannon),
        (renyi_entropy, (P,), shannon),
        (tsallis_divergence, (P, Q), kl),
        (renyi_divergence, (P, Q), kl),
    ]:
        assert exact.error(f(*args, 1.0), limit) < 1e-14
        assert exact.error(f(*args, 1 + step), limit) < 2 * abs(step)


@pytest.mark.parametrize("f", DIVERGENCES)
@given(p=distributions(), q=distributions(), t=st.floats(0.01, 3))
@reproducible
def test_divergence_is_not_negative_and_zero_only_for_equals(f, p, q, t):
    # The paper prints D_t with the opposite sign: it would be negative here.
    distance = np.abs(p - q).sum()
    value = f(p, q, t)
    if distance == 0:
        assert abs(value) < 1e-15
    else:
        # Pinsker's inequality for orders up to 1; both grow with t. Tsallis's is the smaller
        # below 1, by -log(1-x) <= 2x for x <= 1/2 and the bound 1/2 beyond.
        assert value >= min(t, 1) * min(distance**2, 1) / 4


@pytest.mark.parametrize("f", DIVERGENCES)
def test_divergence_is_not_symmetric(define, f):
    assert f(P, Q, 0.3) != pytest.approx(f(Q, P, 0.3), rel=1e-2)
    # ... but for D_t(p||q) (1-t) = D_(1-t)(q||p) t, which holds for both families.
    assert f(P, Q, 0.3) * 0.7 == pytest.approx(f(Q, P, 0.7) * 0.3, rel=1e-14)


@pytest.mark.parametrize("t", [0.0, 0.01, 0.5, 0.9, 1 - 1e-9])
def test_below_order_one_missing_support_costs_a_finite_amount(exact, define, kind, t):
    p, q = np.array([0.25, 0.5, 0.25, 0]), np.array([0.5, 0, 0.25, 0.25])
    # By hand: only the overlap {0, 2} enters the integral.
    overlap = [(exact(x) ** exact(t)) * exact(y) ** (1 - exact(t)) for x, y in [(0.25, 0.5)]]
    integral = overlap[0] + exact(0.25)
    a = 1 - exact(t)
    assert exact.error(renyi_divergence(kind(p), kind(q), t), -exact.mp.log(integral) / a) < 1e-13
    assert exact.error(tsallis_divergence(kind(p), kind(q), t), (1 - integral) / a) < 1e-13


@pytest.mark.parametrize("t", [1.0, 1 + 1e-9, 1.3, 2.0])
@pytest.mark.parametrize("f", DIVERGENCES)
def test_from_order_one_missing_support_is_infinite(kind, f, t):
    p, q = kind(np.array([0.25, 0.75, 0])), kind(np.array([1.0, 0, 0]))
    assert f(p, q, t) == np.inf
    assert np.isfinite(f(q, p, t))  # q has no mass where p has none
    assert kl_divergence(p, q) == np.inf


def test_kl_and_higher_orders_ignore_where_p_is_zero(kind):
    p, q = kind(np.array([1.0, 0, 0])), kind(np.array([0.25, 0.75, 0]))
    for t in ORDERS:
        assert float(renyi_divergence(p, q, t)) == pytest.approx(np.log(4), rel=1e-13)
    assert float(kl_divergence(p, q)) == pytest.approx(np.log(4), rel=1e-14)
    assert float(tsallis_divergence(p, q, 2.0)) == pytest.approx(3, rel=1e-14)


@by_order
def test_disjoint_supports(exact, kind, t):
    p, q = kind(np.array([0.25, 0.75, 0, 0])), kind(np.array([0, 0, 0.5, 0.5]))
    assert renyi_divergence(p, q, t) == np.inf
    bound = 1 / (1 - exact(t)) if t < 1 else np.inf
    assert exact.error(tsallis_divergence(p, q, t), bound) < 1e-14


@pytest.mark.parametrize("t", [0.01, 0.3, 0.5, 0.9, 1.0, 2.0])
def test_nearly_disjoint_keeps_its_digits(exact, define, kind, t):
    p, q = np.array([1 - 1e-30, 1e-30]), np.array([1e-30, 1 - 1e-30])
    want = define.renyi_divergence(p, q, t)
    assert want > 0.5
    assert exact.error(renyi_divergence(kind(p), kind(q), t), want) < 1e-12


@pytest.mark.parametrize("t", [0.0, 0.5, 1.0, 2.0, 3.0, 8.0])
def test_tiny_probabilities_do_not_overflow(exact, define, kind, t):
    """Naively p^t log_t p is 0 times infinity for t = 3 in the tail of any Gaussian."""
    p = np.array([1 - 2.0**-20, 2.0**-20 - 2.0**-1000, 2.0**-1000])
    want = -sum(
        -x * (1 - x ** (exact(t) - 1)) / (exact(t) - 1) if t != 1 else x * exact.mp.log(x)
        for x in map(exact, p)
    )
    assert exact.error(tsallis_entropy(kind(p), t), want) < 1e-9
    assert np.isfinite(renyi_entropy(kind(p), t))


def test_entropies_of_uniform_and_certain(kind):
    for t in ORDERS:
        assert float(renyi_entropy(kind(np.full(8, 0.125)), t)) == pytest.approx(np.log(8), 1e-14)
        assert abs(float(tsallis_entropy(kind(np.array([0.0, 1.0, 0.0])), t))) == 0
    # Order 0 counts the support.
    assert float(renyi_entropy(kind(np.array([0.5, 0, 0.5])), 0.0)) == pytest.approx(np.log(2))


def test_batches_along_any_axis(define, kind):
    p, q = np.stack([P, Q, P]), np.stack([Q, P, P])

    def of_all(p, q, t):
        """Everything, compiled at once."""
        return (
            [f(p, q, t) for f in DIVERGENCES],
            [f(p.T, q.T, t, axis=0) for f in DIVERGENCES],
            [f(p.T, t, axis=0) for f in (tsallis_entropy, renyi_entropy)],
            escort(p, t),
            escort(p.T, t, axis=0).T,
        )

    call = of_all if kind is np.asarray else jax.jit(of_all)
    for t in (0.3, 1.0, 2.0):
        rows, columns, entropies, *escorts = call(kind(p), kind(q), t)
        for f, *both in zip(DIVERGENCES, rows, columns, strict=True):
            want = [float(f(a, b, t)) for a, b in zip(p, q, strict=True)]
            for got in both:
                assert np.asarray(got) == pytest.approx(want, rel=1e-13, abs=1e-16)
        for f, got in zip((tsallis_entropy, renyi_entropy), entropies, strict=True):
            assert np.asarray(got) == pytest.approx([float(f(a, t)) for a in p], rel=1e-13)
        for got in escorts:
            assert np.allclose(got, [escort(a, t) for a in p], rtol=1e-13)


def test_one_q_for_a_batch_of_p():
    got = renyi_divergence(np.stack([P, Q]), Q, 0.5)
    assert got == pytest.approx([float(renyi_divergence(P, Q, 0.5)), 0], abs=1e-15)


# Densities on a grid

SPACING = 0.05
GRID = np.arange(-20, 20, SPACING)


@pytest.mark.parametrize("t", [0.1, 0.5, 1.0, 1 + 1e-9, 2.0, 3.0])
def test_entropy_of_a_gaussian_density(kind, t):
    std = 0.7
    p = kind(normal(GRID, 0.4, std))
    # ∫p^t = (2π σ²)^((1-t)/2) / √t
    renyi = 0.5 * np.log(2 * np.pi * std**2) + 0.5 * (np.log(t) / (t - 1) if t != 1 else 1)
    integral = (2 * np.pi * std**2) ** ((1 - t) / 2) / np.sqrt(t)
    tsallis = (integral - 1) / (1 - t) if abs(t - 1) > 1e-3 else renyi
    assert float(renyi_entropy(p, t, spacing=SPACING)) == pytest.approx(renyi, rel=1e-8)
    assert float(tsallis_entropy(p, t, spacing=SPACING)) == pytest.approx(tsallis, rel=1e-8)


@pytest.mark.parametrize("t", [0.1, 0.5, 0.9, 1 - 1e-9, 1.0, 1 + 1e-9, 1.3, 2.0])
def test_divergence_of_gaussian_densities(exact, kind, t):
    p, q = normal(GRID, 0.6, 1.1), normal(GRID, -1.0, 1.7)
    renyi = gaussian_divergence(exact, 0.6, 1.1, -1.0, 1.7, t)
    tsallis = -exact.log_t_from_log(-renyi, t)  # D^R_t = -log exp_t(-D_t)
    got = renyi_divergence(kind(p), kind(q), t, spacing=SPACING)
    assert exact.error(got, renyi) < 1e-12
    got = tsallis_divergence(kind(p), kind(q), t, spacing=SPACING)
    assert exact.error(got, tsallis) < 1e-12


def test_kl_of_gaussian_densities(exact):
    p, q = normal(GRID, 0.6, 1.1), normal(GRID, -1.0, 1.7)
    want = np.log(1.7 / 1.1) + (1.1**2 + 1.6**2) / (2 * 1.7**2) - 0.5
    assert kl_divergence(p, q, spacing=SPACING) == pytest.approx(want, rel=1e-13)


@pytest.mark.parametrize("t", [0.25, 1.0, 2.0, 1 / 0.3])
def test_escort_of_a_gaussian_is_a_gaussian(kind, t):
    got = escort(kind(normal(GRID, 0.5, 1.2)), t, spacing=SPACING)
    assert np.allclose(got, normal(GRID, 0.5, 1.2 / np.sqrt(t)), rtol=1e-10, atol=1e-300)


def test_escort_of_discrete_distributions(kind):
    p = kind(np.array([0.2, 0, 0.8]))
    assert np.allclose(escort(p, 2.0), np.array([1, 0, 16]) / 17, rtol=1e-15)
    assert np.allclose(escort(p, 1.0), p, rtol=1e-15)
    assert np.allclose(escort(p, 0.0), [0.5, 0, 0.5], rtol=1e-15)
    assert np.allclose(escort(p, 300.0), [0, 0, 1], atol=1e-100)  # p^300 underflows, its share not
    assert np.allclose(escort(escort(p, 0.4), 2.5), p, rtol=1e-14)


# Gaussians in closed form


def gaussian_divergence(exact, mean_q, std_q, mean_p, std_p, t):
    """Rényi's divergence by the definition, integrated with the trapezium rule in 60 digits.

    The integrand is a Gaussian times a polynomial: with a quarter of its width as the step the
    rule's error is of order exp(-2π² 16), and ±16 widths leave out 1e-56.
    """
    mp, t = exact.mp, exact(t)
    mean_q, std_q, mean_p, std_p = map(exact, (mean_q, std_q, mean_p, std_p))

    def log_density(x, mean, std):
        return -(((x - mean) / std) ** 2) / 2 - mp.log(std) - mp.log(2 * mp.pi) / 2

    precisions = t / std_q**2, (1 - t) / std_p**2
    center = (precisions[0] * mean_q + precisions[1] * mean_p) / sum(precisions)
    step = 1 / mp.sqrt(sum(precisions)) / 4
    total = mp.mpf(0)
    for k in range(-64, 65):
        x = center + k * step
        log_q, log_p = log_density(x, mean_q, std_q), log_density(x, mean_p, std_p)
        total += mp.exp(log_q) * (log_q - log_p) if t == 1 else mp.exp(t * log_q + (1 - t) * log_p)
    return step * total if t == 1 else mp.log(step * total) / (t - 1)


PAIRS = [(0.3, 1.1, -0.5, 0.9), (-2.0, 0.2, 1.0, 1.5), (4.0, 3.0, 0.0, 1.0), (1.0, 0.9, 0.9, 1.0)]


@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.parametrize("t", [0.01, 0.3, 0.5, 0.9, 1 - 1e-9, 1.0, 1 + 1e-9, 1.1, 1.3, 2.0])
def test_gaussians_against_quadrature(exact, kind, pair, t):
    mean_q, std_q, mean_p, std_p = pair
    got = gaussian_renyi_divergence(kind(mean_q), kind(std_q), kind(mean_p), kind(std_p), t)
    if t * std_p**2 <= (t - 1) * std_q**2:
        assert got == np.inf
        return
    want = gaussian_divergence(exact, *pair, t)
    assert exact.error(got, want) < 1e-12
    if t == 1:
        kl = gaussian_kl_divergence(kind(mean_q), kind(std_q), kind(mean_p), kind(std_p))
        assert exact.error(kl, want) < 1e-12


def test_gaussians_are_infinite_exactly_from_the_boundary_on(kind):
    # t std_p² = (t-1) std_q² at t = 9/8, std_q = 3 std_p: exact in binary.
    std_q = kind(np.array([3 - 1e-9, 3, 3 + 1e-9]))
    got = np.asarray(gaussian_renyi_divergence(1.0, std_q, 0.0, 1.0, 1.125))
    assert np.isfinite(got).tolist() == [True, False, False]
    assert got[0] > 1e6
    assert got[1:].tolist() == [np.inf, np.inf]
    # Never below or at order 1.
    assert np.isfinite(gaussian_renyi_divergence(1.0, kind(1e3), 0.0, 1.0, 1.0))


def test_gaussians_at_order_zero_share_their_support(kind):
    for pair in PAIRS:
        assert abs(gaussian_renyi_divergence(kind(pair[0]), *pair[1:], 0.0)) < 1e-15


@pytest.mark.parametrize("t", [0.3, 1.0, 1.4])
def test_diagonal_gaussians_are_the_sum_over_coordinates(t):
    mean_q, std_q = np.array([0.5, -1.0]), np.array([0.8, 1.2])
    mean_p, std_p = np.array([0.0, 0.3]), np.array([1.0, 1.5])
    axis = np.arange(-15, 15, 0.1)
    # On a product grid, by plain sums: no function of the library.
    q0, q1 = (normal(axis, mean_q[i], std_q[i]) for i in (0, 1))
    p0, p1 = (normal(axis, mean_p[i], std_p[i]) for i in (0, 1))
    q, p = np.outer(q0, q1), np.outer(p0, p1)
    if t == 1:
        want = (q * np.log(q / p)).sum() * 0.01
    else:
        want = np.log((q**t * p ** (1 - t)).sum() * 0.01) / (t - 1)
    got = gaussian_renyi_divergence(mean_q, std_q, mean_p, std_p, t).sum()
    assert got == pytest.approx(want, rel=1e-12)


@pytest.mark.parametrize("t", [0.3, 1 - 1e-9, 1.0, 1.3])
def test_gradients_of_gaussians(exact, x64, t):
    at = (0.3, 1.1, -0.5, 0.9, t)
    got = jax.jit(jax.grad(gaussian_renyi_divergence, argnums=(0, 1, 2, 3, 4)))(*at)

    def closed_form(mean_q, std_q, mean_p, std_p, t):
        # van Erven & Harremoës (2014), eq. (10); at t = 1 the derivative in t is a limit.
        blend = (1 - t) * std_q**2 + t * std_p**2
        shift = t * (mean_q - mean_p) ** 2 / (2 * blend)
        if t == 1:
            spread = exact.mp.log(std_p / std_q) + std_q**2 / (2 * std_p**2) - exact(0.5)
        else:
            log = exact.mp.log
            spread = log(blend / (std_q ** (2 * (1 - t)) * std_p ** (2 * t))) / (2 * (1 - t))
        return spread + shift

    for i, slope in enumerate(got):
        assert exact.error(slope, exact.diff(closed_form, at, i)) < 1e-12, i


def test_gradients_of_gaussians_next_to_infinite_ones(x64):
    # One coordinate infinite, one finite: the finite one keeps its gradient, none is NaN.
    std_q = jnp.array([0.8, 4.0])
    for argnum in range(4):
        args = [jnp.array([0.5, 0.5]), std_q, jnp.zeros(2), jnp.ones(2)]

        def first(v, args=args, argnum=argnum):
            both = gaussian_renyi_divergence(*args[:argnum], v, *args[argnum + 1 :], 1.5)
            return both[0] + jnp.where(jnp.isinf(both[1]), 0.0, both[1])

        slope = jax.jit(jax.grad(first))(args[argnum])
        assert bool(jnp.isfinite(slope).all())
        assert float(slope[0]) != 0


# JAX


def test_kind_in_is_kind_out():
    for f, args in [
        (tsallis_entropy, (P,)),
        (renyi_entropy, (P,)),
        (escort, (P,)),
        (tsallis_divergence, (P, Q)),
        (renyi_divergence, (P, Q)),
        (gaussian_renyi_divergence, (P, Q, Q, P)),
    ]:
        for t in (0.5, 1.0):
            ours = f(*args, t)
            theirs = f(*map(jnp.asarray, args), t)
            assert isinstance(ours, np.ndarray | np.floating)
            assert isinstance(theirs, jax.Array)
            assert theirs.dtype == jnp.float32
            assert np.allclose(ours, theirs, rtol=1e-5, atol=1e-7)


def test_one_compilation_serves_every_order(exact, define, x64):
    traces = []

    @jax.jit
    def f(t):
        traces.append(t)
        p, q = jnp.asarray(P), jnp.asarray(Q)
        return (
            tsallis_entropy(p, t),
            renyi_entropy(p, t),
            tsallis_divergence(p, q, t),
            renyi_divergence(p, q, t),
        )

    for t in ORDERS:
        wanted = (
            define.tsallis_entropy(P, t),
            define.renyi_entropy(P, t),
            define.tsallis_divergence(P, Q, t),
            define.renyi_divergence(P, Q, t),
        )
        for got, want in zip(f(t), wanted, strict=True):
            assert exact.error(got, want, least=0.01) < 1e-13
    assert len(traces) == 1


@pytest.mark.parametrize("t", [0.01, 0.5, 1 - 1e-9, 1.0, 1.3, 3.0])
def test_gradients_of_divergences(exact, define, x64, t):
    tsallis = jax.jit(jax.grad(tsallis_divergence, (0, 1)))(P, Q, t)
    renyi = jax.jit(jax.grad(renyi_divergence, 1))(P, Q, t)
    order = exact(t)
    integral = exact.mp.exp((order - 1) * define.renyi_divergence(P, Q, t))
    for i, (p, q) in enumerate(zip(map(exact, P), map(exact, Q), strict=True)):
        in_p = exact.diff(lambda p, q: define.tsallis_divergence([p], [q], t), (p, q), 0)
        assert exact.error(tsallis[0][i], in_p) < 1e-12
        assert exact.error(tsallis[1][i], -((p / q) ** order)) < 1e-12
        assert exact.error(renyi[i], -((p / q) ** order) / integral) < 1e-12


@pytest.mark.parametrize("t", [0.3, 1.0, 2.0])
def test_gradient_in_the_order(exact, define, x64, t):
    for f, args in [
        (tsallis_entropy, (P,)),
        (renyi_entropy, (P,)),
        (tsallis_divergence, (P, Q)),
        (renyi_divergence, (P, Q)),
    ]:
        got = slopes(f, len(args))(*args, t)
        reference = getattr(define, f.__name__)
        want = exact.diff(lambda t, g=reference, args=args: g(*args, t), (t,), 0)
        assert exact.error(got, want) < 1e-11, f.__name__


@pytest.mark.parametrize("t", [0.3, 0.9, 1.0, 2.0])
def test_gradients_where_p_is_zero(x64, t):
    """The slope of p^t or p log p at p = 0 is infinite (t <= 1).

    We hold the support fixed: a zero of p has gradient 0, and no NaN reaches the others, whose
    gradient is what it is without the zero.
    """
    p, q = np.array([0.25, 0, 0.75]), np.array([0.5, 0.25, 0.25])
    keep = np.array([0, 2])
    for f in DIVERGENCES:
        gradient = slopes(f, (0, 1))
        whole, part = gradient(p, q, t), gradient(p[keep], q[keep], t)
        for with_zero, without in zip(whole, part, strict=True):
            assert with_zero[1] == 0
            assert with_zero[keep].tolist() == pytest.approx(without.tolist(), rel=1e-13)
    for f in (tsallis_entropy, renyi_entropy):
        gradient = slopes(f)
        slope = gradient(p, t)
        assert slope[1] == 0
        assert slope[keep].tolist() == pytest.approx(gradient(p[keep], t).tolist(), rel=1e-13)


@pytest.mark.parametrize("t", [0.3, 0.9])
def test_gradients_where_q_is_zero(x64, t):
    """Below order 1 the value is finite there and the slope in q is -inf: again we give 0."""
    p, q = np.array([0.25, 0.25, 0.5]), np.array([0.5, 0, 0.5])
    in_p, in_q = jax.jit(jax.grad(tsallis_divergence, (0, 1)))(p, q, t)
    assert in_q[1] == 0
    assert float(in_p[1]) == pytest.approx(1 / (1 - t), rel=1e-13)  # of p/(1-t)
    assert np.isfinite(jnp.concatenate([in_p, in_q])).all()
    in_p, in_q, in_t = jax.jit(jax.grad(renyi_divergence, (0, 1, 2)))(p, q, t)
    assert in_q[1] == 0
    assert np.isfinite(jnp.concatenate([in_p, in_q, in_t[None]])).all()


def test_gradient_survives_a_tsallis_divergence_that_overflows(x64):
    # ∫p³q^-2 is about 1e599, Rényi's divergence is 690.
    p, q = jnp.array([0.5, 0.5]), jnp.array([1e-300, 1.0])
    assert tsallis_divergence(p, q, 3.0) == np.inf
    slope = jax.jit(jax.value_and_grad(renyi_divergence, (0, 1, 2)))
    value, (in_p, in_q, in_t) = slope(p, q, 3.0)
    assert float(value) == pytest.approx((3 * np.log(0.5) + 600 * np.log(10)) / 2, rel=1e-14)
    assert in_p.tolist() == pytest.approx([3, 0])  # t/(t-1)/p times the share of the first
    assert in_q.tolist() == pytest.approx([-1e300, 0])
    # d/dt of (t log p + (1-t) log q)/(t-1) at the first point
    assert float(in_t) == pytest.approx(np.log(2) / 4, rel=1e-10)


# Errors


@pytest.mark.parametrize(
    ("call", "name", "shown"),
    [
        (lambda: tsallis_entropy(np.array([-0.5, 1.5]), 0.5), "p", "-0.5"),
        (lambda: renyi_entropy(np.array([np.nan, 1]), 0.5), "p", "nan"),
        (lambda: kl_divergence(P, -Q), "q", "-0.03125"),
        (lambda: renyi_divergence(jnp.asarray(P), jnp.array([1.0, np.nan]), 0.5), "q", "nan"),
        (lambda: escort(np.array([-1.0]), 0.5), "p", "-1"),
    ],
)
def test_what_is_no_density_is_refused(call, name, shown):
    with pytest.raises(InvalidInput) as caught:
        call()
    message = str(caught.value)
    assert message.startswith(f"{name} must be free of NaN and not negative")
    assert f"got {shown}." in message
    assert "probabilities, or densities" in message


@pytest.mark.parametrize(("t", "shown"), [(-0.5, "-0.5"), (np.nan, "nan"), (np.inf, "inf")])
@pytest.mark.parametrize(
    "f",
    [
        lambda t: tsallis_entropy(P, t),
        lambda t: renyi_entropy(P, t),
        lambda t: tsallis_divergence(P, Q, t),
        lambda t: renyi_divergence(P, Q, t),
        lambda t: escort(P, t),
        lambda t: gaussian_renyi_divergence(0.0, 1.0, 0.0, 1.0, t),
    ],
)
def test_orders_below_zero_are_refused(f, t, shown):
    with pytest.raises(InvalidInput) as caught:
        f(t)
    message = str(caught.value)
    assert message.startswith("t must be finite and at least 0")
    assert f"got {shown}." in message
    assert "Order 1 is" in message
