"""Tables in files, as Arrow record batches: CSV and its kin, Parquet, Feather; gzip inside or not.

What a file is, is told by its first bytes and not by its name. Cells of a text file stay text here:
the columns' kinds are settled once, for a whole file, in `coder`.
"""

from __future__ import annotations

import csv
import io
import os
import re
import select
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NoReturn

import pyarrow as pa
import pyarrow.csv

from mtbayes.errors import InvalidInput

MISSING = (
    "", "#N/A", "#NA", "-NaN", "-nan", "<NA>", "N/A", "NA", "NULL", "NaN", "n/a", "nan", "null",
    "?",
)  # fmt: skip
"""How a text file spells a missing value."""

_HEAD = 2**16  # bytes that tell what a file is
_BLOCK = 2**22  # bytes of a text file in one batch
_BATCH = 2**16  # rows of a Parquet file in one batch
_PATIENCE = 10.0  # seconds for somebody to write into a pipe
_LOOK = 0.1  # seconds between two looks
SEPARATOR = re.compile(r'"?sep=(.)"?\s*\r?\n')
"""A line before the header that says which sign is between cells, as Excel writes and reads."""
_DECIMALS = re.compile(r"-?\d+[.,]\d+")  # as no column is called
_DELIMITERS = ",;\t|"
_ENDINGS = {".tsv": "\t", ".tab": "\t"}
_FORMATS = "CSV, TSV, Parquet or Feather, or one of these texts in gzip"


@dataclass(frozen=True)
class Source:
    """A file with a table in it.

    names: of the columns, no two alike
    notes: what a reader should know about how the file was read
    batches: starts to read; batches of rows come in the order of the file
    rows: how many there are, or about so many; None if nobody knows before reading
    dataset: the same as a `pyarrow.dataset.Dataset`, where it is Parquet or Feather
    """

    path: Path
    names: tuple[str, ...]
    batches: Callable[[], Iterator[pa.RecordBatch]]
    notes: tuple[str, ...] = ()
    rows: int | None = None
    dataset: Any = None
    lines: Callable[[int], int] | None = None
    """Of a text: the line at which a row begins, both from 1."""

    def table(self) -> pa.Table:
        """All rows; there must be some."""
        batches = [batch for batch in self.batches() if batch.num_rows]
        if not batches:
            _refuse(self.path, "has a header and no rows", "Look how it was made.")
        return pa.Table.from_batches(batches)

    def where(self, place: int) -> str:
        """Which row is meant, by its place from 0: the line of a text, or its number."""
        return f"row {place + 1}" if self.lines is None else f"line {self.lines(place + 1)}"


def open_table(path: Any) -> Source:
    """A file, or a folder of Parquet files, as a table; what is none is refused in a line."""
    path = Path(path)
    if not path.exists():
        raise InvalidInput(f"file must exist, got {path}. Look for a misspelt name or folder.")
    if path.is_dir():
        return _folder(path)
    if path.is_fifo():
        return _piped(path)
    if not path.is_file():
        _refuse(path, "is a device or a socket", "Name a file, or send its bytes through a pipe.")
    try:
        with path.open("rb") as file:
            head = file.read(_HEAD)
    except OSError as error:
        _refuse(path, f"cannot be read ({error.strerror})", "Look at its permissions.")
    if not head:
        _refuse(path, "is empty", "Look how it was made.")
    for magic, opened in _MAGIC.items():
        if head.startswith(magic):
            return opened(path)
    return _text(path, None)


def _piped(path: Path) -> Source:
    """What comes through a pipe, kept in a temporary file that goes when the table goes."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)  # which would wait for a writer
    try:
        first = _first(descriptor)
        if first is None:
            _refuse(path, "is a pipe into which nobody writes", "Name a file, or start the writer.")
        os.set_blocking(descriptor, True)
        copy = tempfile.NamedTemporaryFile(prefix="mtbayes-")  # noqa: SIM115
        with os.fdopen(os.dup(descriptor), "rb") as pipe:
            copy.write(first)
            shutil.copyfileobj(pipe, copy)
        copy.flush()
    finally:
        os.close(descriptor)
    try:
        source = open_table(copy.name)
    except InvalidInput as error:
        raise InvalidInput(str(error).replace(copy.name, str(path))) from None

    def batches() -> Iterator[pa.RecordBatch]:
        assert copy  # kept, and so deleted with the last reader
        yield from source.batches()

    return replace(source, path=path, batches=batches)


def _first(descriptor: int) -> bytes | None:
    """The first bytes of a pipe, or none yet of a slow writer's; None where nobody writes."""
    look = select.poll()
    look.register(descriptor, select.POLLIN | select.POLLHUP)
    for _ in range(round(_PATIENCE / _LOOK)):
        ready = look.poll(1000 * _LOOK)
        try:
            found = os.read(descriptor, _HEAD)
        except BlockingIOError:  # somebody is there who has written nothing yet
            return b""
        if found or ready:
            return found
    return None


def _refuse(path: Path, what: str, remedy: str) -> NoReturn:
    raise InvalidInput(f"{path} must be a table ({_FORMATS}), but it {what}. {remedy}")


