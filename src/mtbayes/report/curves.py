"""Means over seeds and their spread, the same way in every figure and table."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from mtbayes.experiments.methods import DEEP, GIBBS, ROBUST
from mtbayes.experiments.results import Row
from mtbayes.types import FloatArray

# Told apart by line, marker and lightness, for colour-blind eyes and for print.
LOOKS: dict[str, dict[str, Any]] = {
    ROBUST: {"color": "#1d3c8f", "ls": "-", "marker": "o"},
    GIBBS: {"color": "#e08214", "ls": "--", "marker": "s"},
    DEEP: {"color": "#6f6f6f", "ls": ":", "marker": ""},
}


class Curve(NamedTuple):
    """Values over t: mean over seeds, and the lowest and the highest seed."""

    t: FloatArray
    mean: FloatArray
    low: FloatArray
    high: FloatArray

    def at(self, t: float) -> float:
        """The mean at one t."""
        return float(self.mean[np.argmin(np.abs(self.t - t))])

    def argmin(self) -> float:
        """The t of the lowest mean."""
        return float(self.t[self.mean.argmin()])

    def spread(self) -> float:
        """The range of the seeds at the t of the lowest mean."""
        best = self.mean.argmin()
        return float(self.high[best] - self.low[best])

    def argmax(self) -> float:
        """The t of the highest mean."""
        return float(self.t[self.mean.argmax()])


def curve(rows: Iterable[Row], method: str, metric: str, epsilon: float | None = None) -> Curve:
    """The curve of one method and metric, at one ε if given."""
    values: dict[float, list[float]] = {}
    for row in rows:
        if (row.method, row.metric) == (method, metric) and epsilon in (None, row.epsilon):
            values.setdefault(row.t, []).append(row.value)
    t = sorted(values)
    cells = [values[each] for each in t]
    return Curve(np.array(t), *(np.array([f(c) for c in cells]) for f in (np.mean, min, max)))


def seeds(rows: Iterable[Row]) -> int:
    """How many seeds the rows are of."""
    return len({row.seed for row in rows})


def plot(axes: Any, drawn: Curve, method: str, label: str, scale: float = 1.0) -> None:
    """The mean, and a band from the lowest to the highest seed; flat where there is no t."""
    look = LOOKS[method]
    t, mean, low, high = drawn
    if len(t) == 1:
        t, mean, low, high = (np.repeat(v, 2) for v in drawn)
        t = np.array([0.0, 1.0])
    axes.plot(t, scale * mean, **look, ms=3.5, label=label)
    axes.fill_between(t, scale * low, scale * high, color=look["color"], alpha=0.18, lw=0)
