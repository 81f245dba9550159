"""What several people said of a row under review, and how good each of them is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from mtbayes.tables.judging import place_of
from mtbayes.tables.model import TableModel, TableRows
from mtbayes.types import Array


class Voice(NamedTuple):
    """A label of a row, and how good the person is who gave it."""

    who: str
    label: str
    quality: float
    low: float
    high: float
    about: str
    """The verdict on the person; of one who rates, the bias."""


class Voices:
    """Labels of rows by several people.

    crowd: what a fit knows of them; place: where each row is among its rows, -1 for others, [n]
    """

    def __init__(self, crowd: Any, place: Array) -> None:
        self.crowd, self.place = crowd, place
        self.people = {person.name: person for person in crowd.people}

    @classmethod
    def of(cls, model: Any, rows: TableRows) -> Voices | None:
        """Of the rows that a model was fitted to; None where each of them had one target."""
        if not has_crowd(model):
            return None
        coded = rows._replace(x=model.schema.code(rows.table))
        return cls(model.estimator.crowd_, place_of(model, coded))

    def said(self, row: int, text: Callable[[Any], str]) -> list[Voice]:
        """Of one row, the best person first; text: a label as the file has it."""
        if self.place[row] < 0:
            return []
        found = [
            Voice(str(name), text(label), person.quality, person.low, person.high, _about(person))
            for name, label in self.crowd.spoken(int(self.place[row]))
            for person in [self.people[name]]
        ]
        return sorted(found, key=lambda voice: -voice.quality)


def has_crowd(model: Any) -> bool:
    """Whether several people labelled the rows that a model was fitted to."""
    return isinstance(model, TableModel) and hasattr(model.estimator, "crowd_")


def aside(model: Any, names: list[str], target: str) -> list[str]:
    """Columns of a file that a consensus was not learned from, such as the labels themselves."""
    if not has_crowd(model):
        return []
    used = {column.name for column in model.schema.columns} | {target}
    return [name for name in names if name not in used]


def _about(person: Any) -> str:
    return str(person.verdict) if hasattr(person, "verdict") else f"bias {person.bias:+.3g}"
