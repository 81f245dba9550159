"""The Gaussian family in closed form, and what a log_t guarantee does not give."""

import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import minimize_scalar
from scipy.stats import norm

from mtbayes.criteria import Criterion
from mtbayes.errors import InvalidInput
from mtbayes.maths import log_t, log_t_from_log
from mtbayes.theory.sensitivity import (
    contamination_term,
    gaussian_influence,
    gaussian_minimum,
    gross_error_sensitivity,
)

X = np.array([-8.21, -2.16, -0.94, 1.70, 2.38])


def loss(m, t, z, phi):
    """R by numerical integration over θ ~ N(φ, 1): of the density for m = ∞, of log_t for m = 1."""
    if math.isinf(m):
        return -log_t(norm.pdf(z, phi, math.sqrt(2)), t)
    value, _ = quad(
        lambda e: norm.pdf(e) * float(log_t_from_log(norm.logpdf(z, phi + e), t)),
        -12, 12, epsabs=1e-13, epsrel=1e-12, limit=400,
    )  # fmt: skip
    return -value


@pytest.mark.parametrize("m", [1, math.inf])
@pytest.mark.parametrize("t", [1.0, 0.7, 0.2])
@pytest.mark.parametrize("z", [-3.0, 0.4, 6.0])
def test_term_is_the_derivative_of_the_loss(m, t, z):
    phi, h = 0.7, 1e-3
    slope = (loss(m, t, z, phi + h) - loss(m, t, z, phi - h)) / (2 * h)
    term = contamination_term(Criterion(m, t, math.inf), np.array([z]), phi)
    assert term[0] == pytest.approx(slope, rel=2e-5, abs=1e-9)


@pytest.mark.parametrize("t", [1.0, 0.9, 0.5])
def test_minimum_is_the_lowest_with_a_regulariser(t):
    criterion = Criterion(1, t, 0.5)
    grid = np.linspace(-10, 5, 3001)
    term = np.array([contamination_term(criterion, X, phi).mean() for phi in grid])
    slope = term + 1 / (5 * 0.5) * grid / 9
    value = np.append(0.0, np.cumsum((slope[1:] + slope[:-1]) / 2)) * (grid[1] - grid[0])
    assert gaussian_minimum(criterion, X) == pytest.approx(grid[value.argmin()], abs=0.005)


@pytest.mark.parametrize("criterion", [Criterion(1, 0.8, 0.5), Criterion(math.inf, 0.6, math.inf)])
def test_sensitivity_is_the_largest_influence(criterion):
    z = np.linspace(-60, 60, 240_001)
    largest = np.abs(gaussian_influence(criterion, X, z)).max()
    assert gross_error_sensitivity(criterion, X) == pytest.approx(largest, rel=1e-6)


def test_breakdown_at_t_one():
    """At t = 1 one row carries φ* anywhere; near it the sensitivity grows like (1-t)^(-1/2)."""
    assert gross_error_sensitivity(Criterion(math.inf, 1.0, math.inf), X) == math.inf
    near = [gross_error_sensitivity(Criterion(math.inf, 1 - a, math.inf), X) for a in (1e-4, 1e-6)]
    assert near[1] / near[0] == pytest.approx(10, rel=0.01)
    # For a mean the influence of a row is its distance.
    far = gaussian_influence(Criterion(math.inf, 1.0, math.inf), X, [1e6])
    assert far[0] == pytest.approx(1e6 - X.mean())


def test_no_closed_form_between_one_and_infinity():
    with pytest.raises(InvalidInput, match=r"m must be 1 or math.inf.*got 5"):
        gross_error_sensitivity(Criterion(5, 0.5), X)
    with pytest.raises(InvalidInput, match="x must be finite, got nan"):
        gross_error_sensitivity(Criterion(1, 0.5), [np.nan])
    with pytest.raises(InvalidInput, match=r"x must have shape \(n,\)"):
        gross_error_sensitivity(Criterion(1, 0.5), X[None])


# The appendix's counter-example: mass 1 - 1/k at 0, the rest spread evenly over 2^(k²) points. By
# convexity the best p is as even there, and one number, its mass s off 0, says all.


def risk(k, t, log_s):
    """E_ν[-log_t p] for a p with mass s = exp(log_s) spread over the 2^(k²) points."""
    log_rest = math.log(-math.expm1(log_s)) if log_s < 0 else -math.inf
    at_zero = float(log_t_from_log(log_rest, t))
    elsewhere = float(log_t_from_log(log_s - k**2 * math.log(2), t))
    return -(1 - 1 / k) * at_zero - elsewhere / k


def best(k, t):
    """log s of the p that minimises the log_t risk: p ∝ ν^(1/t), the escort of order 1/t."""
    log_odds = (-math.log(k) - math.log1p(-1 / k) - k**2 * math.log(2)) / t
    log_odds += k**2 * math.log(2)
    return -float(np.logaddexp(0.0, -log_odds))


@pytest.mark.parametrize("t", [0.3, 0.5, 0.9])
def test_a_log_t_guarantee_gives_no_log_guarantee(t):
    sizes = [4, 8, 16, 32, 64, 128]
    small = [risk(k, t, best(k, t)) for k in sizes]
    large = [risk(k, 1.0, best(k, t)) for k in sizes]
    # The log_t risk of its own best p vanishes: at most that of the mass at 0 alone, 1/(k(1-t)).
    assert all(r <= 1 / (k * (1 - t)) + 1e-9 for k, r in zip(sizes, small, strict=True))
    assert small[-1] < 0.1
    # The same p has a log risk that grows without bound, as k log 2 at least.
    assert all(r > k * math.log(2) for k, r in zip(sizes, large, strict=True))
    # It is the best p: no other mass has less.
    for k in (4, 8):
        found = minimize_scalar(
            lambda v, k=k: risk(k, t, v), bounds=(-200, -1e-9), method="bounded"
        )
        assert risk(k, t, best(k, t)) <= found.fun + 1e-9


def test_at_t_one_even_the_best_p_has_no_bounded_risk():
    for k in (4, 16, 64):
        entropy = -(1 - 1 / k) * math.log1p(-1 / k) + math.log(k) / k + k * math.log(2)
        assert risk(k, 1.0, -math.log(k)) == pytest.approx(entropy)
