"""Figures 1 and 9 and Tables I and III of the toy example, from its saved numbers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from rich import box
from rich.table import Table

from mtbayes.experiments.results import Row, read_columns, read_rows
from mtbayes.experiments.toy import MEMBERS, T_GRID, TABLE_1, TABLE_3
from mtbayes.report import figures, tlog
from mtbayes.types import FloatArray


def draw(out: Path) -> list[Path]:
    """Draw Figures 1, 2 and 9, and the study over random data sets."""
    folder = out / "toy"
    curves = read_columns(folder / "densities.csv")
    points = read_columns(folder / "points.csv")
    rows = [r for r in read_rows(folder / "results.csv") if r.dataset == "random"]
    return (
        _figure_1(folder, curves, points)
        + _figure_9(folder, curves, points)
        + _random(folder, rows)
        + tlog.draw(out)
    )


def tables(out: Path) -> list[Any]:
    """Tables I and III beside the paper's numbers, and the study over random data sets."""
    rows = read_rows(out / "toy" / "results.csv")
    matched = [r for r in rows if r.dataset == "matched"]
    mean = {(int(r.m), r.t): r.value for r in matched if r.method == "fixed_point"}
    of_sum = {(int(r.m), r.t): r.value for r in matched if r.method == "fixed_point_of_sum"}
    random = defaultdict(list)
    for r in rows:
        if r.dataset == "random":
            random[int(r.m), r.t, r.beta].append(r.value)
    count = len({r.seed for r in rows if r.dataset == "random"})

    def spread(beta: Callable[[int], float]) -> Callable[[int, float], str]:
        def cell(m: int, t: float) -> str:
            values = random[m, t, beta(m)]
            return f"{_short(np.mean(values))} ±{_short(np.std(values, ddof=1), 2)}"

        return cell

    return [
        _table_1(mean),
        _table("Table III: total variation from ν, ours (paper)", _beside(mean)),
        _table("The same for log_t of the sum, not the mean: ours (paper)", _beside(of_sum)),
        _table(f"{count} random data sets, beta = 1: mean ± spread", spread(lambda _m: 1.0)),
        _table(f"{count} random data sets, beta = m: mean ± spread", spread(float)),
    ]


def _beside(ours: dict[tuple[int, float], float]) -> Callable[[int, float], str]:
    def cell(m: int, t: float) -> str:
        paper = TABLE_3.get(m)
        shown = _short(paper[T_GRID.index(t)], 2) if paper else "-"
        return f"{_short(ours[m, t])} ({shown})"

    return cell


def _short(value: Any, digits: int = 3) -> str:
    return f"{value:.{digits}f}".removeprefix("0")


def _table(title: str, cell: Callable[[int, float], str]) -> Table:
    table = _blank(title)
    table.add_column("", no_wrap=True)
    for t in T_GRID:
        table.add_column(f"t={t:g}", justify="right", no_wrap=True)
    for m in MEMBERS:
        table.add_row(f"m={m}", *(cell(m, t) for t in T_GRID))
    return table


def _table_1(ours: dict[tuple[int, float], float]) -> Table:
    table = _blank("Table I: total variation from ν, ours (paper)")
    for m, t in TABLE_1:
        table.add_column(f"m={m}, t={t:g}", justify="right", no_wrap=True)
    table.add_row(*(f"{_short(ours[c])} ({_short(paper, 2)})" for c, paper in TABLE_1.items()))
    return table


def _blank(title: str) -> Table:
    return Table(
        title=title,
        title_justify="left",
        title_style="bold",
        box=box.SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
        pad_edge=False,
    )


def _data_and_truth(
    axes: Any, curves: dict[str, FloatArray], points: dict[str, FloatArray]
) -> None:
    axes.plot(curves["x"], curves["nu"], "--", color=figures.TRUTH, label=r"truth $\nu$", zorder=1)
    for flag, colour, label in ((0, "black", "data"), (1, figures.OUTLIER, "outlier")):
        x = points["x"][points["outlier"] == flag]
        axes.plot(
            x, np.full_like(x, -0.012), "x", color=colour, label=label, clip_on=False, zorder=3
        )


def _labelled(axes: Any, title: str) -> None:
    axes.set(xlabel="x", ylabel="predictive density", title=title, xlim=(-13, 9))
    axes.set_ylim(-0.025, None)


def _figure_1(
    folder: Path, curves: dict[str, FloatArray], points: dict[str, FloatArray]
) -> list[Path]:
    shown = [(1, 1.0), (10, 1.0), (10, 0.9), (10, 0.7), (10, 0.5)]
    colours = ("#8a8a8a", "#1d3c8f", "#4aa3df", "#f28cb1", figures.OUTLIER)
    with mpl.rc_context(figures.STYLE):
        figure = figures.blank(6.4, 3.6)
        axes = figure.subplots()
        _data_and_truth(axes, curves, points)
        for (m, t), colour in zip(shown, colours, strict=True):
            axes.plot(curves["x"], curves[f"m={m} t={t:g}"], color=colour, label=f"m={m}, t={t:g}")
        _labelled(axes, "An ensemble repairs the model; t < 1 forgets the outlier")
        axes.legend()
    return figures.save(figure, folder, "fig1-toy")


def _figure_9(
    folder: Path, curves: dict[str, FloatArray], points: dict[str, FloatArray]
) -> list[Path]:
    colours = figures.ramp(T_GRID)
    with mpl.rc_context(figures.STYLE):
        figure = figures.blank(10.5, 3.1)
        panels: Iterable[Any] = figure.subplots(1, 4, sharey=True)
        for axes, m in zip(panels, (1, 2, 5, 20), strict=True):
            _data_and_truth(axes, curves, points)
            for t in T_GRID:
                axes.plot(
                    curves["x"], curves[f"m={m} t={t:g}"], color=colours[t], label=f"t = {t:g}"
                )
            _labelled(axes, f"m = {m}")
            axes.label_outer()
        figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=9)
    return figures.save(figure, folder, "fig9-toy")


def _random(folder: Path, rows: list[Row]) -> list[Path]:
    values = defaultdict(list)
    for r in rows:
        values[r.m, r.t, r.beta].append(r.value)
    colours = figures.ramp(MEMBERS)
    with mpl.rc_context(figures.STYLE):
        figure = figures.blank(8.4, 3.3)
        panels: Iterable[Any] = figure.subplots(1, 2, sharey=True)
        rules: list[tuple[str, Callable[[int], float]]] = [
            ("beta = 1", lambda _m: 1.0),
            ("beta = m", float),
        ]
        for axes, (title, beta) in zip(panels, rules, strict=True):
            for m in MEMBERS:
                cells = [values[m, t, beta(m)] for t in T_GRID]
                mean = np.array([np.mean(c) for c in cells])
                error = np.array([np.std(c, ddof=1) / np.sqrt(len(c)) for c in cells])
                axes.plot(T_GRID, mean, "o-", ms=3, color=colours[m], label=f"m = {m}")
                axes.fill_between(
                    T_GRID, mean - 2 * error, mean + 2 * error, color=colours[m], alpha=0.2
                )
            axes.set(xlabel="t", ylabel=r"total variation from $\nu$", title=title)
            axes.label_outer()
        axes.legend()
    return figures.save(figure, folder, "random-data-sets")
