"""Figure 5, one panel pair for each data set, and the table over rivals, from `results.csv`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib as mpl

from mtbayes.experiments.images import EPSILON
from mtbayes.experiments.methods import DEEP, GIBBS, ROBUST
from mtbayes.experiments.results import read_rows
from mtbayes.report import figures
from mtbayes.report.curves import curve, plot, seeds
from mtbayes.report.tables import Grid, rivals

LABELS = {
    ROBUST: r"robust ensemble, $J_t^{10}$",
    GIBBS: r"robust Gibbs, $J_t^1$",
    DEEP: "deep ensemble of 10, log loss",
}


@dataclass(frozen=True)
class Images:
    """The report of one image data set."""

    name: str
    title: str
    figure: str

    def draw(self, out: Path) -> list[Path]:
        """Accuracy above ECE, both against t."""
        folder = out / self.name
        rows = read_rows(folder / "results.csv")
        with mpl.rc_context(figures.STYLE):
            figure = figures.blank(4.6, 5.6)
            panels: Any = figure.subplots(2, 1, sharex=True)
            for axes, metric in zip(panels, ("accuracy", "ece"), strict=True):
                for method, label in LABELS.items():
                    plot(axes, curve(rows, method, metric), method, label, scale=100)
            panels[0].set(ylabel="test accuracy in %", title=self._heading(rows))
            panels[1].set(ylabel="ECE in %", xlabel="t", ylim=(0, None))
            figure.legend(
                *panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=1
            )
        return figures.save(figure, folder, self.figure)

    def grids(self, out: Path) -> list[Grid]:
        """Accuracy, ECE and NLL against t; all rivals, where they were trained."""
        rows = read_rows(out / self.name / "results.csv")
        found = [self._against_t(rows)]
        if len({row.method for row in rows}) > len(LABELS):
            title = f"{self.title}: all methods, each at the best of a few t for the test NLL"
            metrics = {"accuracy": 100.0, "ece": 100.0, "nll": 1.0}
            found.append(rivals(rows, metrics, title, EPSILON))
        return found

    def tables(self, out: Path) -> list[Any]:
        """The grids for the console."""
        return [grid.rich() for grid in self.grids(out)]

    def _against_t(self, rows: list[Any]) -> Grid:
        curves = {
            (method, metric): curve(rows, method, metric)
            for method in LABELS
            for metric in ("accuracy", "ece", "nll")
        }
        lines = []
        for t in curves[ROBUST, "accuracy"].t[::-1]:
            cells = [f"{t:g}"]
            for method in (ROBUST, GIBBS):
                cells += [f"{100 * curves[method, m].at(t):.1f}" for m in ("accuracy", "ece")]
                cells.append(f"{curves[method, 'nll'].at(t):.3f}")
            lines.append(tuple(cells))
        deep = [curves[DEEP, m].at(1.0) for m in ("accuracy", "ece", "nll")]
        head = ("acc %", "ECE %", "NLL")
        title = (
            f"{self.title}: robust ensemble, then Gibbs (deep ensemble: {100 * deep[0]:.1f}, "
            f"{100 * deep[1]:.1f}, {deep[2]:.3f})"
        )
        return Grid(title, ("t", *head, *(f"{h} " for h in head)), lines)

    def _heading(self, rows: list[Any]) -> str:
        count = seeds(rows)
        many = "one seed" if count == 1 else f"{count} seeds, band from lowest to highest"
        return f"{self.title}, 30 % of labels wrong\n({many})"


MNIST = Images("mnist", "MNIST", "fig5a-mnist")
EMNIST = Images("emnist", "EMNIST, 47 classes", "fig5b-emnist")
CIFAR10 = Images("cifar10", "CIFAR-10", "fig5c-cifar10")
