"""From labels of several people to a consensus, beside what a fit says of rows it has not seen.

First the labels alone say what is true, then trees, each row by those that have not seen it, and
the labels together, a few times. The consensus of that, each row with the weight of its
probability, is what an estimator learns from; and what it says of rows unseen, alone or beside the
trees, is the prior of the last word.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from mtbayes._values import must, must_be_array, storable
from mtbayes.fitting.fitted import Fitted, Judgement
from mtbayes.fitting.people import Annotator, annotators
from mtbayes.laws import Contamination
from mtbayes.laws.annotators import Annotators, Truth, Votes
from mtbayes.laws.skill import learned
from mtbayes.types import Array, FloatArray

LOOKS = 3
"""How often trees are asked before the estimator is."""
TREES = 200
_LEAF = 2
_MANY = 5000  # rows, above which fewer trees do, and as many tell whose predictive is best
_UNSURE = 0.01  # share of what trees say that is spread over all classes
_LEAST = 0.02  # weight of a row, whatever is open about it
_BLOCK = 2**22  # numbers that are held at once while questions are weighed


class Question(NamedTuple):
    """A label to ask for."""

    row: int
    """The row, counted from 0."""
    annotator: Any
    """Whom to ask."""
    information: float
    """What the answer is expected to tell of the truth of the row, in nats."""


class Target(NamedTuple):
    """What an estimator learns from: a target for each row, and how much it counts."""

    y: Array
    weight: FloatArray | None
    classes: Array | None


@storable
@dataclass(frozen=True, eq=False)
class LabelCrowd:
    """Labels of several people, what is true by them and by features, and how good people are.

    names: of the people, [A]; classes: the labels, [C]
    log_probs: of the true class by features alone, [n, C], by fits that have not seen the row
    probs: by features and labels, [n, C]; hard: and that people err together there, [n, C]
    """

    votes: Votes
    names: Array
    classes: Array
    law: Annotators
    log_probs: FloatArray
    probs: FloatArray
    hard: FloatArray

    @classmethod
    def first(cls, x: Array, given: Any, seed: int) -> LabelCrowd:
        """By labels and trees; given: what people said, `row`, `who`, `value`, `rows`, `names`."""
        classes, label = np.unique(given.value, return_inverse=True)
        if given.classes is not None:
            classes = np.unique(given.classes)
            label = np.searchsorted(classes, given.value)
        votes = Votes(
            given.row, given.who, label.ravel(), given.rows, len(given.names), len(classes)
        )
        log_probs = np.log(np.tile(votes.shares, (votes.rows, 1)))
        if len(classes) < 2 or votes.people == 1:
            probs = votes.counts / votes.counts.sum(axis=1, keepdims=True)
            law = Annotators.at_first(votes) if len(classes) > 1 else None
            return cls(votes, given.names, classes, law, log_probs, probs, 0 * probs)  # type: ignore[arg-type]
        look = _first_look(x, votes, seed)
        for more in range(1, LOOKS if votes.rows <= _MANY else LOOKS - 1):
            look = _look(x, votes, look.truth.probs, seed + more)
        return cls(
            votes, given.names, classes, look.law, look.log_probs, look.truth.probs, look.truth.hard
        )

    @property
    def target(self) -> Target:
        """The most probable class of each row; of one person, the labels as they are."""
        if self.votes.people == 1:
            return Target(self.consensus, None, None)
        return Target(self.consensus, np.maximum(self.probability, _LEAST), self.classes)

    @property
    def consensus(self) -> Array:
        """The most probable label of each row, [n]."""
        return self.classes[self.probs.argmax(axis=1)]

    @property
    def probability(self) -> FloatArray:
        """That the consensus is right, [n]."""
        return np.asarray(self.probs.max(axis=1))

    def beside(self, fitted: Fitted) -> tuple[LabelCrowd, Fitted]:
        """With what a fit to the target says of rows unseen; and the fit, with what is said here.

        Of one person, all is as the law of wrong labels has it.
        """
        said: Any = fitted.training
        if self.votes.people == 1:
            return self._of_one(said), fitted
        own = self._by_best(np.log(np.asarray(said.prediction, float) + 1e-12))
        share = own.contamination
        return own, replace(
            fitted, training=own.judged(said), contamination=share, law=fitted.law.at(share.value)
        )

    def _by_best(self, log_probs: FloatArray) -> LabelCrowd:
        """By the estimator, the trees or both, whichever explains the labels best."""
        both = np.logaddexp(log_probs, self.log_probs) - np.log(2)
        rows = np.linspace(0, len(both) - 1, min(len(both), _MANY)).astype(int)
        some = self.votes.of_rows(rows)

        def evidence(prior: FloatArray) -> float:
            return Annotators.explaining(prior[rows], some)[1]

        prior = max((log_probs, both, self.log_probs), key=evidence)
        law = Annotators.fit(prior, self.votes)
        truth = law.truth(prior, self.votes)
        return replace(self, law=law, log_probs=prior, probs=truth.probs, hard=truth.hard)

    def _of_one(self, said: Judgement) -> LabelCrowd:
        """One person's labels, each wrong with the probability that the law of wrong labels has."""
        given, wrong = self.probs > 0.5, np.asarray(said.outlier_probability)[:, None]
        other = self.classes[None, :] == np.asarray(said.alternative)[:, None]
        support = np.where(other, np.asarray(said.support)[:, None], 0.0)
        rest = (1 - support.sum(axis=1, keepdims=True)) * ~(given | other)
        spread = np.maximum((~(given | other)).sum(axis=1, keepdims=True), 1)
        probs = np.where(given, 1 - wrong, wrong * (support + rest / spread))
        probs /= probs.sum(axis=1, keepdims=True)
        counts = self.votes.by_answer @ probs[self.votes.row]
        skill = learned(counts.reshape(1, len(counts), -1).transpose(0, 2, 1)).skill
        log_probs = np.log(np.asarray(said.prediction, float) + 1e-12)
        law = Annotators(skill)
        return replace(self, law=law, log_probs=log_probs, probs=probs, hard=0 * probs)

    def judged(self, said: Judgement) -> Judgement:
        """What is said of the consensus of rows, by features and all labels."""
        codes, rows = self.probs.argmax(axis=1), np.arange(len(self.probs))
        wrong = np.clip(1 - self.probability, 0.0, 1.0)
        others = self.probs.copy()
        others[rows, codes] = 0.0
        other = others.argmax(axis=1)
        return judged(said, wrong, self.contamination)._replace(
            alternative=self.classes[other],
            support=np.clip(others[rows, other] / (others.sum(axis=1) + 1e-300), 0.0, 1.0),
        )

    @property
    def contamination(self) -> Contamination:
        """The share of rows whose consensus is wrong, with its 95 % interval."""
        return share_of(1 - self.probability)

    @property
    def people(self) -> list[Annotator]:
        """How good each person is."""
        truth = Truth(self.probs, self.hard, np.zeros(len(self.probs)))
        return annotators(self.law, self.votes, self.log_probs, truth, self.names, self.classes)

    def spoken(self, row: int) -> list[tuple[Any, Any]]:
        """Who gave which label to a row."""
        own = np.flatnonzero(self.votes.row == row)
        who, label = self.votes.who[own], self.votes.label[own]
        return list(zip(self.names[who].tolist(), self.classes[label].tolist(), strict=True))

    def questions(self, budget: int, log_probs: FloatArray | None = None) -> list[Question]:
        """Whom to ask about which rows, at most once each, the most telling first.

        log_probs: of rows that nobody has labelled yet; else of those that were learned from
        """
        if log_probs is None:
            truth = Truth(self.probs, self.hard, np.zeros(len(self.probs)))
            telling = self._telling(truth, self.log_probs)
            telling[self.votes.row, self.votes.who] = -1.0
        else:
            empty = np.empty(0, int)
            none = self.votes._replace(row=empty, who=empty, label=empty, rows=len(log_probs))
            telling = self._telling(self.law.truth(log_probs, none), log_probs)
        whom = telling.argmax(axis=1)
        best = telling[np.arange(len(whom)), whom]
        order = np.argsort(-best, kind="stable")[:budget]
        return [
            Question(int(i), self.names[whom[i]], float(best[i])) for i in order if best[i] >= 0
        ]

    def _telling(self, truth: Truth, log_probs: FloatArray) -> FloatArray:
        """What a label of each person would tell of each row's class, [n, A], in nats."""
        classes = len(self.classes)
        found = np.empty((len(log_probs), self.votes.people))
        step = max(1, _BLOCK // classes**2)
        for begin in range(0, len(log_probs), step):
            some = slice(begin, begin + step)
            part = Truth(*(v[some] for v in truth))
            for who in range(self.votes.people):
                given = self.law.answers(log_probs[some], part, who)
                found[some, who] = _information(part.probs, given)
        return found

    def check(self, rows: int | None) -> None:
        """Whether a file holds what such a crowd is made of."""
        what, votes = "labels of several people", self.votes
        people, classes, n = len(self.names), len(self.classes), len(self.probs)
        must((votes.rows, votes.people, votes.classes) == (n, people, classes), what)
        must(rows is None or rows == n, what)
        for codes, most in ((votes.row, n), (votes.who, people), (votes.label, classes)):
            must_be_codes(codes, len(votes.row), most, what)
        for values in (self.log_probs, self.probs, self.hard):
            must_be_array(values, (n, classes), what)
        self.law.check(people, classes)


def share_of(wrong: FloatArray) -> Contamination:
    """The share of rows that are wrong, with its 95 % interval; wrong: their probabilities, [n]."""
    value = float(np.clip(wrong.mean(), 1e-9, 1 - 1e-9))
    off = 1.96 * float(np.sqrt(np.sum(wrong * (1 - wrong)) + 0.25)) / len(wrong)
    return Contamination(value, max(value - off, 0.0), min(value + off, 1.0))


def judged(said: Judgement, wrong: FloatArray, share: Contamination) -> Judgement:
    """The same with the probabilities that the consensus of a row is wrong, [n]."""
    odds = wrong * (1 - share.value)
    suspicion = odds / (odds + (1 - wrong) * share.value + 1e-300)
    return said._replace(outlier_probability=wrong, suspicion=suspicion)


def must_be_codes(codes: Any, count: int, most: int, what: str) -> None:
    """Refuse all but whole numbers from 0 to below `most`, that many."""
    whole = isinstance(codes, np.ndarray) and codes.dtype.kind == "i" and codes.shape == (count,)
    must(whole and bool(np.all((codes >= 0) & (codes < most))), what)


def _information(probs: FloatArray, given: FloatArray) -> FloatArray:
    """Mutual information of class and answer, [n]: probs [n, C], p(given | true) [n, C, C]."""
    joint = probs[:, :, None] * given
    answer = joint.sum(axis=1, keepdims=True)
    ratio = np.log(given + 1e-300) - np.log(answer + 1e-300)
    return np.asarray(np.sum(joint * ratio, axis=(1, 2)))


class _Look(NamedTuple):
    """What trees say of rows they have not seen, and what it and the labels say of the truth."""

    log_probs: FloatArray
    law: Annotators
    truth: Truth
    evidence: float


def _first_look(x: Array, votes: Votes, seed: int) -> _Look:
    """By what the labels alone say of the truth or by their plain shares, whichever tells more.

    The first knows good people from bad ones. But where most are hardly better than chance it finds
    nothing, and nothing is then found of the features; or it finds what is not there.
    """
    counts = votes.counts
    total = counts.sum(axis=1, keepdims=True)
    shares = counts / total
    plain = _look(x, votes, shares, seed)
    if total.max() < 2:  # one label judges no other
        return plain
    _, truth = Annotators.alone(votes)
    known = _look(x, votes, np.where(total > 1, truth.probs, shares), seed)
    return max(plain, known, key=lambda look: look.evidence)


def _look(x: Array, votes: Votes, believed: FloatArray, seed: int) -> _Look:
    """What trees that learn probabilities of the classes, [n, C], tell beside the labels."""
    log_probs = _by_trees(x, believed, seed)
    law, evidence = Annotators.explaining(log_probs, votes)
    return _Look(log_probs, law, law.truth(log_probs, votes), evidence)


def _by_trees(x: Array, probs: FloatArray, seed: int) -> FloatArray:
    """Log probabilities of the classes, [n, C], by trees that have not seen the row.

    They learn the probabilities themselves. Learned from the most probable classes alone, a class
    that is a little more probable everywhere would become the only one.
    """
    from sklearn.ensemble import ExtraTreesRegressor

    trees = ExtraTreesRegressor(
        TREES if len(x) <= _MANY else TREES // 4,
        min_samples_leaf=_LEAF,
        bootstrap=True,
        oob_score=True,
        random_state=seed,
        n_jobs=-1,  # threads, and the same trees whatever their number
    )
    with threadpool_limits(1):
        trees.fit(np.asarray(x).reshape(len(x), -1), probs)
    found = np.clip(trees.oob_prediction_.reshape(probs.shape), 0.0, 1.0)
    return np.log((found + _UNSURE / probs.shape[1]) / (1 + _UNSURE))
