"""`mtbayes fit` and `audit` on Parquet and Feather that need not fit in memory."""

from __future__ import annotations

import heapq
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mtbayes.commands.audit import Audited, beside, findings, records
from mtbayes.commands.judged import Judged, unseen
from mtbayes.commands.manners import Screen, usage
from mtbayes.commands.model import (
    Rows,
    Settings,
    TableModel,
    aloud,
    check_task,
    mark,
    note_strays,
    rows_of,
)
from mtbayes.commands.writing import writer
from mtbayes.data.frames import Schema, check_target, learn_schema
from mtbayes.data.pieces import Block
from mtbayes.data.stream import open_stream
from mtbayes.errors import InvalidInput
from mtbayes.estimators import streamed
from mtbayes.estimators.progress import bar
from mtbayes.types import Array

if TYPE_CHECKING:
    from mtbayes.data.reading import Source


def is_large(source: Source) -> bool:
    """Whether rows are to be read as they are needed."""
    return source.dataset is not None and (source.rows or 0) > streamed.SAMPLE


def learn_large(
    screen: Screen, source: Source, target: str, task: str | None, settings: Settings, done: Any
) -> tuple[TableModel, Rows]:
    """The schema and t from a sample, the final fit from all rows; the rows are the sample's."""
    check_task(task)
    usage(check_target, source.names, target)
    dataset = source.dataset
    has_target = pc.field(target).is_valid()
    gone = dataset.count_rows(filter=~has_target)
    if gone:
        screen.note(f"{gone} rows without a {target!r} are left out")
        dataset = dataset.filter(has_target)
    count = dataset.count_rows()
    schema = learn_schema(dataset.take(pa.array(_some(count, settings))), target, task)
    estimator = settings.estimator(schema.task, verbose=screen.bars)
    estimator.fit(
        open_stream(dataset, target, decode=lambda batch: coded(schema, batch)),
        None,
        checkpoint=done,
    )
    rows = rows_of(screen, source, schema, dataset.take(pa.array(estimator.sampled_)))
    kept = _with_target(source, target) if gone else np.arange(count)
    rows = rows._replace(place=1 + kept[estimator.sampled_])
    screen.line(aloud(schema, rows.y, guessed=task is None))
    screen.line(
        f"Rows: {count:,} of {len(source.dataset.files)} files, read as they were needed. t, the "
        f"share of wrong rows and the scores below are of {len(rows.y):,} of them, drawn at random."
    )
    return TableModel(estimator, schema, mark(rows), sampled=len(rows.y) < count), rows


def coded(schema: Schema, batch: Any) -> Block:
    """Rows of a data set as numbers; all have a target."""
    targets = schema.targets(batch)
    if not targets.kept.all():
        raise InvalidInput(
            f"{schema.target!r} must be readable in each row, got cells that are not. Mend them, "
            "or choose --task classes."
        )
    return Block(schema.code(batch), targets.y, np.ones(len(targets.y), np.float32))


def learn_sample(
    screen: Screen, source: Source, target: str, task: str | None, settings: Settings, done: Any
) -> tuple[TableModel, Array]:
    """Fit a sample alone, and tell which rows of the files it is, from 0."""
    check_task(task)
    usage(check_target, source.names, target)
    count = source.dataset.count_rows()
    chosen = _some(count, settings)
    table = source.dataset.take(pa.array(chosen))
    schema = learn_schema(table, target, task)
    sample = rows_of(screen, source, schema, table)
    screen.line(aloud(schema, sample.y, guessed=task is None))
    screen.line(f"Learning from {len(sample.y):,} of {count:,} rows, drawn at random.")
    estimator = settings.estimator(schema.task, verbose=screen.bars)
    labels = _labels(source, schema) if schema.task == "classes" else None
    streamed.fit_sample(estimator, sample.x, sample.y, labels, done)
    return TableModel(estimator, schema), chosen[sample.place - 1]


def judge_all(
    screen: Screen,
    source: Source,
    model: TableModel,
    fitted: Array,
    path: Path,
    expect: float | None,
    show: int,
) -> Audited:
    """Judge all rows and write them as they come; `fitted` are those of the sample.

    Rows of the sample are judged by the fits that chose t, which have not seen them; all others by
    the final fit, which has not seen them either.
    """
    schema, strays = model.schema, Counter[str]()
    begin = judged = likely = 0
    heads: list[tuple[tuple[float, float], int, dict[str, Any]]] = []
    with writer(path) as write, bar("judging", shown=screen.bars) as tell:
        for batch in source.batches():
            targets = schema.targets(batch)
            place = begin + np.flatnonzero(targets.kept)
            begin += batch.num_rows
            if len(place):
                x = schema.code(batch, strays=strays)[targets.kept]
                said = _judged(model.estimator, x, targets.y, place, fitted)
                found = findings(model, targets.y, expect, said)
                told = records(found, 1 + place)
                ranked = zip(found.strangeness, (r["row"] for r in told), told, strict=True)
                heads = heapq.nsmallest(show, [*heads, *ranked])
                in_order = [told[i] for i in np.argsort(found.order)]
                own = pa.Table.from_batches([batch]).filter(targets.kept)
                for part in beside(in_order, own).to_batches():
                    write(part)
                judged, likely = judged + len(place), likely + int((found.probability > 0.5).sum())
            tell(begin / (source.rows or begin))
    note_strays(screen, strays)
    if judged < begin:
        screen.note(f"{begin - judged} rows without a readable {schema.target!r} are left out")
    suspects = [{"rank": i} | record for i, (_, _, record) in enumerate(heads, 1)]
    wrong = model.estimator.contamination_
    return Audited(schema.task, "in the order of the files", judged, wrong, likely, suspects)


def _judged(estimator: Any, x: Any, y: Array, place: Array, fitted: Array) -> Judged:
    """What fits that have not seen rows say of them; place, fitted: rows of the files, from 0."""
    said = unseen(estimator, x, y)
    own = np.isin(place, fitted)
    there = np.searchsorted(fitted, place[own])
    for name, values in said._asdict().items():
        values[own] = getattr(estimator, f"{name}_")[there]
    return said


def _with_target(source: Source, target: str) -> Any:
    """Numbers of the rows that have one, from 0."""
    batches = source.dataset.to_batches(columns=[target])
    return np.flatnonzero(np.concatenate([np.asarray(b.column(0).is_valid()) for b in batches]))


def _labels(source: Source, schema: Schema) -> Any:
    """All classes that there are, those that a sample may lack among them."""
    seen = [
        np.unique(schema.targets(batch).y)
        for batch in source.dataset.to_batches(columns=[schema.target])
    ]
    return np.unique(np.concatenate(seen))


def _some(count: int, settings: Settings) -> Any:
    """Numbers of the rows of a sample, from 0, in order."""
    random = np.random.default_rng(settings.seed)
    return np.sort(random.choice(count, min(streamed.SAMPLE, count), replace=False))
