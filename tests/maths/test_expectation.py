import math
import sys
from collections import Counter
from functools import lru_cache
from itertools import combinations_with_replacement

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mtbayes.errors import InvalidInput
from mtbayes.maths import expected_log_t, log_t_from_log
from mtbayes.maths.expectation import MultiSample

TS = [0, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99, 1]
MS = [1, 2, 3, 4]
Q4 = np.array([0.1, 0.45, 0.15, 0.3])
# Smallest and largest likelihood, for 4 support points and 3 data rows.
RANGES = {
    "mild": (1e-1, 1),
    "wide": (1e-80, 1),
    "outlier": (1e-75, 1e-60),
    "dense": (1e-2, 1e3),
}

reproducible = settings(max_examples=80, deadline=None, derandomize=True)


def risk(log_lik, q, m, t):
    """R_t^m for each data row."""
    return -q @ expected_log_t(log_lik, q, m, t)


def random_case(seed, points=6, rows=3, low=-8.0):
    rng = np.random.default_rng(seed)
    return rng.uniform(low, 1.0, (points, rows)), rng.dirichlet(np.ones(points))


@pytest.fixture(scope="module")
def enumerate_all(exact):
    """E log_t by the sum over all multisets of m-1 draws, in 60 digits."""
    weights = lru_cache(lambda q, draws: list(_multisets(exact, q, draws)))

    def expectation(log_lik, q, m, t):
        total = sum(map(exact, q))
        q = tuple(exact(v) / total for v in q)
        result = np.empty(log_lik.shape, object)
        for i, column in enumerate(log_lik.T):
            p = [exact.mp.exp(exact(v)) for v in column]
            for g in range(len(q)):
                result[g, i] = sum(
                    w * exact.log_t((p[g] + sum(p[j] for j in draws)) / m, t)
                    for draws, w in weights(q, m - 1)
                    if w > 0
                )
        return result

    return expectation


def _multisets(exact, q, size):
    for draws in combinations_with_replacement(range(len(q)), size):
        counts = Counter(draws).values()
        ways = math.factorial(size) // math.prod(map(math.factorial, counts))
        yield draws, ways * exact.mp.fprod(q[j] for j in draws)


def worst(exact, got, want):
    return max(exact.error(g, w) for g, w in zip(np.ravel(got), np.ravel(want), strict=True))


# Against exact sums


@pytest.mark.parametrize("name", RANGES)
def test_against_enumeration(exact, enumerate_all, name):
    """Shown with pytest -s: the largest relative error for each t and m."""
    low, high = np.log(RANGES[name])
    log_lik = np.random.default_rng(7).uniform(low, high, (4, 3))
    log_lik[0, 0], log_lik[1, 0] = low, high
    print(f"\n{name}: likelihoods {RANGES[name][0]:g} to {RANGES[name][1]:g}")
    print("     t " + "".join(f"    m={m}  " for m in MS))
    table = np.empty((len(TS), len(MS)))
    for i, t in enumerate(TS):
        for j, m in enumerate(MS):
            got = expected_log_t(log_lik, Q4, m, t)
            table[i, j] = worst(exact, got, enumerate_all(log_lik, Q4, m, t))
        print(f"{t:6} " + "".join(f" {e:8.1e}" for e in table[i]))
    assert table.max() < 1e-10
    assert table[np.array(TS) <= 0.5].max() < 1e-12  # where a naive quadrature is worst


@pytest.mark.parametrize("t", [0, 0.1, 0.5, 0.9, 1])
@pytest.mark.parametrize("m", [10, 100, 1000])
@pytest.mark.parametrize(
    ("p", "share"),
    [
        ((0.8, 0.05), 0.3),
        ((1.0, 1e-40), 0.5),
        ((1.0, 1e-40), 1e-12),
        ((50.0, 1e-3), 1e-12),
        ((1.0, 0.0), 1e-12),
    ],
)
def test_two_points_are_binomial(exact, p, share, m, t):
    q = np.array([share, 1 - share])
    with np.errstate(divide="ignore"):
        got = expected_log_t(np.log(p)[:, None], q, m, t)[:, 0]
        p = [exact.mp.exp(exact(v)) if v > -np.inf else exact(0) for v in np.log(p)]
    a, b = (exact(v) / (exact(q[0]) + exact(q[1])) for v in q)
    for g in (0, 1):
        want, weight = 0, b ** (m - 1)
        for k in range(m):
            want += weight * exact.log_t((p[g] + k * p[0] + (m - 1 - k) * p[1]) / m, t)
            weight *= a * (m - 1 - k) / (b * (k + 1))
        assert exact.error(got[g], want) < 1e-10


