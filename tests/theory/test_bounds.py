import math

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq

from mtbayes.errors import InvalidInput
from mtbayes.maths import gaussian_kl_divergence, gaussian_renyi_divergence, log_t
from mtbayes.theory.bounds import (
    Span,
    beta_grid,
    id_bound,
    kl_inverse,
    log_t_span,
    moment,
    monte_carlo_error,
    pac_bayes,
    uniform_flips,
)

RISKS = st.floats(0, 1)


def coin_kl(a, b):
    with mpmath.workdps(50):
        a, b = mpmath.mpf(a), mpmath.mpf(b)
        first = a * mpmath.log(a / b) if a else mpmath.mpf(0)
        return first + ((1 - a) * mpmath.log((1 - a) / (1 - b)) if a < 1 else 0)


@settings(deadline=None)
@given(RISKS, st.floats(1e-6, 3))
def test_kl_inverse_is_the_largest_risk_within_the_budget(risk, budget):
    found = float(kl_inverse(risk, budget))
    assert risk <= found <= 1
    if found < 1 - 1e-9:
        assert float(coin_kl(risk, found)) == pytest.approx(budget, rel=1e-6, abs=1e-12)
        assert coin_kl(risk, found + 1e-9) > budget


@pytest.mark.parametrize("n", [1, 2, 7, 50])
def test_moment_is_maurers_sum_and_what_coins_attain(n):
    with mpmath.workdps(30):
        by_hand = mpmath.fsum(
            mpmath.binomial(n, k) * (mpmath.mpf(k) / n) ** k * (1 - mpmath.mpf(k) / n) ** (n - k)
            for k in range(n + 1)
        )
    assert moment(n) == pytest.approx(float(by_hand), rel=1e-12)
    # E exp(n kl(R̂||R)) of n coins of any bias is the same sum.
    bias, k = 0.3, np.arange(n + 1)
    mean = sum(
        math.comb(n, int(j))
        * bias**j
        * (1 - bias) ** (n - j)
        * math.exp(n * float(coin_kl(j / n, bias)))
        for j in k
    )
    assert mean == pytest.approx(float(by_hand), rel=1e-9)


def test_moment_lies_between_root_n_and_twice_that():
    for n in (8, 100, 30_000):
        assert math.sqrt(n) <= moment(n) <= 2 * math.sqrt(n)


@settings(max_examples=60, deadline=None)
@given(RISKS, st.floats(0, 300), st.integers(1, 100_000), st.floats(0.5, 0.999), st.floats(0, 0.95))
def test_the_kl_form_is_never_looser_than_lemma_1(risk, complexity, n, confidence, t):
    span = log_t_span(t, density=2.0)
    loss = span.low + span.width * risk
    kl, lemma = (
        pac_bayes(loss, complexity, n, confidence=confidence, span=span, form=form).value
        for form in ("kl", "hoeffding")
    )
    assert kl <= lemma + 1e-9 * span.width
    assert span.low <= kl <= span.high * (1 + 1e-12)


def test_lemma_1_term_by_term():
    n, beta, delta, t, density, kl, m = 400, 60.0, 0.1, 0.5, 0.4, 1.5, 3
    width = density ** (1 - t) / (1 - t)
    span = log_t_span(t, density)
    assert span.width == pytest.approx(width)
    bound = pac_bayes(
        1.1, m * kl, n, confidence=1 - delta, span=span, form="hoeffding", betas=[beta]
    )
    psi = beta * width**2 / (8 * n) + math.log(1 / delta) / beta
    assert bound.value == pytest.approx(1.1 + m * kl / beta + psi)
    assert bound.terms["for complexity"] == pytest.approx(m * kl / beta)
    assert bound.terms["for spread"] == pytest.approx(beta * width**2 / (8 * n))


def test_the_beta_grid_is_as_good_as_the_best_beta_but_for_its_price():
    n, span, complexity, delta = 2000, Span(-1.0, 3.0), 12.0, 0.05
    bound = pac_bayes(0.5, complexity, n, span=span, form="hoeffding")
    price = complexity + math.log(len(beta_grid(n, span.width)) / delta)
    best = 0.5 + span.width * math.sqrt(price / (2 * n))
    assert best <= bound.value + 1e-12 <= best * 1.002


