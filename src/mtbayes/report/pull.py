"""Figure 3 and the gross-error sensitivity, from the files of `experiments/influence.py`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib as mpl
from rich.table import Table

from mtbayes.experiments.results import read_columns
from mtbayes.report import figures

_CURVES = (
    ("toy m=1", "toy data, m = 1", "--"),
    ("toy m=inf", "toy data, m = ∞", "-"),
    ("fitted", "data that the model fits, m = ∞", ":"),
)


def draw(out: Path) -> list[Path]:
    """Draw the pull of a row against where it lies, and the largest influence against t."""
    return [*_terms(out / "influence"), *_sensitivity(out / "influence")]


def _terms(folder: Path) -> list[Path]:
    terms, points = read_columns(folder / "terms.csv"), read_columns(folder / "points.csv")["x"]
    z = terms.pop("z")
    colours = figures.ramp([float(t) for t in terms])
    with mpl.rc_context(figures.STYLE):
        figure = figures.blank(5.6, 3.6)
        axes = figure.subplots()
        for t, size in terms.items():
            axes.plot(z, size, color=colours[float(t)], label=f"t = {t}")
        axes.plot(points[1:], 0 * points[1:], "o", color=figures.TRUTH, ms=4, clip_on=False)
        axes.plot(points[:1], [0.0], "o", color=figures.OUTLIER, ms=4, clip_on=False)
        axes.set(
            xlabel="row z that is added (dots: the data, red the outlier)",
            ylabel=r"$|\partial_\phi R(z)|$",
            title="A far row pulls as its distance at t = 1, and less and less below",
            ylim=(0, 3.5),
        )
        axes.legend(loc="upper right")
    return figures.save(figure, folder, "fig3-influence")


def _sensitivity(folder: Path) -> list[Path]:
    columns = read_columns(folder / "sensitivity.csv")
    t = columns.pop("t")
    with mpl.rc_context(figures.STYLE):
        figure = figures.blank(5.2, 3.4)
        axes = figure.subplots()
        for name, label, style in _CURVES:
            axes.plot(t, columns[name], style, color="#31308f", label=label)
        axes.axvline(1.0, color=figures.OUTLIER, lw=1)
        axes.set(
            xlabel="t",
            ylabel=r"$\sup_z |d\phi^*/d\gamma|$",
            title="How far the worst row can pull: without bound at t = 1 alone",
            ylim=(0, 20),
        )
        axes.legend(loc="upper left")
    return figures.save(figure, folder, "sensitivity")


def tables(out: Path) -> list[Any]:
    """Where the ensemble lies for each t, and the largest influence."""
    columns = read_columns(out / "influence" / "minima.csv")
    table = Table(title="q = N(φ, 1), m = ∞, on the toy data")
    for heading in ("t", "φ*", "largest influence of a row"):
        table.add_column(heading, justify="right")
    for t, phi, most in zip(*columns.values(), strict=True):
        table.add_row(f"{t:g}", f"{phi:.3f}", f"{most:.3f}")
    return [table]
