"""Bounds fail at most as often as their δ allows, in worlds whose risks are known exactly.

Each test draws 500 data sets and counts how often the risk exceeds its bound. By the
binomial law a valid bound has more failures than `allowed` with probability 0.001 or less.
"""

from itertools import product

import numpy as np
import pytest
from numpy.polynomial.legendre import leggauss
from scipy.stats import binom, norm

from mtbayes import Criterion, fixed_point
from mtbayes.maths import expected_log_t, kl_divergence, log_t, renyi_divergence
from mtbayes.maths.expectation import MultiSample
from mtbayes.theory.bounds import Span, id_bound, log_t_span, pac_bayes

SETS, DELTA = 500, 0.2


def allowed(sets, delta):
    return binom.ppf(0.999, sets, delta)


def softmax(gain, prior):
    q = prior * np.exp(gain - gain.max(axis=-1, keepdims=True))
    return q / q.sum(axis=-1, keepdims=True)


# A world of densities: (1-ε)ν + εξ on the line, the model N(θ, 1), nine θ; risks by quadrature.

THETA = np.linspace(-10, 6, 9)
EPSILON = 0.15
CLEAN = ((0.7, 2.0, np.sqrt(2)), (0.3, -2.0, np.sqrt(2)))
DENSITY = norm.pdf(0)


def draw(random, shape):
    side = random.random(shape) < CLEAN[0][0]
    clean = np.where(side, 2.0, -2.0) + np.sqrt(2) * random.standard_normal(shape)
    outlier = -8 + random.standard_normal(shape)
    return np.where(random.random(shape) < EPSILON, outlier, clean)


def quadrature():
    """Points, and their weights under the clean law and under the dirty one."""
    x, w = leggauss(200)
    x, w = -5 + 15 * x, 15 * w
    clean = w * sum(share * norm.pdf(x, mean, std) for share, mean, std in CLEAN)
    return x, clean, (1 - EPSILON) * clean + EPSILON * w * norm.pdf(x, -8, 1)


def losses(x, m, t):
    """-log_t of the mean of m members at x, for each m-tuple of θ: [tuples, ...]."""
    p = norm.pdf(x, THETA.reshape(-1, *[1] * np.ndim(x)), 1)
    tuples = np.array(list(product(range(len(THETA)), repeat=m)))
    return -log_t(p[tuples].mean(axis=1), t)


def joint(q, m):
    """q^m as weights [sets, tuples], in the order of `losses`."""
    both = q
    for _ in range(m - 1):
        both = (both[:, :, None] * q[:, None]).reshape(len(q), -1)
    return both


@pytest.mark.parametrize(
    ("m", "t", "n"), [(1, 0.0, 10), (1, 0.9, 50), (2, 0.5, 10), (2, 0.7, 40), (3, 0.3, 15)]
)
@pytest.mark.parametrize("form", ["kl", "hoeffding"])
def test_log_t_risk_of_a_tilted_grid_on_dirty_and_on_clean_rows(m, t, n, form):
    random = np.random.default_rng([m, n])
    x, clean, dirty = quadrature()
    assert dirty.sum() == pytest.approx(1, abs=1e-7)
    risk, clean_risk = losses(x, m, t) @ dirty, losses(x, m, t) @ clean
    data, prior = draw(random, (SETS, n)), np.full(len(THETA), 1 / len(THETA))
    q = softmax(3 * n * -losses(data, 1, t).mean(axis=-1).T, prior)
    each = np.stack([losses(rows, m, t).mean(axis=-1) for rows in data])
    weights, span = joint(q, m), log_t_span(t, DENSITY)
    empirical, kl = np.sum(weights * each, axis=1), m * kl_divergence(q, prior)
    fails = clean_fails = 0
    for i in range(SETS):
        bound = pac_bayes(empirical[i], kl[i], n, confidence=1 - DELTA, span=span, form=form)
        fails += weights[i] @ risk > bound.value
        lemma = id_bound(bound, EPSILON)
        clean_fails += weights[i] @ clean_risk > lemma.value
    assert fails <= allowed(SETS, DELTA)
    assert clean_fails <= allowed(SETS, DELTA)


