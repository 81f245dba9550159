"""A model of a table: an estimator, and the schema by which rows of files become its numbers."""

from __future__ import annotations

import base64
import hashlib
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from mtbayes.commands.manners import BadUsage, Screen, usage
from mtbayes.data.frames import TASKS, Schema, check_target, learn_schema
from mtbayes.data.reading import Source, open_table
from mtbayes.errors import InvalidInput
from mtbayes.estimators import RobustClassifier, RobustRegressor
from mtbayes.estimators.files import read, save
from mtbayes.types import Array, FloatArray

_KINDS: dict[str, Any] = {"classes": RobustClassifier, "number": RobustRegressor}


@dataclass(frozen=True)
class TableModel:
    """What a model's file holds; nothing else is needed to predict."""

    estimator: Any
    schema: Schema
    seen: Array | None = None
    """A `mark` of each fitted row, in the order of `estimator.held_out_`; None if not kept."""
    sampled: bool = False
    """Whether more rows were fitted, of which there are no marks."""

    def save(self, path: Path) -> None:
        """Write one file, whole or not at all."""
        self.estimator.verbose = 0
        beside = self.schema.as_json()
        if self.seen is not None:
            beside["seen"] = base64.b64encode(self.seen.astype("<u8").tobytes()).decode()
            beside["sampled"] = self.sampled
        save(self.estimator, path, beside)

    @classmethod
    def load(cls, path: Path) -> TableModel:
        """Read it; nothing in it is run."""
        if not path.is_file():
            what = "the folder" if path.is_dir() else "what does not exist,"
            raise InvalidInput(
                f"MODEL must be a file that `mtbayes fit` wrote, got {what} {str(path)!r}. Look "
                "for a misspelt name."
            )
        estimator, beside = read(path)
        if beside is None:
            raise InvalidInput(
                f"{path} must be a model of a table, got an estimator that knows no columns. Load "
                "it with mtbayes.load in Python, or write one with `mtbayes fit`."
            )
        seen = beside.get("seen") if isinstance(beside, dict) else None
        marks = None if seen is None else np.frombuffer(base64.b64decode(seen), "<u8")
        return cls(estimator, Schema.from_json(beside), marks, bool(beside.get("sampled")))


class Rows(NamedTuple):
    """Rows of a file that have a target."""

    table: Any
    """As in the file, those without a target left out."""
    place: Array
    """Where each was among the rows of the file, from 1."""
    x: FloatArray
    y: Array

    def take(self, which: Array) -> Rows:
        """Some of them."""
        return Rows(self.table.take(which), self.place[which], self.x[which], self.y[which])


def mark(rows: Rows) -> Array:
    """A number [n] for each row, by which it is known again: equal rows alone have equal ones."""
    digests = (
        hashlib.blake2b(x.tobytes() + str(y).encode(), digest_size=8).digest()
        for x, y in zip(np.ascontiguousarray(rows.x) + 0.0, rows.y.tolist(), strict=True)
    )
    return np.frombuffer(b"".join(digests), "<u8")


class Settings(NamedTuple):
    """Options of a fit, as a person gave them."""

    t: str
    m: int
    epochs: int | None
    seed: int

    def estimator(self, task: str, *, verbose: bool) -> Any:
        """The estimator for a task."""
        return _KINDS[task](
            m=self.m,
            t=self.t if self.t == "auto" else float(self.t),
            epochs="auto" if self.epochs is None else self.epochs,
            random_state=self.seed,
            verbose=int(verbose),
        )

    def check(self) -> None:
        """Refuse what no estimator takes, before any file is read."""
        try:
            estimator = self.estimator("classes", verbose=False)
        except ValueError:
            raise BadUsage(
                f"t must be auto or a number from 0 to 1, got {self.t!r}. Smaller is more robust."
            ) from None
        usage(estimator._check_parameters)


def learn(
    screen: Screen, source: Source, target: str, task: str | None, settings: Settings, done: Any
) -> tuple[TableModel, Rows]:
    """Fit a file whose rows fit in memory; what is guessed and left out is said aloud."""
    schema, rows = read_file(screen, source, target, task)
    estimator = settings.estimator(schema.task, verbose=screen.bars)
    estimator.fit(rows.x, rows.y, checkpoint=done)
    return TableModel(estimator, schema, mark(rows)), rows


def read_file(screen: Screen, source: Source, target: str, task: str | None) -> tuple[Schema, Rows]:
    """A file to learn from, and how it was read; the task is said aloud."""
    check_task(task)
    usage(check_target, source.names, target)
    table = source.table()
    schema = learn_schema(table, target, task, source.decimal)
    rows = rows_of(screen, source, schema, table)
    screen.line(aloud(schema, rows.y, guessed=task is None))
    return schema, rows


def check_task(task: str | None) -> None:
    """A task that there is, or none."""
    if task is not None and task not in TASKS:
        raise BadUsage(
            f"task must be classes or number, got {task!r}. Leave it out to have it guessed."
        )


def opened(screen: Screen, path: Path) -> Source:
    """A file, with notes on how it is read."""
    source = open_table(path)
    for note in source.notes:
        screen.note(note)
    return source


def rows_of(screen: Screen, source: Source, schema: Schema, table: Any = None) -> Rows:
    """All rows of a file that have a target, as numbers."""
    schema.check(source.names, target=True)
    table = source.table() if table is None else table
    targets = schema.targets(table, decimal=source.decimal)
    if not targets.kept.any():
        raise InvalidInput(f"{schema.target!r} must hold values, got none. Name another target.")
    if not targets.kept.all():
        gone = int((~targets.kept).sum())
        screen.note(f"{gone} rows without a readable {schema.target!r} are left out")
        table = table.filter(targets.kept)
    strays: Counter[str] = Counter()
    x = schema.code(table, decimal=source.decimal, strays=strays)
    note_strays(screen, strays)
    return Rows(table, 1 + np.flatnonzero(targets.kept), x, targets.y)


def note_strays(screen: Screen, strays: Counter[str]) -> None:
    """Say which cells were taken for missing."""
    for name, count in strays.items():
        screen.note(f"{count} cells of {name!r} cannot be read and count as missing")


def aloud(schema: Schema, y: Array, *, guessed: bool) -> str:
    """The task in words."""
    how = ", guessed from its values; --task says otherwise" if guessed else ""
    if schema.task == "number":
        return f"Task: predict the number {schema.target!r}{how}."
    labels = [str(label) for label in np.unique(y)]
    some = ", ".join(labels[:6]) + (", ..." if len(labels) > 6 else "")
    return f"Task: tell {len(labels)} classes of {schema.target!r} apart ({some}){how}."
