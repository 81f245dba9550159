"""Calibration against values computed by hand."""

import numpy as np
import pytest

from mtbayes.errors import InvalidInput
from mtbayes.metrics import Reliability, coverage, expected_calibration_error, reliability


def two_classes(confidence):
    """Rows that are sure of class 0 by so much."""
    confidence = np.asarray(confidence, float)
    return np.column_stack([confidence, 1 - confidence])


# Five bins. (0.4, 0.6]: 0.55 right, 0.6 wrong; (0.6, 0.8]: 0.7 right; (0.8, 1]: 0.9, 0.95, 1.0 of
# which the first is wrong.
CONFIDENCE = [0.55, 0.6, 0.7, 0.9, 0.95, 1.0]
LABELS = [0, 1, 0, 1, 0, 0]


def test_bins_by_hand():
    found = reliability(two_classes(CONFIDENCE), LABELS, bins=5)
    assert isinstance(found, Reliability)
    np.testing.assert_array_equal(found.counts, [0, 0, 2, 1, 3])
    np.testing.assert_allclose(found.confidence, [np.nan, np.nan, 0.575, 0.7, 0.95])
    np.testing.assert_allclose(found.accuracy, [np.nan, np.nan, 0.5, 1.0, 2 / 3])


def test_error_by_hand():
    # 2·|0.5 - 0.575| + 1·|1 - 0.7| + 3·|2/3 - 0.95| = 0.15 + 0.3 + 0.85 = 1.3, over 6 rows.
    assert expected_calibration_error(two_classes(CONFIDENCE), LABELS, bins=5) == pytest.approx(
        1.3 / 6
    )
    # One bin: mean confidence 4.7 / 6, accuracy 4 / 6.
    assert expected_calibration_error(two_classes(CONFIDENCE), LABELS, bins=1) == pytest.approx(
        0.7 / 6
    )


def test_fifteen_bins_by_default():
    # 0.61 and 0.65 share the bin (9/15, 10/15], 0.59 is in the one below: 3 right, all in all.
    # (|1 - 0.59| + 2·|1 - 0.63|) / 3
    probs = two_classes([0.59, 0.61, 0.65])
    assert reliability(probs, [0, 0, 0]).counts.nonzero()[0].tolist() == [8, 9]
    assert expected_calibration_error(probs, [0, 0, 0]) == pytest.approx((0.41 + 0.74) / 3)


@pytest.mark.parametrize("bins", [2, 3, 5, 10, 15, 20])
def test_an_edge_belongs_to_the_bin_below(bins):
    for k in range(-(-bins // 2), bins):  # confidence of two classes is at least 1/2
        count = reliability(two_classes([(k + 1) / bins]), [0], bins).counts
        assert count.argmax() == k


def test_over_and_underconfidence_do_not_cancel_across_bins():
    # Ten rows at 0.6, all right, and ten at 0.9, five right: gaps 0.4 both.
    probs = two_classes([0.6] * 10 + [0.9] * 10)
    assert expected_calibration_error(probs, [0] * 15 + [1] * 5) == pytest.approx(0.4)


def test_honest_and_dishonest_ends():
    assert expected_calibration_error(np.eye(3), [0, 1, 2]) == 0
    assert expected_calibration_error(np.eye(3), [1, 2, 0]) == 1
    # Three of four right at 0.75.
    assert expected_calibration_error(two_classes([0.75] * 4), [0, 0, 0, 1]) == 0


def test_the_label_is_compared_with_the_most_probable_of_many_classes():
    probs = [[0.1, 0.2, 0.7], [0.5, 0.3, 0.2]]
    # Right at 0.7, wrong at 0.5: (0.3 + 0.5) / 2.
    assert expected_calibration_error(probs, [2, 1]) == pytest.approx(0.4)


@pytest.mark.parametrize(
    ("probs", "y", "bins", "message"),
    [
        ([0.5, 0.5], [0], 15, r"probs must have shape \[n, C\].*got \(2,\)"),
        ([[2.0, -1.0]], [0], 15, r"probs must be .*not negative, got -1"),
        ([[0.5, 0.5], [3.0, 1.0]], [0, 0], 15, r"sum to 1 .*sum of 4 in row 1.*not logits"),
        ([[np.nan, 1.0]], [0], 15, r"probs must be finite"),
        ([[0.5, 0.5]], [0, 1], 15, r"y must have shape \(1,\)"),
        ([[0.5, 0.5]], [2], 15, r"whole numbers 0\.\.1, got 2\."),
        ([[0.5, 0.5]], [-1], 15, r"whole numbers 0\.\.1, got -1\."),
        ([[0.5, 0.5]], [0.5], 15, r"whole numbers 0\.\.1, got 0\.5\."),
        ([[0.5, 0.5]], [0], 0, r"bins must be a whole number of at least 1, got 0\. 15"),
    ],
)
@pytest.mark.parametrize("function", [reliability, expected_calibration_error])
def test_bad_input_is_refused(function, probs, y, bins, message):
    with pytest.raises(InvalidInput, match=message):
        function(probs, y, bins)


def test_a_weight_of_two_is_two_rows():
    probs, weight = two_classes(CONFIDENCE), [2, 1, 1, 3, 1, 0]
    twice = np.repeat(np.arange(6), weight)
    one = reliability(probs, LABELS, 5, weight)
    other = reliability(probs[twice], np.array(LABELS)[twice], 5)
    for a, b in zip(one, other, strict=True):
        np.testing.assert_allclose(a, b)
    assert expected_calibration_error(probs, LABELS, 5, weight) == pytest.approx(
        expected_calibration_error(probs[twice], np.array(LABELS)[twice], 5)
    )


def test_coverage_of_gaussian_numbers_is_their_level():
    rng = np.random.default_rng(0)
    mean, std = rng.normal(size=20_000), rng.uniform(0.5, 2, 20_000)
    levels = np.array([0.1, 0.5, 0.9])
    y = mean + std * rng.normal(size=20_000)
    # Three binomial standard errors: fails once in a hundred seeds.
    np.testing.assert_allclose(coverage(mean, std, y, levels), levels, atol=0.011)
    assert (coverage(mean, std / 2, y, levels) < levels - 0.03).all()


def test_coverage_leaves_out_rows_of_no_weight():
    # 0 and 1 are within 1.64 sd, 9 is not.
    zero, one = np.zeros(3), np.ones(3)
    y = np.array([0.0, 1.0, 9.0])
    assert coverage(zero, one, y, [0.9]) == pytest.approx([2 / 3])
    assert coverage(zero, one, y, [0.9], [1, 2, 0]) == pytest.approx([1.0])
    with pytest.raises(InvalidInput, match="levels must lie between"):
        coverage(zero, one, y, [0.9, 1.0])
