"""The law of wrong targets against rows simulated from it, and against Bayes' rule by hand.

Statistical tests fix their seeds; their tolerances are 4 standard errors and more.
"""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from mtbayes.laws import WrongTargets
from mtbayes.predictives import GaussianPredictive

from .conftest import targets

# Targets: ten good rows that were seen before.


def test_share_of_wrong_targets_is_that_of_the_rows_and_ten_good_ones():
    """Where good and wrong are told apart beyond doubt, shares are counts."""
    y = np.concatenate([np.zeros(60), np.full(40, 50.0)])
    p = GaussianPredictive(np.zeros((2, 100)), np.full((2, 100), 0.25))
    law = WrongTargets.fit(p, y, np.ones(100))
    assert law.epsilon == pytest.approx(40 / 110, abs=2e-3)
    found = law.contamination(p, y, np.ones(100))
    assert found.value == pytest.approx(40 / 110, abs=3e-3)
    assert found.low < 0.3
    assert found.high > 0.4


def test_targets_that_nothing_explains_are_not_called_wrong():
    """Counts, of which the marginal would know where they lie."""
    y = np.random.default_rng(36).poisson(1.0, 150).astype(float)
    p = GaussianPredictive(np.ones((2, 150)), np.ones((2, 150)))
    assert WrongTargets.fit(p, y, np.ones(150)).epsilon < 0.4


# Clean rows: what has not been seen may yet come.


@pytest.mark.parametrize("epsilon", [0.0, 0.2])
def test_target_unlike_any_seen_is_called_wrong(epsilon):
    """Also where all wrong rows that were seen lay within the range of the others."""
    p, y, _ = targets(np.random.default_rng(35), 500, epsilon, "uniform")
    law = WrongTargets.fit(p, y, np.ones(500))
    wild = np.array([30.0, 1e3, 1e15, -1e15])
    new = GaussianPredictive(np.zeros((2, 4)), np.full((2, 4), 0.25))
    np.testing.assert_allclose(law.outlier_probability(new, wild), 1, atol=1e-6)
    assert law.outlier_probability(new, np.zeros(4)).max() < 0.2


@pytest.mark.parametrize("wild", [1e3, 1e15])
def test_one_wild_target_does_not_hide_other_wrong_ones(wild):
    """The range of targets was that of all: uniform over a wide one, no wrong row is likely."""
    p, y, wrong = targets(np.random.default_rng(37), 500, 0.1, "uniform")
    there = y.copy()
    there[~wrong] = np.where(np.arange((~wrong).sum()) == 0, wild, y[~wrong])
    before, after = (WrongTargets.fit(p, each, np.ones(500)) for each in (y, there))
    assert after.epsilon == pytest.approx(before.epsilon, abs=0.02)
    found = [law.outlier_probability(p, y)[wrong] for law in (before, after)]
    np.testing.assert_allclose(*found, atol=0.1)


# Tails that are longer on one side.


def skewed(seed, n=1500, sign=1.0):
    """Targets like wages: right, but with a long tail above (or below) what is predicted."""
    rng = np.random.default_rng(seed)
    mean = rng.normal(size=n)
    return mean, mean + sign * (rng.gamma(2.0, 1.0, n) - 1.4) / 1.4


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_long_tail_on_one_side_is_not_called_wrong_and_intervals_know_it(sign):
    mean, y = skewed(3, sign=sign)
    p = GaussianPredictive(np.stack([mean, mean]), np.ones((2, len(y))))
    law = WrongTargets.fit(p, y, np.ones(len(y)))
    assert sign * law.skew > 0.5
    assert law.epsilon < 0.02
    mean, y = skewed(4, 20_000, sign)
    new = GaussianPredictive(np.stack([mean, mean]), np.ones((2, len(y))))
    low, high = law.calibrated(new).interval(0.9)
    below, above = np.mean(y < low), np.mean(y > high)
    assert below + above == pytest.approx(0.1, abs=0.04)
    assert max(below, above) < 0.085  # of tails taken for alike one would hold nearly all


def test_wrong_targets_beside_a_long_tail_are_counted_without_it():
    mean, y = skewed(5)
    rng = np.random.default_rng(6)
    wrong = rng.random(len(y)) < 0.2
    y = np.where(wrong, rng.uniform(-10, 10, len(y)), y)
    p = GaussianPredictive(np.stack([mean, mean]), np.ones((2, len(y))))
    assert WrongTargets.fit(p, y, np.ones(len(y))).epsilon == pytest.approx(0.2, abs=0.03)


def test_tails_alike_on_both_sides_have_no_skew():
    p, y, _ = targets(np.random.default_rng(35), 500, 0.2, "uniform")
    law = WrongTargets.fit(p, y, np.ones(500))
    assert (law.skew, law.shift) == (0.0, 0.0)


# Weights.