def _parquet(path: Path) -> Source:
    from pyarrow.dataset import dataset as opened  # no text needs it, and it takes long to import
    from pyarrow.parquet import ParquetFile

    def batches() -> Iterator[pa.RecordBatch]:
        with _reading(path), ParquetFile(path) as file:
            for batch in file.iter_batches(_BATCH):
                yield batch.rename_columns(names)

    with _reading(path), ParquetFile(path) as file:
        names, notes = unique(file.schema_arrow.names)
        rows = file.metadata.num_rows
    dataset = opened(path, format="parquet") if not notes else None
    return Source(path, names, batches, notes, rows=rows, dataset=dataset)


def _folder(path: Path) -> Source:
    """Parquet files, also in folders like `year=2024` that make a column."""
    from pyarrow.dataset import dataset as opened

    files = [file for file in path.rglob("[!._]*") if file.is_file()]  # as Arrow looks for them
    strays = [file for file in files if file.suffix != ".parquet"]
    if strays or not files:
        got = str(strays[0].relative_to(path)) if strays else "none"
        raise InvalidInput(
            f"folder must hold files *.parquet and no others, got {got} in {str(path)!r}. Name a "
            "file, or move what does not belong there."
        )
    with _reading(path):
        dataset = opened(path, format="parquet", partitioning="hive")
        rows = dataset.count_rows()

    def batches() -> Iterator[pa.RecordBatch]:
        with _reading(path):
            yield from dataset.to_batches(batch_size=_BATCH)

    return Source(path, tuple(dataset.schema.names), batches, rows=rows, dataset=dataset)


def _feather(path: Path) -> Source:
    from pyarrow.dataset import dataset as opened

    def batches() -> Iterator[pa.RecordBatch]:
        with _reading(path), pa.memory_map(str(path)) as mapped:
            file = pa.ipc.open_file(mapped)
            for i in range(file.num_record_batches):
                yield file.get_batch(i).rename_columns(names)

    with _reading(path), pa.memory_map(str(path)) as mapped:
        file = pa.ipc.open_file(mapped)
        names, notes = unique(file.schema.names)
        rows = sum(file.get_batch(i).num_rows for i in range(file.num_record_batches))
    dataset = opened(path, format="ipc") if not notes else None
    return Source(path, names, batches, notes, rows=rows, dataset=dataset)


def _workbook(path: Path) -> Source:
    _refuse(path, "is an Excel workbook or a zip file", "Save the sheet as CSV, or unpack it.")


_MAGIC: dict[bytes, Callable[[Path], Source]] = {
    b"PAR1": _parquet,
    b"ARROW1": _feather,
    b"PK\x03\x04": _workbook,
    b"\x1f\x8b": lambda path: _text(path, "gzip"),
}


