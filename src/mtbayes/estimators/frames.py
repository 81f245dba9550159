"""Data frames with text, categories, dates and gaps, coded as the command codes a file."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa

from mtbayes.data.coder import Coder, Seen, Styles, learn_columns
from mtbayes.errors import InvalidInput
from mtbayes.learners.frame import Frame

_EMPTY = "X must not be empty, got a frame without rows. Look how it was made."


def coded(estimator: Any, x: Any, *, reset: bool) -> Any:
    """X as it is where it is numbers; else as numbers, by the `coder_` that an estimator has.

    reset: whether the coder is learned, if one is needed
    """
    if reset:
        vars(estimator).pop("coder_", None)
        table = _table(x)
        if table is None or not _needs_coding(table):
            return x
        _check_rows(table)
        styles = Styles.of(table)
        found = learn_columns(table, table.column_names, styles, "the target")
        estimator.coder_ = found.coder
        gone = [f"{name!r} ({reason})" for name, reason in found.coder.dropped]
        left_out = [f"columns left out: {', '.join(gone)}"] if gone else []
        _warn([*left_out, *styles.notes], found.seen)
        return found.x
    coder: Coder | None = getattr(estimator, "coder_", None)
    if coder is None:
        return x
    table = _table(x)
    if table is None:
        raise InvalidInput(
            f"X must be a data frame with the columns of fit, got {type(x).__name__}. They are "
            "found by their names."
        )
    coder.check(table.column_names)
    _check_rows(table)
    seen = Seen.nothing()
    numbers = coder.code(table, seen=seen)
    _warn((), seen)
    return numbers


def own(x: Any) -> Frame | None:
    """A user's table for an estimator of the user's own; None where it is an array of numbers."""
    if _is_frame(x):
        _check_names(x)
    elif not isinstance(x, np.ndarray) or x.dtype.kind not in "OU" or x.ndim != 2:
        return None
    if 0 in x.shape:
        raise InvalidInput(_EMPTY)
    return Frame(x)


def as_numbers(rows: Any) -> Any:
    """Rows that were checked, coded for this once where they are a user's own table."""
    if not isinstance(rows, Frame):
        return rows
    table = rows.table
    if not _is_frame(table):
        table = pa.table({str(i): table[:, i].astype(str) for i in range(table.shape[1])})
    return np.asarray(coded(SimpleNamespace(), table, reset=True), float)


def _is_frame(x: Any) -> bool:
    return type(x).__module__.partition(".")[0] in ("pandas", "polars") and hasattr(x, "columns")


def _check_names(x: Any) -> list[str]:
    names = [str(name) for name in x.columns]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InvalidInput(
            f"X must have columns with names of their own, got {twice!r} twice. Rename one of them."
        )
    return names


def _table(x: Any) -> pa.Table | None:
    """A data frame of pandas, Polars or Arrow as a table; None for anything else."""
    if isinstance(x, (pa.Table, pa.RecordBatch)):
        return pa.table(x) if isinstance(x, pa.Table) else pa.Table.from_batches([x])
    if not _is_frame(x):
        return None
    names = _check_names(x)
    try:
        if hasattr(x, "to_arrow"):  # Polars
            return x.to_arrow()
        return pa.Table.from_pandas(x, preserve_index=False).rename_columns(names)
    except (pa.ArrowException, TypeError) as error:
        said = " ".join(str(error).split())[:200]
        raise InvalidInput(
            f"X must hold one kind of value in each column, got others ({said}). Convert them, "
            "such as by X[column].astype(str)."
        ) from None


def _check_rows(table: pa.Table) -> None:
    if not table.num_rows:
        raise InvalidInput(_EMPTY)


def _needs_coding(table: pa.Table) -> bool:
    """Whether there are gaps, or columns that are no numbers."""
    plain = (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean)
    return any(
        column.null_count or not any(is_plain(column.type) for is_plain in plain)
        for column in table.columns
    )


def _warn(notes: Sequence[str], seen: Seen) -> None:
    """Of what the command would note."""
    for note in (*notes, *seen.notes):
        warnings.warn(f"{note}.", UserWarning, stacklevel=2)
