"""What several people said of rows, as an estimator's y."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mtbayes.errors import InvalidInput
from mtbayes.types import Array

_SHOWN = 5  # names in a message


@dataclass(frozen=True, eq=False, repr=False)
class Annotations:
    """Labels, or numbers, that several people gave to rows: pass them to `fit` as y.

    Made by `wide`, a column for each person, or `long`, an entry for each label. Every row must
    have a label, and every person must have given one; gaps are fine elsewhere. Gaps are None, NaN,
    NA and blank text; any other value is a label, -1 too.

    row, who, value: [K], which row and who, counted from 0, and what was said
    rows: how many rows there are; classes: all labels, if they are named
    names: of the people, [A], in their own order, rater_2 before rater_10, so that columns or
        entries in another order are the same annotations
    index: names of the rows, where an index of pandas gave them

    >>> said = Annotations.wide({"ann": ["cat", "dog", None], "bob": ["cat", "cat", "dog"]})
    >>> said.rows, said.names.tolist(), said.value.tolist()
    (3, ['ann', 'bob'], ['cat', 'cat', 'dog', 'cat', 'dog'])
    >>> said
    <Annotations: 5 labels of 3 rows by 2 people>
    """

    row: Array
    who: Array
    value: Array
    rows: int
    names: Array
    classes: Array | None = None
    index: list[Any] | None = None

    def __repr__(self) -> str:
        said, people = len(self.value), len(self.names)
        return f"<Annotations: {said} labels of {self.rows} rows by {people} people>"

    @classmethod
    def wide(
        cls, table: Any, names: Sequence[Any] | None = None, classes: Any = None
    ) -> Annotations:
        """From a data frame or an array [n, A], a column for each person, with gaps.

        Rows are in the order of X's: their places count, as everywhere in scikit-learn. Where both
        are frames of pandas, `fit` refuses equal names of rows in another order.

        Gaps are None, NaN, NA and blank text. Any other value is a label: where -1 stands for none,
        give `frame.replace(-1, None)`, or `np.where(array == -1, None, array)`.

        names: of the columns, of an array that has none
        classes: all labels there are, where one may be used by one person alone
        """
        columns = _columns(table, names)
        told = list(columns)
        cells = [_listed(columns[name]) for name in told]
        rows = len(cells[0]) if cells else 0
        for name, column in zip(told, cells, strict=True):
            if len(column) != rows:
                raise InvalidInput(
                    f"columns must be equally long, got {rows} by {told[0]!r} and {len(column)} by "
                    f"{name!r}. Put None where a person gave no label."
                )
        entries = [
            (i, j, cells[j][i])
            for i in range(rows)
            for j in range(len(told))
            if not _gap(cells[j][i])
        ]
        row, who, value = zip(*entries, strict=True) if entries else ((), (), ())
        found = cls._of(row, who, value, rows, told, classes, lambda i: i)
        return replace(found, index=_row_names(getattr(table, "index", None)))

    @classmethod
    def long(
        cls, row: Any, annotator: Any, label: Any, index: Any = None, classes: Any = None
    ) -> Annotations:
        """From the row, the person and the label of each entry, [K] each.

        index: names of the rows of X, in their order, such as `frame.index`; without it rows are
            counted from 0, and `fit` checks that each is there
        classes: all labels there are, where one may be used by one person alone
        """
        ids, people, values = (_listed(v) for v in (row, annotator, label))
        if not len(ids) == len(people) == len(values):
            raise InvalidInput(
                f"row, annotator and label must be equally long, got {len(ids)}, {len(people)} and "
                f"{len(values)}. Each entry is one label of one row by one person."
            )
        nobody = next((i for i, person in enumerate(people) if _gap(person)), None)
        if nobody is not None:
            raise InvalidInput(
                f"annotator must say who gave each label, got {people[nobody]!r} for row "
                f"{ids[nobody]!r}. Name the person, or drop such entries."
            )
        known = _places(ids, index)
        rows = len(known) if index is not None else 1 + max(ids, default=-1)
        told = list(dict.fromkeys(people))
        who_of = {name: j for j, name in enumerate(told)}
        seen: dict[tuple[int, int], Any] = {}
        for name, person, value in zip(ids, people, values, strict=True):
            if _gap(value):
                continue
            if name not in known:
                raise _stray(name, person, "which is none of them")
            key = known[name], who_of[person]
            if key in seen and seen[key] != value:
                raise InvalidInput(
                    f"row {name!r} must have one label by one person, got {seen[key]!r} and "
                    f"{value!r} by {person!r}. Keep the last one, or give the second look a name "
                    "of its own."
                )
            seen[key] = value
        pairs = sorted(seen)
        values = [seen[pair] for pair in pairs]
        back = {place: name for name, place in known.items()}
        row_of, who = zip(*pairs, strict=True) if pairs else ((), ())
        called = None if index is None else back.__getitem__
        found = cls._of(row_of, who, values, rows, told, classes, called)
        return replace(found, index=_row_names(index))

    @classmethod
    def _of(
        cls,
        row: Sequence[int],
        who: Sequence[int],
        value: Sequence[Any],
        rows: int,
        names: list[Any],
        classes: Any,
        called: Callable[[int], Any] | None,
    ) -> Annotations:
        """Checked; called: what a user calls a row, None where only `fit` knows all rows."""
        if not value:
            raise InvalidInput("annotations must hold labels, got none. Look how they were made.")
        _check_finite(value, who, names, row, called)
        order = sorted(range(len(names)), key=lambda j: _by_number(names[j]))
        row_of, who_of = np.asarray(row, int), np.argsort(order)[np.asarray(who, int)]
        told = [names[j] for j in order]
        _check_people(np.bincount(who_of, minlength=len(told)), told)
        if called is not None:
            _check_rows(row_of, rows, called)
        turn = np.lexsort((who_of, row_of))
        listed = _array([value[i] for i in turn])
        found = cls(row_of[turn], who_of[turn], listed, rows, np.array(told, object))
        return found if classes is None else found.of_classes(classes)

    def check_rows(self, count: int) -> None:
        """Refuse labels of other rows than the `count` of X, and rows of X without a label."""
        beyond = np.flatnonzero(self.row >= count)
        if len(beyond) and len(np.unique(self.row)) < self.rows:  # not one after the other
            name, person = int(self.row[beyond[0]]), self.names[self.who[beyond[0]]]
            raise _stray(name, person, f"X has {count} rows, counted from 0")
        if self.rows != count:
            raise InvalidInput(
                f"X must have a row for each that was labelled, got {count} rows for {self.rows}. "
                "Annotations.long takes the names of all rows as index=."
            )
        _check_rows(self.row, count, int)

    def check_order(self, x: Any) -> None:
        """Refuse an X whose rows have the names of those labelled, in another order."""
        ours, theirs = self.index, _row_names(getattr(x, "index", None))
        if ours is None or theirs is None or ours == theirs:
            return
        if len(set(theirs)) == len(theirs) == len(ours) and set(theirs) == set(ours):
            place = next(i for i, name in enumerate(theirs) if name != ours[i])
            raise InvalidInput(
                f"y must have its rows in the order of X, got labels of {ours[place]!r} in row "
                f"{place}, where X has {theirs[place]!r}. Put both in one order, as "
                "Annotations.wide(W.loc[X.index]) or .long(..., index=X.index) do, or give "
                "W.to_numpy() if places count and not names."
            )

    def of_classes(self, classes: Any) -> Annotations:
        """The same with all labels named that there are."""
        known = np.asarray(classes)
        strange = [v for v in dict.fromkeys(self.value.tolist()) if v not in set(known.tolist())]
        if strange:
            raise InvalidInput(
                f"classes must hold all labels, got {strange[0]!r}, which is none of them. Correct "
                "the label, or add it to classes."
            )
        return replace(self, classes=known)

    def check_labels(
        self, option: str = "classes=[...]", where: Callable[[int], str] | None = None
    ) -> None:
        """Refuse, for classes, a label that one person of several uses: a slip of the pen.

        option: where a user may name all labels; where: what a row is called
        """
        if self.classes is not None or len(self.names) < 2:
            return
        labels, code = np.unique(self.value, return_inverse=True)
        users = np.zeros((len(labels), len(self.names)), bool)
        users[code.ravel(), self.who] = True
        alone = np.flatnonzero(users.sum(axis=1) == 1)
        if len(alone):
            person = self.names[users[alone[0]].argmax()]
            place = int(self.row[(code.ravel() == alone[0]).argmax()])
            row = f"row {place if self.index is None else self.index[place]!r}"
            rated = " Ratings are for RobustRegressor, or --task number."
            raise InvalidInput(
                f"labels must be used by several people, got {labels[alone[0]].item()!r}, which "
                f"{person!r} alone uses, first in {where(place) if where else row}. Correct it, or "
                f"name all labels in {option} if it is meant."
                + (rated if labels.dtype.kind in "iuf" else "")
            )


def _columns(table: Any, names: Sequence[Any] | None) -> dict[Any, Any]:
    """Columns by name."""
    if isinstance(table, Mapping):
        return dict(table)
    own = getattr(table, "column_names", getattr(table, "columns", None))
    if own is not None:
        _check_apart(list(own))
        return {name: table[name] for name in own}
    values = np.asarray(table, object) if not hasattr(table, "shape") else table
    if np.ndim(values) != 2:
        raise InvalidInput(
            f"annotations must be rows by people, got an array of {np.ndim(values)} axes. "
            "Annotations.long takes one entry a label."
        )
    told = range(values.shape[1]) if names is None else names
    if len(told) != values.shape[1]:
        raise InvalidInput(
            f"names must name each of {values.shape[1]} columns, got {len(told)}. Name each person."
        )
    _check_apart(list(told))
    return {name: values[:, j] for j, name in enumerate(told)}


def _check_apart(names: list[Any]) -> None:
    """Refuse two columns of one name."""
    if len(set(names)) < len(names):
        twice = next(name for i, name in enumerate(names) if name in names[:i])
        raise InvalidInput(
            f"each column must be another person's, got {twice!r} twice. Rename one of them."
        )


def _listed(values: Any) -> list[Any]:
    """Plain Python values of a column of any library."""
    for method in ("to_pylist", "tolist", "to_list"):
        if hasattr(values, method):
            values = getattr(values, method)()
            break
    listed = list(values) if isinstance(values, Iterable) else [values]
    return [v.item() if isinstance(v, np.generic) else v for v in listed]


def _row_names(index: Any) -> list[Any] | None:
    """Of an index of pandas; a list or a column may hold other names than X's index does."""
    return _listed(index) if hasattr(index, "get_indexer") else None


