"""Sources of rows that need not fit in memory: data sets of Arrow, arrays on disk, iterators."""

from __future__ import annotations

import os
import tempfile
import weakref
from collections.abc import Iterator
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from mtbayes import _check
from mtbayes.data.stream import Piece, Stream
from mtbayes.errors import InvalidInput
from mtbayes.types import Array, Rows

__all__ = ["Columns", "is_streamed", "open_features", "open_stream"]

BLOCK = 2**16
"""Rows that are read at once."""


def is_streamed(x: Any) -> bool:
    """Whether rows are to be read as they are needed and not to be held in memory."""
    if isinstance(x, Stream | np.memmap | str | Path | Iterator):
        return True
    return type(x).__module__.startswith("pyarrow.") and not _is_table(x)


def _is_table(x: Any) -> bool:
    import pyarrow as pa

    return isinstance(x, pa.Table | pa.RecordBatch | pa.Array | pa.ChunkedArray)


def open_stream(
    source: Any,
    target: Any,
    weight: Any = None,
    *,
    features: Any = None,
    lanes: int = 1,
    decode: Any = None,
) -> Stream:
    """Rows of a source that need not fit in memory.

    source: a `pyarrow.dataset.Dataset`, the path of a file or folder that `pyarrow.dataset` opens,
        an iterator of record batches or a data set that is filtered (both copied to a temporary
        file, once), or an array such as `numpy.memmap`, rows first
    target: the name of a column, which is not a feature; for an array, the targets
    weight: how often each row counts: the name of a column, or an array
    features: names of columns, in order; by default all others
    lanes: at least as many as processes will ever share the work
    decode: makes a Rows of a record batch; by default all features are numbers
    """
    if isinstance(source, Stream):
        return source
    lanes = _check.count(lanes, "lanes", "1 is for one process, 16 for up to sixteen.")
    if hasattr(source, "shape"):
        pieces = _of_array(source, target, weight)
        return _opened(Stream(tuple(pieces), lanes, weighted=weight is not None))
    decode = decode or Columns.of(target, weight, features)
    return _of_columns(source, decode, lanes, weighted=weight is not None)


def open_features(source: Any, features: Any = None) -> Stream:
    """Rows without targets, to predict from; arguments as for `open_stream`."""
    if isinstance(source, Stream):
        return source
    if hasattr(source, "shape"):
        return _opened(Stream(tuple(_of_array(source, np.zeros(len(source), np.int8), None))))
    return _of_columns(source, Columns(None, None, features), 1, weighted=False)


def _of_columns(source: Any, decode: Any, lanes: int, *, weighted: bool) -> Stream:
    dataset = _dataset(source)
    names = decode.features(dataset.schema) if isinstance(decode, Columns) else None
    pieces = tuple(_of_dataset(dataset, decode))
    return _opened(Stream(pieces, lanes, weighted=weighted, names=names))


def _opened(stream: Stream) -> Stream:
    if not len(stream):
        raise InvalidInput("rows must be at least one, got none. Look at what is in the source.")
    return stream


def _of_array(x: Any, y: Any, weight: Any) -> Iterator[Piece]:
    y = np.asarray(y)
    if y.shape[:1] != x.shape[:1]:
        raise InvalidInput(
            f"y must have one entry for each of the {len(x)} rows of X, got shape {y.shape}."
        )
    weights = None if weight is None else _check.row_weights(weight, len(x))
    name = str(getattr(x, "filename", None) or "the array")

    def blocks(begin: int, end: int) -> Iterator[Rows]:
        some = slice(begin, end)
        ones = np.ones(end - begin, np.float32) if weights is None else weights[some]
        yield Rows(np.asarray(x[some]), y[some], ones)

    for begin, end in pairwise([*range(0, len(x), BLOCK), len(x)]):
        yield Piece(end - begin, name, partial(blocks, begin, end))


def _dataset(source: Any) -> Any:
    import pyarrow as pa
    import pyarrow.dataset as ds

    if isinstance(source, ds.Dataset):
        try:
            source.get_fragments()
        except ValueError:  # of a data set that is filtered, whose rows nobody has counted
            return _spooled(source.to_batches())
        return source
    if isinstance(source, Iterator | pa.RecordBatchReader):
        return _spooled(source)
    try:
        arrow = str(source).endswith((".arrow", ".feather", ".ipc"))
        found = ds.dataset(source, format="ipc" if arrow else "parquet", partitioning="hive")
    except (FileNotFoundError, pa.ArrowException, TypeError, OSError) as error:
        reason = " ".join(str(error).split())
        raise InvalidInput(
            f"data must be a file or folder that pyarrow.dataset opens, got {source!r}: {reason}. "
            "Name a Parquet or Feather file, or a folder of Parquet files."
        ) from None
    if not found.schema.names:
        raise InvalidInput(f"data must have rows, got none in {source}. Look for a misspelt name.")
    return found


def _spooled(batches: Iterator[Any]) -> Any:
    """Record batches as a data set of one temporary file, which goes when the data set goes."""
    import pyarrow as pa
    import pyarrow.dataset as ds

    first = next(iter(batches), None)
    if not isinstance(first, pa.RecordBatch):
        got = "none" if first is None else type(first).__name__
        raise InvalidInput(f"an iterator must give record batches of pyarrow, got {got}.")
    descriptor, path = tempfile.mkstemp(".arrow", "mtbayes-")
    with os.fdopen(descriptor, "wb") as raw, pa.ipc.new_file(raw, first.schema) as file:
        file.write(first)
        for batch in batches:
            file.write(batch)
    dataset = ds.dataset(path, format="ipc")
    weakref.finalize(dataset, Path(path).unlink, missing_ok=True)
    return dataset


