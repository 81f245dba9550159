"""Labels that several people gave: the true class is hidden, and so is how good each person is.

What the features say of a row, by a fit that has not seen it, is the prior of its true class; each
person has p(given | true) (`mtbayes.laws.skill`). People may err together: some rows are hard, and
of those a label may be the mistake that the features suggest. Whether there are hard rows is
decided by the evidence.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.sparse import csr_array
from scipy.special import entr, expit, log_expit, logit, logsumexp

from mtbayes._values import must, must_be_array, storable
from mtbayes.laws.estimation import FACTOR_SPREAD
from mtbayes.laws.quality import Heard, Quality
from mtbayes.laws.skill import Skill, learned
from mtbayes.maths.softmax import log_softmax
from mtbayes.types import Array, FloatArray

_ROUNDS = 100
_SETTLED = 1e-3  # a change of the posterior of any row
_EVERY = 3  # rounds between two looks at the temperature
_START = 0.7  # share of right labels that is believed at first
_HARD_GAIN = 5.0  # nats over all labels that hard rows must earn
_SOFT = 2.0  # what features suggest to a person is softer than what they say
_BLIND = 0.03  # share of suggestions that the features do not foresee
_FEW_HARD = (0.1, 0.1, 0.02)  # share of hard rows, and how strongly it and a slope of 0 are held
_SLIP = 0.05  # share of labels, at most, that nobody's skill explains: no label settles a row
_LURED = (3.0, 5.0)  # labels that follow the suggestion, of how many, seen before any
_MOST_LURED = 0.5  # share of them: if most did, people who agree would bear witness against it


@storable
class Votes(NamedTuple):
    """K labels: of which row, by whom, which; all are counted from 0."""

    row: Array
    who: Array
    label: Array
    rows: int
    people: int
    classes: int

    @property
    def by_row(self) -> csr_array:
        """Sums what is known of labels over each row, [n, K]."""
        k = len(self.row)
        return csr_array((np.ones(k), (self.row, np.arange(k))), shape=(self.rows, k))

    @property
    def by_answer(self) -> csr_array:
        """Sums the same over each person and given class, [A * C, K]."""
        k, answer = len(self.row), self.who * self.classes + self.label
        return csr_array(
            (np.ones(k), (answer, np.arange(k))), shape=(self.people * self.classes, k)
        )

    @property
    def counts(self) -> FloatArray:
        """How often each class was given to each row, [n, C]."""
        found = np.zeros((self.rows, self.classes))
        np.add.at(found, (self.row, self.label), 1.0)
        return found

    def of_rows(self, some: Array) -> Votes:
        """The labels of some rows, counted anew in their order."""
        place = np.full(self.rows, -1)
        place[some] = np.arange(len(some))
        kept = place[self.row] >= 0
        return self._replace(
            row=place[self.row[kept]], who=self.who[kept], label=self.label[kept], rows=len(some)
        )

    @property
    def shares(self) -> FloatArray:
        """Of the classes among all labels, rows counted alike, [C]; none is 0."""
        counts = self.counts
        mean = (counts / counts.sum(axis=1, keepdims=True)).mean(axis=0)
        return (mean + 0.5 / self.rows) / (mean + 0.5 / self.rows).sum()


class Truth(NamedTuple):
    """What is known of the true class of rows."""

    probs: FloatArray
    """Probability of each class, [n, C]."""
    hard: FloatArray
    """Probability of each class and that the row is hard, [n, C]."""
    evidence: FloatArray
    """Log probability of each row's labels, [n]."""


