"""Forests, whose trees are weighed by rows that they have not drawn."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.special import entr
from sklearn import config_context

from mtbayes._values import must, must_be_array, storable
from mtbayes.errors import InvalidInput
from mtbayes.learners import MEMBERS, Crossing, Place
from mtbayes.learners.folds import FLOOR, class_shares, log_density, pull, seed_of
from mtbayes.learners.grove import Grove, Tree, of_sklearn
from mtbayes.predictives import ClassPredictive, GaussianPredictive, in_order
from mtbayes.progress import Progress
from mtbayes.types import Array, FloatArray, Rows

_TREES = 30  # of each fold
_MANY = 10_000  # rows, beyond which leaves grow with them: files stay small
_BLUR = 0.01  # of what a forest says, the shares of the classes: no class is impossible
_INNER_BLUR = 0.05  # the same where few trees speak


@storable
class ForestState(NamedTuple):
    """Trees of all folds; a leaf says the shares of the classes, or mean and mean square."""

    grove: Grove
    group: Array
    """The fold that each tree left out, [T]."""
    shares: FloatArray
    """Of the classes among all rows, [C]; empty for numbers."""


@storable
@dataclass(frozen=True)
class ForestLearner:
    """Trees that each see some of the rows and ask about some of the columns.

    name: "extra trees", whose thresholds are random, or "forest"
    classes: how many; 0 for numbers
    leaf: rows in a leaf, at least; more where rows are many
    whole: whether a tree sees all rows of its fold, as is best where labels are right; else a draw
        from them, and the rows that it has not drawn say what they weigh
    """

    name: str
    classes: int
    leaf: int
    whole: bool = False
    threaded = True

    def crossed(
        self, rows: Rows, fold: Array, t: float, key: Array, *, place: Place = Place()
    ) -> Crossing:
        """The trees of each fold's other rows; at t < 1 with weights, once `inner` is known."""
        folds, n = int(fold.max()) + 1, len(rows.y)
        seed = seed_of(key) - folds

        def more(t: float, inner: FloatArray | None, place: Place) -> Crossing:
            if self.classes:
                return at(t, inner, place)
            # A wild number pulls at all trees of the first fits: what these say is mended first.
            mended = at(t, inner, place.part(0.0, 0.5), whole=False)
            return at(t, mended.inner, place.part(0.5, 0.5))

        def at(
            t: float, inner: FloatArray | None, place: Place, whole: bool = self.whole
        ) -> Crossing:
            weight = rows.weight * np.broadcast_to(pull(inner, t, rows.trusted), (folds, n))
            trees, parts = list[Tree](), []
            known = inner if whole else np.zeros((folds, n))
            for k in range(folds):
                seen = fold != k
                shares = self._shares(rows.take(seen))
                own = rows.take(seen)._replace(weight=weight[k, seen])
                heard = _Heard(rows.x[~seen], None if whole else own.x, self.classes)
                for grown, times in self._grown(own, n, seed + k, whole):
                    trees.append(heard.hear(grown, times))
                parts.append(self._said(heard.mean[None], shares, _BLUR))
                if known is not None and not whole:
                    inside = self._said(heard.undrawn[None], shares, _INNER_BLUR)
                    known[k, seen] = self._log_prob(inside, own.y, rows.weight[seen])
                place.callback(Progress((k + 1) / folds, f"{self.name} at t = {t:g}"))

            def state(_: Place) -> ForestState:
                group = np.repeat(np.arange(folds, dtype=np.int32), _TREES)
                return ForestState(Grove.of(trees), group, self._shares(rows))

            return Crossing(t, in_order(parts, fold), state, more, known, "Grown.")

        return at(t, None, place)

    def predictive(
        self, state: ForestState, x: Array, key: Array, members: int = MEMBERS
    ) -> ClassPredictive | GaussianPredictive:
        """The mean over all trees."""
        folds = int(np.max(state.group, initial=0)) + 1
        sums = state.grove.sums(x, state.group, folds)
        if sums.shape[2] != (self.classes or 2) or not np.isfinite(state.shares).all():
            raise InvalidInput(
                f"a forest's leaves must say {self.classes or 2} numbers, got {sums.shape[2]}. The "
                "file is damaged; fit the model anew."
            )
        trees = np.bincount(state.group, minlength=folds)[:, None, None]
        return self._said(sums / trees, state.shares, _BLUR)

    def check(self, state: Any, shape: tuple[int, ...], classes: int) -> None:
        """Trees that ask for columns that there are, whose leaves say all classes."""
        must(isinstance(state, ForestState) and self.classes == classes, "classes of the forest")
        state.grove.check(shape[0])
        state.grove.check_leaves(state.group, classes or 2)
        must(bool(np.bincount(state.group).all()), "groups of trees")
        must_be_array(state.shares, (classes,), "shares of the classes")

    def _grown(
        self, rows: Rows, n: int, seed: int, whole: bool
    ) -> Iterator[tuple[Any, FloatArray]]:
        """Trees of scikit-learn's, each with how often it has drawn each row, [n].

        One by one: to import its forests takes longer than small ones grow.
        """
        kind, rng = _kind(self.name, self.classes), np.random.default_rng(seed)
        leaf = round(self.leaf * max(1.0, n / _MANY))
        # A third of the columns for numbers, the root of their count for classes, as is usual.
        columns = "sqrt" if self.classes else max(1 / 3, 1 / rows.x.shape[1])
        x = _single(rows.x)
        source = np.random.RandomState()  # seeded for each tree: a new one takes as long as a tree
        for own in rng.integers(2**31, size=_TREES).tolist():
            times = rows.weight
            if not whole:  # rows of little weight are seldom drawn
                times = rng.multinomial(len(x), times / times.sum())
            source.seed(own)
            with config_context(skip_parameter_validation=True):
                tree = kind(min_samples_leaf=leaf, max_features=columns, random_state=source)
                tree.fit(x, rows.y, sample_weight=times, check_input=False)
            yield tree, times

    def _shares(self, rows: Rows) -> FloatArray:
        return class_shares(rows.y, rows.weight, self.classes) if self.classes else np.empty(0)

    def _said(
        self, mean: FloatArray, shares: FloatArray, blur: float
    ) -> ClassPredictive | GaussianPredictive:
        """From the means over the trees of groups, [G, n, V]."""
        if self.classes:
            groups = (1 - blur) * mean + blur * shares
            return ClassPredictive(
                np.log(groups.mean(axis=0)), entr(groups).sum(axis=2).mean(axis=0)
            )
        first, second = np.moveaxis(mean.mean(axis=0), 1, 0)
        spread = np.sqrt(np.maximum(second - first**2, FLOOR**2))
        return GaussianPredictive(first[None], spread[None])

    def _log_prob(self, said: Any, y: Array, weight: FloatArray) -> FloatArray:
        if self.classes:
            return np.asarray(said.log_prob(y))
        return log_density(np.asarray(y, float) - said.mean, weight, said.std)


