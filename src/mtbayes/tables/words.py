"""Which words of a row speak against its target: those without which it would look less wrong."""

from __future__ import annotations

from typing import Any

import numpy as np

from mtbayes.data.texts import Text, without_words
from mtbayes.tables.effects import columns
from mtbayes.tables.findings import Findings
from mtbayes.tables.model import TableModel, TableRows
from mtbayes.types import Array, FloatArray

_MOST = 40  # words of a text
_NAMED = 3
_LEAST = 0.1  # by which a word must change the log odds, or the distance in standard deviations


def with_words(model: TableModel, rows: TableRows, found: Findings, count: int) -> Findings:
    """The same with words in the reasons of the first rows, where there are columns of text."""
    texts = [column for column in model.schema.columns if isinstance(column, Text)]
    if not texts:
        return found
    why = list(found.why)
    for i, place in enumerate(found.order[:count]):
        against = _against(model, rows, int(place), texts)
        if against:
            named = ", ".join(repr(word) for word in against)
            why[i] = f"{why[i]}; words against it: {named}"
    return found._replace(why=why)


def _against(model: TableModel, rows: TableRows, place: int, texts: list[Any]) -> list[str]:
    """The words of one row that speak against its target the most."""
    own = columns(model.schema)
    words: list[str] = []
    variants = [rows.x[place]]
    for column in texts:
        cell = rows.table.column(column.name)[place].as_py()
        shorter = dict(list(without_words(str(cell or "")).items())[:_MOST])
        if not shorter:
            continue
        coded = np.repeat(rows.x[place][None], len(shorter), axis=0)
        where = own[column.name][: len(column.directions)]
        coded[:, where] = column.places(list(shorter.values()))
        words += shorter
        variants.extend(coded)
    doubt = _doubt(model, np.array(variants), rows.y[place])
    gain = doubt[0] - doubt[1:]
    return [words[i] for i in np.argsort(-gain)[:_NAMED] if gain[i] > _LEAST]


def _doubt(model: TableModel, x: FloatArray, target: Any) -> Array:
    """How much rows speak against a target: log odds of another class, or a distance."""
    said = model.estimator.predictive(_padded(x))
    if model.schema.task == "number":
        return np.asarray(np.abs(target - said.mean) / said.std)[: len(x)]
    logs = np.asarray(said.log_probs, float)[: len(x)]
    given = int(np.searchsorted(model.estimator.classes_, target))
    rest = np.delete(logs, given, axis=1)
    return rest.max(axis=1) - logs[:, given]


def _padded(x: FloatArray) -> FloatArray:
    """Rows up to the next power of two, so that few programs are compiled."""
    size = 1 << (len(x) - 1).bit_length()
    return np.concatenate([x, np.repeat(x[:1], size - len(x), axis=0)])
