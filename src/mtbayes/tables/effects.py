"""What columns do to predictions: how much each is needed, and which way it pulls.

A column of a file may be several numbers of the model (a category, a date), and of an image a patch
of pixels says more than one, for which its neighbours stand in. So groups of numbers are moved as
wholes: a row is a list of places, one a group, from which its numbers are put together.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from mtbayes.data.kinds import Boolean, Category, Date
from mtbayes.data.pixels import pixel_columns
from mtbayes.data.schema import Schema
from mtbayes.data.texts import Text
from mtbayes.progress import Callback, Progress
from mtbayes.tables.model import TableModel, TableRows
from mtbayes.types import Array, FloatArray

_ROWS = 256  # that are predicted again for each shuffle: one chunk of a predictive
_REPEATS = 5
_SHUFFLES = 128  # in all, about; where groups are many, each is shuffled less often
_PATCHES = 8  # on a side of an image, at most
_POINTS = 15
_LEAST = 1e-12  # probability


class Importance(NamedTuple):
    """What a column's shuffling costs, or a patch's."""

    column: str
    loss: float
    """By how much the mean log probability of classes falls, or the mean absolute error grows."""
    error: float
    """Standard deviation of the loss over shuffles."""
    accuracy: float | None
    """By how much the share of rows falls that are right; None for numbers."""


class Effect(NamedTuple):
    """The mean prediction with one column set to one value in all rows."""

    column: str
    at: list[Any]
    """The values, [k]: numbers, days as numpy.datetime64, or text."""
    means: FloatArray
    """The mean number, [k, 1], or the mean probability of each class, [k, C]."""


def columns(schema: Schema) -> dict[str, list[int]]:
    """By a column's name, which of a row's numbers are its own."""
    ends = np.cumsum([0, *(len(column.features()) for column in schema.columns)]).tolist()
    return {c.name: list(range(ends[j], ends[j + 1])) for j, c in enumerate(schema.columns)}


def patches(schema: Schema) -> dict[str, list[int]]:
    """Columns that are pixels, in squares of which 8 fit on a side; empty where they are none."""
    names = pixel_columns(schema) or []
    side = round(len(names) ** 0.5)
    width = max(1, -(-side // _PATCHES))
    own = {name: i for i, name in enumerate(schema.features)}
    found: dict[str, list[int]] = {}
    for k, name in enumerate(names):
        top, left = (width * (place // width) for place in divmod(k, side))
        square = f"lines {top + 1}–{top + width}, columns {left + 1}–{left + width}"
        if name in own:
            found.setdefault(name if width == 1 else square, []).append(own[name])
    return found


class Sample(NamedTuple):
    """Some rows, to look at effects with."""

    x: FloatArray
    y: Array
    weight: FloatArray
    groups: dict[str, list[int]]
    """By name, the numbers of a row that are moved together."""

    @classmethod
    def of(
        cls, rows: TableRows, weight: FloatArray, groups: dict[str, list[int]], seed: int
    ) -> Sample:
        """At most _ROWS of the rows; weight: [n], how much each counts."""
        drawn = np.random.default_rng(seed).permutation(len(rows.y))[:_ROWS]
        each = weight[drawn]
        each = each if each.sum() > 0 else np.ones(len(drawn))
        return cls(rows.x[drawn], rows.y[drawn], each, groups)

    def assembled(self, places: Array) -> FloatArray:
        """Rows [n, d] whose group j is that of row places[:, j]."""
        whole = np.empty((len(places), self.x.shape[1]))
        for j, own in enumerate(self.groups.values()):
            whole[:, own] = self.x[places[:, j][:, None], own]
        return whole


def importances(
    model: TableModel, sample: Sample, seed: int, callback: Callback
) -> list[Importance]:
    """All groups, those first whose shuffling costs the most.

    Shuffled is among good rows as among all, but the cost is counted where rows are good.
    """
    from sklearn.inspection import permutation_importance  # long, and of no use to an audit

    count = len(sample.groups)
    repeats = max(1, min(_REPEATS, _SHUFFLES // count))
    calls = 0

    def score(estimator: Any, places: Array, y: Array, sample_weight: Any) -> dict[str, float]:
        nonlocal calls
        calls += 1
        callback(Progress(min(1.0, calls / (count * repeats + 1))))
        return _scores(estimator, sample.assembled(places), y, sample_weight)

    places = np.repeat(np.arange(len(sample.y))[:, None], count, axis=1)
    found = permutation_importance(
        model.estimator,
        places,
        sample.y,
        scoring=score,
        n_repeats=repeats,
        random_state=seed,
        sample_weight=sample.weight,
    )
    loss, right = found["score"], found.get("accuracy")
    every = [
        Importance(
            name,
            float(loss.importances_mean[j]),
            float(loss.importances_std[j]),
            None if right is None else float(right.importances_mean[j]),
        )
        for j, name in enumerate(sample.groups)
    ]
    return sorted(every, key=lambda one: -one.loss)


def _scores(estimator: Any, x: FloatArray, y: Array, weight: Any) -> dict[str, float]:
    if not hasattr(estimator, "classes_"):
        return {"score": -float(np.average(np.abs(y - estimator.predict(x)), weights=weight))}
    probs = estimator.predict_proba(x)
    codes: Any = np.searchsorted(estimator.classes_, y)
    given = np.maximum(probs[np.arange(len(y)), codes], _LEAST)
    return {
        "score": float(np.average(np.log(given), weights=weight)),
        "accuracy": float(np.average(probs.argmax(axis=1) == codes, weights=weight)),
    }


def has_effect(model: TableModel, name: str) -> bool:
    """Whether a column has values to set: text has none."""
    return not any(c.name == name and isinstance(c, Text) for c in model.schema.columns)


def effect(model: TableModel, sample: Sample, name: str) -> Effect:
    """Partial dependence on a column: the mean prediction of all rows with its value set."""
    column = next(column for column in model.schema.columns if column.name == name)
    own = sample.groups[name]
    values, at = _values(column, sample.x[:, own])
    rows = np.repeat(sample.x, len(values), axis=0)
    rows[:, own] = np.tile(values, (len(sample.x), 1))
    estimator = model.estimator
    if hasattr(estimator, "classes_"):
        found = estimator.predict_proba(rows)
    else:
        found = estimator.predict(rows)[:, None]
    each = found.reshape(len(sample.x), len(values), -1)
    return Effect(name, at, np.average(each, axis=0, weights=sample.weight))


def _values(column: Any, coded: FloatArray) -> tuple[FloatArray, list[Any]]:
    """Codes [k, width] of some of a column's values, and those values as a person knows them."""
    if isinstance(column, Category):
        there = np.flatnonzero(coded.any(axis=0))
        start = f"{column.name} "
        names = [column.features()[i].removeprefix(start).removeprefix("= ") for i in there]
        return np.eye(coded.shape[1])[there], names
    if column.gaps and (coded[:, -1] == 0).any():
        coded = coded[coded[:, -1] == 0]
    # Quantiles that are rows: a date keeps its season.
    levels = np.array([0, 1]) if isinstance(column, Boolean) else np.linspace(0.05, 0.95, _POINTS)
    order = np.argsort(coded[:, 0], kind="stable")
    picked = coded[order[(levels * (len(order) - 1)).round().astype(int)]]
    picked = picked[np.unique(picked[:, 0], return_index=True)[1]]
    values = picked[:, 0]
    if isinstance(column, Boolean):
        return picked, ["yes" if v else "no" for v in values]
    if isinstance(column, Date):
        return picked, list(np.round(column.origin + values).astype("datetime64[D]"))
    return picked, values.tolist()
