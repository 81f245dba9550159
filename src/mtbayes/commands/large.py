"""`mtbayes fit` on Parquet that need not fit in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mtbayes.commands.manners import Screen, usage
from mtbayes.commands.model import (
    Rows,
    Settings,
    TableModel,
    aloud,
    check_task,
    mark,
    rows_of,
)
from mtbayes.data.frames import Schema, check_target, learn_schema
from mtbayes.data.pieces import Block
from mtbayes.data.stream import open_stream
from mtbayes.errors import InvalidInput
from mtbayes.estimators import streamed

if TYPE_CHECKING:
    from mtbayes.data.reading import Source


def is_large(source: Source) -> bool:
    """Whether rows are to be read as they are needed."""
    return source.dataset is not None and source.dataset.count_rows() > streamed.SAMPLE


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
    random = np.random.default_rng(settings.seed)
    chosen = np.sort(random.choice(count, min(streamed.SAMPLE, count), replace=False))
    schema = learn_schema(dataset.take(pa.array(chosen)), target, task)
    estimator = settings.estimator(schema.task, verbose=screen.bars)
    estimator.fit(
        open_stream(dataset, target, decode=lambda batch: coded(schema, batch)),
        None,
        checkpoint=done,
    )
    rows = rows_of(screen, source, schema, dataset.take(pa.array(estimator.sampled_)))
    rows = rows._replace(place=1 + estimator.sampled_)
    screen.line(aloud(schema, rows.y, guessed=task is None))
    screen.line(
        f"Rows: {count:,} of {len(source.dataset.files)} files, read as they were needed. t, the "
        f"share of wrong rows and the scores below are of {len(rows.y):,} of them, drawn at random."
    )
    return TableModel(estimator, schema, mark(rows)), rows


def coded(schema: Schema, batch: Any) -> Block:
    """Rows of a data set as numbers; all have a target."""
    targets = schema.targets(batch)
    if not targets.kept.all():
        raise InvalidInput(
            f"{schema.target!r} must be readable in each row, got cells that are not. Mend them, "
            "or choose --task classes."
        )
    return Block(schema.code(batch), targets.y, np.ones(len(targets.y), np.float32))
