"""What several people said of the rows of a file, in its columns or in a file of its own."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from mtbayes.commands.audited import beside
from mtbayes.commands.learning import aloud, check_task, kept_in, note_seen
from mtbayes.commands.outputs import TABLES, writer
from mtbayes.commands.screen import BadUsage, Screen, usage
from mtbayes.data.coder import cells_of, listed
from mtbayes.data.reading import Source, open_table
from mtbayes.data.schema import Schema, check_target, learn_table
from mtbayes.errors import InvalidInput
from mtbayes.estimators import Annotations
from mtbayes.tables.model import Settings, TableModel, TableRows, mark

CONSENSUS = "consensus"
"""What the target is called where nobody names it."""
_LONG = ("annotator", "label")
_PEOPLE = ("annotator", "worker", "rater", "person", "user", "judge", "expert", "coder", "who")
_LABELS = ("label", "answer", "rating", "class", "response", "score", "value", "given")
_WHOLE = re.compile(r"(0|-?[1-9]\d*)(\.0+)?")  # a whole number, however it was saved


class People(NamedTuple):
    """Options that say where labels of several people are."""

    annotators: str | None
    annotations: Path | None
    row: str | None
    classes: str | None = None

    @property
    def given(self) -> bool:
        """Whether there are any."""
        return any(option is not None for option in self)

    @property
    def words(self) -> tuple[str, ...]:
        """The same as options of a command.

        >>> People("rater_*", None, None).words
        ('--annotators', 'rater_*')
        """
        pairs = ((f"--{name}", value) for name, value in self._asdict().items())
        return tuple(str(word) for pair in pairs if pair[1] is not None for word in pair)

    def check(self, target: str | None) -> None:
        """Refuse options that do not go together."""
        if not self.given:
            if target is None:
                raise BadUsage(
                    "--target must name the column to learn, got none. Add --target NAME, or "
                    "--annotators for columns of labels by several people."
                )
            return
        if (self.annotators is None) == (self.annotations is None):
            raise BadUsage(
                "--annotators (columns of DATA) or --annotations (a file of labels) must be given, "
                "and not both. Choose one."
            )
        if (self.annotations is None) != (self.row is None):
            raise BadUsage(
                "--annotations and --row must be given together: --row names the column by which "
                "rows of DATA are known in the file of labels."
            )

    def check_columns(self, names: Sequence[str]) -> None:
        """Refuse names that no column of the file has, before anything is written."""
        if self.annotators is not None:
            _columns(names, self.annotators)


class Entry(NamedTuple):
    """One label: of which row, from 0, by whom, as text."""

    place: int
    who: str
    text: str


def learn_people(
    screen: Screen,
    source: Source,
    people: People,
    target: str | None,
    task: str | None,
    settings: Settings,
    done: Any,
) -> tuple[TableModel, TableRows]:
    """Fit a file whose rows several people labelled; the target is their consensus."""
    check_task(task)
    target = CONSENSUS if target is None else target
    if target in source.names:
        raise BadUsage(
            f"--target must be a new name beside labels of several people, got the column "
            f"{target!r}. Leave it out, and drop that column if it tells the truth."
        )
    table = source.table()
    entries, gone = _said(source, table, people)
    if people.annotations is not None and gone:
        some = ", ".join(map(repr, gone[:8])) + (", ..." if gone[8:] else "")
        screen.note(f"columns with the names of annotators, left out for the labels there: {some}")
    entries = _spelled(entries)
    _check_labelled(source, table.num_rows, entries)
    schema, rows = _coded(screen, source, table.drop_columns(gone), entries, target, task)
    given = _annotations(schema, entries, table.num_rows, people)
    if schema.task == "classes":
        given.check_labels("--classes a,b,c", source.where)
    screen.line(aloud(schema, given.value, guessed=task is None))
    estimator = settings.estimator(schema.task, verbose=screen.bars)
    estimator.fit(rows.x, given, checkpoint=kept_in(done, estimator))
    if len(given.names) > 1:  # one person's labels are judged as they are
        rows = rows._replace(y=np.asarray(estimator.consensus_))
    return TableModel(estimator, schema, mark(rows)), rows._replace(table=table)


def write_consensus(model: TableModel, rows: TableRows, path: Path, *, safe: bool = False) -> None:
    """The rows of the file, each with its consensus before its cells."""
    estimator = model.estimator
    labels = np.bincount(_voices(estimator.crowd_).row, minlength=len(rows.y))
    records = [
        {
            model.schema.target: value,
            "consensus_probability": round(float(sure), 6),
            "labels": int(count),
        }
        for value, sure, count in zip(
            estimator.consensus_.tolist(), estimator.consensus_probability_, labels, strict=True
        )
    ]
    with writer(path, safe=safe) as write:
        for batch in beside(records, rows.table).to_batches(max_chunksize=2**16):
            write(batch)


def _voices(crowd: Any) -> Any:
    """Who said what of which row."""
    return crowd.votes if hasattr(crowd, "votes") else crowd.ratings


def _said(source: Source, table: Any, people: People) -> tuple[list[Entry], list[str]]:
    """All labels, and the columns of the table that hold them."""
    if people.annotations is None:
        names = _columns(source.names, str(people.annotators))
        found = {name: _wide(table, name) for name in names}
        idle = next((name for name in names if not found[name]), None)
        if idle is not None:
            raise _idle(idle, "columns out of --annotators")
        return [entry for name in names for entry in found[name]], names
    found_long = _long(source, table, people.annotations, str(people.row))
    named = {entry.who for entry in found_long} - {people.row}
    return found_long, [name for name in source.names if name in named]


def _columns(names: Sequence[str], wanted: str) -> list[str]:
    """Columns by their names or by patterns such as rater_*."""
    found: list[str] = []
    parts = [word.strip() for word in wanted.split(",")]
    twice = next((word for word, times in Counter(parts).items() if times > 1), None)
    if twice is not None:
        raise BadUsage(
            f"--annotators must name each column once, got {twice!r} twice. Name another person's."
        )
    for part in parts:
        fitting = [name for name in names if fnmatchcase(name, part)]
        if not fitting:
            _check_no_file(part)
            if set(part) & set("*?["):
                raise BadUsage(
                    f"--annotators must match columns of the file, got the pattern {part!r}, which "
                    f"matches none. There are {listed(names)}."
                )
            usage(check_target, names, part, "--annotators")
        found += [name for name in fitting if name not in found]
    if len(found) == len(names):
        raise BadUsage(
            f"--annotators must leave columns to learn from, got all of them by {wanted!r}. Name "
            "those with labels alone."
        )
    return found


def _check_no_file(word: str) -> None:
    if Path(word).suffix.lower() in TABLES:
        raise BadUsage(
            f"--annotators must name columns of DATA, got the file {word!r}. Add --annotations "
            f"{word} --row ID for a file with a line for each label."
        )


def _wide(table: Any, name: str) -> list[Entry]:
    texts = cells_of(table.column(name)).text.to_pylist()
    return [Entry(i, name, text) for i, text in enumerate(texts) if text is not None]


def _turned(first: str, second: str) -> bool:
    """Whether two columns say by their names that people come after the labels.

    >>> _turned("answer", "worker_id"), _turned("worker_id", "answer"), _turned("a", "b")
    (True, False, False)
    """
    people, labels = (
        [any(word in name.lower() for word in words) for name in (first, second)]
        for words in (_PEOPLE, _LABELS)
    )
    return people == [False, True] or (labels == [True, False] and people != [True, False])


def _long(source: Source, table: Any, path: Path, row: str) -> list[Entry]:
    """Labels of a file with a line for each."""
    usage(check_target, source.names, row, "row")
    other = open_table(path)
    usage(check_target, other.names, row, f"row, in {path.name},")
    who, label = _LONG
    if not {who, label} <= set(other.names):
        rest = [name for name in other.names if name != row]
        if len(rest) != 2:
            raise InvalidInput(
                f"{path} must have the columns {row!r}, 'annotator' and 'label', got "
                f"{', '.join(map(repr, other.names))}. Rename them."
            )
        who, label = rest if not _turned(*rest) else rest[::-1]
    ids = cells_of(table.column(row)).text.to_pylist()
    long = other.table()
    columns = [cells_of(long.column(name)).text.to_pylist() for name in (row, who, label)]
    places = {name: i for i, name in enumerate(ids)}
    if len(places) < len(ids):
        twice = next(name for i, name in enumerate(ids) if places[name] != i)
        raise InvalidInput(
            f"{row!r} must tell rows of {source.path} apart, got {twice!r} twice. Name another "
            "column."
        )
    found: dict[tuple[int, str], str] = {}
    for i, (name, person, text) in enumerate(zip(*columns, strict=True)):
        if person is None and text is not None:
            raise InvalidInput(
                f"{who!r} must say who gave each label, got none for {text!r} in {other.where(i)} "
                f"of {path}. Name the person, or drop such labels."
            )
        if text is None:
            continue
        if name not in places:
            raise InvalidInput(
                f"{row!r} must name rows of {source.path}, got {name!r} in {other.where(i)} of "
                f"{path}, which is none of them. Drop such labels, or add the rows."
            )
        key = places[name], person
        if found.setdefault(key, text) != text:
            raise InvalidInput(
                f"{row!r} {name!r} must have one label by one person, got {found[key]!r} and "
                f"{text!r} by {person!r} in {other.where(i)} of {path}. Keep one of them."
            )
    busy = {person for _, person in found}
    idle = next((v for v in columns[1] if v is not None and v not in busy), None)
    if idle is not None:
        raise _idle(idle, f"lines out of {path}")
    return [Entry(place, person, text) for (place, person), text in found.items()]


def _idle(person: str, what: str) -> InvalidInput:
    return InvalidInput(
        f"every annotator must have given a label, got none by {person!r}. Leave such {what}."
    )


def _spelled(entries: list[Entry]) -> list[Entry]:
    """Whole numbers as such: a column with gaps may be saved as 1.0, one without as 1.

    >>> [entry.text for entry in _spelled([Entry(0, "ann", "1"), Entry(0, "bob", "2.0")])]
    ['1', '2']
    """
    if not all(_WHOLE.fullmatch(entry.text) for entry in entries):
        return entries
    return [entry._replace(text=entry.text.partition(".")[0]) for entry in entries]


def _check_labelled(source: Source, rows: int, entries: list[Entry]) -> None:
    empty = sorted(set(range(rows)) - {entry.place for entry in entries})
    if empty:
        raise InvalidInput(
            f"every row of {source.path} must have a label, got {len(empty)} of {rows} without "
            f"one, the first in {source.where(empty[0])}. Drop such rows; in Python, "
            "`next_labels(budget, X)` says whom to ask about them."
        )


def _coded(
    screen: Screen, source: Source, table: Any, entries: list[Entry], target: str, task: str | None
) -> tuple[Schema, TableRows]:
    """Rows as numbers, beside the label that most people gave."""
    import pyarrow as pa

    votes: dict[int, Counter[str]] = {}
    for entry in entries:
        votes.setdefault(entry.place, Counter())[entry.text] += 1
    most = [votes[i].most_common(1)[0][0] for i in range(table.num_rows)]
    table = table.append_column(target, pa.array(most, pa.string()))
    schema, coded = learn_table(table, target, task, source.where)
    note_seen(screen, coded.seen)
    for note in coded.notes:
        screen.note(note)
    if not coded.kept.all():
        place = int(np.flatnonzero(~coded.kept)[0])
        raise InvalidInput(
            f"labels must be numbers, got {most[place]!r} in {source.where(place)}. Correct it, or "
            "choose --task classes."
        )
    return schema, TableRows(table, 1 + np.arange(len(coded.y)), coded.x, coded.y)


def _annotations(schema: Schema, entries: list[Entry], rows: int, people: People) -> Annotations:
    """Labels as the schema's values."""
    texts = [entry.text for entry in entries]
    values = _values(schema, texts)
    named = None
    if people.classes is not None:
        named = _values(schema, [word.strip() for word in people.classes.split(",")])
    return Annotations.long(
        [entry.place for entry in entries],
        [entry.who for entry in entries],
        values,
        index=range(rows),
        classes=named,
    )


def _values(schema: Schema, texts: list[str]) -> list[Any]:
    """Text as labels or numbers."""
    import pyarrow as pa

    if schema.task == "number":
        numbers, strays = cells_of(pa.array(texts), schema.decimal).numbers()
        if strays:
            strange = texts[int(np.flatnonzero(np.isnan(numbers))[0])]
            raise InvalidInput(
                f"labels must be numbers, got {strange!r}. Correct it, or choose --task classes."
            )
        return [float(v) for v in numbers]
    if not schema.whole:
        return texts
    for text in texts:
        if not text.lstrip("-").isdigit():
            raise InvalidInput(
                f"labels must be whole numbers like the others, got {text!r}. Correct it."
            )
    return [int(text) for text in texts]