@pytest.mark.parametrize("t", TS)
def test_infinitely_many_members_are_the_mean(exact, t):
    log_lik, q = random_case(1)
    got = expected_log_t(log_lik, q, math.inf, t)
    for i, column in enumerate(log_lik.T):
        mean = sum(exact(w) * exact.mp.exp(exact(v)) for w, v in zip(q, column, strict=True))
        assert all(exact.error(v, exact.log_t(mean, t)) < 1e-13 for v in got[:, i])


@pytest.mark.parametrize("t", [0.1, 0.5, 1])
def test_many_members_approach_infinitely_many(t):
    log_lik, q = random_case(2)
    limit = expected_log_t(log_lik, q, math.inf, t)
    gap = [np.abs(expected_log_t(log_lik, q, m, t) - limit).max() for m in (10**4, 10**6)]
    assert gap[1] < 2e-4  # of order p_θ/(m p̄)
    assert gap[1] == pytest.approx(gap[0] / 100, rel=0.01)


@pytest.mark.parametrize("t", [0.1, 0.5, 1])
@pytest.mark.parametrize("m", [1e6, 1e9])
def test_many_members_follow_the_delta_method(m, t):
    """E log_t(S/m) = log_t(E S/m) - (t/2) (E S/m)^(-t-1) Var(S/m), up to 1/m of the last term."""
    log_lik, q = random_case(2, low=-2.0)
    got = expected_log_t(log_lik, q, m, t)
    p = np.exp(log_lik)
    mean = q @ p
    total = (p + (m - 1) * mean) / m
    drop = t / 2 * total ** (-t - 1) * (q @ p**2 - mean**2) * (m - 1) / m**2
    got_drop = log_t_from_log(np.log(total), t) - got
    assert np.allclose(got_drop, drop, rtol=1e-4, atol=4e-15)  # a difference of numbers near 1


def test_one_member_is_the_t_logarithm():
    # Also far below the smallest double, which likelihoods in units of the largest would meet.
    log_lik = np.array([[0.0, -3.0], [-730.0, 700.0], [-1e4, -1e4]])
    for t in TS:
        got = expected_log_t(log_lik, np.full(3, 1 / 3), 1, t)
        assert np.allclose(got, log_t_from_log(log_lik, t), rtol=1e-13, atol=0)


@pytest.mark.parametrize("m", [2, 3, math.inf])
def test_likelihoods_far_below_the_smallest_double(exact, enumerate_all, m):
    log_lik = np.array([[0.0], [-1000.0], [-1001.0]])
    q = np.array([0.0, 0.25, 0.75])  # nothing near the largest
    for t in (0.3, 1):
        got = expected_log_t(log_lik, q, m, t)
        if m == math.inf:
            log_mean = -1000 + exact.mp.log(exact(0.25) + exact(0.75) * exact.mp.exp(-1))
            want = [exact.log_t_from_log(log_mean, t)] * 3
        else:
            want = enumerate_all(log_lik, q, m, t)
        assert worst(exact, got, want) < 1e-12


# Likelihoods of exactly 0


