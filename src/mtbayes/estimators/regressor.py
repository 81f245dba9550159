"""`RobustRegressor`: a number learned from rows of which some have a wrong target."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if

from mtbayes import _check
from mtbayes.data.sources import is_streamed
from mtbayes.errors import InvalidInput
from mtbayes.estimators import inputs
from mtbayes.estimators.base import shown
from mtbayes.estimators.blocks import blocks_of, by_blocks
from mtbayes.estimators.classifier import Outliers, Uncertainty
from mtbayes.estimators.supervised import Supervised
from mtbayes.estimators.tries import takes_parts
from mtbayes.fitting.ratings import NumberCrowd
from mtbayes.fitting.units import Targets
from mtbayes.laws import WrongTargets
from mtbayes.learners import Place
from mtbayes.likelihoods import Gaussian
from mtbayes.maths import draws
from mtbayes.predictives import GaussianPredictive
from mtbayes.types import Array, FloatArray, Rows

_SEVERAL = 10  # rows with one number, which is then no accident


class RobustRegressor(RegressorMixin, Supervised):
    """A regressor for rows of which some have a wrong target.

    It predicts a distribution: a mean, intervals, quantiles, draws. Targets are centred and scaled
    inside, so that units do not matter.

    learner: as for `RobustClassifier`; an estimator must be a regressor that takes sample_weight
    noise: of a network, "by_input", a spread of its own for each row, or "constant", one for all
    m: as for `RobustClassifier`; "auto" is 10, in one mode
    t, t_p, beta, network, hidden, modes, epochs, batch_size, learning_rate, warm_start,
    random_state, verbose: as for `RobustClassifier`

    After a fit:

    learner_, shares_, t_, contamination_, outlier_probability_, suspicion_, row_weight_,
        score_path_, history_: as for `RobustClassifier`, of targets
    unseen_prediction_: mean and standard deviation, [n, 2], by a fit that has not seen the row

    >>> x = np.linspace(-1, 1, 100)[:, None]
    >>> model = RobustRegressor(t=0.8, epochs=100, random_state=0).fit(x, x[:, 0] ** 2)
    >>> low, high = model.predict_interval(x[:3], coverage=0.9)
    >>> bool((low < high).all())
    True
    """

    _law = WrongTargets
    _crowd = NumberCrowd
    # One mode: of the settings that rows can be scored by, modes of their own look best and have
    # tails too thin, and modes of one loss keep a member for the wrong rows.
    _settings = ((10, 1, 2.0), (10, 1, 0.3))
    # Below .6 a Gaussian fits the middle of the noise alone, and tails pass for wrong rows.
    _path = (1.0, 0.95, 0.9, 0.8, 0.7, 0.6)
    _risks = ("log_t",)

    targets_ = shown("units", "targets")

    def __init__(
        self,
        learner: Any = "auto",
        m: int | str = "auto",
        t: float | str = "auto",
        t_p: float = 1.0,
        beta: float | str = "auto",
        network: Any = "mlp",
        hidden: tuple[int, ...] = (50, 50),
        modes: int = 10,
        noise: str = "by_input",
        epochs: int | str = "auto",
        batch_size: int = 128,
        learning_rate: float = 0.01,
        warm_start: bool = False,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        super().__init__(
            learner,
            m,
            t,
            t_p,
            beta,
            network,
            hidden,
            modes,
            epochs,
            batch_size,
            learning_rate,
            warm_start,
            random_state,
            verbose,
        )
        self.noise = noise

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        trusted: Any = None,
        checkpoint: Any = None,
        mesh: Any = None,
    ) -> RobustRegressor:
        """Learn from rows X and targets y.

        X: numbers, or a data frame of pandas, Polars or Arrow with text, categories, dates, gaps,
            which are coded as `mtbayes fit` codes a file (docs/text.md). Where there are more rows
            than memory holds: a `pyarrow` data set, a path that it opens or an iterator of record
            batches, with y and sample_weight the names of columns; a `numpy.memmap`; or a `Stream`
            (docs/scale.md)
        y: a number for each row, or `mtbayes.Annotations`: ratings of several people
            (docs/annotators.md)
        sample_weight: how often each row counts
        trusted: [n], True for rows whose target is known to be right: none of them is called wrong,
            and each is believed as at t = 1. Correct a target in y and mark it here
        checkpoint: a folder; a fit that was killed goes on from there. random_state is then an int
        mesh: a `jax.sharding.Mesh`, whose devices share the rows of each step
        """
        self._learn_from(X, y, sample_weight, Place.of(checkpoint, mesh), trusted)
        return self

    def _check_annotations(self, y: Any) -> None:
        if y.value.dtype.kind not in "biuf":
            raise InvalidInput(
                f"y must hold numbers, got {y.value[0].item()!r} by {y.names[y.who[0]]!r}. Use "
                "RobustClassifier for labels."
            )

    def _of_new(self, x: Any) -> FloatArray:
        mean, std = self.predict(x, return_std=True)
        return np.stack([mean, std**2], axis=1)

    def checked_rows(self, x: Any, y: Any, *, reset: bool) -> tuple[Array, Array]:
        """Rows and targets by scikit-learn's rules."""
        x, y = self.checked(x, y, reset=reset, y_numeric=True)
        if reset:
            inputs.check_size(y)
            _warn_of_two(y)
        return x, y

    @available_if(takes_parts)  # type: ignore[untyped-decorator]
    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> RobustRegressor:
        """Learn from more rows: the posterior so far is the prior for them.

        "auto" is networks alone here: trees have no posterior to go on from. The first call chooses
        t by fits of folds, which takes as long as `fit` of learner="network".
        """
        self.check_parameters()
        if not hasattr(self, "fitted_"):
            self.fitted_ = self.learned(X, y, sample_weight, alone=True)
        else:
            self._go_on(*self.checked_rows(X, y, reset=False), sample_weight)
        return self

    def check_parameters(self) -> None:
        """Refuse parameters that no fit can take."""
        super().check_parameters()
        _check.known("noise", self.noise, ["by_input", "constant"])

    def _likelihood(self, labels: Any) -> Gaussian:
        return Gaussian("by_input" if self.noise == "by_input" else "learned", floor=0.02)

    def _target_units(self, rows: Rows, labels: Any) -> Targets:
        return Targets.of(rows.y, rows.weight)

    def predictive(self, X: Any) -> GaussianPredictive:
        """The predictive distribution of each row, in the user's units: a mixture of Gaussians."""
        found = self._calibrated(X)
        scale = self.targets_.scale
        means = self.targets_.centre + scale * np.asarray(found.means, float)
        return GaussianPredictive(means, scale * np.asarray(found.stds, float))

    @by_blocks
    def predict(self, X: Any, return_std: bool = False) -> Any:
        """The mean of each row, and its standard deviation if asked for."""
        found = self._calibrated(X)
        mean = self.targets_.centre + self.targets_.scale * found.mean
        return (mean, self.targets_.scale * found.std) if return_std else mean

    @by_blocks
    def predict_interval(self, X: Any, coverage: float = 0.9) -> tuple[FloatArray, FloatArray]:
        """Low and high end of the central interval that holds the target with that probability."""
        return self.predictive(X).interval(coverage)

    @by_blocks
    def predict_quantiles(self, X: Any, alpha: Any) -> FloatArray:
        """Quantiles: [n] for a number alpha, [n, k] for k of them."""
        return self.predictive(X).quantile(alpha)

    def sample(self, X: Any, size: int = 1, random_state: Any = None) -> FloatArray:
        """Draws of each row's target, [size, n]."""
        seed = check_random_state(random_state).randint(2**31)
        return self.predictive(X).sample(draws.key(seed), size)

    @by_blocks
    def log_prob(self, X: Any, y: Any) -> FloatArray:
        """Log density of targets y, [n]."""
        found = self._calibrated(X)
        z = self.targets_.apply(_check.finite("y", y, "Drop such rows first."))
        return np.asarray(found.log_prob(z) - np.log(self.targets_.scale))

    @by_blocks
    def uncertainty(self, X: Any) -> Uncertainty:
        """Variance of each row's target, split into noise and dispute among the members."""
        found = self._calibrated(X)
        with np.errstate(over="ignore"):  # the variance of 1e300 is no number
            return Uncertainty(
                np.square(self.targets_.scale * np.sqrt(found.aleatoric)),
                np.square(self.targets_.scale * np.sqrt(found.epistemic)),
            )

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """R²: the share of the targets' variance that the predicted means explain."""
        inputs.refuse_masks(y=y, sample_weight=sample_weight)
        inputs.refuse_annotations(y)
        if not is_streamed(X):
            return float(super().score(X, y, sample_weight))
        sums = np.zeros(4)
        for block in blocks_of(self, X, y, sample_weight):
            error = (block.y - self.predict(block)) / self.targets_.scale
            z = (block.y - self.targets_.centre) / self.targets_.scale
            sums += np.stack([np.ones(len(z)), z, z**2, error**2]) @ block.weight.astype(float)
        total, first, second, wrong = sums
        return float(1 - wrong / (second - first**2 / total))

    @by_blocks
    def find_outliers(self, X: Any, y: Any) -> Outliers:
        """Which of new rows have a wrong target, and what it should be."""
        found = self.judge(X, y)
        return Outliers(found.outlier_probability, found.alternative)


def _warn_of_two(y: FloatArray) -> None:
    """Of two values, each of many rows, the rarer looks wrong to a density of numbers."""
    low, high = float(y.min()), float(y.max())
    few, many = sorted((int(np.sum(y == low)), int(np.sum(y == high))))
    if low < high and few >= _SEVERAL and few + many == len(y):
        warnings.warn(
            f"y holds two numbers alone, {low:g} and {high:g}: rows with the rarer one may all be "
            "called wrong. Use RobustClassifier if they stand for classes.",
            UserWarning,
            stacklevel=2,
        )
