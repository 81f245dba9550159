"""Tables for the console and for pages, from one form: a title, headings and texts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from rich import box
from rich.table import Table

from mtbayes.experiments.methods import METHODS
from mtbayes.experiments.results import Row
from mtbayes.report.curves import curve


class Grid(NamedTuple):
    """A table as text."""

    title: str
    headings: tuple[str, ...]
    lines: Sequence[tuple[str, ...]]

    def rich(self) -> Table:
        """For the console."""
        table = Table(
            title=self.title,
            title_justify="left",
            title_style="bold",
            box=box.SIMPLE_HEAD,
            padding=(0, 2, 0, 0),
            pad_edge=False,
        )
        for i, heading in enumerate(self.headings):
            table.add_column(heading, justify="right" if i else "left", no_wrap=True)
        for line in self.lines:
            table.add_row(*line)
        return table

    def markdown(self) -> str:
        """For a page."""
        rule = ["---", *["---:"] * (len(self.headings) - 1)]
        lines = [list(self.headings), rule, *map(list, self.lines)]
        return f"**{self.title}**\n\n" + "\n".join(f"| {' | '.join(line)} |" for line in lines)


def rivals(rows: list[Row], metrics: dict[str, float], title: str, epsilon: float) -> Grid:
    """All methods side by side, each at its best t for the NLL of clean rows.

    metrics: by name, with the factor to show it in
    """
    at = [row for row in rows if row.epsilon == epsilon]
    names = list(dict.fromkeys(row.method for row in at))
    shared = _shared_t(at)
    lines = []
    for name in names:
        mine = [r for r in at if r.method == name and (r.t in shared or not _swept(name))]
        t = curve(mine, name, "nll").argmin()
        cells = [_cell([r for r in mine if r.t == t], metric, f) for metric, f in metrics.items()]
        lines.append((name, f"{t:g}" if _swept(name) else "-", *cells))
    lines.sort(key=lambda line: float(line[-1].split(" ")[0]))
    heads = tuple(f"{m} %" if f == 100 else m for m, f in metrics.items())
    return Grid(title, ("method", "t", *heads), lines)


def _cell(rows: list[Row], metric: str, factor: float) -> str:
    values = [factor * r.value for r in rows if r.metric == metric]
    digits = 1 if factor == 100 else 3
    mean = sum(values) / len(values)
    if len(values) == 1:
        return f"{mean:.{digits}f}"
    half = (max(values) - min(values)) / 2
    return f"{mean:.{digits}f} ±{half:.{digits}f}"


def _swept(name: str) -> bool:
    return name in METHODS and METHODS[name].swept


def _shared_t(rows: list[Row]) -> set[float]:
    """The t that every method with a t was trained at: a choice among the same for all."""
    each = [{r.t for r in rows if r.method == n} for n in {r.method for r in rows} if _swept(n)]
    return set.intersection(*each) if each else set()
