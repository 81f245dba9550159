"""Distances on a grid against closed forms, and errors that cover what they claim to cover."""

import numpy as np
import pytest
from scipy.stats import norm

from mtbayes.errors import InvalidInput
from mtbayes.metrics.distance import Distance, hellinger, kl, total_variation

ALL = [total_variation, hellinger, kl]


def gaussians(shift, low, high, spacing):
    x = np.arange(low, high + spacing / 2, spacing)
    return norm.pdf(x), norm.pdf(x, shift)


TRUTH = {
    total_variation: lambda shift: 2 * norm.cdf(shift / 2) - 1,
    hellinger: lambda shift: np.sqrt(1 - np.exp(-(shift**2) / 8)),
    kl: lambda shift: shift**2 / 2,
}
every_distance = pytest.mark.parametrize("distance", ALL)
every_shift = pytest.mark.parametrize("shift", [0.1, 0.7, 2.0, 3.3])


def off(distance, shift, result):
    return abs(result.value - TRUTH[distance](shift))


@every_distance
@every_shift
@pytest.mark.parametrize("points", ["odd", "even"])
def test_closed_forms_on_a_fine_grid(distance, shift, points):
    p, q = gaussians(shift, -9.137, 12 + 0.01 * (points == "even"), 0.01)
    result = distance(p, q, 0.01)
    assert off(distance, shift, result) <= result.error + 1e-12
    assert result.error < (1e-4 if distance is total_variation else 1e-9)


@every_distance
@every_shift
@pytest.mark.parametrize("spacing", [0.05, 0.2, 0.5, 0.9])
@pytest.mark.parametrize("offset", np.linspace(0, 1, 7))
def test_the_error_covers_a_coarse_grid_wherever_its_points_fall(distance, shift, spacing, offset):
    p, q = gaussians(shift, -9 + offset * spacing, 13, spacing)
    result = distance(p, q, spacing)
    assert off(distance, shift, result) <= result.error + 1e-12


@pytest.mark.parametrize("parity", [0, 1])
def test_the_error_sees_a_crossing_halfway_between_two_points(parity):
    # The plain trapezoid of |p - q| agrees here with its every second point, and both are wrong.
    shift, spacing = 1.0, 0.5
    x = shift / 2 + spacing * (np.arange(-20 - parity, 21) + 0.5)
    p, q = norm.pdf(x), norm.pdf(x, shift)
    result = total_variation(p, q, spacing)
    assert off(total_variation, shift, result) <= result.error
    assert result.error < 10 * off(total_variation, shift, result)


@every_distance
@every_shift
@pytest.mark.parametrize(("low", "high"), [(-1, 14), (-9, 1.5), (-2.5, 4.0), (0.5, 3.0)])
def test_the_error_covers_a_cut_grid(distance, shift, low, high):
    result = distance(*gaussians(shift, low, high, 0.01), 0.01)
    assert off(distance, shift, result) <= result.error + 1e-12


@every_distance
def test_the_error_grows_with_spacing_and_with_missing_mass(distance):
    spacings = [distance(*gaussians(0.7, -9, 12, s), s).error for s in (0.01, 0.7, 1.4)]
    assert spacings[0] < spacings[1] < spacings[2]
    cuts = [distance(*gaussians(0.7, -cut, 12, 0.01), 0.01).error for cut in (8, 3, 2, 1)]
    assert cuts == sorted(cuts)
    assert cuts[1] > 10 * cuts[0]


def test_the_missing_mass_is_scaled_as_stated():
    # Flat densities 0.8 and 0.5 on [0, 1]: the rule is exact, mass 0.2 and 0.5 is missing.
    p, q = np.full(11, 0.8), np.full(11, 0.5)
    tv, h, d = (distance(p, q, 0.1) for distance in ALL)
    assert tv == pytest.approx((0.15, 0.35))
    square = 0.5 * (np.sqrt(0.8) - np.sqrt(0.5)) ** 2
    assert h == pytest.approx((np.sqrt(square), np.sqrt(square + 0.35) - np.sqrt(square)))
    assert d == pytest.approx((0.8 * np.log(1.6), 0.7 * (1 + np.log(1.6))))


def test_hellinger_error_looks_both_ways():
    # H² = 2 before it is cut to 1, off by e = 4: 0 is further from √2 than √6 is.
    result = hellinger(np.full(11, 9.0), np.ones(11), 0.1)
    assert result == pytest.approx((1.0, np.sqrt(2)))


