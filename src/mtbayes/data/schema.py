"""A table with a target: how its columns become numbers, and what its labels or targets are.

A `Schema` is learned once, from all rows of a file. It codes any later file alike and is plain
JSON, so that a model's file can carry it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mtbayes import _check
from mtbayes.data import numerals
from mtbayes.data.cells import Cells, Unfit
from mtbayes.data.coder import (
    Coder,
    Seen,
    Styles,
    Where,
    cells_of,
    is_opaque,
    learn_columns,
    listed,
    nearest,
    places,
    refuse_cell,
    row,
)
from mtbayes.errors import InvalidInput
from mtbayes.types import Array, FloatArray

TASKS = ["classes", "number"]
_FEW = 20  # whole numbers that are taken for classes
_MOST_CLASSES = 1000
_WHOLE = r"^(0|-?[1-9]\d{0,17})$"  # spelled in the one way in which they are written again


class Known(NamedTuple):
    """The targets of rows that have one."""

    y: Array
    kept: Array
    """Whether each row of the table has a target, [n]."""


class Coded(NamedTuple):
    """Rows of a table that have a target, as numbers."""

    x: FloatArray
    y: Array
    kept: Array
    """Whether each row of the table has a target, [n]."""
    seen: Seen
    notes: tuple[str, ...] = ()
    """What a person should know of how cells were read."""


@dataclass(frozen=True)
class Schema:
    """How a table becomes numbers.

    target: the column to learn; task: "classes" or "number"
    whole: whether labels are whole numbers that are all spelled in the usual way, and not text
    decimal: the sign before decimals where the target is a number in text
    coder: of the other columns
    """

    target: str
    task: str
    whole: bool
    decimal: str
    coder: Coder

    @property
    def columns(self) -> tuple[Any, ...]:
        """Those that are used."""
        return self.coder.columns

    @property
    def dropped(self) -> tuple[tuple[str, str], ...]:
        """Those that are not, each with a reason."""
        return self.coder.dropped

    @property
    def features(self) -> list[str]:
        """Names of the numbers that a row becomes."""
        return self.coder.features

    def code(self, rows: Any, *, where: Where = row, seen: Seen | None = None) -> FloatArray:
        """Rows as numbers [n, len(features)]; see `Coder.code`."""
        return self.coder.code(rows, where=where, seen=seen)

    def check(self, names: Sequence[str], *, target: bool = False) -> tuple[str, ...]:
        """Names of columns that are not used; one that is needed and missing is an InvalidInput."""
        extra = self.coder.check(names)
        if target and self.target not in names:
            raise InvalidInput(
                f"columns must be those that were fitted, but the target {self.target!r} is "
                "missing. Add or rename it; for a model of labels by several people, give the file "
                "that `mtbayes consensus` wrote."
            )
        return tuple(name for name in extra if name != self.target)

    def targets(self, rows: Any, *, where: Where = row) -> Known:
        """Targets as labels or numbers, and which rows have one."""
        cells = cells_of(rows.column(self.target), self.decimal)
        check_readable(self.target, cells)
        return _targets(self.target, cells, self.task, self.whole, where)

    def as_json(self) -> dict[str, Any]:
        """Numbers, text, lists and dicts alone."""
        own = {"target": self.target, "task": self.task, "whole": self.whole}
        return own | {"decimal": self.decimal} | self.coder.as_json()

    @classmethod
    def from_json(cls, found: Any) -> Schema:
        """What `as_json` gave."""
        try:
            return cls(
                str(found["target"]),
                _check.known("task", found["task"], TASKS),
                bool(found["whole"]),
                _check.known("decimal", found["decimal"], list(numerals.NAMES)),
                Coder.from_json(found),
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise InvalidInput(
                f"schema must be one that mtbayes wrote, got one that lacks or misspells {error}. "
                "Fit the model anew."
            ) from None


def learn_table(
    table: Any, target: str, task: str | None = None, where: Where = row
) -> tuple[Schema, Coded]:
    """The schema of a table with a target, and its rows by it; the task is guessed if not given.

    Styles are decided from all rows. where: tells a person which row of the table is meant
    """
    names = table.column_names
    check_target(names, target)
    styles = Styles.of(table)
    goal = styles.cells(table, target)
    check_readable(target, goal)
    task, whole = _task(target, goal, task)
    y, kept = _targets(target, goal, task, whole, where)
    if not kept.any():
        raise InvalidInput(f"{target!r} must hold values, got none. Name another target.")
    if len(y) > 1 and len(np.unique(y)) == 1:
        raise InvalidInput(
            f"{target!r} must hold different values, got {y.tolist()[0]!r} in all {len(y)} rows. "
            "There is nothing to learn; name another target."
        )
    with_target = table if kept.all() else table.filter(pa.array(kept))
    others = [name for name in names if name != target]
    found = learn_columns(with_target, others, styles, repr(target), places(where, kept))
    schema = Schema(target, task, whole, goal.decimal, found.coder)
    notes = list(styles.notes)
    if task == "classes":
        notes += _alike(target, y) if not whole else []
        notes += _single(target, y)
    return schema, Coded(found.x, y, kept, found.seen, tuple(notes))


def check_target(names: Sequence[str], target: str, what: str = "target") -> None:
    """The target, or what else a person names, is one of a file's columns."""
    if target not in names:
        near = nearest(target, names)
        raise InvalidInput(
            f"{what} must be a column of the file, got {target!r}. "
            + (f"Is {near!r} meant? " if near else "")
            + f"There are {listed(names)}."
        )


