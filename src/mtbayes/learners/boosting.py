"""Boosted trees, of LightGBM's growing: it shows its trees, so that files can hold them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.special import entr, log_softmax

from mtbayes._values import must, storable
from mtbayes.learners import MEMBERS, Crossing, Place
from mtbayes.learners.folds import FLOOR, mean_log_t, pull, seed_of
from mtbayes.learners.grove import Grove, Tree
from mtbayes.predictives import ClassPredictive, GaussianPredictive
from mtbayes.progress import Progress
from mtbayes.types import Array, FloatArray, Rows

_ROUNDS, _TREES, _LEAST = 200, 600, 40  # rounds at most, and trees of all classes together
_NUMBER_ROUNDS = 400  # of a number, whose trees are few
_RATE = 0.07  # of as many rounds as there are at most
_LENGTHS = (0.1, 0.25, 0.5, 1.0)  # of the rounds, of which unseen rows choose
_LIMIT = 30.0  # of a score, whose softmax is then a number
_SPREAD_ROUNDS = 40
# Also while rows are read: what it prints would mix with ours, and threads that wait spin.
_QUIET: dict[str, Any] = {"verbose": -1, "num_threads": 1}
_USUAL = _QUIET | {
    "learning_rate": _RATE,
    "num_leaves": 15,
    "min_child_samples": 5,
    "feature_fraction": 0.7,
    "bagging_fraction": 0.8,
    "bagging_freq": 1,
    "lambda_l2": 1.0,
    "max_bin": 127,
    "deterministic": True,
    "force_col_wise": True,
    "feature_pre_filter": False,
}


@storable
class BoostingState(NamedTuple):
    """Trees of all folds, whose leaves add up to scores of the classes, or to the number.

    group: [T], fold · scores + score of each tree
    spread: the same for the log of a number's absolute error; None for classes
    """

    grove: Grove
    group: Array
    folds: int
    spread: Any = None


@storable
@dataclass(frozen=True)
class BoostingLearner:
    """Small trees that each mend what those before them have left.

    classes: how many; 0 for numbers
    absolute: of numbers, whether trees aim at the absolute error or the squared one
    """

    classes: int
    absolute: bool = False
    name = "boosting"
    threaded = True

    @property
    def _scores(self) -> int:
        return self.classes if self.classes > 2 else 1

    @property
    def _rounds(self) -> int:
        if not self.classes:
            return _NUMBER_ROUNDS
        return int(np.clip(_TREES // self._scores, _LEAST, _ROUNDS))

    def crossed(
        self, rows: Rows, fold: Array, t: float, key: Array, *, place: Place = Place()
    ) -> Crossing:
        """Trees for each fold's other rows; at t < 1 with weights, once `inner` is known."""
        folds, n = int(fold.max()) + 1, len(rows.y)
        seed = seed_of(key) - folds
        x = np.asarray(rows.x, float)
        lengths = sorted({max(1, round(share * self._rounds)) for share in _LENGTHS})

        def at(t: float, inner: FloatArray | None, place: Place) -> Crossing:
            weight = rows.weight * np.broadcast_to(pull(inner, t, rows.trusted), (folds, n))
            seen = [fold != k for k in range(folds)]
            worth, scores = list[float](), list[FloatArray]()

            def planted(k: int) -> Any:
                return self._planted(x[seen[k]], rows.y[seen[k]], weight[k, seen[k]], seed + k)

            def said(k: int, rounds: int) -> Array:
                """Of the rows of a fold by so many rounds of the others."""
                _grow(grown[k], rounds)
                return np.asarray(grown[k].predict(x[~seen[k]], raw_score=True, **_QUIET))

            with _threads(folds) as threads:
                grown = [own.submit(planted, k).result() for k, own in enumerate(threads)]
                for i, length in enumerate(lengths):
                    scores.append(np.empty((n, self._scores)))
                    waits = [own.submit(said, k, length) for k, own in enumerate(threads)]
                    for k, wait in enumerate(waits):
                        scores[-1][~seen[k]] = np.reshape(wait.result(), (-1, self._scores))
                        done = (i + (k + 1) / folds) / len(lengths)
                        place.callback(Progress(done, f"{self.name} at t = {t:g}"))
                    worth.append(self._worth(scores[-1], rows, t))
                    if worth[-1] < max(worth):  # the rows by heart: more trees make it worse
                        break
            best = int(np.argmax(worth))
            spread, unseen_spread = None, None
            if not self.classes:
                error = np.log(np.abs(rows.y - scores[best][:, 0]) + FLOOR)
                spread, unseen_spread = _spread(x, error, weight, fold, seed)
            unseen = self._said(
                scores[best][None], None if unseen_spread is None else unseen_spread[None]
            )

            def state(_: Place) -> BoostingState:
                grove, group = _grove(grown, lengths[best], self._scores)
                return BoostingState(grove, group, folds, None if spread is None else spread())

            return Crossing(t, unseen, state, at, None, "Grown.")

        return at(t, None, place)

    def predictive(
        self, state: BoostingState, x: Array, key: Array, members: int = MEMBERS
    ) -> ClassPredictive | GaussianPredictive:
        """The mean over the folds of what each says."""
        x = np.asarray(x, float)
        scores = state.grove.sums(x, state.group, state.folds * self._scores)
        scores = np.moveaxis(scores[..., 0].reshape(state.folds, self._scores, -1), 1, 2)
        if state.spread is None:
            return self._said(scores, None)
        grove, group = state.spread
        return self._said(scores, grove.sums(x, group, state.folds)[..., 0])

    def check(self, state: Any, shape: tuple[int, ...], classes: int) -> None:
        """Trees that ask for columns that there are, of every fold and score."""
        must(isinstance(state, BoostingState) and self.classes == classes, "boosted trees")
        must(state.folds > 0 and (state.spread is None) == bool(classes), "boosted trees")
        groves = [(state.grove, state.group, self._scores)]
        if state.spread is not None:
            groves.append((*state.spread, 1))
        for grove, group, scores in groves:
            must(isinstance(grove, Grove), "trees")
            grove.check(shape[0])
            grove.check_leaves(group, 1, state.folds * scores)

    def _planted(self, x: Array, y: Array, weight: FloatArray, seed: int) -> Any:
        """LightGBM's, before its first tree.

        It is imported where trees grow: in a thread, while networks are trained.
        """
        import lightgbm

        aim = {"objective": "multiclass", "num_class": self.classes}
        if self.classes <= 2:
            number = "regression_l1" if self.absolute else "regression"
            aim = {"objective": "binary" if self.classes else number}
        rate = min(0.2, _RATE * max(1.0, _ROUNDS / self._rounds))
        settings = _USUAL | aim | {"seed": seed, "learning_rate": rate}
        return lightgbm.Booster(settings, lightgbm.Dataset(x, y, weight=weight, params=_QUIET))

    def _said(
        self, scores: FloatArray, spread: FloatArray | None
    ) -> ClassPredictive | GaussianPredictive:
        """From scores [folds, n, C or 1] and the log of the absolute error [folds, n]."""
        if not self.classes:
            assert spread is not None
            std = np.maximum(np.exp(spread.mean(axis=0)), FLOOR)
            return GaussianPredictive(scores[..., 0].mean(axis=0)[None], std[None])
        logs = self._log_softmax(scores)
        probs = np.exp(logs)
        return ClassPredictive(np.log(probs.mean(axis=0)), entr(probs).sum(axis=2).mean(axis=0))

    def _log_softmax(self, scores: FloatArray) -> FloatArray:
        scores = np.clip(scores, -_LIMIT, _LIMIT)
        if self.classes == 2:
            scores = np.concatenate([np.zeros_like(scores), scores], axis=-1)
        return np.asarray(log_softmax(scores, axis=-1))

    def _worth(self, scores: FloatArray, rows: Rows, t: float) -> float:
        """How well scores [n, C or 1] of unseen rows say their targets.

        Classes: the criterion's own data term. Numbers: the absolute error, since their scale, of
        which a density would have to know, is found afterwards.
        """
        if not self.classes:
            return -float(np.average(np.abs(rows.y - scores[:, 0]), weights=rows.weight))
        logs = self._log_softmax(scores)[np.arange(len(rows.y)), rows.y]
        return mean_log_t(logs, t, rows.weight)


