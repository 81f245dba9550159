"""Figures 10 and 11, reliability diagrams on MNIST, from `reliability/reliability.csv`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np

from mtbayes.experiments.images import BINS
from mtbayes.experiments.methods import DEEP, GIBBS, ROBUST
from mtbayes.experiments.results import read_rows, read_table
from mtbayes.report import figures
from mtbayes.report.curves import curve
from mtbayes.report.images import LABELS
from mtbayes.report.tables import Grid

SHOWN = (0.0, 0.5, 1.0)
_FEW = 10  # rows: a bin with fewer is pale


def draw(out: Path) -> list[Path]:
    """Figure 10 the deep ensemble, Figure 11 Gibbs above the robust ensemble at three t."""
    folder = out / "reliability"
    table, rows = read_table(folder / "reliability.csv"), read_rows(folder / "results.csv")
    with mpl.rc_context(figures.STYLE):
        tenth = figures.blank(3.0, 3.0)
        _panel(tenth.subplots(), table, rows, DEEP, 1.0)
        eleventh = figures.blank(8.0, 5.4)
        panels: Any = eleventh.subplots(2, 3, sharex=True, sharey=True)
        for line, method in zip(panels, (GIBBS, ROBUST), strict=True):
            for axes, t in zip(line, SHOWN, strict=True):
                _panel(axes, table, rows, method, t)
                axes.label_outer()
    return [
        *figures.save(tenth, folder, "fig10-reliability"),
        *figures.save(eleventh, folder, "fig11-reliability"),
    ]


def _panel(axes: Any, table: dict[str, Any], rows: list[Any], method: str, t: float) -> None:
    shown = (table["method"] == method) & (table["t"] == t)
    width = 1 / BINS
    axes.plot([0, 1], [0, 1], "--", color="#8a8a8a", lw=1)
    for k in range(BINS):
        part = shown & (table["bin"] == k) & (table["counts"] > 0)
        if not part.any():
            continue
        weight = table["counts"][part]
        accuracy = np.average(table["accuracy"][part], weights=weight)
        confidence = np.average(table["confidence"][part], weights=weight)
        faint = 0.25 if weight.sum() < _FEW else 1.0
        axes.bar(k * width, accuracy, width, align="edge", color="#4aa3df", alpha=faint, ec="white")
        axes.plot([k * width, (k + 1) * width], [confidence] * 2, color=figures.OUTLIER, lw=1.4)
    ece = curve([r for r in rows if r.t == t], method, "ece").at(t)
    name = LABELS[method].split(",")[0]
    at = "" if method == DEEP else f", t = {t:g}"
    axes.set(
        xlim=(0, 1), ylim=(0, 1), aspect="equal", xlabel="confidence (red: mean of the bin)",
        ylabel="accuracy", title=f"{name}{at}\nECE {100 * ece:.1f} %",
    )  # fmt: skip


def grids(out: Path) -> list[Grid]:
    """ECE and mean confidence less accuracy."""
    rows = read_rows(out / "reliability" / "results.csv")
    lines = []
    for method, t in ((DEEP, 1.0), *((m, t) for m in (GIBBS, ROBUST) for t in SHOWN)):
        at = [100 * curve(rows, method, metric).at(t) for metric in ("ece", "overconfidence")]
        lines.append((method, f"{t:g}", f"{at[0]:.1f}", f"{at[1]:+.1f}"))
    heads = ("method", "t", "ECE %", "confidence - accuracy, points")
    return [Grid("MNIST: calibration", heads, lines)]


def tables(out: Path) -> list[Any]:
    """The grids for the console."""
    return [grid.rich() for grid in grids(out)]
