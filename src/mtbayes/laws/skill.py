"""p(given | true) of each of many people, few of whose labels are known.

What a person says of a class is a Dirichlet variable around what is expected of that person; that
is what all people share, moved by the one number that says how often this person is right; and what
all share is held near a diagonal with even mistakes. How strongly each is held is chosen by the
evidence of the labels, so that people of few labels are judged by all, and others by themselves.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import digamma, expit, gammaln, logit

from mtbayes._values import storable
from mtbayes.types import FloatArray

_STRENGTHS = (2.0, 5.0, 15.0, 50.0, 200.0, 1e4)
"""Labels that an expectation counts as; the last leaves no room beside it."""
_LOOSE = 2  # strengths that may be taken early
_SURE = 1e-4  # no share is nearer to 0 or 1 than this


@storable
class Skill(NamedTuple):
    """What is known of A people's labels of C classes."""

    alpha: FloatArray
    """Dirichlet parameters of p(given | true), [A, C, C]: by person, true class, given class."""
    right: FloatArray
    """Parameters of the share of right labels of each, [A, 2]: right ones and wrong ones."""

    @property
    def mean(self) -> FloatArray:
        """Expected p(given | true), [A, C, C]."""
        return self.alpha / self.alpha.sum(axis=-1, keepdims=True)

    @property
    def logs(self) -> FloatArray:
        """Expected log p(given | true), [A, C, C]; less than the log of the mean, by what is open.

        >>> one = Skill(np.array([[[8.0, 2.0], [2.0, 8.0]]]), np.array([[8.0, 2.0]]))
        >>> bool(np.all(one.logs < np.log(one.mean)))
        True
        """
        total = self.alpha.sum(axis=-1, keepdims=True)
        return np.asarray(digamma(self.alpha) - digamma(total))


class Learned(NamedTuple):
    """A skill, and how much the evidence of all labels is below that of known matrices."""

    skill: Skill
    cost: float


def learned(counts: FloatArray, *, early: bool = False) -> Learned:
    """The skill of people by expected counts of labels, [A, C, C]: by person, true and given.

    early: whether counts are a first guess, by which people would look more alike than they are
    """
    expected, right = _expected(counts, _STRENGTHS[:_LOOSE] if early else _STRENGTHS)
    strength = _best(counts, expected)
    skill = Skill(counts + strength * expected, right)
    evidence = _evidence(counts, expected, strength).sum()
    return Learned(skill, float(np.sum(counts * skill.logs) - evidence))


def shared(counts: FloatArray) -> FloatArray:
    """p(given | true) that all have in common, [C, C], by counts of all, [C, C]."""
    classes = len(counts)
    hits = (np.trace(counts) + 1) / (counts.sum() + 1.5)
    even = np.where(np.eye(classes) > 0, hits, (1 - hits) / (classes - 1))
    strength = _best(counts, even, _STRENGTHS[:-1])
    return (counts + strength * even) / (counts.sum(axis=1, keepdims=True) + strength)


def _expected(counts: FloatArray, strengths: tuple[float, ...]) -> tuple[FloatArray, FloatArray]:
    """p(given | true) that is expected of each person, [A, C, C], and right and wrong, [A, 2]."""
    common = shared(counts.sum(axis=0))
    eye = np.eye(len(common)) > 0
    by_class = np.clip(common[eye], _SURE, 1 - _SURE)
    among_wrong = np.where(eye, 0.0, common)
    among_wrong /= among_wrong.sum(axis=1, keepdims=True)
    labels, hits = counts.sum(axis=(1, 2)), counts[:, eye].sum(axis=1)
    mean = (counts.sum(axis=2) @ by_class + by_class.mean()) / (labels + 1)
    both = np.stack([hits, labels - hits], axis=1)
    usual = np.stack([mean, 1 - mean], axis=1)
    right = both + _best(both, usual, strengths) * usual
    share = np.clip(right[:, 0] / right.sum(axis=1), _SURE, 1 - _SURE)
    own = expit(logit(by_class) + (logit(share) - logit(mean))[:, None])
    own = np.clip(own, _SURE, 1 - _SURE)
    return np.where(eye, own[:, :, None], (1 - own)[:, :, None] * among_wrong), right


def _best(counts: FloatArray, mean: FloatArray, strengths: tuple[float, ...] = _STRENGTHS) -> float:
    """The strength of the expectation that explains counts best."""
    return max(strengths, key=lambda k: float(_evidence(counts, mean, k).sum()))


def _evidence(counts: FloatArray, mean: FloatArray, strength: float) -> FloatArray:
    """Log probability of counts [..., C] under Dirichlet variables of a mean and a strength."""
    alpha = strength * mean
    of_each = (gammaln(alpha + counts) - gammaln(alpha)).sum(axis=-1)
    return np.asarray(
        of_each + gammaln(alpha.sum(axis=-1)) - gammaln(alpha.sum(axis=-1) + counts.sum(axis=-1))
    )
