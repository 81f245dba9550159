"""`RobustClassifier`: classes learned from rows of which some have a wrong label."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets

from mtbayes.data.sources import is_streamed
from mtbayes.errors import InvalidInput
from mtbayes.estimators import inputs
from mtbayes.estimators.base import shown
from mtbayes.estimators.blocks import blocks_of, by_blocks
from mtbayes.estimators.supervised import Supervised
from mtbayes.estimators.tries import takes_parts
from mtbayes.fitting.crowd import LabelCrowd
from mtbayes.fitting.units import Labels
from mtbayes.laws import WrongLabels
from mtbayes.learners import Place
from mtbayes.likelihoods import Categorical
from mtbayes.predictives import ClassPredictive
from mtbayes.types import Array, FloatArray, Rows

_FEW_CLASSES = 50  # that may have less than two rows each


class Outliers(NamedTuple):
    """What is known about rows: how likely each is wrong, and what it should have been."""

    probability: FloatArray
    """Probability that the row's target is wrong, [n]."""
    suggestion: Array
    """The most probable true label, or the predicted target, [n]."""


class Uncertainty(NamedTuple):
    """Doubt about rows, [n] each: entropy in nats for classes, variance for numbers."""

    aleatoric: FloatArray
    """Noise that more data would not remove."""
    epistemic: FloatArray
    """Dispute among the members, which more data would settle."""


