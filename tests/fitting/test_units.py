"""Units of features and targets: robust, free of the user's units, and safe at any size."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from mtbayes.fitting.units import Columns, Features, Targets

RNG = np.random.default_rng(0)
TABLE = RNG.gamma(2.0, size=(301, 3)) * [1.0, 10.0, 100.0]
Y = RNG.gamma(2.0, size=301)
ANY = st.floats(-1.7e308, 1.7e308)


def test_features_are_centred_scaled_and_bent_by_hand():
    x = np.arange(101.0)[:, None]  # median 50, quartiles 25 and 75
    z = (x - 50) / 50
    expected = z / np.sqrt(1 + z**2 / 9)
    np.testing.assert_allclose(Features.of(x).apply(x), expected, rtol=1e-6)


def test_targets_of_a_gaussian_get_its_mean_and_standard_deviation():
    y = np.random.default_rng(1).normal(7.0, 3.0, 15_000)
    found = Targets.of(y)
    # Standard errors of the median and of the quartiles' distance are 1.25 and 1.6 of 3/√n.
    assert abs(found.centre - 7) < 5 * 1.25 * 3 / np.sqrt(15_000)
    assert abs(found.scale - 3) < 5 * 1.17 * 3 / np.sqrt(15_000)
    z = found.apply(y)
    np.testing.assert_allclose(found.centre + found.scale * z, y, rtol=1e-12)


@pytest.mark.parametrize(
    "x", [TABLE, (TABLE > 15.0) * 1.0, RNG.normal(size=(30, 2, 2, 3))], ids=["", "0/1", "images"]
)
def test_features_of_weight_2_are_two_rows(x):
    weight = np.random.default_rng(2).integers(1, 5, len(x))
    weight[: len(x) // 2] *= 4
    one, other = Features.of(x, weight), Features.of(np.repeat(x, weight, axis=0))
    np.testing.assert_array_equal(one.centre, other.centre)
    np.testing.assert_array_equal(one.scale, other.scale)
    assert (one.centre != Features.of(x).centre).any() or set(np.unique(x)) == {0, 1}


@pytest.mark.parametrize("y", [Y, np.where(np.arange(301) % 9 == 0, Y, 2.0)])
def test_targets_of_weight_2_are_two_rows(y):
    weight = np.random.default_rng(3).integers(1, 5, len(y))
    np.testing.assert_allclose(Targets.of(y, weight), Targets.of(np.repeat(y, weight)), rtol=1e-12)


@settings(max_examples=60, deadline=None)
@given(st.floats(1e-100, 1e100), st.floats(-100, 100))
def test_units_of_features_do_not_matter(factor, shift):
    other = factor * (TABLE + shift)
    np.testing.assert_allclose(
        Features.of(other).apply(other), Features.of(TABLE).apply(TABLE), atol=1e-6
    )
    flipped = Features.of(-TABLE).apply(-TABLE)
    np.testing.assert_allclose(flipped, -Features.of(TABLE).apply(TABLE), atol=1e-6)


@settings(max_examples=60, deadline=None)
@given(st.floats(1e-100, 1e100), st.floats(-100, 100))
def test_units_of_targets_do_not_matter(factor, shift):
    for y in (Y, np.where(Y > 3, 1.0, 0.0)):  # the second has quartiles 0 and 0
        other = factor * (y + shift)
        np.testing.assert_allclose(
            Targets.of(other).apply(other), Targets.of(y).apply(y), rtol=1e-9, atol=1e-9
        )


@settings(max_examples=200, deadline=None)
@given(arrays(float, (7, 2), elements=ANY), arrays(float, (5, 2), elements=ANY))
def test_no_value_is_larger_than_3_or_not_a_number(x, new):
    found = Features.of(x)
    for rows in (x, new):
        z = found.apply(rows)
        assert z.dtype == np.float32
        assert (np.abs(z) <= 3).all()  # false for NaN


@settings(max_examples=200, deadline=None)
@given(arrays(float, (7, 1), elements=ANY), st.lists(ANY, min_size=2, max_size=6))
def test_features_keep_their_order(x, new):
    z = Features.of(x).apply(np.sort(np.array(new))[:, None])[:, 0]
    assert (np.diff(z) >= 0).all()


@settings(max_examples=100, deadline=None)
@given(arrays(float, 9, elements=st.floats(-1e300, 1e300)))
def test_targets_however_wild_come_back(y):
    found = Targets.of(y)
    assert np.isfinite(found.scale)
    assert found.scale > 0
    z = found.apply(y)
    near = np.abs(z) < 1e15
    top = max(np.abs(y).max(), found.scale)
    back = found.centre / top + found.scale / top * z
    np.testing.assert_allclose(back[near], (y / top)[near], atol=1e-9)
    np.testing.assert_array_equal(z[~near], 1e15 * np.sign(y - found.centre)[~near])
    assert np.isfinite(np.square(z.astype(np.float32))).all()


@pytest.mark.parametrize("value", [0.0, -3.5, 1e300, 1e-300])
def test_constants_become_0(value):
    x = np.full((20, 1), value)
    np.testing.assert_array_equal(Features.of(x).apply(x), 0)
    np.testing.assert_array_equal(Targets.of(x[:, 0]).apply(x[:, 0]), 0)


def test_wild_values_do_not_set_the_scale():
    wild = TABLE.copy()
    wild[:30] = 1e300
    clean, found = Features.of(TABLE), Features.of(wild)
    assert (found.scale < 2 * clean.scale).all()
    np.testing.assert_array_equal(found.apply(wild[:30]), 3)
    y = Y.copy()
    y[:30] = -1e300
    assert Targets.of(y).scale < 2 * Targets.of(Y).scale


def test_a_learner_meets_no_wild_target():
    """Nine tenths lie within 1.8 of the middle, 0; ten times their range is as far as any goes."""
    y = np.append(np.linspace(-2, 2, 1001), [1e6, -1e300, 30.0])
    found = Targets.of(y)
    ends = found.value(found.code(y))[-3:]
    np.testing.assert_allclose(ends, [36, -36, 30], rtol=0.02)
    np.testing.assert_allclose(found.value(found.code(y[:-3])), y[:-3], atol=1e-6)


def test_wild_value_among_targets_that_are_one_number_is_no_overflow():
    y = np.array([0.0] * 9 + [1e300])
    # Variance of one in ten: 0.1 · 0.9.
    assert Targets.of(y).scale == pytest.approx(0.3 * 1e300)


def test_column_that_is_mostly_one_number_is_scaled_by_half_its_range():
    x = np.array([0.0] * 90 + [4.0] * 10)[:, None]
    z = 4 / 2
    np.testing.assert_allclose(Features.of(x).apply(x)[-1], z / np.sqrt(1 + z**2 / 9), rtol=1e-6)


def test_centre_far_from_0_costs_no_digits():
    steps = np.arange(11.0)[:, None]  # whole numbers beside 2^52, which hold them exactly
    near, far = Features.of(steps).apply(steps), Features.of(2**52 + steps).apply(2**52 + steps)
    np.testing.assert_array_equal(near, far)


def test_images_have_one_scale_for_each_channel_and_all_pixels_have_a_say():
    # Bright at the left, dark at the right; as many pixels as make every k-th of them the first.
    x = np.random.default_rng(4).normal(size=(2500, 4, 4, 2)) * [1.0, 50.0]
    x[:, :, 0] += 1000
    found = Features.of(x)
    assert found.centre.shape == (2,)
    # Three of four pixels are N(0, s²), of which the lowest 2/3 are below the median of all.
    np.testing.assert_allclose(found.centre, [0.4307, 0.4307 * 50], rtol=0.2)


def test_quantiles_of_many_rows_are_those_of_all():
    x = np.random.default_rng(5).normal(size=(100_000, 1))
    found = Features.of(np.sort(x, axis=0))
    assert abs(found.centre[0]) < 5 * 1.25 / 100  # of 10 000 rows
    assert abs(found.scale[0] / 1.349 - 1) < 5 * 1.17 / 100


def test_columns_are_scaled_by_quartiles_and_back():
    rng = np.random.default_rng(0)
    x = np.column_stack(
        [5 + 3 * rng.normal(size=20_000), np.zeros(20_000), rng.random(20_000) < 0.1]
    )
    columns = Columns.of(x)
    np.testing.assert_allclose(columns.centre, [5, 0, 0], atol=0.1)
    np.testing.assert_allclose(columns.scale, [3, 1, 0.5], rtol=0.05)
    np.testing.assert_allclose(columns.undo(columns.apply(x)), x, atol=1e-12)
    assert np.isfinite(columns.apply([[1e308, -1e308, 1e308]])).all()
