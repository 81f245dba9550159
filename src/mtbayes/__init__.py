"""Learn from dirty data with models that are too simple: (m,t)-robust Bayesian learning.

Names load when they are first used, so that `import mtbayes` is instant.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from mtbayes.criteria import Criterion
    from mtbayes.errors import InvalidInput
    from mtbayes.estimators import RobustClassifier, RobustDensity, RobustRegressor, load
    from mtbayes.maths import exp_t, expected_log_t, log_t, log_t_from_log
    from mtbayes.models import Model
    from mtbayes.solve import fit, fixed_point, fixed_points, objective, path, sweep
    from mtbayes.types import Solution, Status

__all__ = [
    "Criterion",
    "InvalidInput",
    "Model",
    "RobustClassifier",
    "RobustDensity",
    "RobustRegressor",
    "Solution",
    "Status",
    "exp_t",
    "expected_log_t",
    "fit",
    "fixed_point",
    "fixed_points",
    "load",
    "log_t",
    "log_t_from_log",
    "objective",
    "path",
    "sweep",
]

_HOMES = {
    "Criterion": "criteria",
    "InvalidInput": "errors",
    "Model": "models",
    "RobustClassifier": "estimators",
    "RobustDensity": "estimators",
    "RobustRegressor": "estimators",
    "Solution": "types",
    "Status": "types",
    "exp_t": "maths",
    "expected_log_t": "maths",
    "fit": "solve",
    "fixed_point": "solve",
    "fixed_points": "solve",
    "load": "estimators",
    "log_t": "maths",
    "log_t_from_log": "maths",
    "objective": "solve",
    "path": "solve",
    "sweep": "solve",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'mtbayes' has no attribute {name!r}")
    return getattr(import_module(f"mtbayes.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
