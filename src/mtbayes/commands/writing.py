"""Tables that are written a batch at a time."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

TABLES = (".csv", ".parquet", ".feather", ".arrow")
"""Endings of files that can be written."""


@contextmanager
def writer(out: Path | None, *, as_json: bool = False) -> Iterator[Callable[[Any], None]]:
    """What takes record batches: a file that appears when it is whole, or the screen."""
    from mtbayes._files import atomic

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
