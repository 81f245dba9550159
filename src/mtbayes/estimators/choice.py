"""Choose t from dirty rows: fit folds at several t, score rows that a fit has not seen.

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

_SHARE = 0.2  # of a fit's epochs, for each candidate
_MIDDLE = 0.7  # the t from which they start
_CLEARLY = 0.005  # wrong rows, at least, for data to count as dirty
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
    """Fit each fold's complement at all `candidates`; `tell` hears the share that is done."""
    fold = folds(rows, jax.random.fold_in(key, 0))
    count = int(fold.max()) + 1
    # Chunks of one length for all fits, so that one compiled program serves them.
    chunk = max(1, round(_SHARE * recipe.epochs / 2))
    whole = chunk * max(2, round(recipe.epochs / chunk))
    # One candidate is fitted from scratch; several go out from one fit, all equally far.
    lengths = (
        [whole] if len(candidates) == 1 else [whole - 2 * chunk, *[2 * chunk] * len(candidates)]
    )
    values = candidates if len(candidates) == 1 else (_MIDDLE, *candidates)
    total, done = count * sum(lengths), 0
    unseen: list[list[Any]] = [[None] * count for _ in values]
    for k in range(count):
        out, start = fold == k, None
        for i, (t, epochs) in enumerate(zip(values, lengths, strict=True)):
            own = jax.random.fold_in(key, 1 + k * len(values) + i)
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
                epochs=max(chunk, epochs),
                batch_size=recipe.batch_size,
                start=start,
                chunk=chunk,
            )
            saved = None
            if checkpoint is not None:
                saved = Checkpoint(checkpoint / f"fold-{k}-{i}", training.fingerprint())
            heard = partial(_heard, tell, done, total)
            state = run(training, saved=saved, callback=heard).state
            done += epochs
            if i == 0 and len(values) > 1:
                start = state
                continue
            unseen[i][k] = predictive(
                recipe.model, recipe.posterior, state, rows.x[out], key=own, draws=_DRAWS
            )
    unseen = unseen[-len(candidates) :]
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
    best, table = compared(
        candidates,
        laws,
        scores,
        rows.weight,
        lambda i: laws[i].contamination(unseen[i], rows.y, rows.weight).low > _CLEARLY,
    )
    return Choice(candidates[best], laws[best], unseen[best], table)


def compared(
    candidates: tuple[float, ...],
    laws: list[Any],
    scores: FloatArray,
    weight: FloatArray,
    dirty: Callable[[int], bool],
) -> tuple[int, list[dict[str, float]]]:
    """The place of the t to take by scores [candidates, n], and the table behind it.

    dirty: whether there are clearly wrong rows, as seen from a candidate
    """
    share = weight / weight.sum()
    mean = scores @ share
    best = int(np.argmax(mean))
    # How sure it is that a t is worse than the best: rows are paired.
    gap = scores[best] - scores
    behind = gap @ share
    error = np.sqrt(np.square(gap - behind[:, None]) @ share / weight.sum())
    # Where rows may well be clean, the largest t within one standard error of the best: a smaller
    # one costs rows that are merely unusual.
    taken = best if dirty(best) else int(np.flatnonzero(behind <= error)[0])
    table = [
        {"t": t, "score": float(s), "error": float(e), "contamination": law.epsilon}
        for t, s, e, law in zip(candidates, mean, error, laws, strict=True)
    ]
    return taken, table
