"""The law of outliers of a density."""

import numpy as np
import pytest
from scipy.stats import norm

from mtbayes.laws import PointPredictive, WrongPoints


def test_law_of_outliers_is_a_density():
    law = WrongPoints.none(np.array([[-1.0], [0.0], [4.0]]))
    grid = np.tan(np.linspace(-np.pi / 2, np.pi / 2, 400_003)[1:-1])[:, None]
    far = PointPredictive(np.zeros((1, len(grid))), np.zeros((1, 1)))
    wrong = np.exp(law._logs(far, grid)[1])
    assert np.trapezoid(wrong, grid[:, 0]) == pytest.approx(1, abs=1e-3)


def test_law_finds_scale_and_share_of_outliers():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(4000, 1))
    x[::10, 0] = rng.uniform(-30, 30, 400)
    # One member that is half as wide as the truth.
    unseen = PointPredictive((x.T / 0.5) ** 2, np.log(norm.pdf(0) / 0.5) * np.ones((1, 1)))
    law = WrongPoints.fit(unseen, x, np.ones(len(x)))
    assert law.scale == pytest.approx(2, rel=0.05)
    assert law.epsilon == pytest.approx(0.1, abs=0.02)
    np.testing.assert_allclose(law.good(unseen, x)[1:9], norm.logpdf(x[1:9, 0]), atol=0.2)


def test_box_of_a_constant_column_has_a_volume():
    law = WrongPoints.none(np.zeros((5, 2)))
    np.testing.assert_array_equal(law.high - law.low, 1)
