"""What is believed of labels and a predictive before any row is seen, and what rows say to it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import expit, log_ndtr

from mtbayes.laws.estimation import Prior, near_one
from mtbayes.laws.mixtures import TINY
from mtbayes.predictives import ClassPredictive
from mtbayes.types import Array

_SUREST = 0.95  # quantile of rows, by the probability of their likeliest class
_SURE_DOUBT = 0.05  # about these rows where labels are clean
_SURE_TABLES = 0.9  # share of data sets whose surest rows are sure
_SURE_ROWS = 1000  # that tell how sure the surest are
_TELLING = 30.0  # odds that columns tell something of the labels


def sureness(predictive: ClassPredictive, weight: Array, spread: float) -> Prior:
    """The prior of a log temperature: the surest of clean rows are sure.

    A learner is as sure as the labels that it learned from: where a share ε of two classes is
    wrong, of no row surer than 1-ε. Then few wrong labels and a temperature of 1 explain rows as
    well as ε and a lower one, and no likelihood tells which. But few tables are known whose surest
    rows are not nearly certain once labels are clean ("anchor points"). So in nine data sets of ten
    the doubt about the row at the quantile _SUREST is as an exponential's around _SURE_DOUBT, in
    the tenth it is anything, beside `near_one`. What a temperature sharpens here is what is told of
    a row beyond the shares of the classes: who tells no more than these has no row to be sure of,
    and then nothing is believed.
    """
    log_probs = np.asarray(predictive.log_probs, float)
    classes = log_probs.shape[1]
    some = np.random.default_rng(0).permutation(len(log_probs))[:_SURE_ROWS]
    shares = np.log(np.average(np.exp(log_probs), axis=0, weights=weight) + TINY)
    told = log_probs[some] - shares
    counted = weight[some]
    anything = (1 - _SURE_TABLES) * classes / max(classes - 1, 1)

    def prior(log_temperature: float) -> float:
        logs = shares + told / np.exp(log_temperature)
        # The largest of each row's probabilities, and their quantile of counted rows.
        top = 1 / np.exp(logs - logs.max(axis=1, keepdims=True)).sum(axis=1)
        order = np.argsort(top)
        below = np.cumsum(counted[order])
        doubt = 1 - float(top[order[np.searchsorted(below / below[-1], _SUREST)]])
        sure = _SURE_TABLES * np.exp(-doubt / _SURE_DOUBT) / _SURE_DOUBT
        return near_one(log_temperature, spread) + float(np.log(sure + anything))

    return prior


class Telling(NamedTuple):
    """Whether a predictive tells more of labels than the shares of the classes do.

    z: standard errors by which it is more often right about the given labels than about the same
        labels in any other order: the score test of λ = 0 where labels follow it with
        probability λ and else the shares π of the labels, p(y | x) = π_y + λ (p_y(x) - mean p_y)
    rows: that were asked
    """

    z: float
    rows: float

    @classmethod
    def of(cls, predictive: ClassPredictive, y: Array, weight: Array) -> Telling:
        """From labels y [n] that it has not seen.

        >>> shares = ClassPredictive(np.log(np.full((100, 2), 0.5)), np.zeros(100))
        >>> Telling.of(shares, np.arange(100) % 2, np.ones(100)).z
        0.0
        """
        probs = np.exp(np.asarray(predictive.log_probs, float))
        told = probs - np.average(probs, axis=0, weights=weight)
        shares = np.bincount(y, weight, probs.shape[1]) / np.sum(weight)
        score = np.divide(told, shares, out=np.zeros_like(told), where=shares > 0)
        mean = score @ shares
        gain = (score[np.arange(len(y)), y] - mean) @ weight
        chance = np.maximum(np.square(score) @ shares - np.square(mean), 0.0) @ np.square(weight)
        return cls(float(gain / np.sqrt(chance + TINY)), float(np.sum(weight)))

    @property
    def probability(self) -> float:
        """That it does, after these rows.

        By Schwarz' approximation, one number against none, which is above 0 if it is not 0.
        """
        gain = self.z**2 / 2 + log_ndtr(self.z) + np.log(2)
        return float(expit(np.log(_TELLING) + gain - 0.5 * np.log(max(self.rows, 1.0))))
