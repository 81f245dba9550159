"""The numbers of the page of a model, computed before anything is drawn."""

from __future__ import annotations

import importlib.metadata
import platform
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from mtbayes import __version__
from mtbayes.data.cells import Unfit
from mtbayes.data.coder import cells_of
from mtbayes.data.numerals import POINT
from mtbayes.data.pixels import images, pixel_columns
from mtbayes.fitting import Judgement
from mtbayes.progress import Callback, Progress, part
from mtbayes.tables.effects import (
    Importance,
    Sample,
    columns,
    effect,
    has_effect,
    importances,
    patches,
)
from mtbayes.tables.findings import findings
from mtbayes.tables.model import TableModel, TableRows
from mtbayes.tables.people import people
from mtbayes.tables.reasons import with_reasons
from mtbayes.tables.summary import unseen_scores
from mtbayes.types import Array, FloatArray

_SUSPECTS = 30  # rows in the table
_CELLS = 3  # columns beside them: the most needed ones
_LONG = 9  # characters of a number
_EFFECTS = 6
_DOUBTED = 2000  # rows whose doubt is drawn
_PLURAL = {
    "number": "numbers",
    "category": "categories",
    "boolean": "booleans",
    "date": "dates",
    "text": "texts",
}
_PACKAGES = ("jax", "matplotlib", "numpy", "optax", "pyarrow", "scikit-learn", "scipy")


class ModelFacts(NamedTuple):
    """All that the page shows. Arrays have an entry for each row of DATA, unless they say so."""

    target: str
    labels: Sequence[str]
    """Classes as text; none for a number."""
    model_file: str
    data_file: str
    words: Sequence[str]
    """What was learned, a sentence each."""
    y: Array
    """Codes of the given classes, or the given numbers."""
    prediction: FloatArray
    """Probabilities [n, C], or mean and sd [n, 2], by fits that have not seen the row."""
    wrong: FloatArray
    """Probability that the target is wrong, by the same fits."""
    seen: Array
    """Whether the final fit has seen the row."""
    judged: bool
    """Whether rows that it has seen were judged by others; they may be too few for that."""
    t: float
    chosen: bool
    """Whether t was chosen, and not given."""
    path: list[dict[str, float]]
    contamination: tuple[float, float, float]
    """Share of wrong rows among those that were fitted, and its interval."""
    suspects: list[dict[str, Any]]
    """Rows to look at: row, probability, given, suggested, why, cells."""
    pictures: FloatArray | None
    """The same rows as images, [k, side, side]."""
    brightness: tuple[float, float]
    """What is black and white in them."""
    aleatoric: FloatArray
    """Doubt of some rows, [s]: bits for classes, variance for numbers."""
    epistemic: FloatArray
    importance: list[Any]
    """`Importance` of each column, the most needed first."""
    effects: list[Any]
    """`Effect` of the most needed columns."""
    heat: FloatArray | None
    """Importance of pixels, [side, side], where rows are images."""
    settings: list[tuple[str, str]]
    people: Sequence[dict[str, Any]] = ()
    """Who labelled the rows, where several did: records of `mtbayes.tables.people`."""


def gather(
    model: TableModel,
    rows: TableRows,
    judged: Judgement,
    seen: Array,
    files: tuple[Path, Path],
    seed: int,
    callback: Callback,
) -> ModelFacts:
    """All numbers of the page; judged, seen: what is said of the rows, and which were fitted."""
    estimator, schema = model.estimator, model.schema
    labels = [str(label) for label in getattr(estimator, "classes_", [])]
    found = with_reasons(model, rows, findings(model, rows.y, judged), _SUSPECTS)
    top = found.order[:_SUSPECTS]
    pictures = images(rows.table, schema)
    groups = columns(schema) if pictures is None else patches(schema)
    sample = Sample.of(rows, 1 - judged.outlier_probability, groups, seed)
    needed = importances(model, sample, seed, part(callback, 0.1, 0.7))
    shown = [] if pictures is not None else [one.column for one in needed]
    effects = []
    with_values = [name for name in shown if has_effect(model, name)]
    for i, name in enumerate(with_values[:_EFFECTS]):
        effects.append(effect(model, sample, name))
        callback(Progress(0.8 + 0.1 * i / _EFFECTS))
    aleatoric, epistemic = _doubt(model, rows, seed)
    return ModelFacts(
        target=schema.target,
        labels=labels,
        model_file=files[0].name,
        data_file=files[1].name,
        words=_words(model, rows, judged, needed),
        y=np.searchsorted(estimator.classes_, rows.y) if labels else rows.y,
        prediction=judged.prediction,
        wrong=judged.outlier_probability,
        seen=seen,
        judged=bool(estimator.score_path_) or not seen.any(),
        t=estimator.t_,
        chosen=estimator.t == "auto",
        path=[entry for entry in estimator.score_path_ if entry["learner"] == estimator.learner_],
        contamination=tuple(estimator.contamination_),
        suspects=_suspects(found, rows, shown[:_CELLS], schema.coder.decimals),
        pictures=None if pictures is None else pictures[top],
        brightness=(0.0, 1.0) if pictures is None else (pictures.min(), pictures.max()),
        aleatoric=aleatoric,
        epistemic=epistemic,
        importance=needed,
        effects=effects,
        heat=None if pictures is None else _heat(model, groups, needed),
        settings=_settings(model, rows),
        people=people(estimator),
    )


