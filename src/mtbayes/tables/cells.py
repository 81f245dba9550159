"""Which cells of a row speak against its target: those that rows with such targets hardly have."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mtbayes.data.texts import Text
from mtbayes.tables.findings import Findings
from mtbayes.tables.looks import Column, Looks, like
from mtbayes.tables.model import TableModel, TableRows

_NAMED = 2
_MOST = 100  # columns, beyond which they are pixels or the like, and their names tell nothing
_LONGEST = 20  # signs of a cell
_CLEAR = 0.5  # standard deviations by which a cell must suit the suggestion better


def with_cells(model: TableModel, rows: TableRows, found: Findings, count: int) -> Findings:
    """The same with cells in the reasons of those of the first rows that are more likely wrong.

    A cell is named that is unusual beside trusted rows of the given class, and less so beside
    those of the suggested one. Words of texts are told elsewhere. Numbers have no class: rows with
    numbers near a wrong one are few, and far from it.
    """
    texts = {column.name for column in model.schema.columns if isinstance(column, Text)}
    few = 0 < len(model.schema.columns) - len(texts) <= _MOST
    if not few or model.schema.task == "number":
        return found
    looks, why = Looks(model.schema, rows.x), list(found.why)
    sure = np.zeros(len(rows.y), bool)
    sure[found.order[found.trusted]] = True
    for i, place in enumerate(found.order[:count].tolist()):
        given, other = found.given[i], found.suggested[i]
        if given == other or found.probability[i] <= 0.5:
            continue
        groups = (like(rows.y, target, sure, numbers=False) for target in (given, other))
        cells = {c.name: _text(rows.table.column(c.name)[place]) for c in model.schema.columns}
        against = [
            _words(column)
            for column in looks.columns(place, cells, *groups)
            if column.unusual and _suits(column) and column.name not in texts
        ]
        if against:
            why[i] = f"{why[i]}; unusual for {given}: {', '.join(against[:_NAMED])}"
    return found._replace(why=why)


def _suits(column: Column) -> bool:
    """Whether a cell is clearly nearer to rows of the suggested target."""
    if column.given is None or column.suggested is None:
        return False
    return abs(column.suggested) < abs(column.given) - _CLEAR


def _words(column: Column) -> str:
    """A cell and how it is unusual.

    >>> _words(Column("area", "1299", 4.21, 0.3))
    'area 1299 (4.2 sd above)'
    >>> _words(Column("colour", "red", 2.6, 0.3, rare=True))
    'colour red (rare)'
    """
    off = column.given or 0.0
    far = "rare" if column.rare else f"{abs(off):.1f} sd {'above' if off > 0 else 'below'}"
    return f"{column.name} {column.value} ({far})"


def _text(cell: Any) -> str:
    """A cell as it is read by people, cut where it is long."""
    value = cell.as_py()
    if value is None:
        return "missing"
    text = f"{value:.5g}" if isinstance(value, float) and math.isfinite(value) else str(value)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
