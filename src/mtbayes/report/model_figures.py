"""Figures of the page of a model, each as SVG in the page's colours."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.dates import AutoDateLocator
from matplotlib.ticker import MaxNLocator, PercentFormatter

from mtbayes.metrics import Reliability
from mtbayes.report import figures
from mtbayes.report.figures import BLUE, INK, OUTLIER, PALE, QUIET
from mtbayes.types import Array, FloatArray

_FEW = 10  # rows: a bin with fewer is pale
_POINTS = 2000  # of a cloud
_LONG = 24  # characters of a name
_STYLES = ("-", "--", ":", "-.")


def _drawn(width: float, height: float) -> Callable[[Callable[..., None]], Callable[..., str]]:
    """A function that draws into axes becomes one that returns SVG; the name tells figures apart.

    Figures are no wider than a phone's screen needs, so that their text stays readable there.
    """

    def outer(draw: Callable[..., None]) -> Callable[..., str]:
        @wraps(draw)
        def inner(*arguments: Any, name: str = "", **options: Any) -> str:
            with mpl.rc_context(figures.IN_PAGE):
                figure = figures.blank(width, height)
                draw(figure.subplots(), *arguments, **options)
            return figures.inline(figure, f"{draw.__name__} {name}")

        return inner

    return outer


@_drawn(4.4, 3.6)
def reliability(axes: Any, good: Reliability, every: Reliability) -> None:
    """Share of rows that are right, by how sure the model was."""
    bins = len(good.counts)
    centre, width = (np.arange(bins) + 0.5) / bins, 0.92 / bins
    axes.plot([0, 1], [0, 1], "--", color=INK, lw=1, label="as it should be", zorder=3)
    for held, colour in ((good.counts >= _FEW, BLUE), (good.counts < _FEW, PALE)):
        label = "rows by probability of being right" if colour == BLUE else None
        axes.bar(centre[held], good.accuracy[held], width, color=colour, label=label)
    axes.plot(every.confidence, every.accuracy, "o", color=OUTLIER, mfc="none", mew=1.6,
              label="every row alike", zorder=4)  # fmt: skip
    least = np.flatnonzero(every.counts)[0] / bins
    axes.set(xlim=(least, 1.01), ylim=(0, 1.03), xlabel="probability of the predicted class",
             ylabel="share that is right")  # fmt: skip
    _percent(axes.xaxis, axes.yaxis)
    _legend(axes)


@_drawn(4.4, 3.6)
def coverage(axes: Any, levels: FloatArray, good: FloatArray, every: FloatArray) -> None:
    """Share of targets inside an interval, by the share that it should hold."""
    axes.plot([0, 1], [0, 1], "--", color=INK, lw=1, label="as it should be")
    axes.plot(levels, good, "-", color=BLUE, label="rows by probability of being right")
    axes.plot(levels, every, ":", color=OUTLIER, label="every row alike")
    axes.set(xlim=(0, 1), ylim=(0, 1), xlabel="share that the interval should hold",
             ylabel="share that it holds")  # fmt: skip
    _percent(axes.xaxis, axes.yaxis)
    _legend(axes)


@_drawn(4.4, 3.6)
def cloud(axes: Any, given: FloatArray, predicted: FloatArray, wrong: FloatArray) -> None:
    """Given numbers against predicted ones; what lies far outside is drawn at the rim."""
    some = np.random.default_rng(0).permutation(len(given))[:_POINTS]
    given, predicted, suspect = given[some], predicted[some], wrong[some] > 0.5
    low, high = _range(predicted, given[~suspect])
    shown = np.clip(given, low, high)
    axes.plot([low, high], [low, high], "--", color=INK, lw=1)
    for part, colour, mark, says in (
        (~suspect, BLUE, "o", "probably right"),
        (suspect, OUTLIER, "x", "probably wrong"),
    ):
        axes.plot(predicted[part], shown[part], mark, color=colour, ms=4, mew=1, alpha=0.7,
                  label=says)  # fmt: skip
    rim = 0.03 * (high - low)
    axes.set(xlim=_range(predicted), ylim=(low - rim, high + rim))
    axes.set(xlabel="predicted", ylabel="given")
    _legend(axes)


@_drawn(4.4, 3.2)
def path(axes: Any, table: list[dict[str, float]], taken: float) -> None:
    """The score of each t; bars are two standard errors of the gap to the best."""
    t, score, error = (np.array([line[k] for line in table]) for k in ("t", "score", "error"))
    axes.errorbar(t, score, 2 * error, fmt="o-", color=BLUE, ms=5, capsize=3, lw=1.4)
    axes.plot(taken, score[t == taken], "o", ms=12, mfc="none", mec=OUTLIER, mew=2)
    axes.annotate("taken", (taken, float(score[t == taken][0])), (0, 10), color=OUTLIER,
                  textcoords="offset points", ha="center")  # fmt: skip
    axes.margins(y=0.2)
    axes.set(xlabel="t", ylabel="score: mean log probability")
    axes.yaxis.set_major_locator(MaxNLocator(6))


@_drawn(4.4, 3.2)
def suspicion(axes: Any, wrong: FloatArray, band: tuple[float, float] | None) -> None:
    """Probability that a row is wrong, by rank, and the interval of the share of wrong rows."""
    rows = len(wrong)
    axes.plot(np.arange(1, rows + 1), np.sort(wrong)[::-1], color=BLUE, label="each row")
    end = max(20.0, 2.5 * float(wrong.sum()))
    if band is not None:
        low, high = rows * band[0], rows * band[1]
        axes.axvspan(low, max(high, low + 0.5), color=PALE, alpha=0.4, lw=0,
                     label="how many are wrong, 95 %")  # fmt: skip
        end = max(end, 1.5 * high)
    axes.set(xlim=(0, min(rows, end)), ylim=(0, 1.03))
    axes.set(xlabel="rows, the most suspicious first", ylabel="probability of being wrong")
    _percent(axes.yaxis)
    _legend(axes)


@_drawn(4.8, 3.2)
def doubt(axes: Any, aleatoric: FloatArray, epistemic: FloatArray, unit: str) -> None:
    """Doubt of rows in rising order, split in two kinds; both [n], adding up to the whole."""
    total = aleatoric + epistemic
    order = np.argsort(total)
    share = np.linspace(0, 1, len(total)) if len(total) > 1 else np.array([0.0])
    # Sorted rows jump from one split to another; a mean over neighbours shows the trend.
    split = _smooth(np.divide(aleatoric, total, out=np.ones_like(total), where=total > 0)[order])
    below = total[order] * split
    axes.fill_between(share, 0, below, color=BLUE, lw=0, label="noise: more rows would not help")
    axes.fill_between(share, below, total[order], color=PALE, lw=0,
                      label="dispute: more rows would help")  # fmt: skip
    axes.plot(share, total[order], color=INK, lw=1)
    axes.set(xlim=(0, 1), ylim=(0, None), xlabel="rows, from the least doubt to the most",
             ylabel=unit)  # fmt: skip
    _percent(axes.xaxis)
    _legend(axes)


def _smooth(values: FloatArray) -> FloatArray:
    width = max(1, len(values) // 25)
    ones = np.ones(width)
    return np.convolve(values, ones, "same") / np.convolve(np.ones(len(values)), ones, "same")


def importance(names: Sequence[str], losses: Sequence[float], errors: Sequence[float],
               what: str) -> str:  # fmt: skip
    """What shuffling each column costs, the most needed above."""

    @_drawn(4.8, 1.1 + 0.26 * len(names))
    def importance(axes: Any) -> None:
        place = np.arange(len(names))[::-1]
        axes.barh(place, losses, xerr=errors, color=BLUE, ecolor=QUIET, height=0.7)
        axes.axvline(0, color=INK, lw=0.8)
        axes.set_yticks(place, [_short(name) for name in names])
        axes.set(xlabel=what, ylim=(-0.6, len(names) - 0.4))
        axes.grid(False, axis="y")

    return importance()


@_drawn(3.1, 2.7)
def pixels(axes: Any, loss: FloatArray, what: str) -> None:
    """What shuffling the part of an image costs that a pixel [side, side] is in."""
    shown = axes.imshow(loss, cmap="viridis", vmin=0, interpolation="nearest")
    axes.set_axis_off()
    axes.figure.colorbar(shown, label=what, shrink=0.9)


@_drawn(3.1, 2.7)
def effect(
    axes: Any,
    column: str,
    at: Sequence[Any],
    means: FloatArray,
    labels: Sequence[str],
    span: tuple[float, float],
) -> None:
    """The mean prediction at each value of a column; labels: those of classes, or one."""
    text = isinstance(at[0], str)
    place = np.arange(len(at)) if text else np.asarray(at)
    for j, label in enumerate(labels):
        colour = (BLUE, OUTLIER, QUIET, INK)[j % 4]
        style = " " if text else _STYLES[j % 4]
        mark = "os^D"[j % 4] if text or len(at) < 3 else ""
        axes.plot(place, means[:, j], ls=style, marker=mark, ms=6, color=colour, label=label)
    if text:
        axes.set_xticks(place, [_short(v, 14) for v in at], rotation=30, ha="right")
        axes.margins(x=0.15)
    else:
        axes.xaxis.set_major_locator(_few_ticks(place))
    room = 0.08 * (span[1] - span[0]) or 1.0
    axes.set(ylim=(span[0] - room, span[1] + room), xlabel=_short(column, 32))
    if len(labels) > 1:
        _legend(axes)


def _few_ticks(place: Array) -> Any:
    if np.issubdtype(place.dtype, np.datetime64):
        return AutoDateLocator(minticks=2, maxticks=4)  # type: ignore[no-untyped-call]
    return MaxNLocator(4)


def _legend(axes: Any) -> None:
    """Above the axes: it covers nothing there."""
    axes.figure.legend(loc="outside upper left", fontsize=9.5, borderpad=0)


def _percent(*axis: Any) -> None:
    for each in axis:
        each.set_major_formatter(PercentFormatter(1.0, symbol=" %"))


def _short(name: str, most: int = _LONG) -> str:
    """A name that leaves room for the figure."""
    name = " ".join(name.split())
    return name if len(name) <= most else name[: most - 1] + "…"


def _range(*arrays: FloatArray) -> tuple[float, float]:
    """Ends of what is worth showing, not equal."""
    whole = np.concatenate(arrays)
    low, high = float(whole.min()), float(whole.max())
    room = 0.1 * (high - low) or 1.0
    return low - room, high + room
