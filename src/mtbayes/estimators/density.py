"""`RobustDensity`: a density learned from rows of which some are outliers."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import DensityMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from mtbayes import _check
from mtbayes.estimators import inputs
from mtbayes.estimators.base import Robust, shown
from mtbayes.fitting import Option, Units, learn
from mtbayes.fitting.units import Columns
from mtbayes.laws import WrongPoints
from mtbayes.learners import Place
from mtbayes.learners.cloud import Cloud, CloudLearner
from mtbayes.maths import draws
from mtbayes.posteriors import Mixture
from mtbayes.types import FloatArray, Rows

_TRUST = 5.0  # beta="auto" by m


class RobustDensity(DensityMixin, Robust):
    """A density for rows of which some are outliers.

    It is an ensemble of Gaussians with diagonal covariances, trained by the (m,t)-robust criterion.
    t is chosen by how well rows that a fit has not seen are explained, outliers included. Columns
    are centred and scaled inside, so that units do not matter. Outliers are rows that are far from
    others; many of them in one tight place are a part of the density.

    components: Gaussians of the posterior; as many clusters can be told apart
    m: size of the ensemble that the criterion trains as one; a multiple or a divisor of
        `components`
    t, beta, epochs, batch_size, learning_rate, random_state, verbose: as for `RobustClassifier`

    After a fit:

    t_: the t that was chosen
    contamination_: (value, low, high), the share of outliers with its 95 % interval
    outlier_probability_: probability that each training row is an outlier, by a fit that has not
        seen it
    row_weight_: how much each training row pulls at the final fit; 1 is the most
    score_path_: the table behind the choice of t
    history_: loss, data term and divergence along the last fit
    members_: [2, S, d], means and standard deviations of the members before they are calibrated,
        in the units of `columns_`

    >>> x = np.random.default_rng(0).normal(size=(200, 2))
    >>> model = RobustDensity(t=0.9, epochs=50, random_state=0).fit(x)
    >>> model.score_samples([[0.0, 0.0], [9.0, 9.0]]).argmax().item()
    0
    >>> model.sample(3, random_state=0).shape
    (3, 2)
    """

    _law = WrongPoints
    _path = (1.0, 0.9, 0.8, 0.7, 0.6, 0.5)

    columns_ = shown("units", "features")

    def __init__(
        self,
        components: int = 5,
        m: int = 10,
        t: float | str = "auto",
        beta: float | str = "auto",
        epochs: int | str = "auto",
        batch_size: int = 128,
        learning_rate: float = 0.01,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.components = components
        self.m = m
        self.t = t
        self.beta = beta
        self.epochs = epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> RobustDensity:
        """Learn from rows X; y is ignored, sample_weight is how often each row counts."""
        self.check_parameters()
        x = self.checked(X, reset=True, ensure_min_samples=2)
        rows = Rows(x, x, inputs.weights(sample_weight, x))
        path = self._candidates()
        inner = self._by_gradients(
            Cloud(x.shape[1]), Mixture(self.components), int(self.m), width=1.0, trust=_TRUST
        )
        option = Option(CloudLearner(inner, path), path)
        key = draws.key(self._seed())

        def units(own: Rows) -> Units:
            columns = Columns.of(own.x, own.weight)
            return Units(columns, columns)

        with self._bar() as callback:
            place = Place(callback=callback)
            self.fitted_ = learn([option], rows, units, self._law, key, place)
        return self

    def check_parameters(self) -> None:
        """Refuse parameters that no fit can take."""
        super().check_parameters()
        _check.count(self.components, "components", "5 is the default.")

    @property
    def members_(self) -> FloatArray:
        """Means and standard deviations of the members, in the units of `columns_`, [2, S, d]."""
        learner: Any = self.fitted_.learner
        return learner.members(self.fitted_.state, self.fitted_.members_key)

    def score_samples(self, X: Any) -> FloatArray:
        """Log density of each row, [n]."""
        check_is_fitted(self)
        x = self.checked(X, reset=False)
        z = self.columns_.apply(x)
        return self.law_.good(self.fitted_.raw(x), z) - np.log(self.columns_.scale).sum()

    def score(self, X: Any, y: Any = None) -> float:
        """Log density of all rows together; y is ignored."""
        return float(self.score_samples(X).sum())

    def sample(self, n_samples: int = 1, random_state: Any = None) -> FloatArray:
        """Rows drawn from the density, [n_samples, d]."""
        check_is_fitted(self)
        count = _check.count(n_samples, "n_samples", "It is the number of rows to draw.")
        random, members = check_random_state(random_state), self.members_
        mean, std = members[:, random.randint(members.shape[1], size=count)]
        return self.columns_.undo(mean + self.law_.scale * std * random.normal(size=mean.shape))

    def find_outliers(self, X: Any) -> FloatArray:
        """Probability that each row is an outlier, [n]."""
        check_is_fitted(self)
        x = self.checked(X, reset=False)
        return self.fitted_.judge(x, x).outlier_probability
