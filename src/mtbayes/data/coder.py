"""Columns of a table as numbers: which are used, what each becomes, in what style they are spelled.

A `Coder` is learned once, from all rows of a table. It codes any later one alike, in any order of
its columns, and refuses cells that contradict the style of those it was learned from.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from difflib import get_close_matches
from typing import Any, NamedTuple, NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mtbayes._values import made, storable
from mtbayes.data import dates, numerals
from mtbayes.data.cells import Cells, Far, Unfit, is_text
from mtbayes.data.kinds import Boolean, Category, Date, Kind, Number
from mtbayes.data.texts import Text
from mtbayes.errors import InvalidInput
from mtbayes.types import Array, FloatArray

Where = Callable[[int], str]
"""Tells a person which row is meant, by its place from 0."""

KINDS: dict[str, Any] = {kind.kind: kind for kind in (Boolean, Number, Date, Category, Text)}
"""By name, in the order in which a column is tried."""
KINDS_OF = {kind: name for name, kind in KINDS.items()}


def row(place: int) -> str:
    """A row of a table, counted from 1.

    >>> row(0)
    'row 1'
    """
    return f"row {place + 1}"


class Seen(NamedTuple):
    """What was noticed while cells were read, by column."""

    strays: Counter[str]
    """How many cells could not be read."""
    new: dict[str, Counter[str]]
    """Levels that no fitted row had, and how many rows have each."""
    signs: dict[str, numerals.Signs]
    """Of numbers in text, where the rows of the fit did not tell their decimal sign."""
    spelled: dict[str, str]
    """How the cells of columns are read of which some could not be."""
    far: dict[str, Far]
    """Numbers far from all fitted ones."""
    infinite: Counter[str]
    """How many numbers are."""
    gaps: Counter[str]
    """How many cells are empty, where none that was fitted is."""

    @classmethod
    def nothing(cls) -> Seen:
        """As before the first row."""
        return cls(Counter(), {}, {}, {}, {}, Counter(), Counter())

    def stray(self, column: Any, count: int) -> None:
        """Cells of a column that could not be read."""
        self.strays[column.name] += count
        self.spelled[column.name] = f" as {spelling}" if (spelling := column.spelling) else ""

    @property
    def notes(self) -> list[str]:
        """What a person should know of it."""
        found = [
            f"{_many(count, 'cell')} of {name!r} cannot be read{self.spelled[name]}, taken for "
            "missing"
            for name, count in self.strays.items()
        ]
        for name, levels in self.new.items():
            some = ", ".join(f"{level!r} ({count})" for level, count in levels.most_common(5))
            more = f" and {len(levels) - 5} more" if len(levels) > 5 else ""
            found.append(
                f"{_rows_have(levels.total())} a {name!r} that no fitted row had: {some}{more}"
            )
        for name, count in self.infinite.items():
            found.append(f"{_many(count, 'infinite cell')} of {name!r}, taken for missing")
        for name, count in self.gaps.items():
            found.append(
                f"{_rows_have(count)} no {name!r}, which all fitted rows had: what is usual stands "
                "in, and nothing is known of rows without it"
            )
        for name, far in self.far.items():
            found.append(
                f"{_rows_have(far.total)} a {name!r} far from all fitted ones, which are "
                f"{far.fitted}: {far.words}. No data stand behind what is said there"
            )
        for name, signs in self.signs.items():
            if signs.either and signs.decimal is None:
                found.append(
                    f"{_many(signs.either, 'cell')} of {name!r} may have a sign between thousands, "
                    "as in 1.234 for 1234, and a decimal point is read, since neither the fitted "
                    "rows nor these tell"
                )
        return found


def _many(count: int, what: str) -> str:
    return f"{count} {what}" + ("" if count == 1 else "s")


def _rows_have(count: int) -> str:
    return f"{_many(count, 'row')} {'has' if count == 1 else 'have'}"


class Styles(NamedTuple):
    """How text of a file spells numbers and dates, by column, decided from all of its cells."""

    decimals: dict[str, str]
    dates: dict[str, str]
    notes: tuple[str, ...]
    """What no cell tells."""

    @classmethod
    def of(cls, table: Any) -> Styles:
        """From all columns of text."""
        texts = {}
        for name in table.column_names:
            cells = cells_of(table.column(name))
            if cells.is_text:
                texts[name] = cells.text
        spelled = dates.decide(texts)
        rest = {name: text for name, text in texts.items() if name not in spelled.styles}
        decided = numerals.decide(rest)
        notes = [_two_ways(name, rest[name]) for name in decided.ambiguous]
        for name in spelled.ambiguous:
            order = dates.words(spelled.styles[name])
            notes.append(
                f"days and months of {name!r} may as well be the other way round; they are read as "
                f"{order}, since no cell tells"
            )
        for name, style in spelled.styles.items():
            if "%y" in style:
                notes.append(f"{name!r} has years of two digits, read as 1969 to 2068")
        return cls(decided.decimals, spelled.styles, tuple(notes))

    def cells(self, table: Any, name: str) -> Cells:
        """A column, to be read in its style."""
        decimal = self.decimals.get(name, numerals.UNTOLD)
        return cells_of(table.column(name), decimal, self.dates.get(name, ""))


def _two_ways(name: str, text: Any) -> str:
    cell, point, comma = numerals.both(text)
    return (
        f"{name!r} has cells like {cell}, which may be {point:g} or {comma:g}; it is read as "
        f"{point:g}, since no cell tells. Write it as {point:g} or {comma:g} to be sure"
    )


@storable
@dataclass(frozen=True)
class Coder:
    """How columns become numbers.

    columns: those that are used; dropped: the others, each with a reason
    """

    columns: tuple[Any, ...]
    dropped: tuple[tuple[str, str], ...]

    @property
    def features(self) -> list[str]:
        """Names of the numbers that a row becomes."""
        return [name for column in self.columns for name in column.features()]

    @property
    def decimals(self) -> dict[str, str]:
        """The decimal sign of each column of numbers."""
        return {c.name: c.decimal or numerals.POINT for c in self.columns if isinstance(c, Number)}

    def code(self, rows: Any, *, where: Where = row, seen: Seen | None = None) -> FloatArray:
        """Rows as numbers [n, len(features)]; columns are found by their names.

        rows: a `pyarrow.Table` or `RecordBatch` that `check` has passed
        """
        parts = []
        for column in self.columns:
            cells = cells_of(rows.column(column.name), getattr(column, "decimal", numerals.UNTOLD))
            try:
                coded, unread = column.code(cells)
            except (Unfit, pa.ArrowNotImplementedError, pa.ArrowInvalid):
                raise InvalidInput(
                    f"{column.name!r} must be a {KINDS_OF[type(column)]} as in the file that was "
                    f"fitted, got cells of type {cells.type}. Convert the column."
                ) from None
            if unread:
                _check_style(column, cells, where)
            if seen is not None:
                note(seen, column, cells, unread)
            parts.append(coded)
        return np.concatenate(parts, axis=1)

    def check(self, names: Sequence[str]) -> tuple[str, ...]:
        """Names of columns that are not used; one that is needed and missing is an InvalidInput."""
        needed = [column.name for column in self.columns]
        lacking = [name for name in needed if name not in names]
        if lacking:
            near = nearest(lacking[0], [name for name in names if name not in needed])
            raise InvalidInput(
                f"columns must be those that were fitted, but {listed(lacking)} "
                f"{'is' if len(lacking) == 1 else 'are'} missing. Add or rename them"
                f"{f'; is {near!r} meant?' if near else '.'}"
            )
        known = {*needed, *(name for name, _ in self.dropped)}
        return tuple(name for name in names if name not in known)

    def as_json(self) -> dict[str, Any]:
        """Numbers, text, lists and dicts alone, and arrays for columns of text."""
        columns = [
            {"kind": c.kind, **{field.name: getattr(c, field.name) for field in fields(c)}}
            for c in self.columns
        ]
        return {"columns": columns, "dropped": [list(pair) for pair in self.dropped]}

    @classmethod
    def from_json(cls, found: Any) -> Coder:
        """What `as_json` gave."""
        columns = []
        for entry in found["columns"]:
            options = {k: tuple(v) if isinstance(v, list) else v for k, v in entry.items()}
            columns.append(made(KINDS[str(options.pop("kind"))], options))
        dropped = tuple((str(name), str(reason)) for name, reason in found["dropped"])
        return cls(tuple(columns), dropped)


class Learned(NamedTuple):
    """What was learned of columns, and the rows that it was learned from, as numbers."""

    coder: Coder
    x: FloatArray
    seen: Seen


def learn_columns(
    table: Any, names: Sequence[str], styles: Styles, aim: str, where: Where = row
) -> Learned:
    """The columns of a table by these names; aim: what is to be learned from them, in words.

    Every column is parsed once.
    """
    used: list[tuple[Kind, Cells]] = []
    counting: list[tuple[Kind, Cells]] = []
    dropped: list[tuple[str, str]] = []
    for name in names:
        cells = styles.cells(table, name)
        try:
            column = _kind(name, cells)
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
            f"the file must have a column to learn {aim} from, got none ({why}). Add one."
        )
    seen, parts = Seen.nothing(), []
    for column, cells in used:
        coded, unread = column.code(cells)
        if unread:
            _check_style(column, cells, where)
            seen.stray(column, unread)
        if cells.infinite:
            seen.infinite[column.name] += cells.infinite
        parts.append(coded)
    coder = Coder(tuple(column for column, _ in used), tuple(dropped))
    return Learned(coder, np.concatenate(parts, axis=1), seen)


def _kind(name: str, cells: Cells) -> Kind:
    """The kind of a column; Unfit with the reason if it is worth nothing."""
    values = cells.values
    if pa.types.is_null(values.type) or values.null_count == len(values):
        raise Unfit("empty")
    if is_opaque(values.type):
        raise Unfit(f"cells of type {values.type}")
    if values.null_count == 0 and pc.count_distinct(values).as_py() == 1:
        raise Unfit("the same in every row")
    reason = ""
    for kind in KINDS.values():
        try:
            found: Kind = kind.learn(name, cells)
        except Unfit as error:
            reason = str(error) or reason
        else:
            return found
    raise Unfit(reason)


def counts_rows(cells: Cells) -> bool:
    """Whether a column of numbers is 1, 2, 3 ... in whatever order."""
    found, strays = cells.numbers()
    if strays or np.isnan(found).any() or len(found) < 3:
        return False
    return bool(np.array_equal(np.sort(found), found.min() + np.arange(len(found))))


def is_opaque(kind: Any) -> bool:
    """Whether cells of an Arrow type are neither numbers, text, truths nor times."""
    types = pa.types
    plain = (
        types.is_boolean, types.is_integer, types.is_floating, types.is_decimal, types.is_null,
        types.is_string, types.is_large_string, types.is_date, types.is_timestamp, types.is_time,
        types.is_duration,
    )  # fmt: skip
    return not any(is_plain(kind) for is_plain in plain)


def cells_of(values: Any, decimal: str = numerals.UNTOLD, style: str = "") -> Cells:
    """A column without dictionary coding or chunks."""
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
        if isinstance(values, pa.ChunkedArray):  # of no chunk, or of too much text
            values = pa.concat_arrays(values.chunks)
    if pa.types.is_dictionary(values.type):
        values = pc.cast(values, values.type.value_type)
    if values.type == pa.string_view() or pa.types.is_null(values.type):  # of whatever kind
        values = pc.cast(values, pa.string())
    return Cells(pc.cast(values, pa.string()) if is_text(values) else values, decimal, style)


def note(seen: Seen, column: Any, cells: Cells, unread: int) -> None:
    """Add what was noticed in one column."""
    if unread:
        seen.stray(column, unread)
    if strange := column.new(cells):
        seen.new.setdefault(column.name, Counter()).update(strange)
    if cells.infinite:
        seen.infinite[column.name] += cells.infinite
    if not getattr(column, "gaps", True) and cells.empty:
        seen.gaps[column.name] += cells.empty
    if not isinstance(column, Number):
        return
    if (far := column.far(cells)).total:
        before_far = seen.far.get(column.name)
        seen.far[column.name] = far if before_far is None else before_far.beside(far)
    if cells.is_text and not cells.told:
        signs = numerals.signs(cells.text)
        if signs is not None:
            before = seen.signs.get(column.name, numerals.Signs(0, 0, 0, 0))
            seen.signs[column.name] = before.beside(signs)


def _check_style(column: Any, cells: Cells, where: Where) -> None:
    place = column.contradiction(cells)
    if place is not None:
        refuse_cell(column.name, column.spelling, cells.text[place].as_py(), where(place))


def refuse_cell(name: str, spelling: str, cell: str, where: str) -> NoReturn:
    """A cell contradicts the style of its column."""
    raise InvalidInput(
        f"{name!r} must hold {spelling}, as all its cells were taken to, got {cell!r} in {where}. "
        "Write all cells of the column in one way, here and in the file that was learned from."
    )


def places(where: Where, kept: Array) -> Where:
    """The same for rows of which some were left out."""
    if kept.all():
        return where
    original = np.flatnonzero(kept)
    return lambda place: where(int(original[place]))


def nearest(name: str, names: Sequence[str]) -> str | None:
    """A name like this one."""
    small = {other.lower(): other for other in names}
    near = get_close_matches(name.lower(), list(small), n=1)
    return small[near[0]] if near else None


def listed(names: Any) -> str:
    """The first names, for people."""
    names = list(names)
    return ", ".join(map(repr, names[:8])) + (
        f" and {len(names) - 8} more" if len(names) > 8 else ""
    )
