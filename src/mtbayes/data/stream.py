"""Rows that need not fit in memory, as pieces that are read when they are needed.

A `Stream` is a list of pieces of known length, such as the row groups of Parquet files, and how to
read each. An epoch reads the pieces in a random order and shuffles rows in a window of bounded
size. The rows are cut into `lanes`, of each of which a batch takes as many rows: processes that
share the lanes out read only their own files, and the batches are the same however many processes
there are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from mtbayes.errors import InvalidInput
from mtbayes.types import Array, Rows

WINDOW = 2**18
"""Rows among which an epoch shuffles, over all lanes, where they are narrow."""
_BYTES = 2**27  # of a window, where rows are wide
_LEAST = 2**12  # rows of a window


class Piece(NamedTuple):
    """Rows that are read together.

    rows: how many; name: where they are, for errors; blocks: reads them, some at a time
    """

    rows: int
    name: str
    blocks: Callable[[], Iterator[Rows]]


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

    @classmethod
    def of(cls, stream: Stream, seed: tuple[int, ...] | None, width: int) -> Order:
        """An order with as large a window as memory should bear; width: bytes a row."""
        return cls(seed, max(_LEAST, min(WINDOW, _BYTES // width) // stream.lanes))


@dataclass(frozen=True)
class Stream:
    """Pieces of rows; `mtbayes.data.sources.open_stream` makes one.

    change: what is made of each block; weighted: whether weights differ; names: of the features
    """

    pieces: tuple[Piece, ...]
    lanes: int = 1
    change: Callable[[Rows], Rows] | None = None
    weighted: bool = False
    names: tuple[str, ...] | None = None

    def __len__(self) -> int:
        return sum(piece.rows for piece in self.pieces)

    def map(self, change: Callable[[Rows], Rows]) -> Stream:
        """The same rows with every block changed as it is read."""
        before = self.change
        both = change if before is None else lambda block: change(before(block))
        return replace(self, change=both)

    @cached_property
    def total(self) -> float:
        """The sum of the weights; one pass over the rows where these are not all 1."""
        if not self.weighted:
            return float(len(self))
        total = float(sum(block.weight.sum(dtype=float) for block in self.blocks()))
        if not total:
            raise InvalidInput("weights must not be 0 for all rows. Weight 1 counts a row once.")
        return total

    def blocks(self) -> Iterator[Rows]:
        """All rows, in the order of the files."""
        for piece in self.pieces:
            yield from self._read(piece)

    def first(self) -> Rows:
        """The first rows."""
        return next(self.blocks())

    def sample(self, size: int, seed: int) -> tuple[Array, Rows]:
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

    def rows_of(self, lane: int, order: Order, epoch: int, skip: int = 0) -> Iterator[Rows]:
        """Rows of a lane in the order of an epoch, without the first `skip`."""
        parts = self._parts(lane)
        if order.seed is not None:
            random = np.random.default_rng([*order.seed, epoch, lane])
            parts = [parts[i] for i in random.permutation(len(parts))]
        begun = skip if order.seed is None else skip // order.window * order.window
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

    def _read(self, piece: Piece, begin: int = 0, end: int | None = None) -> Iterator[Rows]:
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
        except InvalidInput as error:
            raise InvalidInput(f"{piece.name}: {error}") from None
        except (OSError, pa.ArrowException, EOFError) as error:
            reason = " ".join(str(error).split()).rstrip(".")
            raise InvalidInput(
                f"{piece.name} must stay readable while it is learned from, got: {reason}. Mend or "
                "restore it and go on from the checkpoint, if there is one."
            ) from None
        if seen != piece.rows:
            raise InvalidInput(
                f"{piece.name} must not change while it is learned from, got {seen} rows in place "
                f"of {piece.rows}. Start again."
            )


def rechunked(blocks: Iterable[Rows], size: int) -> Iterator[Rows]:
    """The same rows in blocks of `size`, the last one shorter.

    >>> rows = [Rows(np.arange(n), np.arange(n), np.ones(n)) for n in (3, 4, 1)]
    >>> [len(block.y) for block in rechunked(rows, 5)]
    [5, 3]
    """
    held: list[Rows] = []
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


def _joined(blocks: list[Rows]) -> Rows:
    blocks = [block for block in blocks if len(block.y)] or blocks[:1]
    if len(blocks) == 1:
        return blocks[0]
    shapes = list(dict.fromkeys(block.x.shape[1:] for block in blocks))
    if len(shapes) > 1:
        raise InvalidInput(
            f"rows must all have one shape, got {shapes[0]} and {shapes[1]}. Pad or cut lists."
        )
    return Rows(*(np.concatenate(each) for each in list(zip(*blocks, strict=True))[:3]))


def _without(blocks: Iterator[Rows], count: int) -> Iterator[Rows]:
    """The rows after the first `count`."""
    for block in blocks:
        if count < len(block.y):
            yield block.take(slice(count, None)) if count else block
        count = max(0, count - len(block.y))


def _shuffled(
    blocks: Iterator[Rows], order: Order, place: tuple[int, int], first: int
) -> Iterator[Rows]:
    """Rows in windows, each in a random order; `first` is the number of the first window."""
    for i, window in enumerate(rechunked(blocks, order.window), first):
        random = np.random.default_rng([*(order.seed or ()), *place, i])
        yield window.take(random.permutation(len(window.y)))
