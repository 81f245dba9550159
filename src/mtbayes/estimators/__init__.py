"""scikit-learn estimators for dirty data."""

from mtbayes.estimators.classifier import Outliers, RobustClassifier, Uncertainty
from mtbayes.estimators.regressor import RobustRegressor

__all__ = ["Outliers", "RobustClassifier", "RobustRegressor", "Uncertainty"]