def _gap(value: Any) -> bool:
    """None, NaN, what pandas writes for them, and blank text."""
    if isinstance(value, str):
        return not value.strip()
    return value is None or type(value).__name__ in ("NAType", "NaTType") or value != value


def _array(values: Sequence[Any]) -> Array:
    """Labels as an array: whole numbers that gaps had made fractions are whole again."""
    kinds = {type(v) for v in values}
    numbers = kinds <= {int, float, bool}
    if numbers and float in kinds and all(float(v).is_integer() for v in values):
        return np.array([int(v) for v in values])
    if len(kinds) > 1 and not numbers:
        shown = sorted(kind.__name__ for kind in kinds)
        raise InvalidInput(
            f"labels must be of one kind, got {' and '.join(shown)}. Make all of them text."
        )
    return np.array(values)


def _places(ids: list[Any], index: Any) -> dict[Any, int]:
    """Where each row is, by its name."""
    if index is None:
        whole = [v for v in ids if isinstance(v, int) and 0 <= v < 2**63]
        if len(whole) != len(ids):
            strange = next(v for v in ids if v not in set(whole))
            raise InvalidInput(
                f"row must count rows from 0 where no index is given, got {strange!r}. Give the "
                "names of the rows of X, in their order, as index=."
            )
        return {i: i for i in ids}
    listed = _listed(index)
    places = {name: i for i, name in enumerate(listed)}
    if len(places) != len(listed):
        twice = next(name for i, name in enumerate(listed) if places[name] != i)
        raise InvalidInput(
            f"index must name each row once, got {twice!r} twice. Use a column whose values differ."
        )
    return places


