"""The bytes of a table's file: some target cells replaced, some rows gone, all else as it was."""

from __future__ import annotations

import csv
import gzip
import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet

from mtbayes._files import atomic
from mtbayes.data.reading import MISSING, SEPARATOR, Source, unique
from mtbayes.errors import InvalidInput
from mtbayes.reviewing.decisions import Decision

_DELIMITERS = ",;\t|: "
_MAGIC = {b"PAR1": ".parquet", b"ARROW1": ".feather", b"\x1f\x8b": ".gz"}


def kind_of(path: Path) -> str:
    """What a file is by its first bytes: .parquet, .feather, .gz or plain text, "".

    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     _ = file.write(b"PAR1"), file.flush()
    ...     kind_of(Path(file.name))
    '.parquet'
    """
    if path.is_dir():
        raise InvalidInput(
            f"DATA must be one file for a review, got the folder {path}. Name one of its files."
        )
    with path.open("rb") as file:
        head = file.read(8)
    return next((ending for magic, ending in _MAGIC.items() if head.startswith(magic)), "")


def write_clean(
    source: Source, target: str, decisions: dict[int, Decision], out: Path, rows: int
) -> None:
    """The file with decisions followed; decisions: by the row they are about, from 0."""
    kind = kind_of(source.path)
    with atomic(out) as temporary:
        if kind in (".parquet", ".feather"):
            _write_table(_changed(source.table(), target, decisions), temporary, kind)
            return
        raw = source.path.read_bytes()
        clean = _clean_text(gzip.decompress(raw) if kind else raw, source, target, decisions, rows)
        packed = out.suffix.lower() == ".gz"
        temporary.write_bytes(gzip.compress(clean, mtime=0) if packed else clean)


# Parquet and Feather.


def _changed(table: Any, target: str, decisions: dict[int, Decision]) -> Any:
    place = table.column_names.index(target)
    column = table.column(place)
    flat = (
        pc.cast(column, column.type.value_type) if pa.types.is_dictionary(column.type) else column
    )
    cells = flat.to_pylist()
    for row, decision in decisions.items():
        if decision.action == "correct":
            cells[row] = _typed(decision.value, flat.type)
    new = pa.array(cells, flat.type)
    if pa.types.is_dictionary(column.type):
        new = new.dictionary_encode().cast(column.type)
    gone = {row for row, decision in decisions.items() if decision.action == "drop"}
    kept = pa.array([i for i in range(len(cells)) if i not in gone], pa.int64())
    return table.set_column(place, table.schema.field(place), new).take(kept)


def _typed(value: str, kind: Any) -> Any:
    """A value as a cell of a column."""
    try:
        return pc.cast(pa.array([value]), kind)[0].as_py()
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise InvalidInput(
            f"a corrected target must be a {kind} as the others are, got {value!r}. Undo it in the "
            "review, or convert the column."
        ) from None


def _write_table(table: Any, path: Path, kind: str) -> None:
    if kind == ".parquet":
        pa.parquet.write_table(table, path)
        return
    with pa.ipc.new_file(str(path), table.schema) as writer:
        writer.write_table(table)


# Text.


class _Row(NamedTuple):
    """Where a row is in a text, its line's end included, and where its target is."""

    begin: int
    end: int
    cell: tuple[int, int]


def _clean_text(
    raw: bytes, source: Source, target: str, decisions: dict[int, Decision], rows: int
) -> bytes:
    encoding = _encoding(raw)
    text = raw.decode(encoding)
    told = SEPARATOR.match(text.removeprefix("\ufeff"))
    begin = text.startswith("\ufeff") + (told.end() if told else 0)
    delimiter = told.group(1) if told else _delimiter(text, begin, source.names)
    found = _rows_of(text, begin, delimiter, source.names.index(target))
    next(found)  # the header
    spans = list(found)
    if len(spans) != rows:
        _lost(source.path, f"{len(spans)} rows were found where {rows} were read")
    parts, done = [], 0
    for row in sorted(decisions):
        span, decision = spans[row], decisions[row]
        before = text[slice(*span.cell)]
        if not _same(unquoted(before), decision.given):
            _lost(source.path, f"row {row + 1} holds {before!r} and not {decision.given!r}")
        if decision.action == "drop":
            parts.append(text[done : span.begin])
            done = span.end
        elif decision.action == "correct":
            parts += [text[done : span.cell[0]], _quoted(decision.value, before, delimiter)]
            done = span.cell[1]
    try:
        return "".join([*parts, text[done:]]).encode(encoding)
    except UnicodeEncodeError as error:
        raise InvalidInput(
            f"corrected targets must have characters of the file's encoding, {encoding}, got "
            f"{error.object[error.start : error.end]!r}. Save {source.path} as UTF-8 first."
        ) from None


def _encoding(raw: bytes) -> str:
    """One that turns bytes into text and back without a loss; a mark at the start stays in it."""
    marks = {b"\xff\xfe": "utf-16-le", b"\xfe\xff": "utf-16-be"}
    if raw[:2] in marks:
        return marks[raw[:2]]
    try:
        raw.decode("utf-8")
    except UnicodeDecodeError:
        return "latin-1"
    return "utf-8"


def _delimiter(text: str, begin: int, names: tuple[str, ...]) -> str:
    """The sign that cuts the header into these names."""
    for sign in _DELIMITERS:
        row = next(_rows_of(text, begin, sign, 0), None)
        if row is None:
            continue
        head = text[row.begin : row.end]
        if unique(next(csv.reader(io.StringIO(head), delimiter=sign), []))[0] == names:
            return sign
    raise InvalidInput(
        f"the file's first line must hold the names of its columns ({', '.join(names[:5])}, ...), "
        "but they are not found there. Save it as CSV with a header."
    )


def _rows_of(text: str, begin: int, delimiter: str, place: int) -> Iterator[_Row]:
    """Rows that are not empty, from a place on; a cell that its row does not have is (0, 0)."""
    sign = re.escape(delimiter)
    field = rf'(?>"[^"]*(?:""[^"]*)*"[^{sign}\r\n]*|[^{sign}\r\n]*)'
    end = r"(?:\r\n|\n|\r|\Z)"
    whole = re.compile(rf"(?:{field}{sign}){{{place}}}({field})(?:{sign}{field})*{end}")
    short = re.compile(rf"{field}(?:{sign}{field})*{end}")
    at = begin
    while at < len(text):
        if text[at] in "\r\n":
            at += 1
            continue
        match = whole.match(text, at)
        if match is not None:
            yield _Row(at, match.end(), match.span(1))
        else:
            match = short.match(text, at)
            assert match is not None  # a field may be empty
            yield _Row(at, match.end(), (0, 0))
        at = match.end()


def unquoted(cell: str) -> str:
    """A cell without its quotes.

    >>> unquoted('"so ""big"" it is"')
    'so "big" it is'
    """
    if not cell.startswith('"'):
        return cell
    inside, _, rest = cell[1:].rpartition('"')
    return inside.replace('""', '"') + rest


def _quoted(value: str, before: str, delimiter: str) -> str:
    """A value as a cell, in quotes where the one before was or where it needs them."""
    if before.startswith('"') or any(sign in value for sign in (delimiter, '"', "\r", "\n")):
        return '"' + value.replace('"', '""') + '"'
    return value


def _same(cell: str, given: str) -> bool:
    return cell.strip() == given.strip() or (cell.strip() in MISSING and given.strip() in MISSING)


def _lost(path: Path, what: str) -> None:
    raise InvalidInput(
        f"{path} must be written as it was read, but {what}. Look for a quote that is not closed, "
        "or save the file anew as CSV."
    )
