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
    from mtbayes.maths import exp_t, expected_log_t, log_t, log_t_from_log
    from mtbayes.solve import fixed_point, fixed_points, objective
    from mtbayes.types import Solution, Status

__all__ = [
    "Criterion",
    "InvalidInput",
    "Solution",
    "Status",
    "exp_t",
    "expected_log_t",
    "fixed_point",
    "fixed_points",
    "log_t",
    "log_t_from_log",
    "objective",
]

_HOMES = {
    "Criterion": "criteria",
    "InvalidInput": "errors",
    "Solution": "types",
    "Status": "types",
    "exp_t": "maths",
    "expected_log_t": "maths",
    "fixed_point": "solve",
    "fixed_points": "solve",
    "log_t": "maths",
    "log_t_from_log": "maths",
    "objective": "solve",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'mtbayes' has no attribute {name!r}")
    return getattr(import_module(f"mtbayes.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