@pytest.mark.parametrize("form", ["kl", "hoeffding"])
@pytest.mark.parametrize("risk", [0.7, np.linspace(0.5, 0.9, 300)])
def test_the_terms_add_up_and_each_costs_what_it_should(form, risk):
    settings = {"confidence": 0.9, "span": Span(0, 2), "form": form}
    bound = pac_bayes(risk, 5.0, 500, tried=7, **settings)
    added = [
        v
        for name, v in bound.terms.items()
        if name in ("empirical risk", "Monte Carlo error") or name.startswith("for ")
    ]
    assert sum(added) == pytest.approx(bound.value)
    assert bound.terms["empirical risk"] == pytest.approx(np.mean(risk))
    free = pac_bayes(risk, 0.0, 500, **settings)
    assert free.value < pac_bayes(risk, 5.0, 500, **settings).value < bound.value
    # Seven settings cost as much as a δ seven times smaller.
    if np.ndim(risk) == 0:
        stricter = pac_bayes(risk, 5.0, 500, **(settings | {"confidence": 1 - 0.1 / 7}))
        assert bound.value == pytest.approx(stricter.value, rel=1e-9)


def test_monte_carlo_takes_its_own_part_of_delta():
    values = np.random.default_rng(0).beta(2, 5, 500)
    bound = pac_bayes(values, 1.0, 1000, confidence=0.9)
    own = bound.terms["δ for Monte Carlo"]
    assert 0 < own < bound.terms["δ"] == pytest.approx(0.1)
    error = bound.terms["Monte Carlo error"]
    assert error == pytest.approx(monte_carlo_error(values, own))
    rest = pac_bayes(values.mean() + error, 1.0, 1000, confidence=1 - (0.1 - own))
    assert bound.value == pytest.approx(rest.value)
    # Five such bounds have five Monte Carlo errors, which share that part.
    five = pac_bayes(values, 1.0, 1000, confidence=0.9, tried=5)
    stricter = pac_bayes(values, 1.0, 1000, confidence=1 - 0.1 / 5)
    assert five.value == pytest.approx(stricter.value)


def test_monte_carlo_error_covers_as_often_as_it_says():
    random, delta, fails = np.random.default_rng(0), 0.1, 0
    for _ in range(2000):
        values = (random.random(40) < 0.05).astype(float)
        fails += values.mean() + monte_carlo_error(values, delta) < 0.05
    assert fails <= 2000 * delta  # the inequality is far from tight: no failure is expected
    assert monte_carlo_error(np.zeros(40), delta) == pytest.approx(7 * math.log(20) / (3 * 39))


def test_renyi_form_is_dearer_than_kl_and_refused_below_order_1():
    q, p = (0.3, 0.9), (0.0, 1.0)
    kl = float(gaussian_kl_divergence(*q, *p))
    values = [pac_bayes(0.2, kl, 1000).value]
    for order in (1.5, 2.0, 4.0):
        renyi = float(gaussian_renyi_divergence(*q, *p, order))
        bound = pac_bayes(0.2, renyi, 1000, order=order)
        paid = renyi + (2 * order - 1) / (order - 1) * math.log(2 / 0.05) + math.log(moment(1000))
        by_hand = brentq(lambda r, paid=paid: float(coin_kl(0.2, r)) - paid / 1000, 0.2, 0.99)
        assert bound.value == pytest.approx(by_hand, rel=1e-6)
        values.append(bound.value)
    assert values[0] < min(values[1:])
    for order in (0.5, 1.0, math.inf, math.nan, "2"):
        with pytest.raises(InvalidInput, match=r"order must be a number above 1.*KL"):
            pac_bayes(0.2, kl, 1000, order=order)


def test_clean_rows_by_lemma_1():
    t, density, epsilon = 0.5, 4.0, 0.2
    bound = pac_bayes(0.3, 1.0, 1000, span=log_t_span(t, density))
    clean = id_bound(bound, epsilon)
    by_hand = bound.value / 0.8 + epsilon * (density ** (1 - t) - 1) / ((1 - epsilon) * (1 - t))
    assert clean.value == pytest.approx(by_hand)
    assert "20 % of rows are outliers" in clean.statement
    assert "says nothing" not in clean.statement
    assert "says nothing" in id_bound(bound, 0.95).statement
    assert id_bound(bound, 0.0).value == bound.value
    with pytest.raises(InvalidInput, match="epsilon must be below 1"):
        id_bound(bound, 1.0)


