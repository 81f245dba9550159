"""Any rows of a table, each judged by a fit that has not seen it."""

from __future__ import annotations

import numpy as np

from mtbayes.errors import InvalidInput
from mtbayes.fitting import Judgement
from mtbayes.tables.model import TableModel, TableRows, mark
from mtbayes.types import Array


def judge(model: TableModel, rows: TableRows) -> tuple[Judgement, Array]:
    """What is said of these rows, and which of them were fitted.

    A row that was fitted has been judged by the fit of a fold that left it out; a new one is judged
    by the final fit.
    """
    if model.seen is None:
        raise InvalidInput(
            "MODEL must know the rows that it was fitted to, so that each is judged by a fit that "
            "has not seen it, got one that does not. Give the one that `mtbayes fit` wrote, and "
            "not one of `certify`; fit it anew if it is older."
        )
    _check_classes(model, rows.y)
    place = place_of(model, rows)
    return beside_fitted(model, rows.x, rows.y, place), place >= 0


def place_of(model: TableModel, rows: TableRows) -> Array:
    """Where each row is among those that were fitted, -1 for new ones; in order where all are."""
    seen, found = np.asarray(model.seen), mark(rows)
    if np.array_equal(seen, found):  # equal rows, too, each in its own place
        return np.arange(len(found))
    places = {int(key): i for i, key in enumerate(seen)}
    return np.array([places.get(int(key), -1) for key in found])


def beside_fitted(model: TableModel, x: Array, y: Array, place: Array) -> Judgement:
    """What is said of rows; place: where each is among those that were fitted, -1 for new ones."""
    fitted = model.estimator.fitted_
    new = place < 0
    return fitted.training.take(place).beside(fitted.judge(x[new], y[new]), new)


def judgeable(model: TableModel, rows: TableRows) -> TableRows:
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