def test_no_distance_exceeds_1_for_densities_of_too_much_mass():
    p = 1.2 * np.array([0, 1, 0, 0, 0, 0, 0])
    for distance in (total_variation, hellinger):
        result = distance(p, p[::-1], 1.0)
        assert result.value == 1
        assert result.error >= 0.1


def test_kl_is_directed_and_total_variation_and_hellinger_are_not():
    x = np.arange(-15, 17, 0.01)
    p, q = norm.pdf(x), norm.pdf(x, 1.0, 2.0)
    assert kl(p, q, 0.01).value == pytest.approx(np.log(2) + 2 / 8 - 0.5, abs=1e-9)
    assert kl(q, p, 0.01).value == pytest.approx(-np.log(2) + 5 / 2 - 0.5, abs=1e-9)
    for distance in (total_variation, hellinger):
        assert distance(p, q, 0.01) == pytest.approx(distance(q, p, 0.01), abs=1e-15)
    square = 1 - np.sqrt(2 * 2 / 5) * np.exp(-1 / (4 * 5))
    assert hellinger(p, q, 0.01).value == pytest.approx(np.sqrt(square), abs=1e-9)


@every_distance
def test_equal_densities_are_at_distance_0(distance):
    p, _ = gaussians(0.0, -9, 9.5, 0.01)
    result = distance(p, p, 0.01)
    assert result.value == 0
    assert result.error < 1e-6  # a root of rounding errors, for Hellinger


def test_disjoint_densities():
    p = np.array([0, 1.0, 0, 0, 0, 0, 0])
    q = np.array([0, 0, 0, 0, 1.0, 0, 0])
    assert total_variation(p, q, 1.0).value == 1
    assert hellinger(p, q, 1.0).value == 1
    assert kl(p, q, 1.0) == Distance(np.inf, np.inf)


@every_distance
def test_leading_axes_broadcast(distance):
    rows = [gaussians(shift, -9, 12, 0.05) for shift in (0.3, 1.1)]
    p, q = rows[0][0], np.stack([row[1] for row in rows])[:, None]
    result = distance(p, q, 0.05)
    assert result.value.shape == result.error.shape == (2, 1)
    for i, row in enumerate(rows):
        alone = distance(*row, 0.05)
        assert np.ndim(alone.value) == np.ndim(alone.error) == 0
        assert (result.value[i, 0], result.error[i, 0]) == pytest.approx(tuple(alone), rel=1e-12)


@every_distance
def test_input_is_not_modified(distance):
    p, q = gaussians(0.7, -9, 12, 0.1)
    before = p.copy(), q.copy()
    distance(p, q, 0.1)
    assert np.array_equal(p, before[0])
    assert np.array_equal(q, before[1])


@every_distance
@pytest.mark.parametrize(
    ("p", "q", "spacing", "message"),
    [
        (np.ones(6), np.ones(7), 0.1, r"one grid, got shapes \(6,\) and \(7,\)\. Evaluate"),
        (np.ones((2, 6)), np.ones((3, 6)), 0.1, r"one grid, got shapes \(2, 6\) and \(3, 6\)"),
        (np.ones(6), np.ones((6, 1)), 0.1, r"q must have at least 5 points .*\(6, 1\)\. Take"),
        (np.ones(4), np.ones(4), 0.1, r"p must have at least 5 points .*got shape \(4,\)\. Take"),
        (1.0, np.ones(5), 0.1, r"p must have at least 5 points .*got shape \(\)"),
        ([1, 1, -0.5, 1, 1], np.ones(5), 0.1, r"p must be .*not negative, got -0.5\. It holds"),
        (np.ones(5), [1, 1, 1, 1, np.nan], 0.1, r"q must be finite, got nan at \[4\].*It holds"),
        (np.ones(5), [1, np.inf, 1, 1, 1], 0.1, r"q must be finite, got inf at \[1\]"),
        (np.ones(5), np.ones(5), 0.0, r"spacing must be .*above 0, got 0.0\. It is the step"),
        (np.ones(5), np.ones(5), -1, r"spacing must be .*above 0, got -1\."),
        (np.ones(5), np.ones(5), np.nan, r"spacing must be .*above 0, got nan\."),
    ],
)
def test_bad_grids_are_refused(distance, p, q, spacing, message):
    with pytest.raises(InvalidInput, match=message):
        distance(p, q, spacing)
