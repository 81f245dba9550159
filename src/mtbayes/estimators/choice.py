"""Choose t from dirty rows: fit folds at several t, score rows that a fit has not seen.

Rows are dirty where they are held out too. So each fit gets the law that explains its held-out rows
best: good ones from the calibrated predictive, wrong ones from a noise law (`mtbayes.noise`). The
law that explains the rows best of all says how likely each is good. The score of t is the mean log
probability of the rows, each counting as much as it is good. (The mean log probability under the
law of t itself would be blind to what a fit at small t is worst at: a good row it is sure to be
wrong costs no more there than a row that is wrong.)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np

from mtbayes.estimators.recipe import MIDDLE, Place, Recipe
from mtbayes.estimators.rows import Rows
from mtbayes.noise import WrongLabels
from mtbayes.predictive import predictive
from mtbayes.types import Array, FloatArray

# Data count as dirty where at least so many rows are wrong, with that confidence.
CLEARLY, LEVEL = 0.005, 0.68
_LOWEST = -1e6  # log probability that is told from a lower one
_NO_TRUST = 1e-9  # a mean probability of being good that rounding makes
_DRAWS = 30


class Choice(NamedTuple):
    """A t, the law of wrong rows fitted at it, and the table behind it."""

    t: float
    law: Any
    unseen: Any
    """The predictive of every row by a fit that has not seen it, not calibrated."""
    table: list[dict[str, float]]


def folds(rows: Rows, key: Array) -> FloatArray:
    """The fold of each row: five where rows are few, three where they are many."""
    n = len(rows.y)
    count = min(5 if n < 5000 else 3, n)
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
    place: Place = Place(),  # noqa: B008  a constant
    tell: Callable[[float], None] = lambda _: None,
) -> Choice:
    """Compare all `candidates` on some folds, then fit the others with the best.

    place: of checkpoints; tell: hears the share that is done
    """
    fold = folds(rows, jax.random.fold_in(key, 0))
    count = int(fold.max()) + 1
    looked = count if len(candidates) == 1 or len(rows.y) < 1000 else 2
    work = _Folds(recipe, rows, fold, key, place, tell)
    work.total = looked * work.cost(len(candidates)) + (count - looked) * work.cost(1)
    parts = [work.fits(k, candidates) for k in range(looked)]
    seen = fold < looked
    some = Rows(rows.x[seen], rows.y[seen], rows.weight[seen])
    unseen = [_in_order(list(each), fold[seen]) for each in zip(*parts, strict=True)]
    best, table = _best(recipe, some, candidates, unseen)
    t = candidates[best]
    rest = [work.fits(k, (t,))[0] for k in range(looked, count)]
    whole = _in_order([*(part[best] for part in parts), *rest], fold)
    return Choice(t, recipe.law.fit(whole, rows.y, rows.weight), whole, table)


class _Folds:
    """Fits of folds' complements, all with chunks of one length: one compiled program serves all.

    Every fit starts at one t, in the middle, and ends at its own, so that candidates differ in
    nothing else and share most of the work.
    """

    def __init__(
        self,
        recipe: Recipe,
        rows: Rows,
        fold: FloatArray,
        key: Array,
        place: Place,
        tell: Callable[[float], None],
    ) -> None:
        self.recipe, self.rows, self.fold, self.key = recipe, rows, fold, key
        self.place, self.tell = place, tell
        self.legs = recipe.legs
        self.total, self.done = 0, 0

    def cost(self, candidates: int) -> int:
        """Epochs of a fold."""
        return self.legs.first + self.legs.second * candidates

    def fits(self, k: int, candidates: tuple[float, ...]) -> list[Any]:
        """The predictive of fold k by a fit to the others, for each candidate."""
        start = self._fit(k, MIDDLE, self.legs.first, None)
        states = [self._fit(k, t, self.legs.second, start) for t in candidates]
        r, out = self.recipe, self.fold == k
        own = jax.random.fold_in(self.key, 1 + k)
        return [
            predictive(r.model, r.posterior, state, self.rows.x[out], key=own, draws=_DRAWS)
            for state in states
        ]

    def _fit(self, k: int, t: float, epochs: int, start: Any) -> Any:
        name = f"fold-{k}-{'start' if start is None else f'{t:g}'}"
        before = self.done
        solution = self.recipe.fit(
            self.rows,
            t,
            jax.random.fold_in(jax.random.fold_in(self.key, 1 + k), round(1000 * t)),
            weight=np.where(self.fold == k, 0.0, self.rows.weight),
            epochs=epochs,
            start=start,
            chunk=self.legs.chunk,
            checkpoint=self.place.file(name),
            callback=lambda p: self.tell((before + epochs * p.share) / self.total),
        )
        self.done += epochs
        return solution.state


def _in_order(parts: list[Any], fold: FloatArray) -> Any:
    """The folds' predictives as one, in the order of the rows."""
    axis = parts[0].row_axis
    place = np.argsort(np.argsort(fold, kind="stable"), kind="stable")
    return jax.tree.map(lambda *each: np.concatenate(each, axis).take(place, axis), *parts)


