"""Figure 8, NLL against the prior's mean and the regulariser's order, from `prior/nll.csv`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np

from mtbayes.experiments.results import read_table
from mtbayes.report import figures
from mtbayes.report.curves import Curve
from mtbayes.report.tables import Grid

_KL, _RENYI, _ORDER = "#1d3c8f", "#8a8a8a", "#b35806"
_MARK = {1: ("o", "-"), 10: ("s", "--")}


def nll(out: Path, m: int, beta: float, over: str, **fixed: float) -> Curve:
    """NLL over "prior_mean" or "t_p", the other of the two fixed."""
    table = read_table(out / "prior" / "nll.csv")
    shown = (table["m"] == m) & (table["beta"] == beta)
    for name, value in fixed.items():
        shown &= table[name] == value
    x = np.unique(table[over][shown])
    cells = [table["nll"][shown & (table[over] == each)] for each in x]
    return Curve(x, *(np.array([f(c) for c in cells]) for f in (np.mean, np.min, np.max)))


def betas(out: Path) -> list[float]:
    """Every beta in the file, the largest first."""
    return sorted(np.unique(read_table(out / "prior" / "nll.csv")["beta"]).tolist(), reverse=True)


def draw(out: Path) -> list[Path]:
    """For each beta the two panels."""
    found = betas(out)
    with mpl.rc_context(figures.STYLE):
        figure = figures.blank(8.6, 3.0 * len(found))
        panels: Any = figure.subplots(len(found), 2, squeeze=False)
        for (left, right), beta in zip(panels, found, strict=True):
            for m, (marker, line) in _MARK.items():
                look = {"marker": marker, "ls": line, "ms": 4}
                for t_p, colour in ((1.0, _KL), (0.5, _RENYI)):
                    what = "KL" if t_p == 1 else f"Rényi, $t_p$ = {t_p:g}"
                    shown = nll(out, m, beta, "prior_mean", t_p=t_p)
                    _plot(left, shown, f"m = {m}, {what}", color=colour, **look)
                shown = nll(out, m, beta, "t_p", prior_mean=1.0)
                _plot(right, shown, f"m = {m}, $t_p$ of the axis", color=_ORDER, **look)
            left.set(
                xlabel=r"prior mean $\Delta\mu$", ylabel="NLL", title=f"beta = {beta:g}, t = 1"
            )
            right.set(
                xlabel=r"order $t_p$", ylabel="NLL", title=rf"beta = {beta:g}, $\Delta\mu$ = 1"
            )
        left, right = (axes.get_legend_handles_labels() for axes in panels[0])
        entries = (left[0] + right[0], left[1] + right[1])
        figure.legend(*entries, loc="outside lower center", ncols=3, handlelength=3)
    return figures.save(figure, out / "prior", "fig8-prior")


def _plot(axes: Any, shown: Curve, label: str, **look: Any) -> None:
    axes.plot(shown.t, shown.mean, label=label, **look)
    axes.fill_between(shown.t, shown.low, shown.high, color=look["color"], alpha=0.18, lw=0)


def grids(out: Path) -> list[Grid]:
    """NLL at the right and at the wrong prior mean."""
    lines = []
    for beta in betas(out):
        for m in _MARK:
            cells = [f"{beta:g}", f"{m}"]
            for t_p in (1.0, 0.5):
                shown = nll(out, m, beta, "prior_mean", t_p=t_p)
                cells += [f"{shown.at(0.0):.3f}", f"{shown.at(1.0):.3f}"]
            lines.append(tuple(cells))
    heads = ("beta", "m", "KL: Δμ = 0", "Δμ = 1", "Rényi .5: Δμ = 0", "Δμ = 1 ")
    return [Grid("Housing under a wrong prior: NLL", heads, lines)]


def tables(out: Path) -> list[Any]:
    """The grids for the console."""
    return [grid.rich() for grid in grids(out)]
