"""Compare several model classes on rows that they have not seen, and let them speak together.

Every learner is fitted in members that each leave a fold out (`mtbayes.learners.Crossing`), so that
what is compared is what is used: no fit to all rows follows. First all are fitted at t = 1, each in
its settings; one whose setting explains unseen rows less well than another's is dropped, and so is,
where no row is clearly wrong, a learner to whom the best mixture of all gives hardly a share. Those
that are left are fitted at the other values of t. The shares of the mixture are those that explain
unseen rows best, wrong rows by the law that is fitted beside each learner.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from mtbayes.fitting.choice import CLEARLY, LEVEL, Candidate, Option, best_of
from mtbayes.laws import Law, mixture_shares
from mtbayes.learners import Crossed, Crossing, Place
from mtbayes.learners.folds import seed_of
from mtbayes.learners.pool import Part, Pool, mixed
from mtbayes.types import Array, FloatArray, Rows

FOLDS = 5
FIRST = 1.0
"""The t of the first fits, whatever others follow: weights of rows come from them."""
_LEAST = 0.05  # share of a mixture, below which a learner is dropped
_SEEN = 0.5  # rows that each learner has explained alone before any is seen
_FIRST = 0.5  # of the time, for the fits at the first t


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


class _Line(NamedTuple):
    """A learner in one of its settings, with its crossings so far."""

    learner: Crossed
    path: tuple[float, ...]
    crossings: list[Crossing]


def pool(
    options: Sequence[Option], rows: Rows, law: type[Law], key: Array, place: Place = Place()
) -> Pooled:
    """Fit, compare and mix all options; rows are as the learners take them."""
    n = len(rows.y)
    fold = np.random.default_rng(seed_of(key)).permutation(n) % FOLDS
    lines = []
    begin = _FIRST if any(_rest(option.path) for option in options) else 1.0
    for i, option in enumerate(options):
        here = place.part(begin * i / len(options), begin / len(options))
        lines.append(_set(option, rows, fold, law, jax.random.fold_in(key, 1 + i), here))
    lines = _kept(lines, rows, law)
    # Who says of rows what they weigh comes first, and the others hear what he says at last.
    lines.sort(key=lambda line: line.crossings[0].inner is None)
    for i, line in enumerate(lines):
        inner = _inner(lines)
        first, rest = line.crossings[0], _rest(line.path)
        for j, t in enumerate(rest):
            at = begin + (1 - begin) * (i + j / len(rest)) / len(lines)
            here = place.part(at, (1 - begin) / len(lines) / len(rest))
            line.crossings.append(first.more(t, inner, here))
        if FIRST not in line.path:
            del line.crossings[0]
    parts, taken, table = [], list[Crossing](), list[dict[str, Any]]()
    for line in lines:
        candidates = [Candidate(line.learner, crossing.t) for crossing in line.crossings]
        best, entries = best_of(law, rows, candidates, [c.unseen for c in line.crossings])
        table += entries
        taken.append(line.crossings[best])
        own = law.fit(taken[-1].unseen, rows.y, rows.weight)
        parts.append(Part(line.learner, taken[-1].t, 1.0, own))
    scores = [_log_score(part.law, c, rows) for part, c in zip(parts, taken, strict=True)]
    shares = _shares(scores, rows)
    kept = [i for i in range(len(parts)) if shares[i] > 0]
    parts = [parts[i]._replace(share=float(shares[i])) for i in kept]
    taken = [taken[i] for i in kept]
    said = [part.law.calibrated(c.unseen) for part, c in zip(parts, taken, strict=True)]
    unseen = mixed(said, [part.share for part in parts])
    loudest = max(range(len(parts)), key=lambda i: parts[i].share)
    known = law.fit(unseen, rows.y, rows.weight)
    _, entries = best_of(law, rows, [Candidate(Pool(tuple(parts)), parts[loudest].t)], [unseen])
    return Pooled(
        Pool(tuple(parts)),
        tuple(crossing.state() for crossing in taken),
        parts[loudest].t,
        known,
        unseen,
        [*table, *entries],
        max((list(c.history) for c in taken), key=len),
    )


def _set(
    option: Option, rows: Rows, fold: Array, law: type[Law], key: Array, place: Place
) -> _Line:
    """An option in the one of its settings that explains unseen rows best at t = 1."""
    settings = (option.learner, *option.others)
    found = []
    for i, learner in enumerate(settings):
        here = place.part(i / len(settings), 1 / len(settings))._replace(prefix=f"{i}-")
        found.append(learner.crossed(rows, fold, FIRST, key, place=here))
    best = 0
    if len(found) > 1:
        laws = [law.fit(crossing.unseen, rows.y, rows.weight) for crossing in found]
        scores = [
            _log_score(own, c, rows) @ rows.weight for own, c in zip(laws, found, strict=True)
        ]
        best = int(np.argmax(scores))
    return _Line(settings[best], option.path, [found[best]])


def _rest(path: tuple[float, ...]) -> tuple[float, ...]:
    """Values of t beside the first."""
    return tuple(t for t in path if t != FIRST)


def _kept(lines: list[_Line], rows: Rows, law: type[Law]) -> list[_Line]:
    """The learners that have a share in the best mixture of all at t = 1.

    Where rows are clearly wrong all are kept: some are good at a smaller t alone.
    """
    if len(lines) == 1:
        return lines
    first = [line.crossings[0] for line in lines]
    laws = [law.fit(crossing.unseen, rows.y, rows.weight) for crossing in first]
    scores = [_log_score(own, c, rows) for own, c in zip(laws, first, strict=True)]
    best = int(np.argmax([score @ rows.weight for score in scores]))
    share = laws[best].contamination(first[best].unseen, rows.y, rows.weight, LEVEL)
    if share.low > CLEARLY:
        return lines
    shares = _shares(scores, rows)
    return [line for line, share in zip(lines, shares, strict=True) if share > 0]


def _inner(lines: list[_Line]) -> FloatArray | None:
    """What learners that know it say together of rows, without each fold: log p, [folds, n].

    Each by its last fit, which is the most robust.
    """
    known = [c.inner for line in lines if (c := line.crossings[-1]).inner is not None]
    return np.logaddexp.reduce(known) - np.log(len(known)) if known else None


def _log_score(law: Law, crossing: Crossing, rows: Rows) -> FloatArray:
    return law.score(crossing.unseen, rows.y)


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
