"""Any rows, each judged by a fit that has not seen it."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import numpy as np

from mtbayes.commands.model import Rows, TableModel, mark
from mtbayes.errors import InvalidInput
from mtbayes.types import Array

_CHUNK = 20_000  # rows; what the members say of more is not held at once


def judge(model: TableModel, rows: Rows) -> tuple[TableModel, Array]:
    """The model with what its estimator tells of these rows, and which of them were fitted.

    A row that was fitted has been judged by the fit of a fold that left it out; a new one is judged
    by the final fit. `held_out_`, `suspicion_` and `outlier_probability_` of the model that is
    returned are about `rows`, in their order.
    """
    if model.seen is None:
        raise InvalidInput(
            "MODEL must know the rows that it was fitted to, so that each is judged by a fit that "
            "has not seen it, got one that does not. Give the one that `mtbayes fit` wrote, and "
            "not one of `certify`; fit it anew if it is older."
        )
    _check_classes(model, rows.y)
    places = {int(key): i for i, key in enumerate(model.seen)}
    place = np.array([places.get(int(key), -1) for key in mark(rows)])
    told = copy.copy(model.estimator)
    new = _new_rows(model.estimator, rows, np.flatnonzero(place < 0))
    for name, values in new.items():
        each = getattr(model.estimator, name)[place]
        each[place < 0] = values
        setattr(told, name, each)
    return replace(model, estimator=told), place >= 0


def judgeable(model: TableModel, rows: Rows) -> Rows:
    """The rows that there is a fit for which has not seen them.

    A model of more rows than fit in memory knows again those of its sample alone. If some of them
    are here, the others may have been fitted too, and nothing can judge them.
    """
    if not model.sampled or model.seen is None:
        return rows
    known = np.isin(mark(rows), model.seen)
    return rows.take(np.flatnonzero(known)) if known.any() else rows


def _check_classes(model: TableModel, y: Array) -> None:
    """Rows have classes that the model knows."""
    known = getattr(model.estimator, "classes_", None)
    strange = [] if known is None else sorted({*y.tolist()} - {*known.tolist()})
    if strange:
        raise InvalidInput(
            f"{model.schema.target!r} must hold classes that were fitted, got {strange[0]!r}. "
            "Correct or remove such rows, or fit the model anew with them."
        )


def _new_rows(estimator: Any, rows: Rows, which: Array) -> dict[str, Array]:
    """The attributes that tell of rows, for rows that no fit has seen."""
    half = copy.copy(estimator)
    half.law_ = estimator.law_.at(0.5)
    parts: dict[str, list[Any]] = {"held_out_": [], "outlier_probability_": [], "suspicion_": []}
    for i in range(0, len(which), _CHUNK):
        x, y = rows.x[which[i : i + _CHUNK]], rows.y[which[i : i + _CHUNK]]
        if hasattr(estimator, "classes_"):
            parts["held_out_"].append(estimator.predict_proba(x))
        else:
            parts["held_out_"].append(np.stack(estimator.predict(x, return_std=True), axis=1))
        parts["outlier_probability_"].append(estimator.find_outliers(x, y).probability)
        parts["suspicion_"].append(half.find_outliers(x, y).probability)
    return {
        name: np.concatenate(each) if each else np.empty((0, *getattr(estimator, name).shape[1:]))
        for name, each in parts.items()
    }
