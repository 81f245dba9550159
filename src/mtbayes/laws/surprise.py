"""Labels that a predictive does not foresee and that are right all the same.

A label that a predictive holds for all but impossible is wrong, or the predictive is: beside a law
of wrong labels that says no more than "any other class", rows cannot tell which. But to believe the
one where the other is true does not cost the same. To allow for a share δ of surprises costs a
clean row no more than -log(1-δ); to rule them out costs log(1/δ) for each that comes. So what is
told of new rows allows for δ as it is expected to be:

- before any row is seen, δ is expected to be a tenth of the doubt that the predictive admits by
  itself: one that is sure of 99 % of the rows is hardly mistaken about 2 % of them. Its density is
  Lomax's, 3/2s (1 + δ/2s)⁻⁴ with mean s, whose tail is heavy: customers leave without a sign, and
  an exponential would bet a thousand to one that the few whom nobody foresees are wrong labels.
  Of more doubt than a tenth, surprises are a part;
- all labels are right, or a share of them is wrong and each share as likely: even odds;
- rows tell the sum of both.

Who asks for wrong labels is told of all of the sum: to look at a row is cheap.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from mtbayes.types import Array, FloatArray

_BESIDE_DOUBT = 0.1  # of the doubt that is admitted, what is not, before any row is seen
_MUCH_DOUBT = 0.1  # that has room for what is not foreseen
_LEAST, _LOOKS = 1e-4, 60  # the smallest sum that is looked at, and how many


class Surprise(NamedTuple):
    """What rows tell of surprises.

    share: expected, of all right labels; clean: probability that no label is wrong
    most: that an interval admits, two standard deviations of a tenth of all doubt
    evidence: log probability of all rows, whatever the shares are, less a constant
    doubt: that the predictive admits by itself, the mean over rows
    """

    share: float
    clean: float
    most: float
    evidence: float = 0.0
    doubt: float = 0.0

    @classmethod
    def of(
        cls,
        logs: FloatArray,
        weight: Array,
        doubt: float,
        highest: float,
        at: Callable[[float], Any] = float,
    ) -> Surprise:
        """From log probabilities [2, n] of rows that are foreseen, and that are not.

        doubt: the mean probability by the predictive that its likeliest class is not the one
        highest: the largest sum; at: the share of each row, [n] or one, where the mean is a sum

        >>> sure = np.log(np.array([[0.999], [0.001]]) * np.ones(1000))  # all rows as foreseen
        >>> few = Surprise.of(sure, np.ones(1000), doubt=0.1, highest=0.5)
        >>> bool(few.share < 0.002 and few.clean > 0.9)
        True
        """
        mean = max(_BESIDE_DOUBT * min(doubt, _MUCH_DOUBT), 1 / max(float(weight.sum()), 2.0))
        sums = np.geomspace(_LEAST, highest, _LOOKS)
        top = logs.max(axis=0)
        good, other = np.exp(logs - top)
        shares = np.array([at(s) for s in sums]).reshape(_LOOKS, -1)
        fits = np.array([f @ weight for f in np.log(good + shares * (other - good) + 1e-300)])
        # Left of a sum: none is wrong and all of it surprises; or the rest of it wrong labels.
        far = 1 + sums / (2 * mean)
        clean, dirty = 1.5 / mean * far**-4, 1 - far**-3
        within = mean - far**-3 * (mean + 1.5 * sums)  # ∫ δ p(δ) below the sum
        share = np.exp(fits - fits.max()) * np.gradient(sums)
        total = float(share @ (clean + dirty))
        expected = float(share @ (clean * sums + within)) / total
        evidence = float(fits.max() + top @ weight) + float(np.log(total))
        most = 2 * max(_BESIDE_DOUBT * doubt, mean)
        return cls(expected, float(share @ clean) / total, most, evidence, doubt)
