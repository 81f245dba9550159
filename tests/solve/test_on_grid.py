"""Theorem 1 on a grid: exact cases, optimality, monotone traces, limits, bad input."""

import itertools
import math

import numpy as np
import pytest
from scipy.stats import norm

from mtbayes import (
    Criterion,
    InvalidInput,
    expected_log_t,
    fixed_point,
    fixed_points,
    log_t,
    objective,
)
from mtbayes.maths import escort

THETA = np.linspace(-12, 8, 201)
PRIOR = norm.pdf(THETA, 0, 3) / norm.pdf(THETA, 0, 3).sum()
DATA = np.array([-8.21, -2.16, -0.94, 1.70, 2.38])
LOG_LIK = norm.logpdf(DATA[None], THETA[:, None], 1.0)
SETTINGS = [(1, 0.5, 1.0), (2, 1.0, 2.0), (5, 0.7, 5.0), (10, 0.9, 1.0), (10, 0.0, 10.0)]
ORDERS = [1.0, 0.5, 0.9, 1.5]


def total_variation(p, q):
    return 0.5 * np.abs(p - q).sum()


def brute_objective(q, log_lik, prior, m, t, beta, t_p):
    """J by enumerating all m-tuples of support points."""
    lik, n = np.exp(log_lik), log_lik.shape[1]
    loss = 0.0
    for members in itertools.product(range(len(q)), repeat=m):
        mean = lik[list(members)].mean(0)
        log = np.log(mean) if t == 1 else (mean ** (1 - t) - 1) / (1 - t)
        loss -= math.prod(q[list(members)]) * log.sum() / n
    if t_p == 1:
        divergence = np.sum(q * np.log(q / prior))
    else:
        divergence = np.log(np.sum(q**t_p * prior ** (1 - t_p))) / (t_p - 1)
    return loss + m / (n * beta) * divergence


@pytest.mark.parametrize("t_p", ORDERS)
@pytest.mark.parametrize("t", [0.0, 0.4, 1.0])
@pytest.mark.parametrize("m", [1, 2, 3])
def test_objective_against_enumeration(m, t, t_p):
    rng = np.random.default_rng(m)
    q, prior = rng.dirichlet(np.ones(4), size=2)
    log_lik = -5 * rng.random((4, 3))
    expected = brute_objective(q, log_lik, prior, m, t, 0.7, t_p)
    ours = objective(q, log_lik, prior, Criterion(m, t, 0.7, t_p))
    assert ours == pytest.approx(expected, rel=1e-11)


def test_bayes_is_conjugate():
    """m = t = 1, beta = 1 is Bayes' posterior, known in closed form for a Gaussian mean."""
    q = fixed_point(LOG_LIK, PRIOR, Criterion(m=1, t=1.0, beta=1.0)).state
    precision = 1 / 9 + len(DATA)
    exact = norm.pdf(THETA, DATA.sum() / precision, precision**-0.5)
    assert total_variation(q, exact / exact.sum()) < 1e-12


def test_tempered_bayes_is_conjugate():
    q = fixed_point(LOG_LIK, PRIOR, Criterion(m=1, t=1.0, beta=0.3)).state
    precision = 1 / 9 + 0.3 * len(DATA)
    exact = norm.pdf(THETA, 0.3 * DATA.sum() / precision, precision**-0.5)
    assert total_variation(q, exact / exact.sum()) < 1e-12


@pytest.mark.parametrize("t_p", ORDERS)
@pytest.mark.parametrize(("m", "t", "beta"), SETTINGS)
def test_no_perturbation_lowers_the_objective(m, t, beta, t_p):
    criterion = Criterion(m, t, beta, t_p)
    solution = fixed_point(LOG_LIK, PRIOR, criterion)
    assert solution.status.converged, str(solution.status)
    assert solution.state.sum() == pytest.approx(1, abs=1e-12)
    best = objective(solution.state, LOG_LIK, PRIOR, criterion)
    assert best == pytest.approx(solution.trace[-1], rel=1e-12)
    rng = np.random.default_rng(0)
    for size in (1e-4, 1e-2, 0.3):
        for _ in range(5):
            kicked = solution.state * np.exp(size * rng.standard_normal(len(THETA)))
            mixed = (1 - size) * solution.state + size * rng.dirichlet(np.ones(len(THETA)))
            for q in (kicked / kicked.sum(), mixed):
                assert objective(q, LOG_LIK, PRIOR, criterion) >= best - 1e-13


