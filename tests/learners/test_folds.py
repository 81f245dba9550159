"""Weights by which learners are refitted."""

import numpy as np

from mtbayes.learners.folds import pull


def test_a_trusted_row_pulls_as_at_t_1():
    inner = np.log([[0.9, 0.1, 0.01], [0.5, 0.1, 0.02]])
    trusted = np.array([False, False, True])
    found, plain = pull(inner, 0.5, trusted), pull(inner, 0.5)
    np.testing.assert_allclose(plain, np.sqrt([[1, 0.1 / 0.9, 0.01 / 0.9], [1, 0.2, 0.04]]))
    np.testing.assert_array_equal(found[:, 2], 1)
    np.testing.assert_array_equal(found[:, :2], plain[:, :2])
    np.testing.assert_array_equal(pull(inner, 1.0, trusted), 1)
