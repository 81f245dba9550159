"""Several people gave each row a label: what an estimator then knows, and how it learns."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from mtbayes import _check
from mtbayes.errors import InvalidInput
from mtbayes.estimators import inputs
from mtbayes.estimators.annotations import Annotations
from mtbayes.estimators.frames import as_numbers
from mtbayes.fitting.crowd import Question
from mtbayes.fitting.fitted import marks
from mtbayes.fitting.harm import remember
from mtbayes.learners import Place
from mtbayes.types import Array, FloatArray, Rows

_NO_CROWD = (
    "y must be Annotations for a consensus, got one target for each row. Pass "
    "Annotations.wide(...) or .long(...) to fit."
)


class Crowded:
    """Mixed into estimators of targets, whose `fit` may get `Annotations` as y."""

    _crowd: ClassVar[Any]
    """What is known of people: `LabelCrowd` or `NumberCrowd`."""
    crowd_: Any

    def _learn_crowd(self: Any, x: Any, y: Annotations, sample_weight: Any, place: Place) -> None:
        """Learn from what several people said; of one, as from any y."""
        rows = self.checked(x, reset=True)
        numbers = as_numbers(rows)
        y.check_rows(len(numbers))
        y.check_order(x)
        self._check_annotations(y)
        start = self._crowd.first(numbers, y, self._seed())
        target = start.target
        weight = sample_weight
        if target.weight is not None:
            weight = target.weight * inputs.weights(sample_weight, numbers)
        fitted = self.learned(x, target.y, weight, place, target.classes)
        crowd, fitted = start.beside(fitted)
        if fitted.marks is not None:  # rows are known again by their features and the consensus
            fitted = replace(fitted, marks=marks(rows, crowd.consensus))
        remember(fitted, Rows(rows, target.y, inputs.weights(weight, numbers)))
        self.crowd_, self.fitted_ = crowd, fitted

    def _known_crowd(self: Any) -> Any:
        if "crowd_" not in vars(self):
            raise AttributeError(_NO_CROWD)  # as of any attribute that a fit did not give
        return self.crowd_

    @property
    def consensus_(self) -> Array:
        """The most probable label of each row, [n], by features and all labels."""
        return self._known_crowd().consensus

    @property
    def consensus_probability_(self) -> FloatArray:
        """Probability that the consensus is right, [n]; of numbers, that it is near the truth."""
        return np.asarray(self._known_crowd().probability)

    @property
    def annotators_(self) -> list[Any]:
        """How good each person is: a list, ready for a data frame."""
        people: list[Any] = self._known_crowd().people
        return people

    def next_labels(self: Any, budget: int, X: Any = None) -> list[Question]:
        """Which rows to ask about, and whom, by what the answer is expected to tell.

        Nobody is asked twice about a row, and no row is asked about twice: fit again when the
        answers are there.

        budget: how many labels to ask for, at most
        X: rows that nobody has labelled yet; else those of `fit`
        """
        check_is_fitted(self)
        if not hasattr(self, "crowd_"):
            raise InvalidInput(_NO_CROWD)
        crowd = self.crowd_
        _check.count(budget, "budget", "It is the number of labels to ask for.")
        if X is None:
            found: list[Question] = crowd.questions(budget)
            return found
        asked: list[Question] = crowd.questions(budget, self._of_new(X))
        return asked
