"""What dirty rows look like beside a predictive: how many there are, and which they are.

A row is good with probability 1-ε and then follows the predictive, else it is wrong and follows a
law of its own. All laws here are fitted by maximum likelihood on rows that the predictive has not
been trained on, and all calibrate the predictive on the way: a fit at t < 1 is too sure of itself
(in the limit it is the escort of order 1/t of what it has seen), and wrong rows would hide by how
much.

- `WrongLabels`: a wrong label is any other class, each as likely, or drawn from p(given | true)
  where rows clearly say so. It is as likely in all rows, or, where they clearly say so, more likely
  in those that the predictive is in doubt about: a fit that has seen many wrong labels somewhere is
  unsure there. The predictive is sharpened or flattened by a temperature, of which it is believed
  that it makes the surest rows sure; what is told of new rows is a mean over those that rows admit.
- `WrongTargets`: a wrong target comes from a mixture of three laws that know nothing of x: uniform
  over the range of the targets, their marginal, a wide Cauchy. The spread of the members is scaled;
  good targets may have longer tails than a Gaussian's, on one side more than on the other.
- `WrongPoints`: a wrong row of a density is uniform over the box of the rows, or comes from wide
  Cauchys, one a column, as often. The spread of the members is scaled.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from mtbayes.laws.estimation import Contamination
from mtbayes.laws.labels import WrongLabels
from mtbayes.laws.mixtures import mixture_shares
from mtbayes.laws.points import PointPredictive, WrongPoints
from mtbayes.laws.targets import WrongTargets
from mtbayes.types import Array, FloatArray

__all__ = [
    "Contamination",
    "Law",
    "PointPredictive",
    "WrongLabels",
    "WrongPoints",
    "WrongTargets",
    "mixture_shares",
]


class Law(Protocol):
    """What is known of wrong rows beside a predictive; y are codes, numbers or points, [n]."""

    @property
    def epsilon(self) -> float:
        """Share of wrong rows."""

    @classmethod
    def fit(cls, predictive: Any, y: Array, weight: Array) -> Law:
        """By maximum likelihood, from rows that the predictive was not trained on."""

    @classmethod
    def of_pool(cls, predictive: Any, y: Array, weight: Array) -> Law:
        """The same beside what several say together, each of whom is calibrated."""

    @classmethod
    def none(cls, y: Array, weight: Array) -> Law:
        """No wrong row, where rows are too few to learn of any."""

    def beside_all(
        self, predictives: Sequence[Any], y: Array, weight: Array, alone: Sequence[Any] = ()
    ) -> Sequence[Law]:
        """Laws like this one beside several predictives of the same rows.

        alone: those fitted beside each by itself, for a law whose likes share nothing
        """

    def averaged(self, predictive: Any, y: Array, weight: Array) -> Law:
        """The same, told of new rows as the mean over what these rows admit."""

    def at(self, epsilon: float) -> Law:
        """The same law with another share of wrong rows."""

    def of_more(self, halves: Sequence[Any], y: Array, weight: Array) -> Law:
        """The same beside what many more members say together, these among them.

        halves: what each half of these members says of the rows y
        """

    def of_longer(self, before: Any, after: Any, y: Array, weight: Array) -> Law:
        """The same beside members that were trained on, by what they say of a few rows y.

        before: what they said of the same rows when this law was fitted
        """

    def calibrated(self, predictive: Any) -> Any:
        """The predictive as sure of itself as rows bear out."""

    def told(self, predictive: Any) -> Any:
        """The same as it is told of new rows: with surprises, where the law knows of any."""

    def good(self, predictive: Any, y: Array) -> FloatArray:
        """Log probability of each row if it is good, [n]."""

    def score(self, predictive: Any, y: Array) -> FloatArray:
        """Log probability of each row, good or wrong, [n]."""

    def outlier_probability(self, predictive: Any, y: Array) -> FloatArray:
        """Probability that each row is wrong, [n]."""

    def alternative(self, predictive: Any, y: Array) -> tuple[Any, Any]:
        """What a wrong row should most likely have been, and how likely, [n] each; or None."""

    def contamination(
        self, predictive: Any, y: Array, weight: Array, level: float = 0.95
    ) -> Contamination:
        """The share of wrong ones among these rows, with an interval."""

    def check(self, shape: tuple[int, ...], classes: int) -> None:
        """Refuse, as read from a file, a law that no rows of a shape, or classes, can have."""
