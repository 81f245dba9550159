"""A table as numbers: which columns are used, how each is coded, and what the target is.

A `Schema` is learned once, from all rows of a file. It codes any later file alike, in any order of
its columns, and is plain JSON, so that a model's file can carry it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from difflib import get_close_matches
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mtbayes import _check
from mtbayes.data.kinds import KINDS, Cells, Kind, Number, Unfit, counts_rows, is_text, learned
from mtbayes.errors import InvalidInput
from mtbayes.types import Array, FloatArray

TASKS = ["classes", "number"]
_FEW = 20  # whole numbers that are taken for classes
_MOST_CLASSES = 1000


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
    strays: Counter[str]
    """How many cells of each column could not be read."""


@dataclass(frozen=True)
class Schema:
    """How a table becomes numbers.

    target: the column to learn; task: "classes" or "number"
    whole: whether classes are whole numbers, and not text
    columns: those that are used; dropped: the others, each with a reason
    """

    target: str
    task: str
    whole: bool
    columns: tuple[Any, ...]
    dropped: tuple[tuple[str, str], ...]

    @property
    def features(self) -> list[str]:
        """Names of the numbers that a row becomes."""
        return [name for column in self.columns for name in column.features()]

    def code(
        self, rows: Any, *, decimal: str = ".", strays: Counter[str] | None = None
    ) -> FloatArray:
        """Rows as numbers [n, len(features)]; columns are found by their names.

        rows: a `pyarrow.Table` or `RecordBatch` that `check` has passed
        decimal: as in `reading.Source`
        strays: counts the cells of each column that could not be read
        """
        parts = []
        for column in self.columns:
            cells = _cells(rows.column(column.name), decimal)
            try:
                coded, unread = column.code(cells)
            except (Unfit, pa.ArrowNotImplementedError):
                raise InvalidInput(
                    f"{column.name!r} must be a {KINDS_OF[type(column)]} as in the file that was "
                    f"fitted, got cells of type {cells.type}. Convert the column."
                ) from None
            if strays is not None and unread:
                strays[column.name] += unread
            parts.append(coded)
        return np.concatenate(parts, axis=1)

    def check(self, names: tuple[str, ...], *, target: bool = False) -> tuple[str, ...]:
        """Names of columns that are not used; one that is needed and missing is an InvalidInput."""
        needed = [column.name for column in self.columns] + ([self.target] if target else [])
        lacking = [name for name in needed if name not in names]
        if lacking:
            near = _nearest(lacking[0], [name for name in names if name not in needed])
            raise InvalidInput(
                f"columns must be those that were fitted, but {_listed(lacking)} "
                f"{'is' if len(lacking) == 1 else 'are'} missing. Add or rename them"
                f"{f'; is {near!r} meant?' if near else '.'}"
            )
        known = {*needed, self.target, *(name for name, _ in self.dropped)}
        return tuple(name for name in names if name not in known)

    def targets(self, rows: Any, *, decimal: str = ".") -> Known:
        """Targets as labels or numbers, and which rows have one."""
        return _targets(_cells(rows.column(self.target), decimal), self.task, self.whole)

    def as_json(self) -> dict[str, Any]:
        """Numbers, text, lists and dicts alone."""
        columns = [{"kind": KINDS_OF[type(c)], **asdict(c)} for c in self.columns]
        return {
            "target": self.target,
            "task": self.task,
            "whole": self.whole,
            "columns": columns,
            "dropped": [list(pair) for pair in self.dropped],
        }

    @classmethod
    def from_json(cls, found: Any) -> Schema:
        """What `as_json` gave."""
        try:
            columns = []
            for entry in found["columns"]:
                options = {k: tuple(v) if k == "levels" else v for k, v in entry.items()}
                columns.append(KINDS[str(options.pop("kind"))](**options))
            return cls(
                str(found["target"]),
                _check.known("task", found["task"], TASKS),
                bool(found["whole"]),
                tuple(columns),
                tuple((str(name), str(reason)) for name, reason in found["dropped"]),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise InvalidInput(
                f"schema must be one that mtbayes wrote, got one that lacks or misspells {error}. "
                "Fit the model anew."
            ) from None


KINDS_OF = {kind: name for name, kind in KINDS.items()}


def learn_table(
    table: Any, target: str, task: str | None = None, decimal: str = "."
) -> tuple[Schema, Coded]:
    """The schema of a table with a target, and its rows by it; the task is guessed if not given.

    Every column is parsed once.
    """
    names = table.column_names
    check_target(names, target)
    goal = _cells(table.column(target), decimal)
    task, whole = _task(target, goal, task)
    y, kept = _targets(goal, task, whole)
    if not kept.any():
        raise InvalidInput(f"{target!r} must hold values, got none. Name another target.")
    if len(y) > 1 and len(np.unique(y)) == 1:
        raise InvalidInput(
            f"{target!r} must hold different values, got {y.tolist()[0]!r} in all {len(y)} rows. "
            "There is nothing to learn; name another target."
        )
    with_target = table if kept.all() else table.filter(pa.array(kept))
    used: list[tuple[Kind, Cells]] = []
    counting: list[tuple[Kind, Cells]] = []
    dropped: list[tuple[str, str]] = []
    for name in names:
        if name == target:
            continue
        cells = _cells(with_target.column(name), decimal)
        try:
            column = learned(name, cells)
        except Unfit as reason:
            dropped.append((name, str(reason)))
            continue
        counts = isinstance(column, Number) and counts_rows(cells)
        (counting if counts else used).append((column, cells))
    if used:
        dropped += [(column.name, "it only counts the rows") for column, _ in counting]
    else:  # a file of a number and its place in a row
        used = counting
    if not used:
        why = "; ".join(f"{name!r}: {reason}" for name, reason in dropped) or "there is no other"
        raise InvalidInput(
            f"the file must have a column to learn {target!r} from, got none ({why}). Add one."
        )
    strays: Counter[str] = Counter()
    parts = []
    for column, cells in used:
        coded, unread = column.code(cells)
        parts.append(coded)
        if unread:
            strays[column.name] += unread
    columns = tuple(column for column, _ in used)
    schema = Schema(target, task, whole, columns, tuple(dropped))
    return schema, Coded(np.concatenate(parts, axis=1), y, kept, strays)


def check_target(names: Sequence[str], target: str) -> None:
    """The target is one of a file's columns."""
    if target not in names:
        near = _nearest(target, names)
        raise InvalidInput(
            f"target must be a column of the file, got {target!r}. "
            + (f"Is {near!r} meant? " if near else "")
            + f"There are {_listed(names)}."
        )


