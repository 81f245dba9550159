"""Choose t from dirty rows: fit folds along a path of t, score rows that a fit has not seen.

The score of t is the mean log probability of held-out rows under the law that fits them best: good
rows from the calibrated predictive, wrong ones from a noise law (`mtbayes.noise`). Rows are dirty
where they are held out too; the law is what makes them fair judges.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from mtbayes.criteria import Criterion
from mtbayes.predictive import predictive
from mtbayes.solve.checkpoint import Checkpoint
from mtbayes.solve.gradient import Progress, Training, run
from mtbayes.types import Array, FloatArray

_SHARE = 0.2  # of a fit's epochs, for each later t of the path
_DRAWS = 30


class Recipe(NamedTuple):
    """All that fits of one estimator have in common."""

    model: Any
    posterior: Any
    prior: Any
    law: Any
    criterion: Callable[[float], Criterion]
    epochs: int
    batch_size: int
    learning_rate: float


class Rows(NamedTuple):
    """Training rows in the network's units: no two alike, none of weight 0."""

    x: Array
    y: Array
    weight: FloatArray


class Choice(NamedTuple):
    """A t, the law of wrong rows fitted at it, and the table behind it."""

    t: float
    law: Any
    unseen: Any
    """The predictive of every row by a fit that has not seen it, not calibrated."""
    table: list[dict[str, float]]


def folds(rows: Rows, key: Array) -> FloatArray:
    """The fold of each row: five where rows are few, two where they are many."""
    n = len(rows.y)
    count = min(5 if n < 1000 else 3 if n < 5000 else 2, n)
    order = np.asarray(jax.random.permutation(key, n))
    fold = np.empty(n, int)
    fold[order] = np.arange(n) % count
    return fold


def choose(
    recipe: Recipe,
    rows: Rows,
    candidates: tuple[float, ...],
    key: Array,
    *,
    checkpoint: Path | None = None,
    tell: Callable[[float], None] = lambda _: None,
) -> Choice:
    """Fit each fold's complement along `candidates`; `tell` hears the share that is done."""
    fold = folds(rows, jax.random.fold_in(key, 0))
    count = int(fold.max()) + 1
    # Chunks of one length for all fits of the path, so that one compiled program serves them.
    chunk = max(1, round(_SHARE * recipe.epochs / 2))
    lengths = [chunk * max(2, round(recipe.epochs / chunk)), *[2 * chunk] * (len(candidates) - 1)]
    total, done = count * sum(lengths), 0
    unseen: list[list[Any]] = [[None] * count for _ in candidates]
    for k in range(count):
        out, start = fold == k, None
        for i, (t, epochs) in enumerate(zip(candidates, lengths, strict=True)):
            own = jax.random.fold_in(key, 1 + k * len(candidates) + i)
            training = Training(
                recipe.model,
                recipe.criterion(t),
                rows.x,
                rows.y,
                key=own,
                posterior=recipe.posterior,
                prior=recipe.prior,
                weight=np.where(out, 0.0, rows.weight),
                learning_rate=recipe.learning_rate,
                epochs=epochs,
                batch_size=recipe.batch_size,
                start=start,
                chunk=chunk,
            )
            saved = None
            if checkpoint is not None:
                saved = Checkpoint(checkpoint / f"fold-{k}-{i}", training.fingerprint())
            before = done
            start = run(
                training,
                saved=saved,
                callback=partial(_heard, tell, before, total),
            ).state
            done += epochs
            unseen[i][k] = predictive(
                recipe.model, recipe.posterior, start, rows.x[out], key=own, draws=_DRAWS
            )
    joined = [_in_order(parts, fold) for parts in unseen]
    return _best(recipe, rows, candidates, joined)


def _heard(tell: Callable[[float], None], before: int, total: int, progress: Progress) -> None:
    tell((before + progress.epoch) / total)


def _in_order(parts: list[Any], fold: FloatArray) -> Any:
    """The folds' predictives as one, in the order of the rows."""
    axis = parts[0].row_axis
    place = np.argsort(np.argsort(fold, kind="stable"), kind="stable")
    return jax.tree.map(lambda *each: np.concatenate(each, axis).take(place, axis), *parts)


def _best(recipe: Recipe, rows: Rows, candidates: tuple[float, ...], unseen: list[Any]) -> Choice:
    laws = [recipe.law.fit(p, rows.y, rows.weight) for p in unseen]
    scores = np.stack([law.score(p, rows.y) for law, p in zip(laws, unseen, strict=True)])
    best, table = compared(candidates, laws, scores, rows.weight)
    return Choice(candidates[best], laws[best], unseen[best], table)


def compared(
    candidates: tuple[float, ...], laws: list[Any], scores: FloatArray, weight: FloatArray
) -> tuple[int, list[dict[str, float]]]:
    """The place of the best t by scores [candidates, n], and the table behind it."""
    share = weight / weight.sum()
    mean = scores @ share
    # How sure it is that a t is worse than the best: rows are paired. Of those within one standard
    # error the largest is taken, since a smaller t costs rows that are merely unusual.
    gap = scores[int(np.argmax(mean))] - scores
    behind = gap @ share
    error = np.sqrt(np.square(gap - behind[:, None]) @ share / weight.sum())
    taken = int(np.flatnonzero(behind <= error)[0])
    table = [
        {"t": t, "score": float(s), "error": float(e), "contamination": law.epsilon}
        for t, s, e, law in zip(candidates, mean, error, laws, strict=True)
    ]
    return taken, table