def _stray(name: Any, person: Any, why: str) -> InvalidInput:
    return InvalidInput(
        f"row must name rows of the table, got {name!r} by {person!r}, {why}. Drop such entries, "
        "or give the names of the rows as index=."
    )


def _by_number(name: Any) -> tuple[list[str | int], str]:
    """Orders names as people do: a2 before a10."""
    parts = re.split(r"([0-9]+)", str(name))
    return [int(v) if i % 2 else v for i, v in enumerate(parts)], type(name).__name__


def _check_finite(
    values: Sequence[Any],
    who: Sequence[int],
    names: list[Any],
    row: Sequence[int],
    called: Callable[[int], Any] | None,
) -> None:
    for value, j, i in zip(values, who, row, strict=True):
        if isinstance(value, float) and math.isinf(value):
            name = i if called is None else called(i)
            raise InvalidInput(
                f"labels must be finite, got {value} by {names[j]!r} of row {name!r}. Put None "
                "where a person gave no label."
            )


def _check_rows(row: Array, rows: int, called: Callable[[int], Any]) -> None:
    empty = np.flatnonzero(np.bincount(row, minlength=rows) == 0)
    if len(empty):
        raise InvalidInput(
            f"every row must have a label, got {len(empty)} of {rows} without one, the first is "
            f"{called(int(empty[0]))!r}. Drop them from X too; next_labels(budget, X) takes rows "
            "without labels."
        )


def _check_people(counts: Array, names: list[Any]) -> None:
    idle = [name for name, count in zip(names, counts, strict=True) if not count]
    if idle:
        shown = ", ".join(repr(name) for name in idle[:_SHOWN])
        raise InvalidInput(
            f"every annotator must have given a label, got none by {shown}. Leave such columns out."
        )
