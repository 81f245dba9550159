"""Rows that need not fit in memory: data sets of Arrow, arrays on disk, iterators of batches.

A `Stream` is a list of pieces of known length, such as the row groups of Parquet files, and how to
read each. An epoch reads the pieces in a random order and shuffles rows in a window of bounded
size. The rows are cut into `lanes`, of each of which a batch takes as many rows: processes that
share the lanes out read only their own files, and the batches are the same however many processes
there are.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from mtbayes import _check
from mtbayes.errors import InvalidInput
from mtbayes.types import Array

BLOCK = 2**16
"""Rows that are read at once."""
WINDOW = 2**18
"""Rows among which an epoch shuffles."""


class Block(NamedTuple):
    """Some rows, on the host."""

    x: Array
    y: Array
    weight: Array

    def take(self, which: Any) -> Block:
        """Rows by a slice or by their numbers."""
        return Block(*(v[which] for v in self))


class Piece(NamedTuple):
    """Rows that are read together.

    rows: how many; name: where they are, for errors; blocks: reads them, some at a time
    """

    rows: int
    name: str
    blocks: Callable[[], Iterator[Block]]


class _Part(NamedTuple):
    """Rows of a piece."""

    piece: Piece
    begin: int
    end: int

    @property
    def rows(self) -> int:
        return self.end - self.begin


class Order(NamedTuple):
    """How an epoch goes through a stream.

    seed: whole numbers that fix it, or None for the order of the files
    window: rows of a lane that are shuffled together
    """

    seed: tuple[int, ...] | None
    window: int = WINDOW


@dataclass(frozen=True)
class Stream:
    """Pieces of rows; see `open_stream`.

    change: what is made of each block; weighted: whether weights differ; names: of the features
    """

    pieces: tuple[Piece, ...]
    lanes: int = 1
    change: Callable[[Block], Block] | None = None
    weighted: bool = False
    names: tuple[str, ...] | None = None

    def __len__(self) -> int:
        return sum(piece.rows for piece in self.pieces)

    def map(self, change: Callable[[Block], Block]) -> Stream:
        """The same rows with every block changed as it is read."""
        before = self.change
        both = change if before is None else lambda block: change(before(block))
        return replace(self, change=both)

    @cached_property
    def total(self) -> float:
        """The sum of the weights; one pass over the rows where these are not all 1."""
        if not self.weighted:
            return float(len(self))
        return float(sum(block.weight.sum(dtype=float) for block in self.blocks()))

    def blocks(self) -> Iterator[Block]:
        """All rows, in the order of the files."""
        for piece in self.pieces:
            yield from self._read(piece)

    def first(self) -> Block:
        """The first rows."""
        return next(self.blocks())

    def sample(self, size: int, seed: int) -> tuple[Array, Block]:
        """Rows drawn at random without replacement, and their numbers: one pass, bounded memory."""
        random = np.random.default_rng(seed)
        chosen = np.sort(random.choice(len(self), min(size, len(self)), replace=False))
        parts, done = [], 0
        for block in self.blocks():
            begin, end = np.searchsorted(chosen, [done, done + len(block.y)])
            parts.append(block.take(chosen[begin:end] - done))
            done += len(block.y)
        return chosen, _joined(parts)

    def lane_rows(self, lane: int) -> int:
        """Rows of a lane; two lanes differ by at most one."""
        return self._bound(lane + 1) - self._bound(lane)

    def rows_of(self, lane: int, order: Order, epoch: int, skip: int = 0) -> Iterator[Block]:
        """Rows of a lane in the order of an epoch, without the first `skip`."""
        parts = self._parts(lane)
        if order.seed is not None:
            random = np.random.default_rng([*order.seed, epoch, lane])
            parts = [parts[i] for i in random.permutation(len(parts))]
        begun = skip // order.window * order.window
        left = begun
        while parts and parts[0].rows <= left:  # these need not even be read
            left -= parts.pop(0).rows
        read = (block for part in parts for block in self._read(*part))
        blocks = _without(read, left)
        if order.seed is not None:
            blocks = _shuffled(blocks, order, (epoch, lane), begun // order.window)
        return _without(blocks, skip - begun)

    def _bound(self, lane: int) -> int:
        return len(self) * lane // self.lanes

    def _parts(self, lane: int) -> list[_Part]:
        """What a lane reads: rows that follow each other in the files."""
        low, high, done, parts = self._bound(lane), self._bound(lane + 1), 0, []
        for piece in self.pieces:
            begin, end = max(low - done, 0), min(high - done, piece.rows)
            if begin < end:
                parts.append(_Part(piece, begin, end))
            done += piece.rows
        return parts

    def _read(self, piece: Piece, begin: int = 0, end: int | None = None) -> Iterator[Block]:
        import pyarrow as pa

        end = piece.rows if end is None else end
        seen = 0
        try:
            for block in piece.blocks():
                some = block.take(slice(max(0, begin - seen), end - seen))
                seen += len(block.y)
                if len(some.y):
                    yield some if self.change is None else self.change(some)
                if seen >= end < piece.rows:
                    return
        except InvalidInput:
            raise
        except (OSError, pa.ArrowException, EOFError) as error:
            reason = " ".join(str(error).split())
            raise InvalidInput(
                f"{piece.name} must stay readable while it is learned from, got: {reason}. Mend or "
                "restore it and go on from the checkpoint, if there is one."
            ) from None
        if seen != piece.rows:
            raise InvalidInput(
                f"{piece.name} must not change while it is learned from, got {seen} rows in place "
                f"of {piece.rows}. Start again."
            )


def rechunked(blocks: Iterable[Block], size: int) -> Iterator[Block]:
    """The same rows in blocks of `size`, the last one shorter.

    >>> rows = [Block(np.arange(n), np.arange(n), np.ones(n)) for n in (3, 4, 1)]
    >>> [len(block.y) for block in rechunked(rows, 5)]
    [5, 3]
    """
    held: list[Block] = []
    count = 0
    for block in blocks:
        held.append(block)
        count += len(block.y)
        while count >= size:
            whole = _joined(held)
            yield whole.take(slice(size))
            held, count = [whole.take(slice(size, None))], count - size
    if count:
        yield _joined(held)


def _joined(blocks: list[Block]) -> Block:
    blocks = [block for block in blocks if len(block.y)] or blocks[:1]
    if len(blocks) == 1:
        return blocks[0]
    return Block(*(np.concatenate(each) for each in zip(*blocks, strict=True)))


def _without(blocks: Iterator[Block], count: int) -> Iterator[Block]:
    """The rows after the first `count`."""
    for block in blocks:
        if count < len(block.y):
            yield block.take(slice(count, None)) if count else block
        count = max(0, count - len(block.y))


def _shuffled(
    blocks: Iterator[Block], order: Order, place: tuple[int, int], first: int
) -> Iterator[Block]:
    """Rows in windows, each in a random order; `first` is the number of the first window."""
    for i, window in enumerate(rechunked(blocks, order.window), first):
        random = np.random.default_rng([*(order.seed or ()), *place, i])
        yield window.take(random.permutation(len(window.y)))


# Where rows come from.


def is_streamed(x: Any) -> bool:
    """Whether rows are to be read as they are needed and not to be held in memory."""
    if isinstance(x, Stream | np.memmap | str | Path | Iterator):
        return True
    return type(x).__module__.startswith("pyarrow.") and not _is_table(x)


def _is_table(x: Any) -> bool:
    import pyarrow as pa

    return isinstance(x, pa.Table | pa.RecordBatch | pa.Array | pa.ChunkedArray)


def open_stream(
    source: Any, target: Any, weight: Any = None, *, lanes: int = 1, decode: Any = None
) -> Stream:
    """Rows of a source that need not fit in memory.

    source: a `pyarrow.dataset.Dataset`, the path of a file or folder that `pyarrow.dataset` opens,
        an iterator of record batches (copied to a temporary file, once), or an array such as
        `numpy.memmap`, rows first
    target: the name of a column, which is not a feature; for an array, the targets
    weight: how often each row counts: the name of a column, or an array
    lanes: at least as many as processes will ever share the work
    decode: makes a Block of a record batch; by default all other columns are features, as numbers
    """
    if isinstance(source, Stream):
        return source
    lanes = _check.count(lanes, "lanes", "1 is for one process, 16 for up to sixteen.")
    features = None
    if hasattr(source, "shape"):
        pieces = _of_array(source, target, weight)
    else:
        dataset, folder = _dataset(source)
        decode = decode or Columns.of(target, weight)
        pieces = _of_dataset(dataset, folder, decode)
        features = decode.features(dataset.schema) if isinstance(decode, Columns) else None
    stream = Stream(tuple(pieces), lanes, weighted=weight is not None, names=features)
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

    def blocks(begin: int, end: int) -> Iterator[Block]:
        some = slice(begin, end)
        ones = np.ones(end - begin, np.float32) if weights is None else weights[some]
        yield Block(np.asarray(x[some]), y[some], ones)

    for begin, end in pairwise([*range(0, len(x), BLOCK), len(x)]):
        yield Piece(end - begin, name, partial(blocks, begin, end))


def _dataset(source: Any) -> tuple[Any, Any]:
    """The data set, and what must live as long as it does."""
    import pyarrow as pa
    import pyarrow.dataset as ds

    if isinstance(source, ds.Dataset):
        return source, None
    if isinstance(source, Iterator | pa.RecordBatchReader):
        return _spooled(source)
    try:
        return ds.dataset(source, partitioning="hive"), None
    except (FileNotFoundError, pa.ArrowException, TypeError, OSError) as error:
        reason = " ".join(str(error).split())
        raise InvalidInput(
            f"data must be a file or folder that pyarrow.dataset opens, got {source!r}: {reason}. "
            "Name a Parquet file or a folder of them."
        ) from None


def _spooled(batches: Iterator[Any]) -> tuple[Any, Any]:
    """Record batches as a data set of one temporary file, and its folder."""
    import pyarrow as pa
    import pyarrow.dataset as ds

    first = next(iter(batches), None)
    if first is None:
        raise InvalidInput("rows must be at least one, got an iterator without batches.")
    folder = tempfile.TemporaryDirectory(prefix="mtbayes-")
    path = str(Path(folder.name) / "rows.arrow")
    with pa.ipc.new_file(path, first.schema) as file:
        file.write(first)
        for batch in batches:
            file.write(batch)
    return ds.dataset(path, format="ipc"), folder


def _of_dataset(dataset: Any, folder: Any, decode: Any) -> Iterator[Piece]:
    import pyarrow as pa

    columns = decode.needed(dataset.schema) if isinstance(decode, Columns) else None
    for fragment in _fragments(dataset):
        try:
            groups = getattr(fragment, "row_groups", None)  # count_rows would count the whole file
            count = sum(g.num_rows for g in groups) if groups else fragment.count_rows()
        except (OSError, pa.ArrowException) as error:
            reason = " ".join(str(error).split())
            raise InvalidInput(
                f"{_name(fragment)} must be readable, got: {reason}. Mend or remove it."
            ) from None

        def blocks(fragment: Any = fragment, _alive: Any = folder) -> Iterator[Block]:
            for batch in fragment.to_batches(
                schema=dataset.schema, columns=columns, batch_size=BLOCK
            ):
                if batch.num_rows:
                    yield decode(batch)

        if count:
            yield Piece(count, _name(fragment), blocks)


def _fragments(dataset: Any) -> Iterator[Any]:
    """Row groups of Parquet files, and other files whole."""
    for fragment in dataset.get_fragments():
        if hasattr(fragment, "split_by_row_group"):
            try:
                yield from fragment.split_by_row_group()
                continue
            except OSError:
                pass  # whose name is told when its rows are counted
        yield fragment


def _name(fragment: Any) -> str:
    return str(getattr(fragment, "path", "") or "the data set")


class Columns(NamedTuple):
    """Record batches of numbers as blocks: all columns but two are features."""

    target: str
    weight: str | None

    @classmethod
    def of(cls, target: Any, weight: Any) -> Columns:
        """By names."""
        for name, value in (("y", target), ("sample_weight", weight)):
            if not isinstance(value, str) and not (name == "sample_weight" and value is None):
                raise InvalidInput(
                    f"{name} must be the name of a column of the data set, got "
                    f"{type(value).__name__}. Put it into the data set as a column."
                )
        return cls(target, weight)

    @property
    def _own(self) -> list[str]:
        return [name for name in (self.target, self.weight) if name is not None]

    def features(self, schema: Any) -> tuple[str, ...]:
        """Names of the features; none where a column holds several."""
        return tuple(name for name in schema.names if name not in self._own)

    def needed(self, schema: Any) -> list[str]:
        """Features, then target and weight."""
        for name in self._own:
            if schema.get_field_index(name) < 0:
                _check.known("column", name, schema.names)
        if not self.features(schema):
            raise InvalidInput(f"data must have columns beside {self.target!r}, got none.")
        return [*self.features(schema), *self._own]

    def __call__(self, batch: Any) -> Block:
        """Features in single precision; labels as they are."""
        names = batch.schema.names
        features = [i for i, name in enumerate(names) if name not in (self.target, self.weight)]
        x = np.concatenate([_numbers(batch, i) for i in features], axis=1)
        y = _plain(batch, names.index(self.target))
        ones = np.ones(len(y), np.float32)
        if self.weight is not None:
            ones = _numbers(batch, names.index(self.weight))[:, 0]
        return Block(x, y, ones)


def _plain(batch: Any, i: int) -> Array:
    column, name = batch.column(i), batch.schema.names[i]
    if column.null_count:
        raise InvalidInput(
            f"{name!r} must have a value in each row, got rows without one. Fill or drop them."
        )
    return np.asarray(column.to_numpy(zero_copy_only=False))


def _numbers(batch: Any, i: int) -> Array:
    """A column [n, 1], or lists of one length [n, k]."""
    import pyarrow as pa

    column, name = batch.column(i), batch.schema.names[i]
    if pa.types.is_fixed_size_list(column.type):
        width = column.type.list_size
        return np.asarray(column.flatten(), np.float32).reshape(-1, width)
    kind = column.type
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)):
        raise InvalidInput(
            f"column {name!r} must hold numbers, got {kind}. Code it as numbers first, or use the "
            "command `mtbayes fit`, which does."
        )
    return _plain(batch, i).astype(np.float32)[:, None]
