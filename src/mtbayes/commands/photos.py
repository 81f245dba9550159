"""`mtbayes audit` of images: a folder with a subfolder for each class, or paths in a table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from mtbayes._files import atomic
from mtbayes.commands.audited import Audited
from mtbayes.commands.outputs import writer
from mtbayes.commands.screen import BadUsage, Screen, percent
from mtbayes.data.coder import Coder
from mtbayes.data.photos import Photos, read_photos
from mtbayes.data.schema import Schema
from mtbayes.errors import InvalidInput
from mtbayes.estimators import RobustClassifier
from mtbayes.estimators.base import TRUST
from mtbayes.report import photos as drawn
from mtbayes.tables.findings import findings, records
from mtbayes.tables.model import Settings, TableModel

_DRAWN = 60  # images on the page
# Where they are left to us: a choice would take several times as long.
_T, _EPOCHS, _MODES = 0.7, 40, 3


def labelled_in(table: Any, column: str, target: str, folder: Path) -> list[tuple[Path, str]]:
    """Paths in a column, from the folder of the table, each with its label."""
    for name in (column, target):
        if name not in table.column_names:
            raise BadUsage(
                f"columns must be in the file, got {name!r}. There are {table.column_names}."
            )
    both = zip(table.column(column).to_pylist(), table.column(target).to_pylist(), strict=True)
    return [(folder / str(path), str(y)) for path, y in both if path is not None and y is not None]


def audit_photos(
    screen: Screen,
    labelled: list[tuple[Path, str]],
    embed: Path | None,
    settings: Settings,
    done: Any,
    path: Path,
    expect: float | None,
    show: int,
    *,
    safe: bool,
) -> Audited:
    """Rank images by how likely their class is wrong; a page with thumbnails goes beside --out."""
    photos = read_photos(labelled)
    for name, reason in photos.left_out[:10]:
        screen.note(f"{name} cannot be read and is left out: {reason}")
    if len(photos.left_out) > 10:
        screen.note(f"{len(photos.left_out) - 10} more images cannot be read and are left out")
    classes = sorted(set(photos.labels.tolist()))
    screen.line(f"Task: tell {len(classes)} classes of {len(photos.paths)} images apart.")
    estimator, x = _learner(screen, photos, labelled, embed, settings)
    estimator.fit(x, photos.labels, checkpoint=done.folder)
    model = TableModel(estimator, Schema("label", "classes", False, ".", Coder((), ())))
    judged: Any = estimator.fitted_.training
    found = findings(model, photos.labels, judged, expect)
    places = 1 + np.arange(len(photos.paths))
    ranked = [
        {"rank": i} | record | {"path": str(photos.paths[record["row"] - 1])}
        for i, record in enumerate(records(found, places), 1)
    ]
    with writer(path, safe=safe) as write:
        for batch in pa.Table.from_pylist(ranked).to_batches(max_chunksize=2**16):
            write(batch)
    wrong = estimator.contamination_
    page = path.with_suffix(".html")
    about = [f"Estimated share of wrong labels: {percent(wrong.value)}, {wrong.words}."]
    about += [f"Left out: {name} ({reason})." for name, reason in photos.left_out[:50]]
    with atomic(page) as temporary:
        text = drawn.page("Images that may be in the wrong class", about, ranked[:_DRAWN])
        temporary.write_text(text, encoding="utf-8")
    screen.line(f"Thumbnails: {page}")
    likely = int((found.probability > 0.5).sum())
    return Audited("classes", "ranked", len(photos.paths), wrong, likely, ranked[:show])


def _learner(
    screen: Screen,
    photos: Photos,
    labelled: list[tuple[Path, str]],
    embed: Path | None,
    settings: Settings,
) -> tuple[RobustClassifier, Any]:
    """The estimator, and rows for it: embeddings for a linear map, or pixels for a small CNN."""
    if embed is None:
        t = str(_T) if settings.t == "auto" else settings.t
        m = "1" if settings.m == "auto" else settings.m
        own = settings._replace(t=t, m=m, epochs=settings.epochs or _EPOCHS, learner="auto")
        estimator = own.estimator("classes", verbose=screen.bars)
        return estimator.set_params(network="cnn", modes=_MODES, beta=TRUST * int(m)), photos.pixels
    try:
        rows = np.load(embed, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise InvalidInput(
            f"--embed must be a .npy file of numbers, got {embed}: {error}"
        ) from None
    if rows.ndim != 2 or len(rows) != len(labelled):
        raise InvalidInput(
            f"--embed must have a row for each of the {len(labelled)} images, in the order of "
            f"their paths, got shape {rows.shape}."
        )
    read = {str(path) for path in photos.paths}
    kept = np.array([str(path) in read for path, _ in labelled])
    how = settings._replace(learner="linear" if settings.learner == "auto" else settings.learner)
    return how.estimator("classes", verbose=screen.bars), rows[kept]
