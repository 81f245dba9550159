"""Figure 4 and Table II, the study of K, and the choice of K, from saved numbers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np

from mtbayes.experiments.multimodal import CHOICES, PLAIN, TABLE_2, WAYS, chosen, method
from mtbayes.experiments.results import Row, read_rows, read_table
from mtbayes.report import figures
from mtbayes.report.curves import Curve, curve
from mtbayes.report.tables import Grid

_COMPONENTS = (1, 2, 4, 10)
_FIGURE_4 = (1, 2)
_MARKS = dict(zip(_COMPONENTS, "os^D", strict=True))
_EQUAL, _WEIGHTED = CHOICES


def draw(out: Path) -> list[Path]:
    """Figure 4 for one Gaussian and for two, and what more components do."""
    folder = out / "multimodal"
    return _figure_4(folder) + _components(folder)


def _figure_4(folder: Path) -> list[Path]:
    table, points = (read_table(folder / f"{name}.csv") for name in ("densities", "points"))
    with mpl.rc_context(figures.STYLE):
        figure = figures.blank(10.5, 5.4)
        panels: Any = figure.subplots(len(_FIGURE_4), len(TABLE_2), sharex=True, sharey=True)
        for line, components in zip(panels, _FIGURE_4, strict=True):
            for axes, (epsilon, t) in zip(line, TABLE_2, strict=True):
                shown = (table["components"] == components) & (table["epsilon"] == epsilon)
                shown &= table["t"] == t
                _density(axes, {k: table[k][shown] for k in ("a", "b", "density")})
                _points(axes, points, epsilon)
                axes.set(title=f"K = {components}, ε = {epsilon:g}, t = {t:g}", xlabel="a")
                axes.set_ylabel("b")
                axes.label_outer()
        handles, labels = axes.get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=2, markerscale=3)
    return figures.save(figure, folder, "fig4-multimodal")


def _density(axes: Any, grid: dict[str, Any]) -> None:
    a, b = np.unique(grid["a"]), np.unique(grid["b"])
    density = grid["density"].reshape(len(a), len(b)).T
    axes.grid(visible=False)
    axes.imshow(
        density,
        extent=(a[0], a[-1], b[0], b[-1]),
        origin="lower",
        aspect="auto",
        cmap="gray_r",
        vmin=0,
        vmax=0.22,  # half a unit Gaussian's peak, a little above
        interpolation="bilinear",
    )


def _points(axes: Any, points: dict[str, Any], epsilon: float) -> None:
    at = points["epsilon"] == epsilon
    for flag, colour, marker, label in (
        (0, figures.TRUTH, "o", "rows of ν"),
        (1, figures.OUTLIER, "x", "outliers"),
    ):
        which = at & (points["outlier"] == flag)
        a, b = points["a"][which], points["b"][which]
        axes.plot(a, b, marker, color=colour, ms=2 if flag else 1, mew=0.7, ls="", label=label)


def _components(folder: Path) -> list[Path]:
    rows = read_rows(folder / "results.csv")
    epsilon = max(row.epsilon for row in rows)
    there = _there(rows)
    colours = figures.ramp(there)
    with mpl.rc_context(figures.STYLE):
        figure = figures.blank(10.5, 3.4)
        left, middle, right = figure.subplots(1, 3)
        for axes, choice, title in (
            (left, _EQUAL, f"Equal components, ε = {epsilon:g}"),
            (middle, _WEIGHTED, "Weighted by unseen rows"),
        ):
            for k in there:
                shown = curve(rows, method(k), choice.tv, epsilon)
                look = {"color": colours[k], "marker": _MARKS[k]}
                axes.plot(shown.t, shown.mean, **look, ms=4, label=f"K = {k}")
                axes.fill_between(shown.t, shown.low, shown.high, color=colours[k], alpha=0.2, lw=0)
            axes.set(xlabel="t", ylabel=r"total variation from $\nu$", title=title)
        middle.sharey(left)
        left.legend(fontsize=8)
        for k in there:
            found = _pairs(rows, k, epsilon)
            right.plot(*found, _MARKS[k], color=colours[k], ms=4)
        right.set(
            xlabel="score of unseen rows",
            ylabel=r"total variation from $\nu$",
            title="The score sees it without knowing ν",
        )
    return figures.save(figure, folder, "components")


def _pairs(rows: list[Row], components: int, epsilon: float) -> Any:
    """Held-out scores and total variations of all fits with K equal components."""
    own = [r for r in rows if (r.method, r.epsilon) == (method(components), epsilon)]
    each = {m: {(r.seed, r.t): r.value for r in own if r.metric == m} for m in _EQUAL}
    places = sorted(each[_EQUAL.tv])
    return [[each[m][place] for place in places] for m in (_EQUAL.score, _EQUAL.tv)]


def grids(out: Path) -> list[Grid]:
    """Table II beside the paper's, what K = 1 needs, the study of K, and what the rule takes."""
    rows = read_rows(out / "multimodal" / "results.csv")
    studies = [_study(rows, epsilon) for epsilon in sorted({r.epsilon for r in rows})]
    return [_table_2(rows), _ways(rows), *studies, _choice(rows)]