def _of_dataset(dataset: Any, decode: Any) -> Iterator[Piece]:
    import pyarrow as pa

    columns = decode.needed(dataset.schema) if isinstance(decode, Columns) else None
    for fragment in _fragments(dataset):
        try:
            groups = getattr(fragment, "row_groups", None)  # count_rows would count the whole file
            count = sum(g.num_rows for g in groups) if groups else fragment.count_rows()
        except (OSError, pa.ArrowException) as error:
            reason = " ".join(str(error).split()).rstrip(".")
            raise InvalidInput(
                f"{_name(fragment)} must be readable, got: {reason}. Mend or remove it."
            ) from None

        def blocks(fragment: Any = fragment) -> Iterator[Rows]:
            for batch in fragment.to_batches(
                schema=dataset.schema, columns=columns, batch_size=BLOCK
            ):
                if batch.num_rows:
                    yield decode(batch)

        if count:
            yield Piece(count, _name(fragment), blocks)


def _fragments(dataset: Any) -> Iterator[Any]:
    """Row groups of Parquet files, and other files whole."""
    import pyarrow as pa

    for fragment in dataset.get_fragments():
        if hasattr(fragment, "split_by_row_group"):
            try:
                yield from fragment.split_by_row_group()
                continue
            except (OSError, pa.ArrowException):
                pass  # whose name is told when its rows are counted
        yield fragment


def _name(fragment: Any) -> str:
    return str(getattr(fragment, "path", "") or "the data set")


class Columns(NamedTuple):
    """Record batches of numbers as blocks.

    target, weight: names of columns, if any; only: names of the features; all others if None
    """

    target: str | None
    weight: str | None
    only: tuple[str, ...] | None = None

    @classmethod
    def of(cls, target: Any, weight: Any, only: Any = None) -> Columns:
        """By names that a user gives."""
        for name, value in (("y", target), ("sample_weight", weight)):
            if not isinstance(value, str) and not (name == "sample_weight" and value is None):
                raise InvalidInput(
                    f"{name} must be the name of a column of the data set, got "
                    f"{type(value).__name__}. Put it into the data set as a column."
                )
        return cls(target, weight, only)

    @property
    def _own(self) -> list[str]:
        return [name for name in (self.target, self.weight) if name is not None]

    def features(self, schema: Any) -> tuple[str, ...]:
        """Names of the columns that hold features."""
        if self.only is not None:
            return tuple(_check.known("column", str(name), schema.names) for name in self.only)
        return tuple(name for name in schema.names if name not in self._own)

    def needed(self, schema: Any) -> list[str]:
        """Features, then target and weight."""
        for role, name in (("y", self.target), ("sample_weight", self.weight)):
            if name is not None:
                _check.known(f"{role}, the name of a column,", name, schema.names)
        if not self.features(schema):
            raise InvalidInput(f"data must have columns beside {self.target!r}, got none.")
        return [*self.features(schema), *self._own]

    def __call__(self, batch: Any) -> Rows:
        """Features in the widest type of their columns; labels as they are."""
        names = self.features(batch.schema)
        columns = [_numbers(batch, name) for name in names]
        x = columns[0] if len(columns) == 1 else np.concatenate(columns, axis=1)
        if x.dtype.kind == "f" and not np.isfinite(x).all():
            self._refuse(batch, names)
        y = np.zeros(len(x), np.int8) if self.target is None else _plain(batch, self.target)
        if self.weight is None:
            return Rows(x, y, np.ones(len(x), np.float32))
        weight = _numbers(batch, self.weight)[:, 0]
        if not ((weight >= 0) & np.isfinite(weight)).all():
            raise InvalidInput(
                f"column {self.weight!r} must hold finite weights of at least 0, got a minimum of "
                f"{weight.min()}. Weight 2 counts a row twice, 0 leaves it out."
            )
        return Rows(x, y, weight)

    def _refuse(self, batch: Any, names: tuple[str, ...]) -> None:
        """Name the column that is not finite."""
        for name in names:
            _check.finite(
                f"column {name!r}", _numbers(batch, name), "Impute or drop such rows first."
            )


def _column(batch: Any, name: str) -> Any:
    """A column without gaps."""
    column = batch.column(name)
    if column.null_count:
        raise InvalidInput(
            f"column {name!r} must have a value in each row, got rows without one. Fill or drop "
            "them."
        )
    return column


def _plain(batch: Any, name: str) -> Array:
    return np.asarray(_column(batch, name).to_numpy(zero_copy_only=False))


def _numbers(batch: Any, name: str) -> Array:
    """A column [n, 1], or lists of one length [n, k]."""
    import pyarrow as pa

    column = _column(batch, name)
    kind = column.type
    if pa.types.is_fixed_size_list(kind):
        return np.asarray(column.flatten()).reshape(-1, kind.list_size)
    lists = pa.types.is_list(kind) or pa.types.is_large_list(kind)
    if lists and _is_number(kind.value_type):
        lengths = np.unique(column.value_lengths())
        if len(lengths) > 1:
            raise InvalidInput(
                f"column {name!r} must hold lists of one length, got {lengths[0]} and {lengths[1]} "
                "numbers. Pad or cut them first."
            )
        return np.asarray(column.flatten()).reshape(len(column), -1)
    if not _is_number(kind):
        raise InvalidInput(
            f"column {name!r} must hold numbers, got {kind}. Code it as numbers first, or use the "
            "command `mtbayes fit`, which does."
        )
    return _plain(batch, name)[:, None]


def _is_number(kind: Any) -> bool:
    import pyarrow as pa

    return bool(
        pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)
    )