@contextmanager
def _threads(count: int) -> Iterator[list[ThreadPoolExecutor]]:
    """One for each fold, which LightGBM lets run beside each other.

    It is quiet only in the thread that has told it to be: trees grow where they were planted.
    """
    with ExitStack() as stack:
        yield [stack.enter_context(ThreadPoolExecutor(1, "mtbayes-folds")) for _ in range(count)]


def _grow(booster: Any, rounds: int) -> None:
    """To so many rounds, or until no tree mends anything."""
    while booster.current_iteration() < rounds:
        if booster.update():
            break


def _spread(
    x: FloatArray, error: FloatArray, weight: FloatArray, fold: Array, seed: int
) -> tuple[Any, FloatArray]:
    """The log of the absolute error by x: what makes its trees, and what they say unseen."""
    import lightgbm

    said, grown = np.empty(len(error)), []
    settings = _USUAL | {"objective": "regression", "num_leaves": 7, "min_child_samples": 20}
    for k in range(int(fold.max()) + 1):
        seen = fold != k
        data = lightgbm.Dataset(x[seen], error[seen], weight=weight[k, seen], params=_QUIET)
        grown.append(lightgbm.train(settings | {"seed": seed + k}, data, _SPREAD_ROUNDS))
        said[~seen] = np.asarray(grown[-1].predict(x[~seen], **_QUIET))
    return lambda: _grove(grown, _SPREAD_ROUNDS, 1), said


def _grove(boosters: Sequence[Any], rounds: int, scores: int) -> tuple[Grove, Array]:
    """The trees of the first rounds of each booster, and the group of each tree."""
    trees, group = list[Tree](), list[int]()
    for k, booster in enumerate(boosters):
        _, *blocks = booster.model_to_string(num_iteration=rounds).split("\nTree=")
        trees.extend(map(_arrays, blocks))
        group.extend(k * scores + i % scores for i in range(len(blocks)))
    return Grove.of(trees), np.array(group, np.int32)


def _arrays(block: str) -> Tree:
    """A tree as a `Grove` takes it, from a model file of LightGBM's.

    There it has lists of its inner nodes and of its leaves, and the child -1-i is leaf i. A line of
    such a list is read faster than the nested nodes of its JSON.
    """
    lines = dict(line.split("=", 1) for line in block.splitlines() if "=" in line)

    def read(name: str, kind: type) -> Array:
        return np.fromstring(lines.get(name, ""), kind, sep=" ")

    leaf = read("leaf_value", float)
    none, feature = np.full(len(leaf), -1), read("split_feature", int)
    inner = len(feature)
    left, right = (read(name, int) for name in ("left_child", "right_child"))
    left, right = (np.where(v < 0, inner - 1 - v, v) for v in (left, right))
    return Tree.of(
        np.append(feature, none),
        np.append(read("threshold", float), np.zeros(len(leaf))),
        np.append(left, none),
        np.append(right, none),
        np.append(np.zeros(inner), leaf)[:, None],
    )