def _task(name: str, cells: Cells, task: str | None) -> tuple[str, bool]:
    """The task, and whether its classes are whole numbers."""
    if task is not None:
        _check.known("task", task, TASKS)
    values = cells.values
    try:
        found, strays = cells.numbers()
    except Unfit:
        found, strays = np.array([]), 1
    present = found[~np.isnan(found)]
    numeric = len(present) > 0 and len(present) >= 0.95 * (len(present) + strays)
    different = np.unique(present)
    whole = numeric and not strays and bool(np.all(different % 1 == 0))
    if task == "number" and not numeric:
        raise InvalidInput(
            f"target must hold numbers for the task 'number', got {name!r} with cells like "
            f"{_example(values)}. Leave --task out, or choose 'classes'."
        )
    if task is None:
        few = len(different) <= min(_FEW, max(2, len(present) // 10))
        task = "classes" if not numeric or (whole and few) else "number"
    if task == "classes":
        _check_classes(name, values, len(different) if whole else None)
    return task, whole


def _check_classes(name: str, values: Any, count: int | None) -> None:
    given = len(values) - values.null_count
    count = pc.count_distinct(values).as_py() if count is None else count
    if given and (count > _MOST_CLASSES or (count > 20 and count > 0.5 * given)):
        raise InvalidInput(
            f"target must be a number, or text with few different values, got {name!r} with "
            f"{count} in {given} rows, like {_example(values)}. Name another column."
        )


def _targets(cells: Cells, task: str, whole: bool) -> Known:
    if task == "number" or whole:
        try:
            found, _ = cells.numbers()
        except Unfit:
            raise InvalidInput(
                f"the target must hold numbers as in the file that was fitted, got cells of type "
                f"{cells.type}. Convert the column."
            ) from None
        kept = ~np.isnan(found)
        return Known(found[kept].astype(int) if whole and task == "classes" else found[kept], kept)
    kept = np.asarray(cells.text.is_valid().to_numpy(zero_copy_only=False), bool)
    return Known(np.array(cells.text.drop_null().to_pylist(), dtype=object).astype(str), kept)


def _cells(values: Any, decimal: str) -> Cells:
    """A column without dictionary coding or chunks."""
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
        if isinstance(values, pa.ChunkedArray):  # of no chunk, or of too much text
            values = pa.concat_arrays(values.chunks)
    if pa.types.is_dictionary(values.type):
        values = pc.cast(values, values.type.value_type)
    return Cells(pc.cast(values, pa.string()) if is_text(values) else values, decimal)


def _example(values: Any) -> str:
    present = values.drop_null()
    return repr(present[0].as_py()) if len(present) else "nothing"


def _nearest(name: str, names: Sequence[str]) -> str | None:
    small = {other.lower(): other for other in names}
    near = get_close_matches(name.lower(), list(small), n=1)
    return small[near[0]] if near else None


def _listed(names: Any) -> str:
    names = list(names)
    return ", ".join(map(repr, names[:8])) + (
        f" and {len(names) - 8} more" if len(names) > 8 else ""
    )
