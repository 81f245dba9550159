"""What a fit has learned, as a value that answers questions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, NamedTuple

import jax
import numpy as np

from mtbayes._values import storable
from mtbayes.laws import Contamination, Law
from mtbayes.learners import MEMBERS, Speaker
from mtbayes.types import Array, FloatArray

_AT_ONCE = 20_000  # rows; what the members say of more is not held together


@storable
class Judgement(NamedTuple):
    """What fits that have not seen some rows say of their targets."""

    outlier_probability: Any
    """Probability that the target is wrong, [n]."""
    suspicion: Any
    """The same if half of all rows were, [n]; Bayes' rule makes it that of any share."""
    prediction: Any
    """Probabilities of the classes [n, C], or mean and standard deviation [n, 2]."""
    alternative: Any
    """What the target most likely is if it is wrong, [n]: a label, or the mean."""
    support: Any
    """Probability of that alternative if the target is wrong, [n]; None: it is suggested always."""

    def at(self, share: float) -> FloatArray:
        """Probability that each target is wrong where so large a share of all rows is, [n]."""
        odds = np.clip(self.suspicion, 1e-300, 1 - 1e-16)
        wrong = odds * share
        return wrong / (wrong + (1 - odds) * (1 - share))

    def suggestion(self, given: Array, wrong: FloatArray) -> Array:
        """The most probable target of each row; wrong: the probability that what is given is."""
        if self.support is None:
            return self.alternative
        return np.where(wrong * self.support > 1 - wrong, self.alternative, given)

    def take(self, which: Array) -> Judgement:
        """Of some rows."""
        return Judgement(*(None if v is None else v[which] for v in self))

    def beside(self, others: Judgement, which: Array) -> Judgement:
        """The same with what is said of some rows, [n] whether, taken from elsewhere."""

        def both(own: Any, other: Any) -> Any:
            if own is None:
                return None
            whole = np.empty(own.shape, np.result_type(own, other))
            whole[~which], whole[which] = own[~which], other
            return whole

        return Judgement(*map(both, self, others))


@storable
class Units(NamedTuple):
    """How a user's rows and targets become a learner's, and back (`mtbayes.fitting.units`)."""

    features: Any
    targets: Any


@storable
@dataclass(frozen=True, eq=False)
class Fitted:
    """A learner with what it has learned, and the law of wrong rows beside it.

    state: the learner's, a tree of arrays; key: data of the random key that its members are drawn
        with, so that predictions are a function
    units: of rows and targets; everything that a user gives or gets is in the user's own
    t: the one that was taken; score_path: the table behind the choice
    contamination: the share of wrong rows among those that were fitted, with its interval
    status: how the last fit ended; history: what was measured along it
    training: of the rows that were fitted, in the order they came in, each judged by a fit that has
        not seen it; row_weight: how much each pulls at the fit, 1 is the most
    marks: by which the rows of a learner are known again that may know them by heart
    """

    learner: Speaker
    state: Any
    key: Array
    units: Units
    law: Law
    t: float
    score_path: list[dict[str, Any]]
    contamination: Contamination
    status: str
    history: list[dict[str, float]]
    training: Judgement | None = None
    row_weight: FloatArray | None = None
    marks: Array | None = None

    def coded(self, x: Array, members: int = MEMBERS) -> Any:
        """The predictive of rows in the learner's units, not calibrated."""
        return self.learner.predictive(self.state, x, self.members_key, members)

    def raw(self, x: Array) -> Any:
        """The predictive of a user's rows, in the learner's units, not calibrated."""
        return self.coded(self.units.features.apply(x))

    def calibrated(self, x: Array) -> Any:
        """The predictive of a user's rows, in the learner's units."""
        return self.law.told(self.raw(x))

    def judge(self, x: Array, y: Array) -> Judgement:
        """What is said of rows: which are wrong, and what they should be.

        Rows of the fit that its learner may know by heart are judged by members without them.
        """
        if not len(y) and self.training is not None:
            return self.training.take(np.empty(0, int))
        if self.marks is None or self.training is None:
            return self._judged(x, y)
        known = {mark: i for i, mark in enumerate(self.marks.tolist())}
        place = np.array([known.get(mark, -1) for mark in marks(x, y).tolist()], int)
        new, found = place < 0, self.training.take(place)
        return found.beside(self._judged(x[new], y[new]), new) if new.any() else found

    def _judged(self, x: Array, y: Array) -> Judgement:
        """By all members."""
        parts = [
            judgement(self.law, self.raw(x[some]), self.units.targets.code(y[some]), self.units)
            for some in _blocks(len(y))
        ]
        joined = (None if v[0] is None else np.concatenate(v) for v in zip(*parts, strict=True))
        return Judgement(*joined)

    @property
    def shares(self) -> dict[str, float]:
        """Of the learners that speak together, by name, the largest first."""
        found: dict[str, float] = getattr(self.learner, "shares", {self.learner.name: 1.0})
        return found

    @property
    def speakers(self) -> str:
        """Who speaks, for people: a learner, or a pool of several or of one."""
        pooled = "a pool of " if hasattr(self.learner, "shares") else ""
        return pooled + " and ".join(self.shares)

    @property
    def loudest(self) -> str:
        """The name of the learner with the largest share."""
        return next(iter(self.shares))

    @property
    def members_key(self) -> Array:
        """The random key that members are drawn with."""
        words: Array = np.asarray(self.key)
        return jax.random.wrap_key_data(words)


def marks(x: Array, y: Array) -> Array:
    """A number for each row, [n], by which it is known again: equal rows alone have equal ones."""
    flat = np.ascontiguousarray(np.asarray(x, float).reshape(len(x), -1)) + 0.0
    digests = (
        blake2b(row.tobytes() + str(target).encode(), digest_size=8).digest()
        for row, target in zip(flat, np.asarray(y).tolist(), strict=True)
    )
    return np.frombuffer(b"".join(digests), "<u8")


def judgement(law: Law, unseen: Any, y: Array, units: Units) -> Judgement:
    """Of rows with targets y in the learner's units, by a predictive that has not seen them."""
    other, support = law.alternative(unseen, y)
    return Judgement(
        law.outlier_probability(unseen, y),
        law.at(0.5).outlier_probability(unseen, y),
        units.targets.prediction(law.told(unseen)),
        units.targets.value(other),
        support,
    )


def _blocks(n: int) -> Iterator[slice]:
    for begin in range(0, n, _AT_ONCE):
        yield slice(begin, begin + _AT_ONCE)