@storable
@dataclass(frozen=True)
class Annotators:
    """How people label rows of which a predictive knows something.

    skill: p(given | true) of each person on rows that are not hard
    temperature: the predictive's log probabilities are divided by it and normalised anew
    lured: share of the labels of hard rows that are a mistake the features suggest; 0: no row is
    level, slope: log odds that a row is hard, and how they grow with its doubt above `centre`
    """

    skill: Skill
    temperature: float = 1.0
    lured: float = 0.0
    level: float = -np.inf
    slope: float = 0.0
    centre: float = 0.0

    @classmethod
    def fit(cls, log_probs: FloatArray, votes: Votes) -> Annotators:
        """By the evidence of votes, from log probabilities [n, C] by fits without the row."""
        return cls.explaining(log_probs, votes)[0]

    @classmethod
    def explaining(cls, log_probs: FloatArray, votes: Votes) -> tuple[Annotators, float]:
        """The law that explains votes best, and its log evidence.

        Hard rows show where people disagree with each other; where no row has two labels, they are
        not looked for.
        """
        plain, evidence = _settled(cls.at_first(votes), log_probs, votes)
        if np.bincount(votes.row).max() < 2:
            return plain, evidence
        share = logit(_FEW_HARD[0])
        centre = float(_doubt(log_probs).mean())
        start = cls(plain.skill, plain.temperature, 0.5, float(share), 0.0, centre)
        hard, better = _settled(start, log_probs, votes)
        return (hard, better) if better - evidence > _HARD_GAIN else (plain, evidence)

    @classmethod
    def alone(cls, votes: Votes) -> tuple[Annotators, Truth]:
        """Without features: all rows have the shares of the classes as their prior."""
        log_probs = np.log(np.tile(votes.shares, (votes.rows, 1)))
        law, _ = _settled(cls.at_first(votes), log_probs, votes, tempered=False)
        return law, law.truth(log_probs, votes)

    @classmethod
    def at_first(cls, votes: Votes) -> Annotators:
        """Everybody is right more often than not, and mistakes are even."""
        c = votes.classes
        usual = np.where(np.eye(c) > 0, _START, (1 - _START) / (c - 1))
        alpha = np.tile(1e4 * usual, (votes.people, 1, 1))
        return cls(Skill(alpha, np.tile([_START, 1 - _START], (votes.people, 1))))

    def prior(self, log_probs: FloatArray) -> FloatArray:
        """Log probabilities of the true class before any label, [n, C]."""
        return np.asarray(log_softmax(log_probs / self.temperature, axis=1))

    def hardness(self, doubt: FloatArray) -> FloatArray:
        """Log odds that each row is hard, before any label, [n], by its doubt."""
        return self.level + self.slope * (doubt - self.centre)

    def suggestion(self, log_probs: FloatArray) -> FloatArray:
        """What the features suggest to people, [n, C]; where a row is hard, what is wrong of it."""
        soft = np.exp(log_softmax(log_probs / (_SOFT * self.temperature), axis=1))
        return (1 - _BLIND) * soft + _BLIND / soft.shape[1]

    def truth(self, log_probs: FloatArray, votes: Votes) -> Truth:
        """The true class of rows by their predictive and their votes."""
        return _Said.of(self, log_probs, votes).truth(self, log_probs, votes)

    def quality(self, log_probs: FloatArray, votes: Votes) -> Quality:
        """How often the next label of each person is right, of any row."""
        log_lik = self.heard(log_probs, votes).log_lik(votes.who, votes.people)
        found = Quality.of(log_lik, 1 / votes.classes)
        hard = self.truth(log_probs, votes).hard.sum() / votes.rows
        return found._replace(shares=found.shares * (1 - self.lured * hard))

    def heard(self, log_probs: FloatArray, votes: Votes) -> Heard:
        """How likely each label is by what its row's features and other labels say."""
        said = _Said.of(self, log_probs, votes)
        truth = said.truth(self, log_probs, votes)
        own = (truth.probs - truth.hard)[votes.row] / np.exp(said.plain)
        hit = np.arange(votes.classes) == votes.label[:, None]
        anyhow: FloatArray | float = 0.0
        if said.hard is not None:
            hard = truth.hard[votes.row] / np.exp(said.hard)
            own = own + (1 - self.lured) * hard
            lure = self.lured * _mistaken(self.suggestion(log_probs)[votes.row], votes.label)
            anyhow = (lure * hard).sum(axis=1)
        skill = self.skill.mean
        missed = 1 - np.diagonal(skill, axis1=1, axis2=2)
        among_wrong = skill[votes.who, :, votes.label] / np.maximum(missed[votes.who], 1e-9)
        return Heard(own[hit], np.where(hit, 0.0, own * among_wrong).sum(axis=1), anyhow)

    def answers(self, log_probs: FloatArray, truth: Truth, who: int) -> FloatArray:
        """p(given | true) of a person in each row as far as it is known, [n, C, C]."""
        own = (1 - _SLIP) * self.skill.mean[who] + _SLIP / self.skill.alpha.shape[-1]
        if not self.lured:
            return np.broadcast_to(own, (len(log_probs), *own.shape))
        share = self.lured * truth.hard.sum(axis=1)[:, None, None]
        suggested = self.suggestion(log_probs)
        wrong = [_mistaken(suggested, np.full(len(suggested), c)) for c in range(len(own))]
        return (1 - share) * own + share * np.stack(wrong, axis=2)

    def check(self, people: int, classes: int) -> None:
        """Whether a file holds what such a law is made of."""
        what = "the law of annotators"
        must_be_array(self.skill.alpha, (people, classes, classes), what)
        must_be_array(self.skill.right, (people, 2), what)
        must(bool(np.all(self.skill.alpha > 0) and np.all(self.skill.right >= 0)), what)
        must(0 <= self.lured < 1 and 0 < self.temperature < np.inf, what)


