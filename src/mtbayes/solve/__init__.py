"""The only code that iterates."""

from mtbayes.solve.fixed_point import fixed_point, fixed_points, objective

__all__ = ["fixed_point", "fixed_points", "objective"]