def _suspects(
    found: Any, rows: TableRows, columns: list[str], decimals: dict[str, str]
) -> list[dict[str, Any]]:
    """The first rows to look at, with cells of the columns that matter."""
    count = min(_SUSPECTS, len(found.order))
    cells = {
        name: _cells(rows.table.column(name).take(found.order[:count]), decimals.get(name, POINT))
        for name in columns
    }
    return [
        {
            "row": int(rows.place[found.order[i]]),
            "probability": float(found.probability[i]),
            "given": found.given[i],
            "suggested": found.suggested[i],
            "why": found.why[i],
            "cells": {name: values[i] for name, values in cells.items()},
        }
        for i in range(count)
    ]


def _cells(values: Any, decimal: str) -> list[str]:
    """Cells as text; numbers in one style, and no longer than they need to be."""
    raw = ["" if value is None else str(value) for value in values.to_pylist()]
    try:
        read = cells_of(values, decimal).numbers()[0]
    except Unfit:
        return raw
    short = (min(f"{v:.10g}", f"{v:.6g}", key=lambda text: len(text) > _LONG) for v in read)
    return [text if np.isnan(v) else s for text, v, s in zip(raw, read, short, strict=True)]


def _heat(model: TableModel, groups: dict[str, list[int]], needed: list[Importance]) -> FloatArray:
    """What the shuffling of a pixel's patch costs, [side, side]; 0 for a pixel that is not used."""
    features, names = model.schema.features, pixel_columns(model.schema) or []
    loss = {features[i]: one.loss for one in needed for i in groups[one.column]}
    side = round(len(names) ** 0.5)
    return np.reshape([loss.get(name, 0.0) for name in names], (side, side))


def _doubt(model: TableModel, rows: TableRows, seed: int) -> tuple[FloatArray, FloatArray]:
    """Aleatoric and epistemic doubt of some rows: bits, or variances."""
    some = np.random.default_rng(seed).permutation(len(rows.y))[:_DOUBTED]
    found = model.estimator.uncertainty(rows.x[some])
    unit = np.log(2) if model.schema.task == "classes" else 1.0
    return found.aleatoric / unit, found.epistemic / unit


def _words(
    model: TableModel, rows: TableRows, judged: Judgement, needed: list[Importance]
) -> list[str]:
    """What was learned, in sentences."""
    estimator, schema = model.estimator, model.schema
    kinds = Counter(column.kind for column in schema.columns)
    used = ", ".join(f"{count} {_PLURAL[k] if count > 1 else k}" for k, count in kinds.items())
    aim = f"number {schema.target}"
    if schema.task == "classes":
        aim = f"{len(estimator.classes_)} classes of {schema.target} ({_some(estimator.classes_)})"
    share = estimator.contamination_
    likely = int((judged.outlier_probability > 0.5).sum())
    return [
        f"The model predicts the {aim} from {len(schema.columns)} columns ({used}).",
        *_scores(model, rows, judged),
        f"About {_percent(share.value)} of the values of {schema.target} that it was fitted to are "
        f"wrong ({share.words}); of the {len(rows.y)} rows here {likely} look wrong.",
        f"{estimator.status_}",
        f"What it needs most: {_some([one.column for one in needed], 3)}.",
        *_left_out(schema.dropped),
    ]


def _left_out(dropped: Any) -> list[str]:
    """A sentence for each reason."""
    names: dict[str, list[str]] = {}
    for name, why in dropped:
        names.setdefault(why, []).append(name)
    return [f"Left out, {why}: {_some(each)}." for why, each in names.items()]


def _scores(model: TableModel, rows: TableRows, judged: Judgement) -> list[str]:
    """How well rows are predicted by fits that have not seen them, beside the best blind guess."""
    held, good = unseen_scores(model, rows, judged), 1 - judged.outlier_probability
    if not held:
        return ["Rows were too few to keep some out of the fit, so there are no fair scores."]
    if model.schema.task == "classes":
        common = max(float(np.average(rows.y == c, weights=good)) for c in set(rows.y.tolist()))
        return [
            f"It is right in {_percent(held['accuracy'])} of rows that it has not seen, where the "
            f"given class is believed, and in {_percent(held['accuracy of all rows'])} counting "
            f"every row; to guess the most common class would be right in {_percent(common)}."
        ]
    blind = np.abs(rows.y - np.quantile(rows.y, 0.5, weights=good, method="inverted_cdf"))
    return [
        f"It is off by {held['absolute error']:.4g} on average in rows that it has not seen, where "
        f"the given value is believed, and by {held['absolute error of all rows']:.4g} counting "
        f"every row; to guess the median would be off by {np.average(blind, weights=good):.4g}."
    ]


def _some(names: Any, most: int = 6) -> str:
    return ", ".join(map(str, names[:most])) + (" and others" if len(names) > most else "")


def _settings(model: TableModel, rows: TableRows) -> list[tuple[str, str]]:
    estimator = model.estimator
    parameters = {k: v for k, v in estimator.get_params().items() if k != "verbose"}
    facts = {
        "estimator": type(estimator).__name__,
        **{k: str(v) for k, v in parameters.items()},
        "t taken": f"{estimator.t_:g}",
        "how the fit ended": estimator.status_,
        "rows that were fitted": str(0 if model.seen is None else len(model.seen)),
        "rows of this page": str(len(rows.y)),
        "mtbayes": __version__,
        "python": platform.python_version(),
        **{name: importlib.metadata.version(name) for name in _PACKAGES},
    }
    return list(facts.items())


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"