class _Said(NamedTuple):
    """How well each class explains each label, [K, C], on rows that are not hard and that are."""

    plain: FloatArray
    hard: FloatArray | None
    suggested: FloatArray | None
    """Of labels on hard rows, the share that is the suggested mistake, [K, C]."""
    odds: FloatArray | None
    """Log odds that rows are hard, [n, 1]."""

    @classmethod
    def of(
        cls, law: Annotators, log_probs: FloatArray, votes: Votes, doubt: FloatArray | None = None
    ) -> _Said:
        """doubt: of the rows, where it is known already."""
        share = (1 - _SLIP) * np.exp(law.skill.logs) + _SLIP / votes.classes
        by_label = votes.who * votes.classes + votes.label
        share = share.transpose(0, 2, 1).reshape(-1, votes.classes)
        plain = np.log(share)[by_label]
        if not law.lured:
            return cls(plain, None, None, None)
        lure = law.lured * _mistaken(law.suggestion(log_probs)[votes.row], votes.label)
        either = (1 - law.lured) * share[by_label] + lure
        odds = law.hardness(_doubt(log_probs) if doubt is None else doubt)[:, None]
        return cls(plain, np.log(either), lure / either, odds)

    def truth(self, law: Annotators, log_probs: FloatArray, votes: Votes) -> Truth:
        prior, by_row = law.prior(log_probs), votes.by_row
        plain = prior + by_row @ self.plain
        if self.hard is None or self.odds is None:
            evidence = logsumexp(plain, axis=1)
            probs = np.exp(plain - evidence[:, None])
            return Truth(probs, np.zeros_like(probs), evidence)
        hard = prior + by_row @ self.hard + log_expit(self.odds)
        both = np.logaddexp(plain + log_expit(-self.odds), hard)
        evidence = logsumexp(both, axis=1)
        return Truth(np.exp(both - evidence[:, None]), np.exp(hard - evidence[:, None]), evidence)


