"""Learn from dirty data with models that are too simple: (m,t)-robust Bayesian learning.

Names load when they are first used, so that `import mtbayes` is instant.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.2.0"

if TYPE_CHECKING:
    from mtbayes.criteria import Criterion
    from mtbayes.errors import InvalidInput
    from mtbayes.estimators import (
        Annotations,
        RobustClassifier,
        RobustDensity,
        RobustRegressor,
        load,
    )
    from mtbayes.likelihoods import Bernoulli, Categorical, Gaussian
    from mtbayes.maths import exp_t, expected_log_t, log_t, log_t_from_log
    from mtbayes.models import CustomModel, Model
    from mtbayes.networks import Conv, Dense, Flatten, MaxPool, Stack, mlp
    from mtbayes.posteriors import Mixture, Particles, Rank1, mean_field
    from mtbayes.posteriors.prior import prior
    from mtbayes.predicting import predictive
    from mtbayes.progress import Progress
    from mtbayes.reviewing import Review
    from mtbayes.solve import fit, fixed_point, fixed_points, objective, path, sweep
    from mtbayes.types import Solution, Status

__all__ = [
    "Annotations",
    "Bernoulli",
    "Categorical",
    "Conv",
    "Criterion",
    "CustomModel",
    "Dense",
    "Flatten",
    "Gaussian",
    "InvalidInput",
    "MaxPool",
    "Mixture",
    "Model",
    "Particles",
    "Progress",
    "Rank1",
    "Review",
    "RobustClassifier",
    "RobustDensity",
    "RobustRegressor",
    "Solution",
    "Stack",
    "Status",
    "exp_t",
    "expected_log_t",
    "fit",
    "fixed_point",
    "fixed_points",
    "load",
    "log_t",
    "log_t_from_log",
    "mean_field",
    "mlp",
    "objective",
    "path",
    "predictive",
    "prior",
    "sweep",
]

_NAMES = {
    "criteria": ("Criterion",),
    "errors": ("InvalidInput",),
    "estimators": (
        "Annotations",
        "RobustClassifier",
        "RobustDensity",
        "RobustRegressor",
        "load",
    ),
    "likelihoods": (
        "Bernoulli",
        "Categorical",
        "Gaussian",
    ),
    "maths": (
        "exp_t",
        "expected_log_t",
        "log_t",
        "log_t_from_log",
    ),
    "models": (
        "CustomModel",
        "Model",
    ),
    "networks": (
        "Conv",
        "Dense",
        "Flatten",
        "MaxPool",
        "Stack",
        "mlp",
    ),
    "posteriors": (
        "Mixture",
        "Particles",
        "Rank1",
        "mean_field",
        "prior",
    ),
    "predicting": ("predictive",),
    "progress": ("Progress",),
    "reviewing": ("Review",),
    "solve": (
        "fit",
        "fixed_point",
        "fixed_points",
        "objective",
        "path",
        "sweep",
    ),
    "types": (
        "Solution",
        "Status",
    ),
}
_HOMES = {name: home for home, names in _NAMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'mtbayes' has no attribute {name!r}")
    return getattr(import_module(f"mtbayes.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
