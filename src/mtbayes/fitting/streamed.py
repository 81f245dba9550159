"""Learn from more rows than memory holds.

t, the units and the law of wrong rows are learned from a sample that fits, as from any rows. The
final fit then reads all rows, and the law is calibrated anew on it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mtbayes import _check
from mtbayes.data.stream import Stream
from mtbayes.errors import InvalidInput
from mtbayes.fitting import after
from mtbayes.fitting.fitted import Fitted
from mtbayes.learners import Place
from mtbayes.maths import draws
from mtbayes.types import Array, Rows

SAMPLE = 50_000
"""Rows of the sample; so many or fewer are learned from in memory."""


def survey(stream: Stream, seed: int, *, classes: bool) -> tuple[Array, Rows, Array | None]:
    """Numbers and rows of a sample, and all labels there are: one pass, which checks all rows."""
    labels: list[Any] = []

    def seen(block: Rows) -> Rows:
        if block.x.dtype.kind == "f" and not np.isfinite(block.x).all():
            _check.finite("X", block.x, "Impute or drop such rows first.")
        if classes:
            labels.append(np.unique(block.y))
        return block

    which, sample = stream.map(seen).sample(SAMPLE, seed)
    return which, sample, np.unique(np.concatenate(labels)) if classes else None


def all_rows(fitted: Fitted, stream: Stream, sample: Rows, seed: int, place: Place) -> Fitted:
    """The final fit, from where that of the sample has ended, and the law beside it."""
    if not hasattr(fitted.learner, "stream"):
        raise InvalidInput(
            f"a stream needs a learner that reads rows as they come, got {fitted.learner.name!r}. "
            "Hold the rows in memory."
        )
    units = fitted.units

    def coded(block: Rows) -> Rows:
        return Rows(units.features.apply(block.x), units.targets.code(block.y), block.weight)

    rows = Rows(stream.map(coded), None, None)
    key = draws.key(seed)
    trained = fitted.learner.stream(fitted.state, rows, fitted.t, key, place)
    own = coded(sample)
    unseen = fitted.learner.predictive(trained.state, own.x, fitted.members_key)
    law = type(fitted.law).fit(unseen, own.y, own.weight)
    return after(fitted, trained, law, unseen, own)
