"""Softmax: scipy's, to the last bit."""

import numpy as np
import pytest
import scipy.special

from mtbayes.maths import softmax

ROWS = 30 * np.random.default_rng(0).standard_normal((200, 7))
ROWS[0, :3] = -np.inf
ROWS[1] = 700.0
ROWS[2, 0] = 1e5  # the others underflow


@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
@pytest.mark.parametrize(("rows", "axis"), [(ROWS, 1), (ROWS, -1), (ROWS.T, 0)])
def test_it_is_scipys(name, rows, axis):
    expected = getattr(scipy.special, name)(rows, axis=axis)
    np.testing.assert_array_equal(getattr(softmax, name)(rows, axis=axis), expected)