def test_target_of_weight_2_is_two_rows():
    p, y, _ = targets(np.random.default_rng(11), 60, 0.3)
    weight = np.random.default_rng(12).integers(1, 4, 60)
    rows = np.repeat(np.arange(60), weight)
    many = GaussianPredictive(p.means[:, rows], p.stds[:, rows])
    one, other = WrongTargets.fit(p, y, weight), WrongTargets.fit(many, y[rows], np.ones(len(rows)))
    np.testing.assert_allclose(one.shares, other.shares, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(one.scale, other.scale, rtol=1e-6)
    np.testing.assert_array_equal(one.centres, other.centres)
    np.testing.assert_allclose(
        one.contamination(p, y, weight),
        other.contamination(many, y[rows], np.ones(len(rows))),
        rtol=1e-5,
        atol=1e-9,
    )


# Targets: what is recovered.


@pytest.mark.parametrize("kind", ["uniform", "marginal", "far"])
@pytest.mark.parametrize("claimed", [0.25, 1.0])
def test_share_of_wrong_targets_and_the_scale_are_recovered(kind, claimed):
    p, y, wrong = targets(np.random.default_rng(19), 10_000, 0.2, kind, claimed=claimed)
    law = WrongTargets.fit(p, y, np.ones(len(y)))
    assert abs(law.epsilon - wrong.mean()) < 0.02
    assert law.scale == pytest.approx(0.5 / claimed, rel=0.06)
    np.testing.assert_allclose(law.shares.sum(), 1, rtol=1e-9)


@pytest.mark.parametrize("kind", ["uniform", "marginal", "far"])
def test_calibrated_intervals_cover_clean_targets(kind):
    p, y, wrong = targets(np.random.default_rng(20), 4000, 0.2, kind)
    low, high = WrongTargets.fit(p, y, np.ones(len(y))).calibrated(p).interval(0.9)
    covered = ((low <= y) & (y <= high))[~wrong].mean()
    assert abs(covered - 0.9) < 0.025


def test_outlier_probability_finds_far_targets_and_spares_good_ones():
    p, y, wrong = targets(np.random.default_rng(21), 4000, 0.1, "far")
    said = WrongTargets.fit(p, y, np.ones(len(y))).outlier_probability(p, y)
    away = np.abs(y - p.means[0]) > 4
    assert wrong[away].all()
    assert (said[away] > 0.99).all()
    assert np.mean(said[~wrong] < 0.5) > 0.98


# Targets: by hand.

LAW = replace(
    WrongTargets.none(np.arange(9.0)),
    scale=2.0,
    shares=np.array([0.7, 0.1, 0.15, 0.05]),
    low=-1.0,
    high=4.0,
    centres=np.array([-1.0, 0.0, 2.0, 4.0]),
    width=0.5,
)


@pytest.mark.parametrize("y", [-0.7, 3.9, 4.1, 30.0])
def test_outlier_probability_and_score_of_targets_are_bayes_rule(y):
    p = GaussianPredictive(np.array([[0.0], [1.0]]), np.array([[0.5], [0.25]]))
    good = 0.7 * (stats.norm.pdf(y, 0, 1.0) + stats.norm.pdf(y, 1, 0.5)) / 2
    uniform = 0.1 / 5 if -1 <= y <= 4 else 0.0
    marginal = 0.15 * np.mean([stats.norm.pdf(y, c, 0.5) for c in (-1, 0, 2, 4)])
    wrong = uniform + marginal + 0.05 * stats.cauchy.pdf(y, 1.0, 15.0)
    np.testing.assert_allclose(
        LAW.outlier_probability(p, np.array([y])), [wrong / (good + wrong)], rtol=1e-10
    )
    np.testing.assert_allclose(LAW.score(p, np.array([y])), [np.log(good + wrong)], rtol=1e-10)


@pytest.mark.parametrize("y", [1e30, 1e200, -1e300])
def test_target_however_wild_is_wrong_for_sure(y):
    p = GaussianPredictive(np.zeros((2, 1)), np.ones((2, 1)))
    np.testing.assert_array_equal(LAW.outlier_probability(p, np.array([y])), [1.0])
    # Cauchy's tail: scale / (π y²).
    tail = np.log(0.05 * 15 / np.pi) - 2 * np.log(abs(y))
    np.testing.assert_allclose(LAW.score(p, np.array([y])), [tail], rtol=1e-10)


def test_without_a_wrong_row_nothing_is_wrong():
    law = WrongTargets.none(np.linspace(0, 1, 30))
    p = GaussianPredictive(np.zeros((2, 3)), np.ones((2, 3)))
    np.testing.assert_array_equal(law.outlier_probability(p, np.array([0.0, 50.0, 1e200])), 0)
    assert law.epsilon == 0


def test_noise_laws_are_densities():
    law = WrongTargets.none(np.random.default_rng(22).gamma(2.0, size=300))
    y = np.sinh(np.linspace(-14, 14, 40_001))  # dense in the middle, far at the ends
    masses = np.trapezoid(np.exp(law._log_wrong(y)), y, axis=1)
    np.testing.assert_allclose(masses, 1, atol=2e-3)


@pytest.mark.parametrize("y", [np.zeros(100), np.where(np.arange(100) < 80, 0.0, 1.0)])
def test_targets_that_are_mostly_one_number_are_not_called_wrong(y):
    """A predictive that knows them all, as narrow as a regressor's may be."""
    p = GaussianPredictive(y[None], np.full((1, 100), 0.02))
    law = WrongTargets.fit(p, y, np.ones(100))
    assert law.epsilon < 0.02


@settings(max_examples=6, deadline=None)
@given(st.floats(-1e3, 1e3), st.floats(1e-3, 1e3))
def test_units_of_targets_do_not_matter(shift, factor):
    # The tolerance is that of the search for the scale, whose steps rounding may turn.
    p, y, _ = targets(np.random.default_rng(23), 80, 0.2)
    other = GaussianPredictive(shift + factor * p.means, factor * p.stds)
    one = WrongTargets.fit(p, y, np.ones(80))
    two = WrongTargets.fit(other, shift + factor * y, np.ones(80))
    np.testing.assert_allclose(one.scale, two.scale, rtol=0.02)
    np.testing.assert_allclose(one.shares, two.shares, atol=0.02)
    np.testing.assert_allclose(
        one.outlier_probability(p, y), two.outlier_probability(other, shift + factor * y), atol=0.02
    )