class RobustClassifier(ClassifierMixin, Supervised):
    """A classifier for rows of which some have a wrong label.

    It trains ensembles by the (m,t)-robust criterion, chooses learners and t by how well rows that
    a fit has not seen are explained, wrong ones included, and reports which rows look wrong.

    learner: "auto", networks, a linear map and trees that speak together, each with the share that
        explains unseen rows best; "network", "linear" or "trees" alone; or any estimator of
        scikit-learn's kind that takes sample_weight and has predict_proba. Where images, m > 1 or
        modes < 5 are asked for, "auto" is networks alone (docs/how-to-choose.md)
    m: size of the ensemble that the criterion trains as one. At 1 each mode has a loss of its own;
        "auto" is that, or 10 where the loss of all modes together explains unseen rows better
    t: how much a row that contradicts the others is believed, in [0, 1]: 1 as much as any other,
        less is more robust; "auto" chooses it
    t_p: order of the Rényi divergence from the prior; below 1 forgives a prior that is wrong
    beta: how much rows count against the prior; 1 at m=1 is Bayes, "auto" is 50·m,
        beside the one of three priors that explains unseen rows best
    network: "mlp", "cnn" for images [n, height, width(, channels)], or a network of
        `mtbayes.networks`
    hidden: units of the hidden layers
    modes: networks, at most, whose mixture is the posterior; one is a Gaussian over the weights
    epochs: passes over the rows; "auto" makes 40, more where rows are few, less where they are many
    batch_size: rows a step
    learning_rate: where the step size of Adam starts
    warm_start: whether a second `fit` starts from the first's posterior
    random_state: an int, a RandomState or None; equal seeds give equal results
    verbose: 1 shows a progress bar

    After a fit:

    classes_: labels
    t_: the t that was chosen, of the learner with the largest share
    learner_, shares_: the learner that speaks loudest, and the share of each
    contamination_: (value, low, high), the share of wrong labels with its 95 % interval;
        `contamination_.at_least` says whether many more may be wrong than can be told
    outlier_probability_: probability that each training row's label is wrong, by a fit that has
        not seen it
    suspicion_: the same if half of all rows were wrong; Bayes' rule makes it that of any share
    unseen_prediction_: probability of each class, [n, C], by a fit that has not seen the row
    row_weight_: how much each training row pulls at the final fit; 1 is the most
    score_path_: the table behind the choice, a row for each learner and t
    history_: loss, data term and divergence along the final fit
    consensus_, consensus_probability_, annotators_: where y were `Annotations`, the most probable
        label of each row, how sure it is, and how good each person is

    >>> from sklearn.datasets import load_wine
    >>> x, y = load_wine(return_X_y=True)
    >>> model = RobustClassifier(t=0.5, epochs=50, random_state=0).fit(x, y)
    >>> model.predict_proba(x[:2]).shape
    (2, 3)
    """

    _law = WrongLabels
    _crowd = LabelCrowd
    _settings = ((1, 10**9, 1.0), (1, 10**9, 0.5), (1, 10**9, 0.3), (10, 10**9, 1.0))
    _path = (1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3)
    _risks = ("error", "log_t")

    classes_ = shown("units", "targets", "classes")

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        trusted: Any = None,
        checkpoint: Any = None,
        mesh: Any = None,
    ) -> RobustClassifier:
        """Learn from rows X and labels y.

        X: numbers, or a data frame of pandas, Polars or Arrow with text, categories, dates, gaps,
            which are coded as `mtbayes fit` codes a file (docs/text.md). Where there are more rows
            than memory holds: a `pyarrow` data set, a path that it opens or an iterator of record
            batches, with y and sample_weight the names of columns; a `numpy.memmap`; or a `Stream`
            (docs/scale.md)
        y: a label for each row, or `mtbayes.Annotations`: labels of several people
            (docs/annotators.md)
        sample_weight: how often each row counts
        trusted: [n], True for rows whose label is known to be right: none of them is called wrong,
            and each is believed as at t = 1. Correct a label in y and mark it here
        checkpoint: a folder; a fit that was killed goes on from there. random_state is then an int
        mesh: a `jax.sharding.Mesh`, whose devices share the rows of each step
        """
        self._learn_from(X, y, sample_weight, Place.of(checkpoint, mesh), trusted)
        return self

    def _check_annotations(self, y: Any) -> None:
        y.check_labels()

    def _of_new(self, x: Any) -> FloatArray:
        return self.predict_log_proba(x)

    def checked_rows(self, x: Any, y: Any, *, reset: bool) -> tuple[Array, Array]:
        """Rows and labels by scikit-learn's rules; after the first fit all labels are known."""
        x, y = self.checked(x, y, reset=reset)
        if not reset:  # first: labels of another kind than those known are told so
            self._check_known(y, self.classes_)
        try:
            check_classification_targets(y)
        except ValueError as error:
            if y.dtype != object:
                raise
            kinds = ", ".join(sorted({type(v).__name__ for v in y}))
            raise InvalidInput(
                "Unknown label type: y must hold labels of one kind, text or whole numbers of at "
                f"most 64 bits, got others ({kinds}). Write them as text, such as by "
                "[str(label) for label in y]."
            ) from error
        return x, y

    def _labels(self, y: Array, classes: Any) -> Array:
        labels = np.unique(y if classes is None else classes)
        if len(labels) < 2:
            raise InvalidInput(
                f"y must hold at least 2 classes, got 1 class: {_some(labels.tolist())}. "
                "There is nothing to tell apart."
                if classes is None
                else f"classes must hold at least 2 labels, got 1: {_some(labels.tolist())}. Name "
                "all that there may be."
            )
        if classes is None and len(labels) > max(_FEW_CLASSES, len(y) // 2):
            raise InvalidInput(
                f"y must hold several rows of most classes, got {len(labels)} classes in {len(y)} "
                "rows. Use RobustRegressor if y is a number, and merge rare classes if it is not."
            )
        self._check_known(y, labels)
        if self.warm_start and hasattr(self, "fitted_"):
            self._check_same(labels, "y", "Set warm_start=False to start anew.")
        return labels

    @available_if(takes_parts)  # type: ignore[untyped-decorator]
    def partial_fit(
        self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None
    ) -> RobustClassifier:
        """Learn from more rows: the posterior so far is the prior for them.

        "auto" is networks alone here: trees have no posterior to go on from. The first call chooses
        t by fits of folds, which takes as long as `fit` of learner="network".

        classes: all labels there will be, needed in the first call where y does not hold them
        """
        self.check_parameters()
        if not hasattr(self, "fitted_"):
            self.fitted_ = self.learned(X, y, sample_weight, classes=classes, alone=True)
            return self
        if classes is not None:
            self._check_same(np.unique(classes), "classes", "Name all of them in the first call.")
        self._go_on(*self.checked_rows(X, y, reset=False), sample_weight)
        return self

    def _check_same(self, classes: Array, name: str, remedy: str) -> None:
        """The posterior is about the classes of the first fit, and no others."""
        if not np.array_equal(classes, self.classes_):
            raise InvalidInput(
                f"{name} must hold the classes of the first fit, {_some(self.classes_.tolist())}, "
                f"got {_some(classes.tolist())}. {remedy}"
            )

    def _check_known(self, y: Array, classes: Array) -> None:
        known = set(classes.tolist())
        unknown = [v for v in dict.fromkeys(y.tolist()) if v not in known]
        if unknown:
            raise InvalidInput(
                f"y must hold labels seen before, got {_some(unknown)}. Known are "
                f"{_some(classes.tolist())}; partial_fit takes all of them as classes=[...]."
            )

    def _likelihood(self, labels: Any) -> Categorical:
        return Categorical(len(labels))

    def _target_units(self, rows: Rows, labels: Any) -> Labels:
        return Labels(labels)

    def predictive(self, X: Any) -> ClassPredictive:
        """The predictive distribution of each row: probabilities, entropy, samples."""
        result: ClassPredictive = self._calibrated(X)
        return result

    @by_blocks
    def predict(self, X: Any) -> Array:
        """The most probable label of each row."""
        labels = self.predictive(X).labels
        return self.classes_[labels]

    @by_blocks
    def predict_proba(self, X: Any) -> FloatArray:
        """Probability of each class, [n, C]."""
        return self.predictive(X).probs

    @by_blocks
    def predict_log_proba(self, X: Any) -> FloatArray:
        """Log probability of each class, [n, C]."""
        return np.asarray(self.predictive(X).log_probs, float)

    @by_blocks
    def decision_function(self, X: Any) -> FloatArray:
        """Log odds of the second of two classes, [n]; log probabilities of more, [n, C]."""
        logs = self.predict_log_proba(X)
        return logs[:, 1] - logs[:, 0] if len(self.classes_) == 2 else logs

    @by_blocks
    def uncertainty(self, X: Any) -> Uncertainty:
        """Entropy of each row's label, split into noise and dispute among the members."""
        found = self.predictive(X)
        return Uncertainty(np.asarray(found.aleatoric, float), found.epistemic)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The share of rows whose label is predicted."""
        inputs.refuse_masks(y=y, sample_weight=sample_weight)
        inputs.refuse_annotations(y)
        if not is_streamed(X):
            return float(super().score(X, y, sample_weight))
        right = total = 0.0
        for block in blocks_of(self, X, y, sample_weight):
            right += float(block.weight @ (self.predict(block) == block.y))
            total += float(block.weight.sum(dtype=float))
        return right / total

    @by_blocks
    def find_outliers(self, X: Any, y: Any) -> Outliers:
        """Which of new rows have a wrong label, and what it should be."""
        found = self.judge(X, y)
        given = self.checked_rows(X, y, reset=False)[1]
        return Outliers(
            found.outlier_probability, found.suggestion(given, found.outlier_probability)
        )


def _some(labels: list[Any]) -> str:
    """The first labels, as text."""
    shown = ", ".join(repr(v) for v in labels[:10])
    return shown + (", ..." if len(labels) > 10 else "")
