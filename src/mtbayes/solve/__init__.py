"""The only code that iterates."""

from mtbayes.progress import Progress
from mtbayes.solve.gradient import fit
from mtbayes.solve.on_grid import fixed_point, fixed_points, objective
from mtbayes.solve.program import Terms
from mtbayes.solve.sweeps import path, sweep

__all__ = ["Progress", "Terms", "fit", "fixed_point", "fixed_points", "objective", "path", "sweep"]
