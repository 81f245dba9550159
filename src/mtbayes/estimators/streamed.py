"""Estimators on rows that do not fit in memory.

t, the units and the law of wrong rows are learned from a sample that fits, as from any rows. The
final fit then reads all rows, and the law is calibrated anew on it.
"""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from sklearn.base import is_classifier
from sklearn.utils import check_random_state

from mtbayes import _check
from mtbayes.data.pieces import Block, Stream
from mtbayes.data.stream import open_stream
from mtbayes.estimators.influence import forget
from mtbayes.estimators.progress import in_words
from mtbayes.estimators.recipe import Place
from mtbayes.estimators.rows import Rows
from mtbayes.solve.devices import Devices
from mtbayes.solve.feed import check_size
from mtbayes.types import Array

SAMPLE = 50_000
"""Rows of the sample; so many or fewer are learned from in memory."""
_STEPS = 30_000  # of the fit to all rows with epochs="auto", at least, and at least one epoch


def fit_stream(estimator: Any, x: Any, y: Any, sample_weight: Any, place: Place) -> None:
    """Learn from a data set, an array on disk or an iterator of record batches."""
    stream = open_stream(x, y, sample_weight)
    if len(stream) > max(SAMPLE, estimator.batch_size):  # said now, and not after the folds
        check_size(estimator.batch_size, stream.lanes, Devices.of(place.mesh))
    seed = check_random_state(estimator.random_state).randint(2**31)
    which, sample, labels = _surveyed(stream, seed, is_classifier(estimator))
    estimator._fit_rows(sample.x, sample.y, sample.weight, place, labels)
    estimator.sampled_ = which
    if stream.names is not None:
        estimator.feature_names_in_ = np.array(stream.names, object)
    if len(stream) > SAMPLE:
        _all_rows(estimator, stream, sample, seed, place)


def fit_sample(estimator: Any, x: Array, y: Array, classes: Any, checkpoint: Any) -> None:
    """Learn from a sample alone; classes: all labels there are, where the sample may lack some."""
    estimator._check_parameters()
    estimator._fit_rows(x, y, None, Place.of(checkpoint, None), classes)


def _surveyed(stream: Stream, seed: int, classes: bool) -> tuple[Array, Block, Array | None]:
    """Numbers and rows of a sample, and all labels there are: one pass, which checks all rows."""
    labels: list[Any] = []

    def seen(block: Block) -> Block:
        if block.x.dtype.kind == "f" and not np.isfinite(block.x).all():
            _check.finite("X", block.x, "Impute or drop such rows first.")
        if classes:
            labels.append(np.unique(block.y))
        return block

    which, sample = stream.map(seen).sample(SAMPLE, seed)
    return which, sample, np.unique(np.concatenate(labels)) if classes else None


def _all_rows(estimator: Any, stream: Stream, sample: Block, seed: int, place: Place) -> None:
    """The final fit, from where that of the sample has ended, and the law beside it."""

    def coded(block: Block) -> Block:
        x = estimator.features_.apply(block.x)
        return Block(x, estimator._targets(block.y), block.weight)

    recipe = estimator._recipe(len(stream), estimator._prior())._replace(mesh=place.mesh)
    if estimator.epochs == "auto":
        batches = math.ceil(len(stream) / recipe.batch_size)
        recipe = recipe._replace(epochs=max(1, math.ceil(_STEPS / batches)))
    with estimator._bar() as tell:
        solution = recipe.fit(
            Rows(stream.map(coded), None, None),  # type: ignore[arg-type]
            estimator.t_,
            jax.random.key(seed),
            start=jax.tree.map(jnp.asarray, estimator.state_),
            checkpoint=place.file("all"),
            callback=lambda p: tell(p.share, in_words(p.terms)),
        )
    forget(estimator)
    estimator._keep(solution)
    x, y, weight = coded(sample)
    raw = estimator._raw(x)
    estimator.law_ = type(estimator.law_).fit(raw, y, weight)
    estimator.contamination_ = estimator.law_.contamination(raw, y, weight)
