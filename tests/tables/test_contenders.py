"""Methods that are compared: units, and classes that a split does not have."""

import numpy as np
from scipy import stats

from mtbayes.tables.contenders import CONTENDERS, Split, network
from mtbayes.tables.model import Settings


def test_a_network_of_numbers_is_a_gaussian_in_the_units_of_the_target():
    x = np.linspace(-1, 1, 60)[:, None]
    y = 1000 + 50 * x[:, 0] + np.random.default_rng(0).normal(0, 5, 60)
    predicted = network(1)(Split(x[::2], y[::2], x[1::2], y[1::2], 0, Settings("auto", 3, 60, 0)))
    std = (predicted["high"] - predicted["low"]) / (2 * stats.norm.ppf(0.95))
    np.testing.assert_allclose(
        predicted["log_prob"], stats.norm.logpdf(y[1::2], predicted["mean"], std), rtol=1e-3
    )
    assert np.abs(predicted["mean"] - y[1::2]).mean() < 20


def test_wild_values_and_classes_that_were_not_met():
    x = np.array([[1e300], [-1e300], [0.0], [1.0]] * 10)
    y = np.array([0, 2, 0, 2] * 10)
    for name in ("random forest", "gradient boosting"):
        predicted = CONTENDERS[name][0](Split(x, y, x[:4], y[:4], 3, Settings("auto", 3, 5, 0)))
        assert list(predicted) == ["0", "1", "2"]
        assert predicted["1"].max() == 0
        np.testing.assert_allclose(sum(predicted.values()), 1)