def _kind(name: str, classes: int) -> Any:
    """A tree of scikit-learn's, imported where trees grow: in a thread, while networks learn."""
    from sklearn import tree

    if name == "forest":
        return tree.DecisionTreeClassifier if classes else tree.DecisionTreeRegressor
    return tree.ExtraTreeClassifier if classes else tree.ExtraTreeRegressor


class _Heard:
    """What trees say of rows, heard from each as it has grown.

    Then it can be let go: one of scikit-learn's holds a number for every class in every node, and
    all those of 20,000 rows of 47 classes took 7 GB.
    outside: rows of which all trees speak; inside: those they grow from, or None if none is asked
    """

    def __init__(self, outside: Array, inside: Array | None, classes: int) -> None:
        self._outside, self._inside = _single(outside), None if inside is None else _single(inside)
        self._classes, self._trees, width = classes, 0, classes or 2
        self._total = np.zeros((len(outside), width))
        own = 0 if inside is None else len(inside)
        self._undrawn, self._times = np.zeros((own, width)), np.zeros(own)

    def hear(self, grown: Any, times: FloatArray) -> Tree:
        """One that has drawn each row inside so many times; gives the tree as it is kept."""
        tree, value = grown.tree_, _values(grown, self._classes)
        self._total += value[tree.apply(self._outside)]
        self._trees += 1
        if self._inside is not None:
            out = times == 0
            self._undrawn[out] += value[tree.apply(self._inside[out])]
            self._times += out
        return of_sklearn(tree, value)

    @property
    def mean(self) -> FloatArray:
        """What the trees say of rows outside, [n, V]."""
        return self._total / self._trees

    @property
    def undrawn(self) -> FloatArray:
        """The same of rows inside, by trees that have not drawn them."""
        known = self._undrawn / np.maximum(self._times, 1)[:, None]
        told = self._times > 0
        known[~told] = known[told].mean(axis=0) if told.any() else 0.0
        return known


def _single(x: Array) -> Array:
    """As trees take rows."""
    return np.ascontiguousarray(x, np.float32)


def _values(grown: Any, classes: int) -> FloatArray:
    """Shares of all classes, or mean and mean square, of each node, [N, V]."""
    tree = grown.tree_
    if classes:
        value = np.zeros((tree.node_count, classes))
        value[:, grown.classes_] = tree.value[:, 0, :]
        return value / value.sum(axis=1, keepdims=True)
    mean = tree.value[:, 0, 0]
    spread = np.nan_to_num(tree.impurity)  # rows that weigh next to nothing have none
    return np.stack([mean, mean**2 + np.maximum(spread, 0.0)], axis=1)
