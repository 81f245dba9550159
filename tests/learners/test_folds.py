"""Weights by which learners are refitted."""

import numpy as np

from mtbayes.learners.folds import apart, pull


def test_a_trusted_row_pulls_as_at_t_1():
    inner = np.log([[0.9, 0.1, 0.01], [0.5, 0.1, 0.02]])
    trusted = np.array([False, False, True])
    found, plain = pull(inner, 0.5, trusted), pull(inner, 0.5)
    np.testing.assert_allclose(plain, np.sqrt([[1, 0.1 / 0.9, 0.01 / 0.9], [1, 0.2, 0.04]]))
    np.testing.assert_array_equal(found[:, 2], 1)
    np.testing.assert_array_equal(found[:, :2], plain[:, :2])
    np.testing.assert_array_equal(pull(inner, 1.0, trusted), 1)


def test_no_class_lies_in_one_fold_alone():
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(300), rng.integers(1, 5, 300)).astype(np.int32)
    fold = rng.integers(5, size=len(y))
    found = apart(fold, y)
    for label in range(300):
        own, before = found[y == label], fold[y == label]
        assert len(own) == 1 or len(set(own)) > 1
        if len(own) == 1 or len(set(before)) > 1:
            np.testing.assert_array_equal(own, before)
    np.testing.assert_array_equal(apart(fold, y.astype(np.float32)), fold)  # numbers