@pytest.mark.parametrize("m", [2, 3, 4])
@pytest.mark.parametrize("t", [0, 0.1, 0.5, 0.9, 0.99, 1 - 1e-9])
def test_zero_likelihoods(exact, enumerate_all, m, t):
    log_lik = np.array(
        [
            [0.0, -np.inf, -np.inf, -5.0],
            [-np.inf, -np.inf, -np.inf, -np.inf],
            [-3.0, -np.inf, -2.0, -90.0],
            [-np.inf, -np.inf, -np.inf, -1.0],
        ]
    )
    for q in (Q4, np.array([1e-12, 0.5, 1e-20, 0.5 - 1e-12]), np.array([0, 0.5, 0, 0.5])):
        got = expected_log_t(log_lik, q, m, t)
        assert worst(exact, got, enumerate_all(log_lik, q, m, t)) < 1e-10


@pytest.mark.parametrize("m", [1, 2, 5, math.inf])
def test_log_loss_is_infinite_exactly_where_theory_says(m):
    log_lik = np.array([[0.0, -1.0, -np.inf], [-np.inf, -2.0, -np.inf], [-np.inf, -3.0, -np.inf]])
    infinite = np.isneginf(expected_log_t(log_lik, np.array([0.2, 0.5, 0.3]), m, 1))
    # The draw in hand is impossible, and so may be all the others; p̄ alone decides at m = inf.
    assert infinite[:, 0].tolist() == [False] + [m != math.inf] * 2
    assert not infinite[:, 1].any()
    assert infinite[:, 2].all()
    # All mass on the possible one: draws of it rescue every mean but that of m = 1.
    infinite = np.isneginf(expected_log_t(log_lik, np.array([1.0, 0, 0]), m, 1))
    assert infinite[:, 0].tolist() == [False] + [m == 1] * 2


# What must hold whatever the numbers


@pytest.mark.parametrize("t", TS)
def test_loss_falls_with_m(t):
    log_lik, q = random_case(3)
    losses = [risk(log_lik, q, m, t) for m in (1, 2, 3, 5, 10, 100, 10**4, math.inf)]
    steps = np.diff(losses, axis=0)
    if t == 0:
        assert np.abs(steps).max() < 1e-12  # log_0 is linear
    else:
        assert steps.max() < 0


@pytest.mark.parametrize("t", [0.1, 0.5, 0.9, 1])
def test_work_does_not_grow_with_m(t):
    log_lik, q = random_case(4, points=20, rows=7)

    def nodes(m, shift=0.0):
        sample = MultiSample(log_lik + shift)
        list(sample.chunks(q[None], np.array([float(m)]), np.array([float(t)])))
        return sample.nodes_used

    assert nodes(2) > 0
    assert nodes(1000) <= 1.1 * nodes(2)
    assert nodes(10**6) <= 1.1 * nodes(2)
    assert nodes(2, shift=-300) == nodes(2) == nodes(2, shift=300)  # nor for outliers


@pytest.mark.parametrize("m", [1, 2, 7, math.inf])
@pytest.mark.parametrize("t", [0, 0.3, 1])
def test_invariances(m, t):
    log_lik, q = random_case(5)
    value = expected_log_t(log_lik, q, m, t)
    close = {"rtol": 1e-11, "atol": 1e-12}

    order = np.array([3, 0, 5, 1, 4, 2])
    assert np.allclose(expected_log_t(log_lik[order], q[order], m, t), value[order], **close)

    split = np.append(q, q[2] / 2)
    split[2] /= 2
    got = expected_log_t(np.vstack([log_lik, log_lik[2]]), split, m, t)
    assert np.allclose(got, np.vstack([value, value[2]]), **close)

    # log_t(c s) = log_t(c) + c^(1-t) log_t(s), for each data row its own c
    shift = np.array([-40.0, 3.0, 0.5])
    with np.errstate(divide="ignore"):
        want = (np.expm1((1 - t) * shift) / (1 - t) if t < 1 else shift) + (
            np.exp((1 - t) * shift) * value
        )
    assert np.allclose(expected_log_t(log_lik + shift, q, m, t), want, **close)