def tables(out: Path) -> list[Any]:
    """The grids for the console."""
    return [grid.rich() for grid in grids(out)]


def _there(rows: list[Row]) -> list[int]:
    return [k for k in _COMPONENTS if any(r.method == method(k) for r in rows)]


def _cell(shown: Curve, t: float) -> str:
    """Mean over seeds, and half the way from the lowest to the highest where there are several."""
    if t not in shown.t:
        return "-"
    at = int(np.flatnonzero(shown.t == t)[0])
    half = (shown.high[at] - shown.low[at]) / 2
    return _short(shown.mean[at]) + (f" ±{_short(half)}" if half > 0 else "")


def _short(value: float) -> str:
    return f"{value:.3f}".removeprefix("0")


def _table_2(rows: list[Row]) -> Grid:
    """Total variation, and its ratio to the first column, which compares with the paper's."""
    paper = list(TABLE_2.values())
    lines = [("paper", *(f"{v:.2f}" for v in paper)), ("  ratio", *_ratios(paper))]
    for name in (method(2), method(1), method(1, PLAIN)):
        cells, means = [], []
        for epsilon, t in TABLE_2:
            shown = curve(rows, name, _EQUAL.tv, epsilon)
            cells.append(_cell(shown, t))
            means.append(shown.at(t) if t in shown.t else None)
        lines += [(name, *cells), ("  ratio", *_ratios(means))]
    heads = ("", *(f"ε={epsilon:g}, t={t:g}" for epsilon, t in TABLE_2))
    return Grid("Table II: TV from ν, and its ratio to the first", heads, lines)


def _ratios(values: Sequence[float | None]) -> list[str]:
    first = values[0] or 1.0
    return ["-" if v is None else f"{v / first:.2f}" for v in values]


def _ways(rows: list[Row]) -> Grid:
    there = {r.method for r in rows if r.epsilon == 0}
    names = [method(1, way) for way in WAYS if method(1, way) in there]
    lines = [(name, _cell(curve(rows, name, _EQUAL.tv, 0.0), 1.0)) for name in names]
    return Grid("What one Gaussian needs, ε = 0, t = 1", ("", "TV from ν"), lines)


def _study(rows: list[Row], epsilon: float) -> Grid:
    at = [r for r in rows if r.epsilon == epsilon and r.method in map(method, _there(rows))]
    t_grid = sorted({r.t for r in at}, reverse=True)
    lines = []
    for choice, name in ((_EQUAL, "equal"), (_WEIGHTED, "weighted")):
        for k in _there(rows):
            shown = curve(at, method(k), choice.tv, epsilon)
            lines.append((f"K = {k}, {name}", *(_cell(shown, t) for t in t_grid)))
    heads = (f"ε={epsilon:g}", *(f"t={t:g}" for t in t_grid))
    return Grid("Components, equal and weighted by unseen rows: TV from ν", heads, lines)


def _choice(rows: list[Row]) -> Grid:
    lines = []
    for epsilon in sorted({r.epsilon for r in rows}):
        for seed in sorted({r.seed for r in rows}):
            at = [r for r in rows if (r.epsilon, r.seed) == (epsilon, seed)]
            for choice, name in ((_EQUAL, "equal"), (_WEIGHTED, "weighted")):
                taken = chosen(at, choice)
                best = min(r.value for r in at if r.metric == choice.tv)
                line = (taken.method, f"{taken.t:g}", _short(taken.tv), _short(best))
                share = _short(taken.epsilon)
                lines.append((f"ε={epsilon:g}, seed {seed}, {name}", *line, share))
    heads = ("", "taken", "t", "TV", "best TV", "ε found")
    return Grid("K and t taken by the score of unseen rows alone", heads, lines)
