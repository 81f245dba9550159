"""Compare several model classes on rows that they have not seen, and let them speak together.

Every learner is fitted in members that each leave a fold out (`mtbayes.learners.Crossing`), so that
what is compared is what is used: no fit to all rows follows, or no more than a few epochs. First
all are fitted at t = 1, each in its settings; one whose setting explains unseen rows less well than
another's is dropped, and so is, where no row is clearly wrong, a learner to whom the best mixture
of all gives hardly a share. Those that are left are fitted at the other values of t. The shares of
the mixture are those that explain unseen rows best, wrong rows by the law that is fitted beside
each learner.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import Any, NamedTuple, TypeVar

import numpy as np
from threadpoolctl import threadpool_limits

from mtbayes.fitting.choice import CLEARLY, LEVEL, Candidate, Option, View, best_of, compared
from mtbayes.laws import Law, mixture_shares
from mtbayes.learners import Crossed, Crossing, Place
from mtbayes.learners.folds import dealt, seed_of
from mtbayes.learners.pool import Part, Pool, mixed
from mtbayes.maths import draws
from mtbayes.predictives import beside_trust, of_rows
from mtbayes.progress import Callback, Progress, beside
from mtbayes.types import Array, FloatArray, Rows

_T = TypeVar("_T")
FIRST = 1.0
"""The t of the first fits, whatever others follow: weights of rows come from them."""
_LEAST = 0.05  # share of a mixture, below which a learner is dropped
_SEEN = 0.5  # rows that each learner has explained alone before any is seen
_FIRST = 0.5  # of the time, for the fits at the first t
_END = 0.05  # of the time, for the states


class Pooled(NamedTuple):
    """A pool with its state, the law of wrong rows fitted beside it, and the table behind it."""

    learner: Pool
    state: tuple[Any, ...]
    t: float
    """Of the part with the largest share."""
    law: Law
    unseen: Any
    """The predictive of every row by members that have not seen it."""
    table: list[dict[str, Any]]
    history: list[dict[str, float]]


class _Seen(NamedTuple):
    """A learner's crossing, the law that is fitted beside it, and rows as both see them.

    halves: what halves of its members say, where it is judged as many would be
    """

    learner: Crossed
    crossing: Crossing
    law: Any
    halves: list[Any]
    view: View

    @classmethod
    def of(
        cls, learner: Crossed, crossing: Crossing, law: type[Law], rows: Rows, many: bool = False
    ) -> _Seen:
        """By rows that its members have not seen, as they speak of them best."""
        crossing = crossing._replace(unseen=beside_trust(crossing.unseen, rows.trusted))
        own = law.fit(crossing.unseen, rows.y, rows.weight)
        halves = _halves(crossing, rows) if many else []
        view = View.of_many(own, crossing.unseen, halves, rows)
        found = cls(learner, crossing, own, halves, view)
        if crossing.otherwise is None:
            return found
        other = cls.of(*crossing.otherwise(), law, rows, many)
        return max(found, other, key=lambda seen: float(seen.score @ rows.weight))

    @property
    def score(self) -> FloatArray:
        """Log probability of each row."""
        return self.view.explained

    def of_new(self, rows: Rows, place: Place) -> Law:
        """The law of new rows: of each all members speak, and not those of a fold alone.

        Members that are trained on are surer of themselves in the end than when they were judged.
        """
        halves = self.halves or _halves(self.crossing, rows)
        more: Law = self.law.of_more(halves, rows.y, rows.weight) if halves else self.law
        if self.crossing.late is None:
            return more
        unseen, judges = self.crossing.late(place)
        few, before = rows.take(judges), of_rows(self.crossing.unseen, judges)
        return more.of_longer(before, beside_trust(unseen, few.trusted), few.y, few.weight)


def _halves(crossing: Crossing, rows: Rows) -> list[Any]:
    return [beside_trust(each, rows.trusted) for each in crossing.halves()]


class _Line(NamedTuple):
    """A learner in one of its settings, at one t and more."""

    learner: Crossed
    path: tuple[float, ...]
    seen: list[_Seen]
    first_inner: FloatArray | None
    """`Crossing.inner` at the first t, of the setting that was taken or of another."""
    many: bool
    """Whether its few members that have not seen a row are judged as many would be."""

    @property
    def inner(self) -> FloatArray | None:
        """`Crossing.inner` of its last fit, which is the most robust."""
        last = self.seen[-1].crossing.inner
        return self.first_inner if last is None else last

    def best(self, law: type[Law], rows: Rows) -> _Seen:
        """At the t to take."""
        if len(self.seen) == 1:
            return self.seen[0]
        found, _ = best_of(
            law,
            rows,
            [Candidate(seen.learner, seen.crossing.t) for seen in self.seen],
            [seen.crossing.unseen for seen in self.seen],
            [seen.law for seen in self.seen],
            [seen.halves for seen in self.seen],
        )
        return self.seen[found]


def pool(
    options: Sequence[Option], rows: Rows, law: type[Law], key: Array, place: Place = Place()
) -> Pooled:
    """Fit, compare and mix all options; rows are as the learners take them.

    One that speaks alone is judged as all its members will speak of new rows, and not as the few do
    that left a row out; beside others, what all of them say of a row is what compares.
    """
    many = len(options) == 1
    fold = dealt(np.random.default_rng(seed_of(key)).permutation(len(rows.y)), rows.y)
    place, end = place.part(0.0, 1 - _END), place.part(1 - _END, _END)
    begin = _FIRST if any(_rest(option.path) for option in options) else 1.0
    first = place.part(0.0, begin)

    def set_of(i: int) -> Callable[[Place], _Line]:
        return lambda here: _set(options[i], rows, fold, law, draws.child(key, 1 + i), here, many)

    threaded = [option.learner.threaded for option in options]
    lines = _at_once([set_of(i) for i in range(len(options))], threaded, first)
    lines = _kept(lines, rows)
    _go_on(lines, rows, law, place.part(begin, 1 - begin))
    found = [line.best(law, rows) for line in lines]
    shares = _shares([seen.score for seen in found], rows)
    taken = [seen for seen, share in zip(found, shares, strict=True) if share > 0]
    ends = [end.part(i / len(taken), 1 / len(taken)) for i in range(len(taken))]
    parts = [
        Part(seen.learner, seen.crossing.t, float(share), seen.of_new(rows, here.part(0.0, 0.5)))
        for seen, share, here in zip(taken, shares[shares > 0], ends, strict=True)
    ]
    said = [seen.law.calibrated(seen.crossing.unseen) for seen in taken]
    unseen = beside_trust(mixed(said, [part.share for part in parts]), rows.trusted)
    whole = Candidate(Pool(tuple(parts)), max(parts, key=lambda part: part.share).t)
    known = law.of_pool(unseen, rows.y, rows.weight)
    # One table whose rows compare: all are scored by the rows that look good to the clearest.
    every = [seen for line in lines for seen in line.seen]
    candidates = [Candidate(seen.learner, seen.crossing.t) for seen in every]
    views = [seen.view for seen in every]
    views.append(found[0].view._replace(law=known) if many else View.of(known, unseen, rows.y))
    _, table = compared([*candidates, whole], views, rows.weight, lambda _: True)
    return Pooled(
        Pool(tuple(parts)),
        tuple(
            seen.crossing.state(here.part(0.5, 0.5)) for seen, here in zip(taken, ends, strict=True)
        ),
        whole.t,
        known,
        unseen,
        table,
        max((list(seen.crossing.history) for seen in taken), key=len),
    )


def _set(
    option: Option, rows: Rows, fold: Array, law: type[Law], key: Array, place: Place, many: bool
) -> _Line:
    """An option in the one of its settings that explains unseen rows best at t = 1."""
    settings = (option.learner, *option.others)
    found = []
    for i, learner in enumerate(settings):
        here = place.part(i / len(settings), 1 / len(settings))._replace(prefix=f"{i}-")
        crossing = learner.crossed(rows, fold, FIRST, key, place=here)
        found.append(_Seen.of(learner, crossing, law, rows, many))
    best = int(np.argmax([seen.score @ rows.weight for seen in found]))
    known = [seen.crossing.inner for seen in (found[best], *found)]
    inner = next((each for each in known if each is not None), None)
    return _Line(settings[best], option.path, [found[best]], inner, many)


def _rest(path: tuple[float, ...]) -> tuple[float, ...]:
    """Values of t beside the first."""
    return tuple(t for t in path if t != FIRST)


def _kept(lines: list[_Line], rows: Rows) -> list[_Line]:
    """The learners that have a share in the best mixture of all at t = 1.

    Where rows are clearly wrong all are kept: some are good at a smaller t alone.
    """
    if len(lines) == 1:
        return lines
    first = [line.seen[0] for line in lines]
    best = max(first, key=lambda seen: seen.score @ rows.weight)
    share = best.law.contamination(best.crossing.unseen, rows.y, rows.weight, LEVEL)
    if share.low > CLEARLY:
        return lines
    shares = _shares([seen.score for seen in first], rows)
    return [line for line, share in zip(lines, shares, strict=True) if share > 0]


def _go_on(lines: list[_Line], rows: Rows, law: type[Law], place: Place) -> None:
    """All lines at the other values of t.

    Lines in threads follow each other: those that say what rows weigh come first, the others hear
    what they say at last. The rest, beside them, go by themselves.
    """
    lines.sort(key=lambda line: line.inner is None)
    aside = [line for line in lines if line.learner.threaded]
    rest = [line for line in lines if not line.learner.threaded]

    def going(some: list[_Line]) -> Callable[[Place], None]:
        def go(place: Place) -> None:
            for i, line in enumerate(some):
                _go_down(line, _inner(some), rows, law, place.part(i / len(some), 1 / len(some)))

        return go

    _at_once([going(rest), going(aside)], [False, True], place)


def _go_down(
    line: _Line, inner: FloatArray | None, rows: Rows, law: type[Law], place: Place
) -> None:
    """A line at the other values of t, with the weights that follow from what others say."""
    rest = _rest(line.path)
    for j, t in enumerate(rest):
        crossing = line.seen[0].crossing.more(t, inner, place.part(j / len(rest), 1 / len(rest)))
        line.seen.append(_Seen.of(line.learner, crossing, law, rows, line.many))
    if FIRST not in line.path:
        del line.seen[0]


class _Stopped(Exception):
    """Work in a thread is not wanted any more."""


def _at_once(
    tasks: Sequence[Callable[[Place], _T]], threaded: Sequence[bool], place: Place
) -> list[_T]:
    """What tasks return, some of them done in threads while this one does the rest.

    Where one fails, or Ctrl-C is pressed, the others end at the next sign that they give.
    """
    over = Event()

    def told(callback: Callback) -> Callback:
        def hear(p: Progress) -> None:
            if over.is_set():
                raise _Stopped
            callback(p)

        return hear

    heard = [told(each) for each in beside(place.callback, len(tasks))]
    places = [place._replace(callback=each) for each in heard]
    # One thread of BLAS and OpenMP in each of ours: those that wait for each other spin, and beside
    # other work a fit took five times the processor. OpenMP counts anew in every thread.
    count = max(1, (os.cpu_count() or 2) - 1)
    with (
        threadpool_limits(1),
        ThreadPoolExecutor(count, "mtbayes-learners", threadpool_limits, (1,)) as threads,
    ):
        try:
            waits = [
                threads.submit(task, here) if aside else None
                for task, aside, here in zip(tasks, threaded, places, strict=True)
            ]
            done = [
                task(here) if wait is None else None
                for task, wait, here in zip(tasks, waits, places, strict=True)
            ]
            return [
                own if wait is None else wait.result()  # type: ignore[misc]
                for own, wait in zip(done, waits, strict=True)
            ]
        except BaseException:
            over.set()
            threads.shutdown(wait=False, cancel_futures=True)
            raise


def _inner(lines: list[_Line]) -> FloatArray | None:
    """What learners that know it say together of rows, without each fold: log p, [folds, n]."""
    known = [line.inner for line in lines if line.inner is not None]
    return np.logaddexp.reduce(known) - np.log(len(known)) if known else None


def _shares(logs: list[FloatArray], rows: Rows) -> FloatArray:
    """Shares [k] of the mixture that explains rows best; small ones are dropped one by one."""
    shares = np.ones(len(logs))
    if len(logs) == 1:
        return shares
    alone = np.where(np.eye(len(logs)) > 0, 0.0, -np.inf)
    seen = np.concatenate([np.stack(logs), alone], axis=1)
    weight = np.append(rows.weight, np.full(len(logs), _SEEN))
    kept = np.arange(len(logs))
    while True:
        rest = np.isfinite(seen[kept].max(axis=0))
        found = mixture_shares(seen[kept][:, rest], weight[rest])
        if found.min() >= _LEAST or len(kept) == 1:
            shares = np.zeros(len(logs))
            shares[kept] = found
            return shares
        kept = np.delete(kept, found.argmin())
