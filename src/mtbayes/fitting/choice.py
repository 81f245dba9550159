"""Choose a learner and its t from dirty rows: fit folds, score rows that a fit has not seen.

Rows that a fit has not seen are dirty too. So each fit gets the law that explains its unseen rows
best: good ones from the calibrated predictive, wrong ones by the law (`mtbayes.laws`). The law that
explains the rows best of all says how likely each is good. The score of a candidate is the mean log
probability of the rows, each counting as much as it is good. (The mean log probability under its
own law would be blind to what a fit at small t is worst at: a good row it is sure to be wrong costs
no more there than a row that is wrong.)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from mtbayes.laws import Law
from mtbayes.learners import Learner, Place, Speaker
from mtbayes.learners.folds import dealt
from mtbayes.maths import draws
from mtbayes.predictives import beside_trust, in_order
from mtbayes.types import Array, FloatArray, Rows

# Data count as dirty where at least so many rows are wrong, with that confidence.
CLEARLY, LEVEL = 0.005, 0.68
_BRIEF = 0.1  # of the time of a choice, for settings
_LOWEST = -1e6  # log probability that is told from a lower one
_NO_TRUST = 1e-9  # a mean probability of being good that rounding makes


class Option(NamedTuple):
    """A learner, and the values of t that it may take, downwards.

    others: the same learner in other settings; a brief look at one fold picks one of them
    """

    learner: Any
    path: tuple[float, ...]
    others: tuple[Any, ...] = ()


class Candidate(NamedTuple):
    """A learner at a t."""

    learner: Speaker
    t: float


class Choice(NamedTuple):
    """A learner and its t, the law of wrong rows fitted beside them, and the table behind it."""

    learner: Learner
    t: float
    prepared: Any
    """The rows as the learner takes them."""
    law: Law
    unseen: Any
    """The predictive of every row by a fit that has not seen it, not calibrated."""
    table: list[dict[str, Any]]


def folds(y: Array, key: Array) -> Array:
    """The fold of each row: five where rows are few, three where they are many."""
    rows = len(y)
    count = min(5 if rows < 5000 else 3, rows)
    return dealt(np.asarray(jax.random.permutation(key, rows)), y, count)


def choose(
    options: Sequence[Option], rows: Rows, law: type[Law], key: Array, place: Place = Place()
) -> Choice:
    """Compare all candidates on some folds, then fit the others with the best."""
    n = len(rows.y)
    fold = folds(rows.y, draws.child(key, 0))
    count = int(fold.max()) + 1
    begin = _BRIEF if any(option.others for option in options) else 0.0
    looks, place = place.part(0.0, begin), place.part(begin, 1 - begin)
    options = [_settled(option, rows, law, fold, key, looks) for option in options]
    candidates = [Candidate(learner, t) for learner, path, _ in options for t in path]
    looked = max(option.learner.looks(n, count) for option in options)
    looked = count if len(candidates) == 1 else looked
    work = looked * sum(_cost(len(option.path)) for option in options)
    compared_share = work / (work + (count - looked) * _cost(1))
    prepared = [option.learner.prepared(rows) for option in options]
    unseen: list[Any] = []
    for i, (learner, path, _) in enumerate(options):
        here = place.part(compared_share * i / len(options), compared_share / len(options))
        unseen.append(learner.unseen(prepared[i], fold, range(looked), path, key, place=here))
    every, judges = _Joined(unseen), rows.take(fold < looked)
    alone = [law.fit(beside_trust(p, judges.trusted), judges.y, judges.weight) for p in every]
    best, table = best_of(law, judges, candidates, every, alone)
    t = candidates[best].t
    place_of = [option.learner for option in options].index(candidates[best].learner)
    learner, own = options[place_of].learner, prepared[place_of]
    whole = every[best]
    if looked < count:
        here = place.part(compared_share, 1 - compared_share)
        rest = learner.unseen(own, fold, range(looked, count), (t,), key, place=here)
        whole = in_order([whole, rest[0]], fold >= looked)
    whole = beside_trust(whole, rows.trusted)
    known = law.fit(whole, rows.y, rows.weight) if looked < count else alone[best]
    known = known.averaged(whole, rows.y, rows.weight)
    return Choice(learner, t, own, known, whole, table)


def _settled(
    option: Option, rows: Rows, law: type[Law], fold: Array, key: Array, place: Place
) -> Option:
    """An option in the one of its settings that says most of a fold after little training."""
    if not option.others:
        return option
    settings = (option.learner, *option.others)
    prepared = option.learner.prepared(rows)
    # One in the middle and the smallest: a setting may be good at one of them alone.
    few = tuple(dict.fromkeys((option.path[len(option.path) // 2], option.path[-1])))
    unseen = []
    for i, learner in enumerate(settings):
        here = place.part(i / len(settings), 1 / len(settings))._replace(prefix=f"brief-{i}-")
        unseen += learner.brief().unseen(prepared, fold, [0], few, key, place=here)
    candidates = [Candidate(learner, t) for learner in settings for t in few]
    _, table = best_of(law, rows.take(fold == 0), candidates, unseen)
    best = candidates[int(np.argmax([entry["score"] for entry in table]))].learner
    return option._replace(learner=best, others=())


def _cost(candidates: int) -> float:
    """Of a fold in units of a fit: most of the work is shared by its candidates."""
    return 0.8 + 0.2 * candidates


class _Joined(Sequence[Any]):
    """Several sequences as one, whose items are made when they are asked for."""

    def __init__(self, parts: list[Sequence[Any]]) -> None:
        self.places = [(part, i) for part in parts for i in range(len(part))]

    def __len__(self) -> int:
        return len(self.places)

    def __getitem__(self, place: Any) -> Any:
        part, i = self.places[place]
        return part[i]


def best_of(
    law: type[Law],
    rows: Rows,
    candidates: Sequence[Candidate],
    unseen: Sequence[Any],
    alone: Sequence[Law] | None = None,
    halves: Sequence[Sequence[Any]] | None = None,
) -> tuple[int, list[dict[str, Any]]]:
    """The place of the candidate to take, by the predictives of rows that no fit had seen.

    alone: laws fitted beside each of them, where they are known
    halves: of each, what halves of its members say, if it is to be judged as many would be
    """
    if rows.trusted is not None:
        unseen = [beside_trust(p, rows.trusted) for p in unseen]
    alone = alone or [law.fit(p, rows.y, rows.weight) for p in unseen]
    explained = [each.score(p, rows.y) @ rows.weight for each, p in zip(alone, unseen, strict=True)]
    laws = alone[int(np.argmax(explained))].beside_all(unseen, rows.y, rows.weight, alone)
    parts = halves or [()] * len(unseen)
    views = [View.of_many(*each, rows) for each in zip(laws, unseen, parts, strict=True)]

    def dirty(i: int) -> bool:
        found = laws[i].contamination(unseen[i], rows.y, rows.weight, LEVEL)
        return bool(found.low > CLEARLY)

    return compared(candidates, views, rows.weight, dirty)


class View(NamedTuple):
    """Unseen rows as one candidate sees them."""

    law: Law
    explained: FloatArray
    """Log probability under the whole law, [n]."""
    good: FloatArray
    """Log probability of a row that is good, [n]."""
    wrong: FloatArray
    """Probability that a row is wrong, [n]."""

    @classmethod
    def of(cls, law: Law, unseen: Any, y: Array) -> View:
        """What a law says about rows y beside their predictive."""
        return cls(
            law, law.score(unseen, y), law.good(unseen, y), law.outlier_probability(unseen, y)
        )

    @classmethod
    def of_many(cls, law: Law, unseen: Any, halves: Sequence[Any], rows: Rows) -> View:
        """The same as many more members would see them, if halves of these members are known.

        Means of many members forgive what a few do not: that each has learned some rows by heart,
        and another one others. What is smooth in a mean of k is a + b/k to first order.
        """
        own = cls.of(law, unseen, rows.y)
        if not len(halves):
            return own
        laws = [law.beside_all([half], rows.y, rows.weight)[0] for half in halves]
        parts = [cls.of(each, p, rows.y) for each, p in zip(laws, halves, strict=True)]

        def far(name: str) -> FloatArray:
            one, two = (
                np.mean([np.maximum(getattr(view, name), _LOWEST) for view in some], axis=0)
                for some in (parts, [own])
            )
            return np.asarray(2 * two - one)

        return own._replace(explained=far("explained"), good=far("good"))


def compared(
    candidates: Sequence[Candidate],
    views: list[View],
    weight: FloatArray,
    dirty: Callable[[int], bool],
) -> tuple[int, list[dict[str, Any]]]:
    """The place of the candidate to take, and the table behind it.

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
    # How sure it is that a candidate is worse than the best: rows are paired.
    gap = good[best] - good
    behind = gap @ share
    error = np.sqrt(np.square(gap - behind[:, None]) @ share / weight.sum())
    # Where rows may well be clean, the first (the largest t) within two standard errors of the
    # best: a smaller t costs rows that are merely unusual.
    near = behind <= 2 * error
    near[best] = True
    first = int(np.argmax(near))
    taken = best if first == best or dirty(best) else first
    table = [
        {
            "learner": learner.name,
            "t": t,
            "score": float(s),
            "error": float(e),
            "contamination": view.law.epsilon,
        }
        for (learner, t), s, e, view in zip(candidates, mean, error, views, strict=True)
    ]
    return taken, table