@pytest.mark.parametrize(("m", "t"), [(1, 0.5), pytest.param(10, 0.7, marks=pytest.mark.slow)])
def test_lemma_1_with_the_exact_objective_of_the_grid_posterior(m, t):
    n, beta, random = 30, 0.3, np.random.default_rng(m)
    prior, (x, _, dirty) = np.full(len(THETA), 1 / len(THETA)), quadrature()
    criterion, span = Criterion(m=m, t=t, beta=beta), log_t_span(t, DENSITY)
    psi = n * beta * span.width**2 / (8 * n) - np.log(DELTA) / (n * beta)
    found, lemma = np.empty((SETS, len(THETA))), np.empty(SETS)
    for i, data in enumerate(draw(random, (SETS, n))):
        log_lik = norm.logpdf(data, THETA[:, None], 1)
        solution = fixed_point(log_lik, prior, criterion, tol=1e-3)
        found[i], lemma[i] = solution.state, solution.trace[-1] + psi
    settings = {"confidence": 1 - DELTA, "span": span, "form": "hoeffding", "betas": [n * beta]}
    empirical = -float(found[-1] @ expected_log_t(log_lik, found[-1], m, t).mean(axis=1))
    bound = pac_bayes(empirical, m * kl_divergence(found[-1], prior), n, **settings)
    assert bound.value == pytest.approx(lemma[-1], rel=1e-6)
    assert bound.value < span.high
    on_line = MultiSample(norm.logpdf(x, THETA[:, None], 1))
    gain, _ = on_line.mean_and_slope(found, np.full(SETS, float(m)), np.full(SETS, t), dirty)
    assert np.sum(-gain > lemma) <= allowed(SETS, DELTA)


# A world of coins: 1,000 members guess each label at random, so that the best of them on the rows
# is no better than any other on new ones. Without its KL every bound must fail here.

COINS, ROWS = 1000, 30


def guesses(random):
    """Whether each member is right about each row."""
    return random.random((COINS, ROWS)) < 0.5


def coin_loss(right, t):
    """-log_t of a probability of 0.99 for the guess."""
    return -log_t(np.where(right, 0.99, 0.01), t)


def coin_risk(m, t, q):
    """The risk of m members drawn from q, exactly; those drawn twice agree with themselves."""
    if m == 1:
        return coin_loss(np.array([True, False]), t).mean()
    same = float(q @ q)
    alone = coin_loss(np.array([True, False]), t).mean()
    mixed = -log_t(np.array([0.99, 0.5, 0.5, 0.01]), t).mean()
    return same * alone + (1 - same) * mixed


def coin_groups(random, q, right, m, t, groups):
    """Monte Carlo values of the empirical risk of m members."""
    members = random.choice(COINS, size=(groups, m), p=q)
    p = np.where(right[members], 0.99, 0.01).mean(axis=1)
    return -log_t(p, t).mean(axis=1)


@pytest.mark.parametrize(("m", "t"), [(1, 0.0), (1, 0.5), (2, 0.3)])
def test_the_whole_certificate_with_monte_carlo_and_that_it_needs_its_kl(m, t):
    random, prior, fails, without = np.random.default_rng(m), np.full(COINS, 1 / COINS), 0, 0
    for _ in range(SETS):
        right = guesses(random)
        q = softmax(-10 * coin_loss(right, t).sum(axis=1), prior)
        values = coin_groups(random, q, right, m, t, groups=500)
        settings = {"confidence": 1 - DELTA, "span": log_t_span(t)}
        risk, kl = coin_risk(m, t, q), m * float(kl_divergence(q, prior))
        fails += risk > pac_bayes(values, kl, ROWS, **settings).value
        without += risk > pac_bayes(values, 0.0, ROWS, **settings).value
    assert fails <= allowed(SETS, DELTA)
    assert without > allowed(SETS, DELTA)


@pytest.mark.parametrize("order", [None, 1.5, 3.0])
def test_one_drawn_member_and_that_its_bound_needs_the_density_ratio(order):
    random, prior, fails, without = np.random.default_rng(5), np.full(COINS, 1 / COINS), 0, 0
    for _ in range(SETS):
        right = guesses(random)
        q = softmax(4.0 * right.sum(axis=1), prior)
        drawn = random.choice(COINS, p=q)
        if order is None:
            paid = np.log(q[drawn] / prior[drawn])
        else:
            paid = float(renyi_divergence(q, prior, order))
        error = 1 - right[drawn].mean()
        fails += pac_bayes(error, paid, ROWS, confidence=1 - DELTA, order=order).value < 0.5
        without += pac_bayes(error, 0.0, ROWS, confidence=1 - DELTA).value < 0.5
    assert fails <= allowed(SETS, DELTA)
    assert without > allowed(SETS, DELTA)


def test_the_best_of_many_settings_must_be_paid_for():
    """Many classifiers, all without skill, of which the best is reported: `tried` makes it hold."""
    random, fails, without = np.random.default_rng(7), 0, 0
    for _ in range(SETS):
        error = random.binomial(2000, 0.5, size=3000).min() / 2000
        fails += pac_bayes(error, 0.0, 2000, confidence=1 - DELTA, tried=3000).value < 0.5
        without += pac_bayes(error, 0.0, 2000, confidence=1 - DELTA).value < 0.5
    assert fails <= allowed(SETS, DELTA)
    assert without > allowed(SETS, DELTA)


def test_a_bound_is_not_vacuous_where_rows_suffice():
    """The price of 2 nats and 95 % on 10,000 rows, by Pinsker's inequality from above."""
    bound = pac_bayes(0.3, 2.0, 10_000, span=Span())
    assert 0.3 < bound.value < 0.3 + np.sqrt((2 + np.log(200 / 0.05)) / 20_000)