def _settled(
    law: Annotators, log_probs: FloatArray, votes: Votes, *, tempered: bool = True
) -> tuple[Annotators, float]:
    """The law that explains votes best, from a start, and its evidence."""
    before = np.zeros((votes.rows, votes.classes))
    doubt = _doubt(log_probs)
    cost = 0.0
    for i in range(_ROUNDS):
        said = _Said.of(law, log_probs, votes, doubt)
        truth = said.truth(law, log_probs, votes)
        if i > 2 * _EVERY and np.abs(truth.probs - before).max() < _SETTLED:
            break
        before = truth.probs
        temperature = law.temperature
        if tempered and i % _EVERY == _EVERY - 1:
            temperature = _tempered(said, log_probs, votes)
        law = replace(law, temperature=temperature)
        law, cost = _improved(law, said, truth, doubt, votes, early=i < _EVERY)
    return law, float(truth.evidence.sum()) - cost


def _improved(
    law: Annotators,
    said: _Said,
    truth: Truth,
    doubt: FloatArray,
    votes: Votes,
    *,
    early: bool,
) -> tuple[Annotators, float]:
    """The law by what is known of the truth, and what its open skill costs."""
    own = truth.probs[votes.row]
    lured, level, slope = law.lured, law.level, law.slope
    if said.suggested is not None:
        followed = truth.hard[votes.row] * said.suggested
        own = own - followed
        hard = truth.hard.sum(axis=1)
        seen, of = _LURED
        lured = min(_MOST_LURED, float((followed.sum() + seen) / (hard[votes.row].sum() + of)))
        level, slope = _leaning(hard, doubt - law.centre, level, slope)
    counts = (votes.by_answer @ own).reshape(votes.people, votes.classes, votes.classes)
    skill, cost = learned(np.maximum(counts.transpose(0, 2, 1), 0.0), early=early)
    return Annotators(skill, law.temperature, lured, level, slope, law.centre), cost


def _leaning(
    hard: FloatArray, doubt: FloatArray, level: float, slope: float
) -> tuple[float, float]:
    """Level and slope of the log odds of hard rows, [n] how likely each is, after a few steps."""
    share, *held = _FEW_HARD
    features = np.stack([np.ones_like(doubt), doubt], axis=1)
    beta, centre = np.array([level, slope]), np.array([logit(share), 0.0])
    for _ in range(3):
        mean = expit(features @ beta)
        curve = (features * (mean * (1 - mean))[:, None]).T @ features + np.diag(held)
        beta = beta + np.linalg.solve(curve, features.T @ (hard - mean) - held * (beta - centre))
        beta = np.clip(beta, -30.0, 30.0)
    return float(beta[0]), float(beta[1])


def _tempered(said: _Said, log_probs: FloatArray, votes: Votes) -> float:
    """The temperature of the predictive that explains votes best."""
    by_row = votes.by_row
    plain = by_row @ said.plain
    if said.hard is not None and said.odds is not None:
        hard = by_row @ said.hard + log_expit(said.odds)
        plain = np.logaddexp(plain + log_expit(-said.odds), hard)

    def loss(log_temperature: float) -> float:
        prior = log_softmax(log_probs / np.exp(log_temperature), axis=1)
        spread = 0.5 * (log_temperature / FACTOR_SPREAD) ** 2
        return spread - float(logsumexp(prior + plain, axis=1).sum())

    found = minimize_scalar(loss, bounds=(-2.0, 2.0), method="bounded", options={"xatol": 0.02})
    return float(np.exp(found.x))


def _mistaken(suggested: FloatArray, label: Array) -> FloatArray:
    """Probability of each label as a mistake, [K, C] by true class, of what features suggest.

    >>> _mistaken(np.array([[0.6, 0.3, 0.1]]), np.array([1])).round(2).tolist()
    [[0.75, 0.0, 0.33]]
    """
    given = np.arange(suggested.shape[1]) == label[:, None]
    return np.where(given, 0.0, suggested[given][:, None] / (1 - suggested))


def _doubt(log_probs: FloatArray) -> FloatArray:
    """Entropy of each row's class by that of a blind guess, [n]."""
    probs = np.exp(log_softmax(log_probs, axis=1))
    return np.asarray(entr(probs).sum(axis=1) / np.log(probs.shape[1]))
