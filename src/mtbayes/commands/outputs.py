"""Files that commands write: checked before the work, kept while it goes on, whole at the end."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from mtbayes._files import Unfinished, atomic
from mtbayes.commands.screen import BadUsage

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
    parent = next(folder for folder in path.absolute().parents if folder.exists())
    if not parent.is_dir() or not os.access(parent, os.W_OK):
        raise BadUsage(
            f"output must be in a folder that can be written, got {path}. Choose another folder."
        )
    return path


@contextmanager
def unfinished(path: Path, resume: bool) -> Iterator[Unfinished]:
    """The folder beside an output that keeps what is done; cleared when the block ends well."""
    work = Unfinished(path.with_name(f"{path.name}.partial"))
    if not resume:
        work.clear()
    yield work
    work.clear()


def stem(path: Path) -> str:
    """A file's name without its endings.

    >>> stem(Path("some/houses.csv.gz"))
    'houses'
    """
    return path.name.removesuffix(".gz").rsplit(".", 1)[0]


@contextmanager
def writer(out: Path | None, *, as_json: bool = False) -> Iterator[Callable[[Any], None]]:
    """What takes record batches: a file that appears when it is whole, or the screen."""
    if out is None:
        yield from (_json_lines() if as_json else _arrow(sys.stdout.buffer, ".csv"))
        sys.stdout.flush()  # here, where a reader that went away is heard of
    else:
        with atomic(out) as temporary:
            yield from _arrow(str(temporary), out.suffix.lower())


def _arrow(sink: Any, ending: str) -> Iterator[Callable[[Any], None]]:
    import pyarrow.csv
    import pyarrow.parquet

    kinds = {
        ".parquet": pyarrow.parquet.ParquetWriter,
        ".feather": pyarrow.ipc.new_file,
        ".arrow": pyarrow.ipc.new_file,
    }
    made: list[Any] = []

    def write(batch: Any) -> None:
        if not made:
            made.append(kinds.get(ending, pyarrow.csv.CSVWriter)(sink, batch.schema))
        made[0].write_batch(batch)

    try:
        yield write
    finally:
        for writer in made:
            writer.close()


def _json_lines() -> Iterator[Callable[[Any], None]]:
    def write(batch: Any) -> None:
        for row in batch.to_pylist():
            sys.stdout.write(json.dumps(row, ensure_ascii=False) + "\n")

    yield write
