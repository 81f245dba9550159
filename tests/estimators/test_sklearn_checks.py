"""scikit-learn's own tests of an estimator."""

from sklearn.utils.estimator_checks import parametrize_with_checks

from mtbayes import RobustClassifier, RobustDensity, RobustRegressor


@parametrize_with_checks(
    [RobustClassifier(epochs=20), RobustRegressor(epochs=20), RobustDensity(epochs=5)]
)
def test_an_estimator_keeps_scikit_learns_rules(estimator, check):
    check(estimator)
