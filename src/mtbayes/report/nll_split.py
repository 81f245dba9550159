"""Figure 6, the NLL of clean and of corrupted training rows, from `nll-split/nll.csv`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np

from mtbayes.experiments.images import EDGES, SPLIT
from mtbayes.experiments.methods import ROBUST
from mtbayes.experiments.results import read_rows, read_table
from mtbayes.report import figures
from mtbayes.report.curves import curve
from mtbayes.report.tables import Grid


def draw(out: Path) -> list[Path]:
    """A panel for each t; counts summed over seeds, as densities."""
    folder = out / "nll-split"
    table = read_table(folder / "nll.csv")
    area = curve(read_rows(folder / "results.csv"), ROBUST, "auroc")
    width = float(EDGES[1] - EDGES[0])
    with mpl.rc_context(figures.STYLE):
        figure = figures.blank(8.4, 3.2)
        panels: Any = figure.subplots(1, len(SPLIT), sharey=True)
        for axes, t in zip(panels, SPLIT, strict=True):
            for kind, colour, hatch in (
                ("clean", "#1d3c8f", ""), ("corrupted", figures.OUTLIER, "///")
            ):  # fmt: skip
                shown = table["t"] == t
                left = np.unique(table["left"])
                counts = np.array([table[kind][shown & (table["left"] == x)].sum() for x in left])
                axes.bar(
                    left,
                    counts / counts.sum() / width,
                    width,
                    align="edge",
                    color=colour,
                    alpha=0.55,
                    hatch=hatch,
                    edgecolor=colour,
                    lw=0.4,
                    label=f"{kind} rows",
                )
            axes.set(
                xlabel=f"NLL of a training row (last bin: {EDGES[-1]:g} and more)",
                ylabel="density",
                title=f"t = {t:g}: AUROC {area.at(t):.3f}",
            )
            axes.label_outer()
        panels[0].legend(loc="upper right")
    return figures.save(figure, folder, "fig6-nll-split")


def grids(out: Path) -> list[Grid]:
    """How well the NLL tells corrupted rows from clean ones."""
    area = curve(read_rows(out / "nll-split" / "results.csv"), ROBUST, "auroc")
    lines = [(f"{t:g}", f"{area.at(t):.3f}") for t in SPLIT]
    return [Grid("CIFAR-10: AUROC of the NLL for corrupted training rows", ("t", "AUROC"), lines)]


def tables(out: Path) -> list[Any]:
    """The grids for the console."""
    return [grid.rich() for grid in grids(out)]
