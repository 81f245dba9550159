"""The only code that iterates."""

from mtbayes.solve.on_grid import fixed_point, fixed_points, objective

__all__ = ["fixed_point", "fixed_points", "objective"]
