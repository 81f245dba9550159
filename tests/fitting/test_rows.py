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


def test_rows_that_a_file_holds_twice_stay_one():
    """Of 300 rows of two columns of numbers, no two are equal by chance."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(300, 2)), rng.integers(0, 2, 300)
    twice = np.append(np.arange(300), [7, 8, 9])
    rows, inverse = in_copies(*distinct(x[twice], y[twice], np.ones(303)))
    assert len(rows.y) == 300
    assert rows.weight.sum() == 303
    np.testing.assert_array_equal(rows.x[inverse], x[twice])


def test_rows_of_few_values_are_as_many_as_came():
    """Equal by chance: of 64 possible rows 500 came, with one label for each or with several."""
    rng = np.random.default_rng(1)
    x = rng.integers(0, 2, (500, 6)).astype(float)
    for y in (x[:, 0], x[:, 0] != (rng.random(500) < 0.2)):
        rows, inverse = in_copies(*distinct(x, y.astype(int), np.ones(500)))
        assert len(rows.y) == 500
        np.testing.assert_array_equal(rows.x[inverse], x)


def test_rows_that_several_people_labelled_are_as_many_as_came():
    """A fifth of the labels are wrong: 300 pairs of rows of numbers, equal but for their label."""
    rng = np.random.default_rng(2)
    x = np.repeat(rng.normal(size=(300, 2)), 2, axis=0)
    y = (x[:, 0] > 0) != (rng.random(600) < 0.2)
    rows, _ = in_copies(*distinct(x, y.astype(int), np.ones(600)))
    assert len(rows.y) == 600
