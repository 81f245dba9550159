"""The only code that iterates."""

from mtbayes.solve.gradient import Progress, fit
from mtbayes.solve.many import path, sweep
from mtbayes.solve.on_grid import fixed_point, fixed_points, objective
from mtbayes.solve.program import Terms

__all__ = ["Progress", "Terms", "fit", "fixed_point", "fixed_points", "objective", "path", "sweep"]
