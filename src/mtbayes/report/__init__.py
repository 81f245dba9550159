"""Pictures and tables, drawn only from saved numbers: drawing again never computes again."""

from mtbayes.report import demo, influence, tlog, toy

REPORTS = {"toy": toy, "tlog": tlog, "influence": influence, "demo": demo}
"""For each experiment a module with `draw(out) -> paths` and `tables(out) -> rich renderables`."""

__all__ = ["REPORTS"]