@pytest.mark.parametrize("t_p", ORDERS)
@pytest.mark.parametrize("beta", [0.1, 3.0, 100.0])
def test_trace_never_increases(beta, t_p):
    criteria = [Criterion(m, t, beta, t_p) for m in (2, 10) for t in (1.0, 0.9, 0.3)]
    for solution in fixed_points(LOG_LIK, PRIOR, criteria, max_steps=60):
        assert np.all(np.diff(solution.trace) <= 0)
        assert len(solution.trace) > 1


def test_sweep_equals_separate_fits():
    criteria = [Criterion(m, t, b) for m, t, b in SETTINGS]
    for criterion, together in zip(
        criteria, fixed_points(LOG_LIK, PRIOR, criteria, tol=1e-6), strict=True
    ):
        alone = fixed_point(LOG_LIK, PRIOR, criterion, tol=1e-6)
        assert total_variation(alone.state, together.state) < 1e-5


@pytest.mark.parametrize("m", [2, 5, 20])
@pytest.mark.parametrize("t", [1.0, 0.7, 0.1])
def test_objective_is_convex(m, t):
    rng = np.random.default_rng(0)
    for t_p in (1.0, 0.4):
        criterion = Criterion(m, t, 5.0, t_p)

        def value(q, criterion=criterion):
            return objective(q, LOG_LIK[::10], PRIOR[::10] / PRIOR[::10].sum(), criterion)

        for _ in range(10):
            a, b = rng.dirichlet(np.full(21, 0.2), size=2)
            share = rng.random()
            between = value(share * a + (1 - share) * b)
            assert between <= share * value(a) + (1 - share) * value(b) + 1e-12


def test_start_does_not_matter():
    """The paper's damped iteration from an awkward start ends where ours does."""
    theta, log_lik = THETA[::5], LOG_LIK[::5]
    prior = PRIOR[::5] / PRIOR[::5].sum()
    ours = fixed_point(log_lik, prior, Criterion(m=3, t=0.9, beta=3.0)).state
    q = np.where(theta > 5, 1.0, 1e-9)
    q /= q.sum()
    for _ in range(500):
        exponent = np.log(prior) + 3.0 * expected_log_t(log_lik, q, 3, 0.9).sum(1)
        target = np.exp(exponent - exponent.max())
        q = 0.95 * q + 0.05 * target / target.sum()
    assert total_variation(q, ours) < 1e-6


def test_limit_is_escort_of_order_one_over_t():
    """m = infinity, no regulariser, q free to be any predictive: p_q is ν̃'s escort of order 1/t."""
    nu = np.array([0.5, 0.3, 0.15, 0.05])
    log_lik = np.where(np.eye(4, dtype=bool), 0.0, -np.inf)  # point θ predicts outcome θ surely
    prior = np.full(4, 0.25)
    for t in (0.4, 0.8, 1.0):
        criterion = Criterion(m=math.inf, t=t, beta=math.inf)
        solution = fixed_point(log_lik, prior, criterion, weight=1000 * nu, tol=1e-10)
        assert solution.status.converged
        np.testing.assert_allclose(solution.state, escort(nu, 1 / t), atol=1e-8)


def test_large_m_approaches_infinity():
    values = [
        objective(PRIOR, LOG_LIK, PRIOR, Criterion(m, 0.6, beta=math.inf))
        for m in (1, 2, 10, 1000, 10**6, math.inf)
    ]
    assert np.all(np.diff(values) < 0)
    assert values[-2] == pytest.approx(values[-1], rel=1e-4)


def test_row_weight_two_is_a_row_twice():
    criterion = Criterion(4, 0.6, 2.0)
    weighted = fixed_point(LOG_LIK, PRIOR, criterion, weight=[1, 2, 1, 0, 1])
    repeated = fixed_point(LOG_LIK[:, [0, 1, 1, 2, 4]], PRIOR, criterion)
    assert total_variation(weighted.state, repeated.state) < 1e-6
    assert weighted.trace[-1] == pytest.approx(repeated.trace[-1], rel=1e-10)


def test_outlier_is_forgotten_as_t_falls():
    near_outlier = THETA < -5
    share = [
        fixed_point(LOG_LIK, PRIOR, Criterion(10, t, 10.0)).state[near_outlier].sum()
        for t in (1.0, 0.7, 0.4)
    ]
    assert share[0] > 0.15
    assert share[0] > 2 * share[1] > 4 * share[2]


def test_renyi_regulariser_forgives_a_wrong_prior():
    """A prior far from the data: the data's peak gets more mass as t_p falls."""
    wrong = norm.pdf(THETA, -10, 0.5)
    wrong /= wrong.sum()
    log_lik = norm.logpdf(np.array([[1.5, 2.0, 2.5]]), THETA[:, None], 1.0)
    near = [
        fixed_point(log_lik, wrong, Criterion(1, 1.0, 1.0, t_p)).state[THETA > 0].sum()
        for t_p in (1.0, 0.5, 0.2)
    ]
    assert near[0] < 0.01 < near[1] < near[2]


