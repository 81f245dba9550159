"""`mtbayes audit` of images: a folder with a subfolder for each class, or paths in a table."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from mtbayes._files import atomic
from mtbayes.commands.audited import Audited
from mtbayes.commands.learning import kept_in, opened
from mtbayes.commands.outputs import writer
from mtbayes.commands.screen import BadUsage, Screen, percent, usage
from mtbayes.data.coder import Coder
from mtbayes.data.photos import Labelled, Photos, in_columns, in_folders, read_photos
from mtbayes.data.schema import Schema, check_target
from mtbayes.errors import InvalidInput
from mtbayes.estimators import RobustClassifier
from mtbayes.estimators.base import TRUST
from mtbayes.report import photos as drawn
from mtbayes.tables.findings import findings, records
from mtbayes.tables.model import Settings, TableModel

_DRAWN = 60  # images on the page
# Where they are left to us: a choice would take several times as long.
_T, _EPOCHS, _MODES = 0.7, 40, 3


class Asked(NamedTuple):
    """Images to look at; rows: how many there are, those without a path or a label too."""

    labelled: list[Labelled]
    rows: int


def asked(screen: Screen, data: Path, images: str | None, target: str | None) -> Asked:
    """Images in folders, or at paths in a column of a table."""
    if images is None:
        found = in_folders(data)
        return Asked(found, len(found))
    if target is None:
        raise BadUsage("--target must name the column of labels beside --images, got none.")
    source = opened(screen, data)
    for name, what in ((images, "--images"), (target, "target")):
        usage(check_target, source.names, name, what)
    table = source.table()
    found = in_columns(table, images, target, data.parent)
    gone = table.num_rows - len(found)
    if gone:
        screen.note(f"{gone} rows without a {images!r} or a {target!r} are left out")
    return Asked(found, table.num_rows)


def audit_photos(
    screen: Screen,
    given: Asked,
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
    photos = read_photos(given.labelled)
    for name, reason in photos.left_out[:10]:
        screen.note(f"{name} cannot be read and is left out: {reason}")
    if len(photos.left_out) > 10:
        screen.note(f"{len(photos.left_out) - 10} more images cannot be read and are left out")
    classes = sorted(set(photos.labels.tolist()))
    screen.line(f"Task: tell {len(classes)} classes of {len(photos.given)} images apart.")
    estimator, x = _learner(screen, photos, given.rows, embed, settings)
    estimator.fit(x, photos.labels, checkpoint=kept_in(done, estimator))
    model = TableModel(estimator, Schema("label", "classes", False, ".", Coder((), ())))
    judged: Any = estimator.fitted_.training
    found = findings(model, photos.labels, judged, expect)
    paths = {one.row: str(one.path) for one in photos.given}
    ranked = [
        {"rank": i} | record | {"path": paths[record["row"]]}
        for i, record in enumerate(records(found, photos.rows), 1)
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
    screen.line(f"Thumbnails: {page}. Next: mtbayes review {path} --target given")
    likely = int((found.probability > 0.5).sum())
    return Audited("classes", "ranked", len(photos.given), wrong, likely, ranked[:show])


def _learner(
    screen: Screen,
    photos: Photos,
    count: int,
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
    if rows.ndim != 2 or len(rows) != count:
        raise InvalidInput(
            f"--embed must have a row for each of the {count} images, in the order of their paths, "
            f"got shape {rows.shape}."
        )
    how = settings._replace(learner="linear" if settings.learner == "auto" else settings.learner)
    return how.estimator("classes", verbose=screen.bars), rows[photos.rows - 1]
