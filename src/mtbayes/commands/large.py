"""`mtbayes fit` and `audit` on Parquet and Feather that need not fit in memory."""

from __future__ import annotations

import heapq
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mtbayes.commands.audited import Audited, beside
from mtbayes.commands.learning import after, aloud, check_task, note_seen, rows_of
from mtbayes.commands.outputs import writer
from mtbayes.commands.screen import Screen, usage
from mtbayes.data.coder import Seen, Where
from mtbayes.data.schema import Schema, check_target, learn_table
from mtbayes.data.sources import BLOCK, open_stream
from mtbayes.errors import InvalidInput
from mtbayes.fitting import streamed
from mtbayes.progress import Progress, bar
from mtbayes.tables.findings import findings, records
from mtbayes.tables.judging import beside_fitted
from mtbayes.tables.model import Settings, TableModel, TableRows, mark
from mtbayes.types import Array, Rows

if TYPE_CHECKING:
    from mtbayes.data.reading import Source


def is_large(source: Source) -> bool:
    """Whether rows are to be read as they are needed."""
    return source.dataset is not None and (source.rows or 0) > streamed.SAMPLE


def learn_large(
    screen: Screen, source: Source, target: str, task: str | None, settings: Settings, done: Any
) -> tuple[TableModel, TableRows]:
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
    drawn = _some(count, settings)
    schema, _ = learn_table(taken(dataset, drawn), target, task, _among(source, drawn))
    estimator = settings.estimator(schema.task, verbose=screen.bars)
    try:
        stream = open_stream(dataset, target, decode=lambda batch: coded(schema, batch))
        estimator.fit(stream, None, checkpoint=done.folder)
    except InvalidInput:
        _find_contradiction(source, schema)
        raise
    which = estimator.sampled_
    table = taken(dataset, which)
    rows = rows_of(screen, source, schema, table, _among(source, which))
    rows = rows._replace(place=1 + (_with_target(source, target)[which] if gone else which))
    screen.line(aloud(schema, rows.y, guessed=task is None))
    screen.line(
        f"Rows: {count:,} of {len(source.dataset.files)} files, read as they were needed. t, the "
        f"share of wrong rows and the scores below are of {len(rows.y):,} of them, drawn at random."
    )
    return TableModel(estimator, schema, mark(rows), sampled=len(rows.y) < count), rows


def coded(schema: Schema, batch: Any) -> Rows:
    """Rows of a data set as numbers; all have a target."""
    targets = schema.targets(batch)
    if not targets.kept.all():
        raise InvalidInput(
            f"{schema.target!r} must be readable in each row, got cells that are not. Mend them, "
            "or choose --task classes."
        )
    return Rows(schema.code(batch), targets.y, np.ones(len(targets.y), np.float32))


def _find_contradiction(source: Source, schema: Schema) -> None:
    """Refuse the cell that contradicts the style of the sample, if there is one, with its row."""
    begin = 0
    for batch in source.batches():
        where = after(source, begin)
        schema.targets(batch, where=where)
        schema.code(batch, where=where)
        begin += batch.num_rows


def learn_sample(
    screen: Screen, source: Source, target: str, task: str | None, settings: Settings, done: Any
) -> tuple[TableModel, Array]:
    """Fit a sample alone, and tell which rows of the files it is, from 0."""
    check_task(task)
    usage(check_target, source.names, target)
    count = source.dataset.count_rows()
    chosen = _some(count, settings)
    table = taken(source.dataset, chosen)
    where = _among(source, chosen)
    schema, _ = learn_table(table, target, task, where)
    sample = rows_of(screen, source, schema, table, where)
    screen.line(aloud(schema, sample.y, guessed=task is None))
    screen.line(f"Learning from {len(sample.y):,} of {count:,} rows, drawn at random.")
    estimator = settings.estimator(schema.task, verbose=screen.bars)
    labels = _labels(source, schema) if schema.task == "classes" else None
    estimator.fit_sample(sample.x, sample.y, labels, done.folder)
    return TableModel(estimator, schema), chosen[sample.place - 1]


def judge_all(
    screen: Screen,
    source: Source,
    model: TableModel,
    fitted: Array,
    path: Path,
    expect: float | None,
    show: int,
    *,
    safe: bool,
) -> Audited:
    """Judge all rows and write them as they come; `fitted` are those of the sample.

    Rows of the sample are judged by the fits that chose t, which have not seen them; all others by
    the final fit, which has not seen them either.
    """
    schema, seen = model.schema, Seen.nothing()
    begin = judged = likely = 0
    heads: list[tuple[tuple[float, float], int, dict[str, Any]]] = []
    with writer(path, safe=safe) as write, bar("judging", shown=screen.bars) as callback:
        for batch in source.batches():
            where = after(source, begin)
            targets = schema.targets(batch, where=where)
            place = begin + np.flatnonzero(targets.kept)
            begin += batch.num_rows
            if len(place):
                x = schema.code(batch, where=where, seen=seen)[targets.kept]
                known = np.isin(place, fitted)
                among = np.where(known, np.searchsorted(fitted, place), -1)
                said = beside_fitted(model, x, targets.y, among)
                found = findings(model, targets.y, said, expect)
                told = records(found, 1 + place)
                ranked = zip(found.strangeness, (r["row"] for r in told), told, strict=True)
                heads = heapq.nsmallest(show, [*heads, *ranked])
                in_order = [told[i] for i in np.argsort(found.order)]
                own = pa.Table.from_batches([batch]).filter(targets.kept)
                for part in beside(in_order, own).to_batches():
                    write(part)
                judged, likely = judged + len(place), likely + int((found.probability > 0.5).sum())
            callback(Progress(begin / (source.rows or begin)))
    note_seen(screen, seen)
    if judged < begin:
        screen.note(f"rows without a readable {schema.target!r}, left out: {begin - judged}")
    suspects = [{"rank": i} | record for i, (_, _, record) in enumerate(heads, 1)]
    wrong = model.estimator.contamination_
    return Audited(schema.task, "in the order of the files", judged, wrong, likely, suspects)


def taken(dataset: Any, which: Array) -> Any:
    """Rows by their numbers from 0, upwards; little more than a batch is held beside them.

    `Dataset.take` reads many files ahead: hundreds of megabytes of ten million rows.
    """
    parts, begin = [], 0
    for batch in dataset.to_batches(batch_size=BLOCK, batch_readahead=1, fragment_readahead=1):
        first, last = np.searchsorted(which, [begin, begin + batch.num_rows])
        if first < last:
            parts.append(batch.take(pa.array(which[first:last] - begin)))
        begin += batch.num_rows
    return pa.Table.from_batches(parts, dataset.schema)


def _among(source: Source, drawn: Array) -> Where:
    """Which row of the files is meant, by its place among those that were drawn."""
    return lambda place: source.where(int(drawn[place]))


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
