"""Figure 2 from `tlog/curves.csv`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib as mpl

from mtbayes.experiments.results import read_columns
from mtbayes.report import figures


def draw(out: Path) -> list[Path]:
    """Draw the loss against the probability, for each t."""
    curves = read_columns(out / "tlog" / "curves.csv")
    p = curves.pop("p")
    colours = figures.ramp([float(t) for t in curves])
    with mpl.rc_context(figures.STYLE):
        figure = figures.blank(5.2, 3.4)
        axes = figure.subplots()
        for t, loss in curves.items():
            axes.plot(p, loss, color=colours[float(t)], label=f"t = {t}")
        axes.set(
            xlabel="probability p(x) that the model gave to what happened",
            ylabel=r"loss $-\log_t\,p(x)$",
            title=r"For t < 1 the loss stays below 1/(1-t)",
            xlim=(-0.02, 1),
            ylim=(0, 5),
        )
        axes.legend()
    return figures.save(figure, out / "tlog", "fig2-tlog")


def tables(out: Path) -> list[Any]:
    """Figure 2 has no table."""
    return []