def test_support_of_any_dimension():
    """Points are just indices: a shuffled support gives the shuffled answer."""
    order = np.random.default_rng(1).permutation(len(THETA))
    criterion = Criterion(5, 0.5, 5.0)
    straight = fixed_point(LOG_LIK, PRIOR, criterion).state
    shuffled = fixed_point(LOG_LIK[order], PRIOR[order], criterion).state
    np.testing.assert_allclose(shuffled, straight[order], atol=1e-7)


def test_points_that_cannot_carry_mass_get_none():
    with np.errstate(divide="ignore"):
        log_lik = np.log([[0.5, 0.0], [0.2, 0.3], [0.4, 0.1]])
    prior = np.array([0.5, 0.5, 0.0])
    assert fixed_point(log_lik, prior, Criterion(2, 1.0)).state.tolist() == [0, 1, 0]
    robust = fixed_point(log_lik, prior, Criterion(2, 0.5)).state
    assert robust[0] > 0.1
    assert robust[2] == 0


def test_a_row_that_no_point_allows_costs_a_constant_below_t_1():
    log_lik = LOG_LIK.copy()
    log_lik[:, 1] = -np.inf
    with_it = fixed_point(log_lik, PRIOR, Criterion(2, 0.5, 3.0)).state
    without = fixed_point(LOG_LIK[:, [0, 2, 3, 4]], PRIOR, Criterion(2, 0.5, 3.0)).state
    assert total_variation(with_it, without) < 1e-6


def test_status_tells_when_steps_run_out():
    solution = fixed_point(LOG_LIK, PRIOR, Criterion(10, 1.0, 10.0), max_steps=2)
    assert not solution.status.converged
    assert solution.status.steps == 2
    assert "Not converged after 2 steps" in str(solution.status)
    assert "max_steps" in str(solution.status)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"log_lik": np.where(LOG_LIK > -1, np.nan, LOG_LIK)}, ["log_lik", "nan", "NaN"]),
        ({"log_lik": LOG_LIK[0]}, ["log_lik", "[G, n]", "(5,)"]),
        ({"prior": PRIOR[:-1]}, ["prior", "(201,)", "(200,)"]),
        ({"prior": 2 * PRIOR}, ["prior", "sum to 1", "2", "prior / prior.sum()"]),
        ({"prior": PRIOR - 0.1}, ["prior", "not negative", "-0."]),
        ({"weight": [1, 2]}, ["weight", "(5,)", "(2,)"]),
        ({"weight": [1, 1, -1, 1, 1]}, ["weight", "-1", "not negative"]),
        ({"damping": 0.0}, ["damping", "(0, 1]", "0.0"]),
        ({"tol": -1.0}, ["tol", "-1.0", "above 0"]),
        ({"max_steps": 0}, ["max_steps", "at least 1", "0"]),
        ({"log_lik": np.full((201, 5), -np.inf)}, ["log_lik", "likelihood 0", "t < 1"]),
        ({"log_lik": "abc"}, ["log_lik", "array of numbers"]),
        ({"log_lik": 1e30 * LOG_LIK}, ["log_lik", "within ±1e+06", "Rescale"]),
    ],
)
def test_bad_input_is_named(change, words):
    arguments = {"log_lik": LOG_LIK, "prior": PRIOR, **change}
    with pytest.raises(InvalidInput) as error:
        fixed_point(
            arguments.pop("log_lik"), arguments.pop("prior"), Criterion(2, 1.0), **arguments
        )
    for word in words:
        assert word in str(error.value)


@pytest.mark.parametrize("centre", [-10, 10, 20])
@pytest.mark.parametrize("t", [0.0, 0.5, 0.9, 1.0])
def test_the_limit_of_many_members_is_found_from_a_prior_far_away(centre, t):
    """The minimum of J at m = ∞ does not depend on the prior's weights: EM from an even start."""
    theta = np.linspace(-30, 30, 200)
    log_lik = norm.logpdf(np.array([-8.21, -2.16, -0.94, 1.7, 2.38]), theta[:, None])
    prior = norm.pdf(theta, centre, 3)
    criterion = Criterion(m=math.inf, t=t, beta=math.inf)
    found = fixed_point(log_lik, prior / prior.sum(), criterion).state
    likelihood, q = np.exp(log_lik), np.full(200, 1 / 200)
    for _ in range(3000):
        q *= (likelihood * (q @ likelihood) ** -t).sum(axis=1)
        q /= q.sum()

    def loss(q):
        return -np.mean(log_t(q @ likelihood, t))

    assert loss(found) == pytest.approx(loss(q), abs=5e-4)
