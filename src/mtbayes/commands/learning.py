"""From a file to rows and a model, with what a person should know of it on the screen."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from mtbayes.commands.screen import BadUsage, Screen, usage
from mtbayes.data.coder import Seen, Where, places
from mtbayes.data.reading import Source, open_table
from mtbayes.data.schema import TASKS, Coded, Schema, check_target, learn_table
from mtbayes.errors import InvalidInput
from mtbayes.tables.model import Settings, TableModel, TableRows, mark
from mtbayes.types import Array


def learn(
    screen: Screen,
    source: Source,
    target: str,
    task: str | None,
    settings: Settings,
    done: Any,
    review: Path | None = None,
) -> tuple[TableModel, TableRows]:
    """Fit a file whose rows fit in memory; what is guessed and left out is said aloud.

    review: decisions about some of the rows, which are then certain
    """
    schema, rows = read_file(screen, source, target, task)
    trusted = None
    if review is not None:
        rows, trusted = _reviewed(screen, source, schema, rows, review)
    estimator = settings.estimator(schema.task, verbose=screen.bars)
    estimator.fit(rows.x, rows.y, trusted=trusted, checkpoint=kept_in(done, estimator))
    return TableModel(estimator, schema, mark(rows)), rows


def kept_in(done: Any, estimator: Any) -> Path | None:
    """The folder of a fit's checkpoints; trees keep none, and nobody asked for those."""
    return None if estimator.learner == "trees" else done.folder


def _reviewed(
    screen: Screen, source: Source, schema: Schema, rows: TableRows, path: Path
) -> tuple[TableRows, Array]:
    """Rows as a review has left them, and which of them are certain."""
    from mtbayes.reviewing.applying import certain_rows, missing
    from mtbayes.reviewing.decisions import read_decisions

    about, decisions = read_decisions(path)
    if about != schema.target:
        raise BadUsage(
            f"review must hold decisions about {schema.target!r}, got some about {about!r}. Name "
            "another target, or another review."
        )
    rows, certain, gone = certain_rows(schema, rows, decisions)
    if gone:
        screen.note(missing(source.path, gone, len(decisions)))
    dropped = sum(decision.action == "drop" for decision in decisions.values())
    screen.line(f"From the review: {int(certain.sum())} rows are certain, {dropped} were dropped.")
    return rows, certain


def read_file(
    screen: Screen, source: Source, target: str, task: str | None
) -> tuple[Schema, TableRows]:
    """A file to learn from, and how it was read; the task is said aloud."""
    check_task(task)
    usage(check_target, source.names, target)
    table = source.table()
    schema, coded = learn_table(table, target, task, source.where)
    rows = _kept(screen, schema, table, coded)
    screen.line(aloud(schema, rows.y, guessed=task is None))
    return schema, rows


def _kept(screen: Screen, schema: Schema, table: Any, coded: Coded) -> TableRows:
    """Coded rows beside their cells; what was left out is said aloud."""
    if not coded.kept.all():
        gone = int((~coded.kept).sum())
        screen.note(f"rows without a readable {schema.target!r}, left out: {gone}")
        table = table.filter(coded.kept)
    note_seen(screen, coded.seen)
    for note in coded.notes:
        screen.note(note)
    return TableRows(table, 1 + np.flatnonzero(coded.kept), coded.x, coded.y)


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


def rows_of(
    screen: Screen, source: Source, schema: Schema, table: Any = None, where: Where | None = None
) -> TableRows:
    """All rows of a file that have a target, as numbers.

    table: some of its rows; where: tells a person which of the file's rows each of them is
    """
    schema.check(source.names, target=True)
    table, where = source.table() if table is None else table, where or source.where
    targets = schema.targets(table, where=where)
    if not targets.kept.any():
        raise InvalidInput(f"{schema.target!r} must hold values, got none. Name another target.")
    kept = table if targets.kept.all() else table.filter(targets.kept)
    seen = Seen.nothing()
    x = schema.code(kept, where=places(where, targets.kept), seen=seen)
    return _kept(screen, schema, table, Coded(x, *targets, seen))


def after(source: Source, rows: int) -> Where:
    """Which row of a file is meant, by its place behind so many others."""
    return lambda place: source.where(rows + place)


def note_seen(screen: Screen, seen: Seen) -> None:
    """Say which cells were taken for missing, and which levels the model does not know."""
    for note in seen.notes:
        screen.note(note)


def aloud(schema: Schema, y: Array, *, guessed: bool) -> str:
    """The task in words."""
    how = ", guessed from its values; --task says otherwise" if guessed else ""
    if schema.task == "number":
        return f"Task: predict the number {schema.target!r}{how}."
    labels = [str(label) for label in np.unique(y)]
    some = ", ".join(labels[:6]) + (", ..." if len(labels) > 6 else "")
    return f"Task: tell {len(labels)} classes of {schema.target!r} apart ({some}){how}."
