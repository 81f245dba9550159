import numpy as np
from hypothesis import given, strategies
from hypothesis.extra.numpy import arrays

from mtbayes.fitting.rows import distinct, in_copies

NUMBERS = strategies.sampled_from([-1e300, -2.0, -1e-300, -0.0, 0.0, 1e-300, 1.0, 3.0, 1e300])


def test_rows_that_are_equal_become_one_in_an_order_of_their_own():
    x = np.array([[2.0, 1.0], [1.0, 5.0], [2.0, 1.0], [0.0, 0.0], [-0.0, 0.0]])
    rows, inverse = distinct(x, np.zeros(5), np.array([1.0, 0.0, 2.0, 3.0, 4.0]))
    np.testing.assert_array_equal(rows.x, [[0, 0], [2, 1]])
    np.testing.assert_array_equal(rows.weight, [7, 3])
    np.testing.assert_array_equal(inverse, [1, -1, 1, 0, 0])


def test_rows_with_other_targets_stay_apart():
    rows, inverse = distinct(np.ones((3, 2)), np.array([1, 0, 1]), np.ones(3))
    np.testing.assert_array_equal(rows.y, [0, 1])
    np.testing.assert_array_equal(inverse, [1, 0, 1])


@given(arrays(float, (6, 3), elements=NUMBERS))
def test_order_is_that_of_the_values(x):
    rows, inverse = distinct(x[:, :2], x[:, 2], np.ones(6))
    merged = np.column_stack([rows.x, rows.y])
    np.testing.assert_array_equal(merged, np.unique(x + 0.0, axis=0))
    np.testing.assert_array_equal(merged[inverse], x)


def test_images_keep_their_shape():
    x = np.arange(24.0).reshape(2, 3, 4)[[1, 0, 1]]
    rows, inverse = distinct(x, np.zeros(3), np.ones(3))
    assert rows.x.shape == (2, 3, 4)
    np.testing.assert_array_equal(rows.x[inverse], x)


def test_a_copy_of_a_trusted_row_is_trusted():
    x, trusted = np.array([[2.0], [1.0], [2.0]]), np.array([True, False, False])
    rows, inverse = in_copies(*distinct(x, np.zeros(3), np.ones(3), trusted))
    np.testing.assert_array_equal(rows.trusted, [False, True, True])
    np.testing.assert_array_equal(rows.trusted[inverse], [True, False, True])
