"""How often each of many people is right, by their labels of rows whose truth is not known.

The likelihood of a share θ of right labels is taken over what is open about the truth, each row
judged without the label in question: a label of a row of which nothing else is known tells nothing
of its giver. People are alike as far as their labels say so: most shares come from one Beta
variable, a few may be anything; around what, how alike and how many are averaged over.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np
from scipy.special import betainc, logsumexp

from mtbayes.types import Array, FloatArray

SHARES = (np.arange(200) + 0.5) / 200
"""Shares of right labels that are weighed, [T]."""
_MEANS = (np.arange(16) + 0.5) / 16  # of the shares of all, from chance to 1
_ALIKE = 2.0 ** np.arange(9)  # labels of one's own that being one of all is worth
_OTHERWISE = (0.02, 0.1, 0.25)  # share of people whose share may be anything


class Quality(NamedTuple):
    """What is known of how often each of A people is right."""

    shares: FloatArray
    """Shares of right labels, [T]."""
    probs: FloatArray
    """Probability of each share, [A, T]."""

    @property
    def mean(self) -> FloatArray:
        """Probability that a label of each person is right, [A]."""
        return np.asarray(self.probs @ self.shares)

    @property
    def variance(self) -> FloatArray:
        """Of each person's share, [A].

        >>> even = Quality(SHARES, np.full((1, 200), 1 / 200))
        >>> round(float(even.variance[0]), 4) == round(1 / 12, 4)
        True
        """
        off = self.shares - self.mean[:, None]
        return np.asarray(np.sum(self.probs * off**2, axis=1))

    @classmethod
    def of(cls, log_lik: FloatArray, chance: float) -> Quality:
        """From log likelihoods of `SHARES` by the labels of each person, [A, T].

        chance: the share that a blind guess has; all people together are better than that
        """
        prior = _priors(chance)
        likely = np.exp(log_lik - log_lik.max(axis=1, keepdims=True))
        evidence = likely @ prior.T  # by person and by what people may have in common
        common = np.log(evidence).sum(axis=0)
        weight = np.exp(common - logsumexp(common))
        probs = likely * ((weight / evidence) @ prior)
        return cls(SHARES, probs / probs.sum(axis=1, keepdims=True))


class Heard(NamedTuple):
    """How likely labels are, [K] each, by what is known of their rows without them.

    At a share θ of its giver that is θ `right` + (1-θ) `wrong` + `anyhow`, up to a factor.
    """

    right: FloatArray
    wrong: FloatArray
    anyhow: FloatArray | float

    def log_lik(self, who: Array, people: int) -> FloatArray:
        """Log likelihood of `SHARES` by the labels of each person, [A, T]."""
        right, wrong = self.right + self.anyhow, self.wrong + self.anyhow
        logs = (np.log(right * s + wrong * (1 - s) + 1e-300) for s in SHARES)
        return np.stack([np.bincount(who, v, minlength=people) for v in logs], axis=1)


@cache
def _priors(chance: float) -> FloatArray:
    """Probabilities of `SHARES` by all that people may have in common, [H, T]."""
    ends = np.linspace(0, 1, len(SHARES) + 1)
    grid = np.meshgrid(chance + (1 - chance) * _MEANS, _ALIKE)
    mean, alike = (v.ravel()[:, None] for v in grid)
    usual = np.diff(betainc(mean * alike, (1 - mean) * alike, ends), axis=1)
    return np.concatenate([(1 - few) * usual + few / len(SHARES) for few in _OTHERWISE])