def _best(
    recipe: Recipe, rows: Rows, candidates: tuple[float, ...], unseen: list[Any]
) -> tuple[int, list[dict[str, float]]]:
    """The place of the t to take, by the predictives of rows that were held out."""
    laws = [recipe.law.fit(p, rows.y, rows.weight) for p in unseen]
    views = [View.of(law, p, rows.y) for law, p in zip(laws, unseen, strict=True)]
    clearest = laws[int(np.argmax([view.explained @ rows.weight for view in views]))]
    if isinstance(clearest, WrongLabels):
        laws = clearest.beside_all(unseen, rows.y, rows.weight)
        views = [View.of(law, p, rows.y) for law, p in zip(laws, unseen, strict=True)]

    def dirty(i: int) -> bool:
        found = laws[i].contamination(unseen[i], rows.y, rows.weight, LEVEL)
        return bool(found.low > CLEARLY)

    return compared(candidates, views, rows.weight, dirty)


class View(NamedTuple):
    """Held-out rows as one t sees them."""

    law: Any
    explained: FloatArray
    """Log probability under the whole law, [n]."""
    good: FloatArray
    """Log probability of a row that is good, [n]."""
    wrong: FloatArray
    """Probability that a row is wrong, [n]."""

    @classmethod
    def of(cls, law: Any, unseen: Any, y: Array) -> View:
        """What a law says about rows y beside their predictive."""
        return cls(
            law, law.score(unseen, y), law.good(unseen, y), law.outlier_probability(unseen, y)
        )


def compared(
    candidates: tuple[float, ...],
    views: list[View],
    weight: FloatArray,
    dirty: Callable[[int], bool],
) -> tuple[int, list[dict[str, float]]]:
    """The place of the t to take, and the table behind it.

    dirty: whether there are clearly wrong rows, as seen from a candidate
    """
    clearest = views[int(np.argmax([view.explained @ weight for view in views]))]
    trust = weight * np.maximum(1 - clearest.wrong, 0.0)
    if trust.sum() < _NO_TRUST * weight.sum():  # no row looks good: none judges better than others
        trust = weight
    share = trust / trust.sum()
    good = np.maximum([view.good for view in views], _LOWEST)
    mean = good @ share
    best = int(np.argmax(mean))
    # How sure it is that a t is worse than the best: rows are paired.
    gap = good[best] - good
    behind = gap @ share
    error = np.sqrt(np.square(gap - behind[:, None]) @ share / weight.sum())
    # Where rows may well be clean, the largest t within two standard errors of the best: a smaller
    # one costs rows that are merely unusual.
    taken = best if dirty(best) else int(np.flatnonzero(behind <= 2 * error)[0])
    table = [
        {"t": t, "score": float(s), "error": float(e), "contamination": view.law.epsilon}
        for t, s, e, view in zip(candidates, mean, error, views, strict=True)
    ]
    return taken, table