class _reading:
    """Arrow's complaints about a file in our words."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: Any, _: Any) -> None:
        if isinstance(error, (pa.ArrowException, OSError, EOFError, UnicodeError, csv.Error)):
            said = str(error).splitlines()[0][:300].rstrip(". ") if str(error) else kind.__name__
            raise InvalidInput(
                f"{self.path} must be a whole table, but reading it stopped: {said}. Repair that "
                "place, or write the file anew."
            ) from None


# Text.


@dataclass(frozen=True)
class _Dialect:
    """How a text file is written."""

    path: Path
    compression: str | None
    encoding: str
    delimiter: str
    lines: int | None
    header: list[str]
    """Names of the columns; none where the header is longer than what was looked at."""
    skip: int = 0
    """Lines before the header."""
    notes: list[str] = field(default_factory=list)

    def open(self, kinds: dict[str, pa.DataType] | None = None) -> Any:
        """A reader of batches."""
        return pa.csv.open_csv(
            pa.input_stream(str(self.path), compression=self.compression),
            read_options=pa.csv.ReadOptions(
                encoding=self.encoding,
                block_size=_BLOCK,
                use_threads=False,
                skip_rows=self.skip,
            ),
            parse_options=pa.csv.ParseOptions(delimiter=self.delimiter, newlines_in_values=True),
            convert_options=pa.csv.ConvertOptions(
                column_types=kinds, null_values=MISSING, strings_can_be_null=True
            ),
        )

    def fields(self, *, strict: bool = False) -> Any:
        """A reader of lists of cells that knows its line; slow, for what batches do not tell."""
        stream = pa.input_stream(str(self.path), compression=self.compression)
        text = io.TextIOWrapper(stream, encoding=self.encoding, newline="")
        for _ in range(self.skip):
            text.readline()
        return csv.reader(text, delimiter=self.delimiter, strict=strict)

    def line(self, row: int) -> int:
        """The line at which a row begins, both from 1."""
        reader, begin, count = self.fields(), 1, -1
        with _reading(self.path):
            for cells in reader:
                count += bool(cells)
                if count == row:
                    break
                begin = reader.line_num + 1
        return self.skip + begin

    def check_quotes(self) -> None:
        """Refuse a quotation mark that is never closed, which swallows the rest of a file."""
        reader, begin, more = self.fields(strict=True), 1, True
        while more:
            try:
                more = next(reader, None) is not None
            except csv.Error as error:
                if "end of data" in str(error):
                    _refuse(
                        self.path,
                        f"has a quotation mark in line {self.skip + begin} that is never closed",
                        "Close it, or remove it.",
                    )
            begin = reader.line_num + 1


def _text(path: Path, compression: str | None) -> Source:
    with _reading(path):
        dialect = _dialect(path, compression)
        found = dialect.header or dialect.open().schema.names
    names, notes = unique(found)
    if cell := next((name for name in names if _DECIMALS.fullmatch(name)), None):
        notes += (f"the first line is taken for names of columns, {cell!r} among them",)
    kinds = dict.fromkeys(found, pa.string())

    def batches() -> Iterator[pa.RecordBatch]:
        with _reading(path):
            for batch in dialect.open(kinds):
                yield batch.rename_columns(names)

    rows = None if dialect.lines is None else max(0, dialect.lines - 1 - dialect.skip)
    notes = (*dialect.notes, *notes)
    return Source(path, names, batches, notes, rows, lines=dialect.line)


def _dialect(path: Path, compression: str | None) -> _Dialect:
    with pa.input_stream(str(path), compression=compression) as stream:
        head = stream.read(_HEAD)
    notes: list[str] = []
    lines, quoted = None, True
    if head[:2] in (b"\xff\xfe", b"\xfe\xff"):
        encoding = "utf-16"
    elif b"\0" in head:
        _refuse(path, "holds bytes that no text has", "Look whether this is the file you meant.")
    elif (found := _lines_of_utf8(path, compression)) is not None:
        encoding, (lines, quoted) = "utf-8", found
    else:
        encoding = "latin-1"
        notes.append("the file is not UTF-8; it was read as Latin-1, so look at its accents")
        if sum(b < 32 and b not in b"\t\n\r\f\x1a" for b in head) > 0.01 * len(head):
            _refuse(
                path, "holds bytes that no text has", "Look whether this is the file you meant."
            )
    text = head.decode(encoding, errors="ignore").removeprefix("\ufeff")
    if not text.strip():
        _refuse(path, "holds no text", "Look how it was made.")
    if len(head) < _HEAD and len(text.strip().splitlines()) == 1:
        _refuse(path, "has a header and no rows", "Look how it was made.")
    ending = Path(path.name.removesuffix(".gz")).suffix.lower()
    told = SEPARATOR.match(text)
    text = text[told.end() :] if told else text
    delimiter = told.group(1) if told else _ENDINGS.get(ending) or _delimiter(text)
    header = _header(text, delimiter) if len(head) < _HEAD or "\n" in text else []
    skip = 1 if told else 0
    dialect = _Dialect(path, compression, encoding, delimiter, lines, header, skip, notes)
    if quoted:
        dialect.check_quotes()
    return dialect


def _header(text: str, delimiter: str) -> list[str]:
    """The first line that is not empty, cut into its fields."""
    rows = csv.reader(io.StringIO(text), delimiter=delimiter)
    try:
        return next((row for row in rows if row), [])
    except csv.Error:
        return []


def _lines_of_utf8(path: Path, compression: str | None) -> tuple[int, bool] | None:
    """How many lines a text has, and whether it has quotation marks; None if not UTF-8."""
    lines, quoted = 1, False
    with pa.input_stream(str(path), compression=compression) as stream:
        try:
            reader = io.TextIOWrapper(stream, encoding="utf-8", newline="")
            while part := reader.read(2**20):
                lines += part.count("\n")
                quoted = quoted or '"' in part
                last = part
        except UnicodeDecodeError:
            return None
    return lines - last.endswith("\n"), quoted


def _delimiter(text: str) -> str:
    r"""The sign that cuts the first lines into the same number of fields, the most of them.

    >>> _delimiter('a;b\n"1;5";2,5\n')
    ';'
    """
    lines = text.splitlines()[:50]
    lines = lines[:-1] if len(lines) > 2 else lines  # the last one may be cut

    def worth(sign: str) -> tuple[float, int]:
        fields = [len(row) for row in csv.reader(lines, delimiter=sign) if row]
        common, count = Counter(fields).most_common(1)[0]
        return (count / len(fields) if common > 1 else 0.0, common)

    return max(_DELIMITERS, key=worth)


def unique(names: list[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Names no two alike, and a note on those that were.

    Columns without a name are counted by themselves: a target that a later file lacks may stand
    before them.

    >>> unique(["a", "a", "a.1", ""])[0]
    ('a', 'a.2', 'a.1', 'nameless column 1')
    """
    found: list[str] = []
    notes = []
    nameless = 0
    for given in names:
        nameless += not given.strip()
        name, count = given.strip() or f"nameless column {nameless}", 0
        while name in found or (count and name in names):
            count += 1
            name = f"{given.strip()}.{count}"
        if count:
            notes.append(f"a second column is called {given!r}; it is {name!r} here")
        found.append(name)
    return tuple(found), tuple(notes)
