"""Files that commands write: checked before the work, kept while it goes on, whole at the end."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from mtbayes._files import Unfinished, atomic
from mtbayes.commands.screen import BadUsage, shown
from mtbayes.commands.screen import as_json as line_of_json

try:
    import fcntl
except ImportError:  # where there is none, two commands are told apart by their outputs alone
    fcntl = None  # type: ignore[assignment]

TABLES = (".csv", ".parquet", ".feather", ".arrow")
"""Endings of files that can be written."""


def new_file(path: Path, force: bool, endings: tuple[str, ...] = ()) -> Path:
    """A path to write to, with one of the endings if there are any.

    It is no folder, no file that exists unless by force, and can be written: seen before hours go
    into what is to be written.
    """
    if path.is_dir():
        raise BadUsage(f"output must be a file, got the folder {str(path)!r}. Add a file's name.")
    if endings and path.suffix.lower() not in endings:
        raise BadUsage(f"output must end in {' or '.join(endings)}, got {path}. Rename it.")
    if path.exists() and not force:
        raise BadUsage(
            f"output must be a new file, but {path} exists. Add --force to write over it, or name "
            "another."
        )
    parent = _folder(path)
    if not parent.is_dir() or not os.access(parent, os.W_OK):
        raise BadUsage(
            f"output must be in a folder that can be written, got {path}. Choose another folder."
        )
    return path


def _folder(path: Path) -> Path:
    """The nearest folder above a path that there is."""
    return next(folder for folder in path.absolute().parents if folder.exists())


@contextmanager
def unfinished(path: Path, resume: bool, force: bool) -> Iterator[Unfinished]:
    """The folder beside an output that keeps what is done; cleared when the block ends well."""
    work = Unfinished(path.with_name(f"{path.name}.partial"))
    with _claimed(path):
        new_file(path, force)  # again: another command may have ended since it was first seen
        if not resume:
            work.clear()
        yield work
        work.clear()


@contextmanager
def _claimed(path: Path) -> Iterator[None]:
    """No other command writes to this path meanwhile; a claim ends with its process."""
    lock = _folder(path) / f".{path.name}.lock"
    try:
        file = _locked(lock)
    except BlockingIOError:
        raise BadUsage(
            f"output must not be written by two commands at once, but another one is at work "
            f"on {path}. Wait for it, or name another output."
        ) from None
    with file:
        try:
            yield
        finally:
            lock.unlink(missing_ok=True)


def _locked(lock: Path) -> Any:
    """A locked file that is still there: one that ends at this moment removes its own."""
    while True:
        file = lock.open("w")
        try:
            if fcntl is not None:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.path.samestat(os.fstat(file.fileno()), lock.stat()):
                return file
        except FileNotFoundError:
            pass
        except BlockingIOError:
            file.close()
            raise
        file.close()


def stem(path: Path) -> str:
    """A file's name without its endings.

    >>> stem(Path("some/houses.csv.gz"))
    'houses'
    """
    return path.name.removesuffix(".gz").rsplit(".", 1)[0]


@contextmanager
def writer(
    out: Path | None, *, as_json: bool = False, safe: bool = False
) -> Iterator[Callable[[Any], None]]:
    """What takes record batches: a file that appears when it is whole, or the screen.

    safe: whether cells of CSV that a spreadsheet would take for formulas are marked as text
    """
    if out is None:
        yield from (_json_lines() if as_json else _arrow(sys.stdout.buffer, ".csv", safe))
        sys.stdout.flush()  # here, where a reader that went away is heard of
    else:
        with atomic(out) as temporary:
            yield from _arrow(str(temporary), out.suffix.lower(), safe)


def _arrow(sink: Any, ending: str, safe: bool) -> Iterator[Callable[[Any], None]]:
    import pyarrow.csv
    import pyarrow.parquet

    from mtbayes.data.safe import safe_cells

    kinds = {
        ".parquet": pyarrow.parquet.ParquetWriter,
        ".feather": pyarrow.ipc.new_file,
        ".arrow": pyarrow.ipc.new_file,
    }
    made: list[Any] = []

    text = ending not in kinds

    def write(batch: Any) -> None:
        if text and safe:
            batch = safe_cells(batch)
        if text and sys.stdout.isatty() and not isinstance(sink, str):
            batch = _printable(batch)
        if not made:
            made.append(kinds.get(ending, pyarrow.csv.CSVWriter)(sink, batch.schema))
        made[0].write_batch(batch)

    try:
        yield write
    finally:
        for writer in made:
            writer.close()


def _printable(batch: Any) -> Any:
    """A record batch whose text does nothing to a terminal."""
    import pyarrow as pa

    columns = [
        pa.array([None if v is None else shown(v) for v in column.to_pylist()], pa.string())
        if pa.types.is_string(column.type)
        else column
        for column in batch.columns
    ]
    return pa.RecordBatch.from_arrays(columns, names=[shown(n) for n in batch.schema.names])


def _json_lines() -> Iterator[Callable[[Any], None]]:
    def write(batch: Any) -> None:
        for row in batch.to_pylist():
            sys.stdout.write(line_of_json(row) + "\n")

    yield write
