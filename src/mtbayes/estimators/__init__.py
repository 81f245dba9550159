"""scikit-learn estimators for dirty data."""

from mtbayes.estimators.annotations import Annotations
from mtbayes.estimators.classifier import Outliers, RobustClassifier, Uncertainty
from mtbayes.estimators.density import RobustDensity
from mtbayes.estimators.files import load
from mtbayes.estimators.regressor import RobustRegressor

ESTIMATORS = {kind.__name__: kind for kind in (RobustClassifier, RobustRegressor, RobustDensity)}

__all__ = [
    "ESTIMATORS",
    "Annotations",
    "Outliers",
    "RobustClassifier",
    "RobustDensity",
    "RobustRegressor",
    "Uncertainty",
    "load",
]