def check_readable(name: str, cells: Cells) -> None:
    """A target holds numbers, text or truths."""
    if is_opaque(cells.type):
        raise InvalidInput(
            f"target must hold numbers or text, got {name!r} with cells of type {cells.type}. Name "
            "another column, or convert it."
        )


def _task(name: str, cells: Cells, task: str | None) -> tuple[str, bool]:
    """The task, and whether its classes are whole numbers."""
    if task is not None:
        _check.known("task", task, TASKS)
    try:
        found, strays = cells.numbers()
    except Unfit:
        found, strays = np.array([]), 1
    present = found[~np.isnan(found)]
    numeric = len(present) > 0 and len(present) >= 0.95 * (len(present) + strays)
    if task == "number" and not numeric:
        raise InvalidInput(
            f"target must hold numbers for the task 'number', got {name!r} with cells like "
            f"{_example(cells.values)}. Leave --task out, or choose 'classes'."
        )
    if task is None:
        different = np.unique(present)
        whole = numeric and not strays and bool(np.all(different % 1 == 0))
        few = len(different) <= min(_FEW, max(2, len(present) // 10))
        task = "classes" if not numeric or (whole and few) else "number"
    if task == "number":
        return task, False
    _check_classes(name, cells.text, numeric)
    return task, bool(pc.all(pc.match_substring_regex(cells.text, _WHOLE)).as_py())


def _check_classes(name: str, text: Any, numeric: bool) -> None:
    given = len(text) - text.null_count
    count = pc.count_distinct(text).as_py()
    if given and (count > _MOST_CLASSES or (count > _FEW and count > 0.5 * given)):
        raise InvalidInput(
            f"target must be a number, or text with few different values, got {name!r} with "
            f"{count} in {given} rows, like {_example(text)}. "
            + (
                "Name another column, or leave --task out for a number."
                if numeric
                else "Name another column."
            )
        )


def _targets(name: str, cells: Cells, task: str, whole: bool, where: Where) -> Known:
    if task == "number":
        return _numbers(name, cells, where)
    kept = np.asarray(cells.text.is_valid().to_numpy(zero_copy_only=False), bool)
    text = cells.text.drop_null()
    if not whole:
        if pc.any(pc.match_substring(text, "\0")).as_py():
            raise InvalidInput(f"{name!r} must hold text without the sign NUL. Correct such cells.")
        return Known(np.array(text.to_pylist(), dtype=object).astype(str), kept)
    plain = pc.match_substring_regex(text, _WHOLE)
    if len(text) and not pc.all(plain).as_py():
        place = int(np.flatnonzero(~np.asarray(plain))[0])
        refuse_cell(
            name,
            "classes spelled as whole numbers like 7",
            text[place].as_py(),
            places(where, kept)(place),
        )
    return Known(np.asarray(pc.cast(text, pa.int64())), kept)


def _numbers(name: str, cells: Cells, where: Where) -> Known:
    try:
        found, strays = cells.numbers()
    except Unfit:
        raise InvalidInput(
            f"the target must hold numbers as in the file that was fitted, got cells of type "
            f"{cells.type}. Convert the column."
        ) from None
    place = numerals.contradiction(cells.text, cells.decimal, found) if strays else None
    if place is not None:
        spelling = f"numbers with a decimal {numerals.NAMES[cells.decimal]}"
        refuse_cell(name, spelling, cells.text[place].as_py(), where(place))
    kept = ~np.isnan(found)
    return Known(found[kept], kept)


def _alike(name: str, labels: Array) -> list[str]:
    """A note on labels that are one number, or one word, in several spellings."""
    spellings: dict[Any, list[str]] = {}
    for label in np.unique(labels).tolist():
        spellings.setdefault(_meant(label), []).append(label)
    pairs = [" and ".join(map(repr, several)) for several in spellings.values() if several[1:]]
    return [f"classes of {name!r} are told apart by their spelling: {pairs[0]}"] if pairs else []


def _single(name: str, labels: Array) -> list[str]:
    """A note on classes of which there is one row, where classes have more."""
    found, counts = np.unique(labels, return_counts=True)
    once = found[counts == 1].tolist()
    if not once or len(once) == len(found):
        return []
    some = ", ".join(map(repr, once[:5])) + (", ..." if once[5:] else "")
    return [
        f"classes of {name!r} with one row each, which is judged without any other of its kind: "
        f"{some}"
    ]


def _meant(label: Any) -> Any:
    """What a person may mean by a label: its number, or its words whatever the capitals."""
    try:
        number = Decimal(label)
    except (ArithmeticError, TypeError):
        number = Decimal("nan")
    return " ".join(str(label).casefold().split()) if number.is_nan() else number


def _example(values: Any) -> str:
    present = values.drop_null()
    return repr(present[0].as_py()) if len(present) else "nothing"