def test_clean_labels_under_uniform_flips():
    classes, epsilon, random = 4, 0.3, np.random.default_rng(0)
    n = 400_000
    y = random.integers(classes, size=n)
    predicted = np.where(random.random(n) < 0.12, (y + 1) % classes, y)
    flipped = (y + random.integers(1, classes, size=n)) % classes
    dirty = np.where(random.random(n) < epsilon, flipped, y)
    bound = pac_bayes(np.mean(predicted != dirty), 0.0, n)
    exact = bound.value - np.mean(predicted != dirty)
    found = uniform_flips(bound, epsilon, classes).value
    assert found - exact / (1 - epsilon * 4 / 3) == pytest.approx(
        np.mean(predicted != y), abs=0.004
    )
    assert found < id_bound(bound, epsilon).value
    with pytest.raises(InvalidInput, match="labels say nothing"):
        uniform_flips(bound, 0.75, classes)
    with pytest.raises(InvalidInput, match="classes must be at least 2"):
        uniform_flips(bound, 0.1, 1)
    with pytest.raises(InvalidInput, match="must be of an error rate, got one of the log_t loss"):
        uniform_flips(pac_bayes(0.5, 1.0, n, span=log_t_span(0.5), of="the log_t loss"), 0.1, 2)


def test_the_span_of_log_t():
    for t, density in ((0.0, 1.0), (0.5, 3.0), (0.9, 20.0)):
        low, high = log_t_span(t, density)
        assert low == pytest.approx(-float(log_t(density, t)))
        assert high == pytest.approx(-float(log_t(0.0, t)))


def test_refusals_say_what_to_do():
    with pytest.raises(InvalidInput, match=r"t must be below 1.*no upper limit.*error rate"):
        log_t_span(1.0)
    for confidence in (0, 1, 1.5, -0.1):
        with pytest.raises(
            InvalidInput, match=r"confidence must lie between 0 and 1, got .* 0\.95 is usual"
        ):
            pac_bayes(0.1, 1.0, 100, confidence=confidence)
    with pytest.raises(InvalidInput, match=r"risk must lie between 0 and 1, got .* 1.4"):
        pac_bayes(1.4, 1.0, 100)
    with pytest.raises(InvalidInput, match="not seen"):
        pac_bayes(0.1, 1.0, 0)
    with pytest.raises(InvalidInput, match="The fit has failed"):
        pac_bayes(0.1, math.nan, 100)
    with pytest.raises(InvalidInput, match="form must be one of 'kl'"):
        pac_bayes(0.1, 1.0, 100, form="kll")
    with pytest.raises(InvalidInput, match="complexity must be a number, got None"):
        pac_bayes(0.1, None, 100)
    for span in ((1, 0), (0, math.inf)):
        with pytest.raises(InvalidInput, match=r"span must go from a least.*log_t_span"):
            pac_bayes(0.1, 1.0, 100, span=span)
    for betas in ([-1], []):
        with pytest.raises(InvalidInput, match="betas must be finite"):
            pac_bayes(0.1, 1.0, 100, form="hoeffding", betas=betas)


@pytest.mark.parametrize("form", ["kl", "hoeffding"])
def test_a_vacuous_bound_says_so_and_an_infinite_divergence_is_one(form):
    for complexity in (1e5, math.inf):
        bound = pac_bayes(0.1, complexity, 100, form=form)
        assert bound.value == pytest.approx(1)
        assert "says nothing" in bound.statement
    assert "says nothing" not in pac_bayes(0.1, 1.0, 100).statement


def test_printed_numbers_are_bounds_too():
    bound = pac_bayes(0.04995, 0.0, 10**6, of="the error rate of x")
    shown = float(bound.statement.split("at most ")[1].split(" %")[0])
    assert bound.value <= shown / 100 <= bound.value + 1e-4
    assert "rows" in str(bound)
    assert "empirical risk" in str(bound)
