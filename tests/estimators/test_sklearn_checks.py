"""scikit-learn's own tests of an estimator."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from mtbayes import RobustClassifier, RobustDensity, RobustRegressor


@pytest.mark.filterwarnings("ignore:y holds two numbers alone")  # of some checks
@parametrize_with_checks(
    [
        RobustClassifier(
            m=1, modes=2, beta=50.0, t=0.7, hidden=(8,), epochs=10, learning_rate=0.03
        ),
        RobustRegressor(m=2, modes=1, beta=10.0, t=0.7, hidden=(8,), epochs=15, learning_rate=0.03),
    ]
)
def test_an_estimator_keeps_scikit_learns_rules(estimator, check):
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks([RobustClassifier(), RobustRegressor(), RobustDensity()])
def test_an_estimator_with_its_defaults_keeps_them_too(estimator, check):
    check(estimator)
