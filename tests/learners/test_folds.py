"""Weights by which learners are refitted."""

import numpy as np

from mtbayes.learners.folds import dealt, pull


def test_a_trusted_row_pulls_as_at_t_1():
    inner = np.log([[0.9, 0.1, 0.01], [0.5, 0.1, 0.02]])
    trusted = np.array([False, False, True])
    found, plain = pull(inner, 0.5, trusted), pull(inner, 0.5)
    np.testing.assert_allclose(plain, np.sqrt([[1, 0.1 / 0.9, 0.01 / 0.9], [1, 0.2, 0.04]]))
    np.testing.assert_array_equal(found[:, 2], 1)
    np.testing.assert_array_equal(found[:, :2], plain[:, :2])
    np.testing.assert_array_equal(pull(inner, 1.0, trusted), 1)


def test_every_fold_has_its_share_of_every_class():
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(300), rng.integers(1, 12, 300)).astype(np.int32)
    rng.shuffle(y)
    order = rng.permutation(len(y))
    counts = np.zeros((300, 5), int)
    np.add.at(counts, (y, dealt(order, y)), 1)
    assert np.ptp(counts, axis=1).max() == 1  # two rows of a class lie in two folds
    assert np.ptp(counts.sum(axis=0)) <= 1


def test_numbers_are_dealt_in_the_order_given():
    order = np.array([2, 0, 3, 1])
    np.testing.assert_array_equal(dealt(order, np.array([5.0, 5, 1, 1]), 3), [1, 0, 0, 2])
