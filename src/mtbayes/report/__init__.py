"""Pictures and tables, drawn only from saved numbers: drawing again never computes again."""

from mtbayes.report import demo, tlog, toy

REPORTS = {"toy": toy, "tlog": tlog, "demo": demo}
"""For each experiment a module with `draw(out) -> paths` and `tables(out) -> rich renderables`."""

__all__ = ["REPORTS"]
