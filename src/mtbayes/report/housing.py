"""Figure 7, clean NLL against t at four shares of outliers, and the table over rivals."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib as mpl

from mtbayes.experiments.housing import EPSILONS
from mtbayes.experiments.methods import DEEP, GIBBS, ROBUST
from mtbayes.experiments.results import read_rows
from mtbayes.report import figures
from mtbayes.report.curves import curve, plot
from mtbayes.report.tables import Grid, rivals

LABELS = {
    ROBUST: r"robust ensemble, $J_t^{5}$",
    GIBBS: r"robust Gibbs, $J_t^1$",
    DEEP: "deep ensemble of 5, log loss",
}


def draw(out: Path) -> list[Path]:
    """A panel for each ε."""
    rows = read_rows(out / "housing" / "results.csv")
    with mpl.rc_context(figures.STYLE):
        figure = figures.blank(10.5, 3.3)
        panels: Any = figure.subplots(1, len(EPSILONS), sharey=True)
        for axes, epsilon in zip(panels, EPSILONS, strict=True):
            for method, label in LABELS.items():
                plot(axes, curve(rows, method, "nll", epsilon), method, label)
            axes.set(xlabel="t", ylabel="NLL of clean rows", title=f"ε = {epsilon:g}")
            axes.label_outer()
        handles = panels[0].get_legend_handles_labels()
        figure.legend(*handles, loc="outside lower center", ncols=3)
    return figures.save(figure, out / "housing", "fig7-housing")


def grids(out: Path) -> list[Grid]:
    """The best t at each ε, and all rivals."""
    rows = read_rows(out / "housing" / "results.csv")
    lines = []
    for epsilon in EPSILONS:
        cells = [f"{epsilon:g}"]
        for method in (ROBUST, GIBBS):
            nll = curve(rows, method, "nll", epsilon)
            cells += [f"{nll.argmin():g}", f"{nll.mean.min():.3f}", f"{nll.at(1.0):.3f}"]
        cells.append(f"{curve(rows, DEEP, 'nll', epsilon).at(1.0):.3f}")
        lines.append(tuple(cells))
    ours, gibbs = ("best t", "NLL there", "at t = 1"), ("Gibbs: best t", "NLL there", "at t = 1")
    found = [
        Grid("California Housing: NLL of clean rows", ("ε", *ours, *gibbs, "deep ensemble"), lines)
    ]
    for epsilon in EPSILONS:
        if len({r.method for r in rows if r.epsilon == epsilon}) > len(LABELS):
            title = f"California Housing, ε = {epsilon:g}: all methods, each at the best of a few t"
            found.append(rivals(rows, {"rmse": 1.0, "nll": 1.0}, title, epsilon))
    return found


def tables(out: Path) -> list[Any]:
    """The grids for the console."""
    return [grid.rich() for grid in grids(out)]