@pytest.mark.parametrize("m", [1, 2, 3, 10, 1000, math.inf])
@pytest.mark.parametrize("t", [0, 0.1, 0.5, 0.9, 1])
def test_loss_is_convex_in_q(m, t):
    """R is convex in q for each m and t, though a polynomial of degree m."""
    log_lik, _ = random_case(6, low=-20.0)
    rng = np.random.default_rng(11)
    for concentration in (0.1, 1.0):
        for _ in range(5):
            q0, q1 = rng.dirichlet(np.full(6, concentration), 2)
            ends = (risk(log_lik, q0, m, t) + risk(log_lik, q1, m, t)) / 2
            middle = risk(log_lik, (q0 + q1) / 2, m, t)
            assert np.all(middle <= ends + 1e-12)


@given(
    log_lik=st.lists(st.floats(-200, 5), min_size=1, max_size=5),
    seed=st.integers(0, 2**32 - 1),
    m=st.sampled_from([1, 2, 5, 100, 10**6, math.inf]),
    t=st.floats(0, 1, allow_subnormal=False),
)
@reproducible
def test_finite_and_between_the_extremes(log_lik, seed, m, t):
    q = np.random.default_rng(seed).dirichlet(np.full(len(log_lik), 0.3))
    value = expected_log_t(np.array(log_lik)[:, None], q, m, t)
    assert np.isfinite(value).all()
    low, high = (float(log_t_from_log(f(log_lik), t)) for f in (min, max))
    slack = 1e-11 * max(1, abs(low), abs(high))
    assert low - slack <= value.min()
    assert value.max() <= high + slack


# The slope that solvers use


@pytest.mark.parametrize("m", [1, 2, 5, math.inf])
@pytest.mark.parametrize("t", [0, 0.4, 1])
def test_slope_in_q(m, t):
    """For unnormalised q the loss is not defined: compare along directions that keep the sum."""
    log_lik, q = random_case(8)
    weight = np.array([1.0, 0.25, 2.0])
    sample = MultiSample(log_lik)
    mean, slope = sample.mean_and_slope(q[None], np.array([float(m)]), np.array([float(t)]), weight)
    assert mean[0] == pytest.approx(-weight @ risk(log_lik, q, m, t), rel=1e-13)
    for g in range(5):
        step = np.zeros(6)
        step[g], step[5] = 1e-4 * q.min(), -1e-4 * q.min()
        change = -weight @ (risk(log_lik, q + step, m, t) - risk(log_lik, q - step, m, t)) / 2
        assert slope[0] @ step == pytest.approx(change, rel=1e-5, abs=1e-14)


def test_slope_of_the_mean_where_likelihoods_underflow():
    # p̄^(-t) p_θ with p̄ = e^-1000: the first is infinite for a double, the others are not.
    log_lik, q = np.array([[0.0], [-1000.0], [-np.inf]]), np.array([0.0, 1.0, 0.0])
    sample = MultiSample(log_lik)
    _, slope = sample.mean_and_slope(q[None], np.array([math.inf]), np.array([1.0]), np.ones(1))
    assert slope[0].tolist() == [np.inf, 1, 0]


# Precision and memory


def test_double_precision_whatever_jax_does(exact, enumerate_all):
    log_lik = np.random.default_rng(3).uniform(-3, 0, (4, 2)).astype(np.float32)
    want = enumerate_all(log_lik, Q4, 3, 0.5)
    for given_as in (log_lik, jnp.asarray(log_lik), log_lik.tolist()):
        got = expected_log_t(given_as, Q4, 3, 0.5)
        assert isinstance(got, np.ndarray)
        assert got.dtype == np.float64
        assert worst(exact, got, want) < 1e-13
    with jax.enable_x64(True):
        got = expected_log_t(jnp.asarray(log_lik), jnp.asarray(Q4), 3, 0.5)
        assert worst(exact, got, want) < 1e-13


