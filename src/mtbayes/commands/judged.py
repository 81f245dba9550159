"""Any rows, each judged by a fit that has not seen it."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from mtbayes.commands.model import Rows, TableModel, mark
from mtbayes.errors import InvalidInput
from mtbayes.types import Array, FloatArray

_CHUNK = 20_000  # rows; what the members say of more is not held at once


class Judged(NamedTuple):
    """What fits that have not seen some rows say of them: an estimator's attributes, with `_`."""

    outlier_probability: FloatArray
    """Probability that the target is wrong."""
    suspicion: FloatArray
    """The same if half of all were."""
    held_out: FloatArray
    """Probabilities of the classes, or mean and standard deviation."""


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
    new = unseen(model.estimator, rows.x[place < 0], rows.y[place < 0])
    for name, values in new._asdict().items():
        each = getattr(model.estimator, f"{name}_")[place]
        each[place < 0] = values
        setattr(told, f"{name}_", each)
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


def unseen(estimator: Any, x: Any, y: Array) -> Judged:
    """What the final fit says of rows that it has not seen."""
    parts = []
    for i in range(0, len(y), _CHUNK):
        raw = estimator._raw(estimator.features_.apply(x[i : i + _CHUNK]))
        said = estimator._judged(raw, estimator._targets(y[i : i + _CHUNK]))
        parts.append(Judged(*(said[f"{name}_"] for name in Judged._fields)))
    if not parts:
        return Judged(*(np.empty_like(getattr(estimator, f"{n}_")[:0]) for n in Judged._fields))
    return Judged(*map(np.concatenate, zip(*parts, strict=True)))