def test_chunks_of_rows_change_nothing(monkeypatch):
    rng = np.random.default_rng(9)
    log_lik, q = rng.uniform(-30, 0, (60, 1000)), rng.dirichlet(np.ones(60))
    whole = expected_log_t(log_lik, q, 5, 0.7)
    module = sys.modules["mtbayes.maths.expectation"]
    monkeypatch.setattr(module, "_TABLE_BYTES", 2**20)
    monkeypatch.setattr(module, "_CACHE_BYTES", 2**23)  # room for some of the tables
    sample = MultiSample(log_lik)
    list(sample.chunks(q[None], np.array([5.0]), np.array([0.7])))  # fills the cache
    slices, values = zip(*sample.chunks(q[None], np.array([5.0]), np.array([0.7])), strict=True)
    assert len(slices) > 10
    assert sum(len(v) for v in values) == 1000
    assert np.allclose(np.concatenate(values)[:, 0].T, whole, rtol=1e-12, atol=0)
    edges = {s.start for s in slices} | {s.stop - 1 for s in slices} | set(range(0, 1000, 97))
    for i in edges:
        alone = expected_log_t(log_lik[:, [i]], q, 5, 0.7)[:, 0]
        assert np.allclose(whole[:, i], alone, rtol=1e-12, atol=0)


def test_cached_tables_serve_every_triple(exact, enumerate_all):
    log_lik, _ = random_case(10, points=4)
    sample = MultiSample(log_lik)
    qs = np.random.default_rng(0).dirichlet(np.ones(4), 4)
    ms, ts = np.array([3.0, 1.0, math.inf, 2.0]), np.array([0.5, 0.2, 0.9, 1.0])
    for _ in range(2):
        ((_, value),) = sample.chunks(qs, ms, ts)
        for b in (0, 1, 3):
            want = enumerate_all(log_lik, qs[b], int(ms[b]), ts[b])
            assert worst(exact, value[:, b].T, want) < 1e-10
        want = expected_log_t(log_lik, qs[2], math.inf, 0.9)
        assert np.allclose(value[:, 2].T, want, rtol=1e-14)


# Errors

GOOD = {"log_lik": np.zeros((2, 3)), "q": np.array([0.5, 0.5]), "m": 2, "t": 0.5}


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        ({"log_lik": np.zeros(2)}, ["log_lik must", "[G, n]", "(2,)", "support points"]),
        ({"log_lik": np.zeros((2, 0))}, ["log_lik must", "(2, 0)", "support points"]),
        ({"log_lik": "many"}, ["log_lik must", "a str", "no number"]),
        ({"log_lik": [[0, np.nan], [0, 0]]}, ["log_lik must", "nan at [0, 1]", "data row 1"]),
        ({"log_lik": [[0, 0], [np.inf, 0]]}, ["log_lik must", "inf at [1, 0]", "data row 0"]),
        ({"q": np.ones(3) / 3}, ["q must have shape (2,)", "(3,)", "log_lik's rows"]),
        ({"q": [-0.5, 1.5]}, ["q must", "not negative", "-0.5", "probabilities"]),
        ({"q": [np.nan, 1]}, ["q must", "finite", "nan", "probabilities"]),
        ({"q": [0.5, 0.6]}, ["q must sum to 1", "1.1", "Divide it by its sum"]),
        ({"m": 0}, ["m must", "at least 1", "got 0", "size of the ensemble"]),
        ({"m": 1.5}, ["m must", "whole number", "got 1.5", "size of the ensemble"]),
        ({"m": -math.inf}, ["m must", "at least 1", "got -inf", "size of the ensemble"]),
        ({"m": math.nan}, ["m must", "whole number", "got nan", "size of the ensemble"]),
        ({"t": 1.5}, ["t must", "[0, 1]", "got 1.5", "more robust"]),
        ({"t": -0.1}, ["t must", "[0, 1]", "got -0.1", "more robust"]),
        ({"t": math.nan}, ["t must", "[0, 1]", "got nan", "more robust"]),
    ],
)
def test_bad_input_is_refused_with_a_remedy(bad, words):
    with pytest.raises(InvalidInput) as caught:
        expected_log_t(**(GOOD | bad))
    assert [w for w in words if w not in str(caught.value)] == []


def test_whole_numbers_in_any_dress_are_members():
    want = expected_log_t(**GOOD)
    for m in (2.0, np.int64(2), np.float64(2)):
        assert np.array_equal(expected_log_t(**(GOOD | {"m": m})), want)
