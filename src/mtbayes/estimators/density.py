"""`RobustDensity`: a density learned from rows of which some are outliers."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from sklearn.base import DensityMixin
from sklearn.cluster import kmeans_plusplus
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import pairwise_distances_argmin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from mtbayes import _check
from mtbayes.draws import Draws
from mtbayes.errors import InvalidInput
from mtbayes.estimators import inputs
from mtbayes.estimators.base import DRAWS, ENOUGH, Robust
from mtbayes.estimators.choice import CLEARLY, LEVEL, View, compared, folds
from mtbayes.estimators.recipe import Recipe, history
from mtbayes.estimators.rows import Rows, distinct
from mtbayes.estimators.scaling import Columns
from mtbayes.noise import PointPredictive, WrongPoints
from mtbayes.posteriors import Mixture, prior
from mtbayes.posteriors.mixture import MixtureState
from mtbayes.types import Array, FloatArray, Solution

_FLOOR = 0.05  # of a member's standard deviation, in units of the columns' scales
_FAR = 1e4  # where training sees a row that is farther away
_SPREAD = 3.0  # of the prior
_START_RAW, _START_LOG_STD = 0.0, -3.0
_STARTS = 4  # rows taken by k-means++, beside the components
_CLAIM = 0.7  # of its share of the rows, by a component; the last one must not be left outliers
_FEWER_DRAWS = 30  # members of a fold's density
_LATER_RATE = 0.5  # of the learning rate, for those
_AT_ONCE = 2**20  # numbers held while distances are computed


@dataclass(frozen=True)
class Cloud:
    """One Gaussian over rows x[n, d] with a diagonal covariance; the targets are not looked at.

    θ is the mean [d], then r [d] of std = 0.05 + log(1 + exp(r)).

    >>> Cloud(3).size
    6
    """

    dimensions: int
    linears = ()

    @property
    def size(self) -> int:
        """A mean and a standard deviation for each column."""
        return 2 * self.dimensions

    def initial(self, key: Array) -> Array:
        """A mean near 0."""
        mean = jax.random.normal(key, (self.dimensions,))
        return jnp.concatenate([mean, jnp.full(self.dimensions, _START_RAW)])

    def scale(self) -> Array:
        """1 throughout."""
        return jnp.ones(self.size)

    def unravel(self, theta: Array) -> dict[str, Array]:
        """Means and standard deviations, [..., d] each."""
        raw = theta[..., self.dimensions :]
        return {"mean": theta[..., : self.dimensions], "std": _FLOOR + jax.nn.softplus(raw)}

    def check(self, x: Array, y: Array) -> None:
        """Rows have as many columns as the Gaussian."""
        if x.shape[1:] != (self.dimensions,):
            raise InvalidInput(f"x must have shape (n, {self.dimensions}), got {x.shape}.")

    def log_lik(self, draws: Draws, x: Array, y: Array) -> Array:
        """log p_θ(x_i) as [S, n], in units of volume that make it 0 for N(0, 1) on average.

        log_t is not blind to units: far below 0, as it would be for many columns, t < 1 would set
        the rows' weight beside the prior to nothing.
        """
        mean, std = (v[:, None] for v in self.unravel(draws.part(0, self.size)).values())
        return 0.5 * jnp.sum(1 - jnp.square((x - mean) / std) - 2 * jnp.log(std), axis=-1)

    def log_power_integral(self, draws: Draws, x: Array, power: float) -> Array:
        """A bare density has no targets to integrate over."""
        raise InvalidInput("criterion must do without ∫ p^power for a density; use a Criterion.")


class _Found(NamedTuple):
    """The t that is taken and what held-out rows say at it."""

    t: float
    law: WrongPoints
    unseen: PointPredictive
    table: list[dict[str, float]]


class RobustDensity(DensityMixin, Robust):
    """A density for rows of which some are outliers.

    It is an ensemble of Gaussians with diagonal covariances, trained by the (m,t)-robust criterion.
    t is chosen by how well rows that a fit has not seen are explained, outliers included. Columns
    are centred and scaled inside, so that units do not matter. Outliers are rows that are far from
    others; many of them in one tight place are a part of the density.

    Parameters
    ----------
    components : int, default=5
        Gaussians of the posterior; as many clusters can be told apart.
    m : int, default=10
        Size of the ensemble that the criterion trains as one; a multiple or a divisor of
        `components`.
    t : "auto" or float in [0, 1], default="auto"
        How much a row that does not fit is believed: 1 as much as any other, less is more robust.
    beta : "auto" or float, default="auto"
        How much rows count against the prior; 1 at m=1 is Bayes. "auto" is 5·m.
    epochs : "auto" or int, default="auto"
        Passes over the rows; "auto" makes about 3000 steps, and 10 to 500 passes.
    batch_size : int, default=128
        Rows a step.
    learning_rate : float, default=0.01
        Where the step size of Adam starts.
    random_state : int, RandomState or None, default=None
        Equal seeds give equal results.
    verbose : int, default=0
        1 shows a progress bar.

    Attributes
    ----------
    t_ : the t that was chosen
    contamination_ : (value, low, high), the share of outliers with its 95 % interval
    outlier_probability_ : probability that each training row is an outlier, by a fit that has not
        seen it
    row_weight_ : how much each training row pulls at the final fit; 1 is the most
    score_path_ : the table behind the choice of t
    history_ : loss, data term and divergence along the last fit
    members_ : [2, S, d], means and standard deviations of the members before they are calibrated,
        in the units of `columns_`

    Examples
    --------
    >>> x = np.random.default_rng(0).normal(size=(200, 2))
    >>> model = RobustDensity(t=0.9, epochs=50, random_state=0).fit(x)
    >>> model.score_samples([[0.0, 0.0], [9.0, 9.0]]).argmax().item()
    0
    >>> model.sample(3, random_state=0).shape
    (3, 2)
    """

    _law = WrongPoints
    _path = (1.0, 0.9, 0.8, 0.7, 0.6, 0.5)

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
        self._check_parameters()
        x = self._checked(X, reset=True, ensure_min_samples=2)
        weight = inputs.weights(sample_weight, x)
        merged, inverse = distinct(x, np.zeros(len(x)), weight)
        total = merged.weight
        self.columns_ = Columns.of(merged.x, total)
        z = self.columns_.apply(merged.x)
        rows = merged._replace(x=np.clip(z, -_FAR, _FAR).astype(np.float32))
        key = jax.random.key(check_random_state(self.random_state).randint(2**31))
        self._rebuild()
        recipe = self._recipe(len(z), prior(0.0, _SPREAD))
        candidates = self._candidates
        with self._bar() as tell:
            found = None
            if len(z) >= ENOUGH:
                own = jax.random.fold_in(key, 0)
                found = _choose(recipe, rows, z, candidates, own, lambda v: tell(0.8 * v))
            self.t_ = candidates[0] if found is None else found.t
            path = candidates[candidates.index(self.t_) :]
            own, heard = jax.random.fold_in(key, 1), lambda v: tell(0.8 + 0.2 * v)
            last = _walk(recipe, rows, total, path, own, heard)[0]
        if not last.status.converged:
            warnings.warn(str(last.status), ConvergenceWarning, stacklevel=2)
        self.status_ = str(last.status)
        self.history_ = history(last)
        self.members_ = _members(recipe, last.state, jax.random.fold_in(key, 2), DRAWS)
        self.score_path_ = [] if found is None else found.table
        self.law_ = WrongPoints.of_points(z) if found is None else found.law
        unseen = self._raw(z) if found is None else found.unseen
        self.contamination_ = self.law_.contamination(unseen, z, total)
        self.outlier_probability_ = self.law_.outlier_probability(unseen, z)[inverse]
        log_prob = self.law_.good(self._raw(z), z)
        self.row_weight_ = np.exp((1 - self.t_) * (log_prob - log_prob.max()))[inverse]
        left_out = inverse < 0
        if left_out.any():  # rows of weight 0: no fit has seen them
            self.outlier_probability_[left_out] = self.find_outliers(x[left_out])
            self.row_weight_[left_out] = 0.0
        return self

    def _rebuild(self) -> None:
        self.model_: Any = Cloud(len(self.columns_.scale))

    def _posterior(self) -> Mixture:
        return Mixture(self.components)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        _check.count(self.components, "components", "5 is the default.")

    def _raw(self, x: Array, draws: int = DRAWS) -> PointPredictive:
        """Rows, in the units of the columns, beside the members that are not calibrated."""
        return PointPredictive(*_distances(self.members_, x))

    def _units(self, x: Any) -> FloatArray:
        check_is_fitted(self)
        return self.columns_.apply(self._checked(x, reset=False))

    def score_samples(self, X: Any) -> FloatArray:
        """Log density of each row, [n]."""
        z = self._units(X)
        return self.law_.good(self._raw(z), z) - np.log(self.columns_.scale).sum()

    def score(self, X: Any, y: Any = None) -> float:
        """Log density of all rows together; y is ignored."""
        return float(self.score_samples(X).sum())

    def sample(self, n_samples: int = 1, random_state: Any = None) -> FloatArray:
        """Rows drawn from the density, [n_samples, d]."""
        check_is_fitted(self)
        count = _check.count(n_samples, "n_samples", "It is the number of rows to draw.")
        random = check_random_state(random_state)
        mean, std = self.members_[:, random.randint(self.members_.shape[1], size=count)]
        return self.columns_.undo(mean + self.law_.scale * std * random.normal(size=mean.shape))

    def find_outliers(self, X: Any) -> FloatArray:
        """Probability that each row is an outlier, [n]."""
        z = self._units(X)
        return self.law_.outlier_probability(self._raw(z), z)


def _choose(
    recipe: Recipe,
    rows: Rows,
    z: FloatArray,
    candidates: tuple[float, ...],
    key: Array,
    tell: Callable[[float], None],
) -> _Found:
    """Fit each fold's complement along `candidates`; held-out rows z say which t to take."""
    fold = folds(rows, jax.random.fold_in(key, 0))
    count, parts = int(fold.max()) + 1, []
    for k in range(count):
        own = jax.random.fold_in(key, 1 + k)
        weight = np.where(fold == k, 0.0, rows.weight)
        heard = partial(_heard, tell, k, count)
        states = [s.state for s in _walk(recipe, rows, weight, candidates, own, heard)]
        parts.append([_members(recipe, state, own, _FEWER_DRAWS) for state in states])

    # One t after another: distances of all rows from all members are many numbers.
    def beside(i: int) -> PointPredictive:
        return _unseen([part[i] for part in parts], z, fold)

    law, views = WrongPoints.of_points(z), []
    for i in range(len(candidates)):
        unseen = beside(i)
        views.append(View.of(law.fit(unseen, z, rows.weight), unseen, z))

    def dirty(i: int) -> bool:
        return bool(views[i].law.contamination(beside(i), z, rows.weight, LEVEL).low > CLEARLY)

    taken, table = compared(candidates, views, rows.weight, dirty)
    return _Found(candidates[taken], views[taken].law, beside(taken), table)


def _walk(
    recipe: Recipe,
    rows: Rows,
    weight: FloatArray,
    candidates: tuple[float, ...],
    key: Array,
    tell: Callable[[float], None],
) -> list[Solution]:
    """Fit at one t after another, each from where the one before has ended, as in `candidates`.

    The smallest comes first: a member that t = 1 has spread over the outliers would stay there.
    """
    # Chunks of one length for all fits of the path, so that one compiled program serves them.
    _, second, chunk = recipe.legs
    lengths = [chunk * max(2, round(recipe.epochs / chunk)), *[second] * (len(candidates) - 1)]
    state = _start(recipe, rows.x, weight, key)
    found: list[Solution] = []
    for i, (t, epochs) in enumerate(zip(candidates[::-1], lengths, strict=True)):
        own, pace = jax.random.fold_in(key, i), 1.0 if i == 0 else _LATER_RATE
        found.append(
            recipe.fit(
                rows, t, own, weight=weight, epochs=epochs, pace=pace, start=state, chunk=chunk
            )
        )
        state = found[-1].state
        tell(sum(lengths[: i + 1]) / sum(lengths))
    return found[::-1]


def _heard(tell: Callable[[float], None], k: int, count: int, share: float) -> None:
    tell((k + share) / count)


def _start(recipe: Recipe, x: Array, weight: FloatArray, key: Array) -> MixtureState:
    """Components where rows are many, with little doubt about where they are.

    k-means++ finds clusters, but outliers too, which are far from all rows: so it takes more rows
    than there are components, and those with most others around get them. As components weigh the
    same, each claims most of its share of the rows, near it, before the next one looks.
    """
    kept, components = weight > 0, recipe.posterior.components
    x, weight, dimensions = x[kept], weight[kept], x.shape[1]
    random = np.random.RandomState(int(jax.random.randint(key, (), 0, 2**31 - 1)))
    count = min(_STARTS * components, len(x))
    centres, _ = kmeans_plusplus(x, count, sample_weight=weight, random_state=random)
    cell = pairwise_distances_argmin(x, centres)
    mean = np.full((components, 2 * dimensions), _START_RAW, np.float32)
    left = weight.astype(float)
    for place in mean[:, :dimensions]:
        most = np.argmax(np.bincount(cell, left, count))
        own = x[(cell == most) & (left > 0)]
        place[:] = (np.median(own, axis=0) + own[random.randint(len(own))]) / 2
        near = np.argsort(np.square(x - place).sum(axis=1), kind="stable")
        before = np.cumsum(left[near]) - left[near]
        left[near] -= np.clip(_CLAIM * weight.sum() / components - before, 0, left[near])
    return MixtureState(jnp.asarray(mean), jnp.full(mean.shape, _START_LOG_STD))


def _members(recipe: Recipe, state: Any, key: Array, draws: int) -> FloatArray:
    """Means and standard deviations of members drawn from the posterior, [2, S, d]."""
    components = recipe.posterior.components
    theta = recipe.posterior.sample(key, state, -(-draws // components) * components)
    return np.stack([np.asarray(v, float) for v in recipe.model.unravel(theta).values()])


def _distances(members: FloatArray, z: Array) -> tuple[FloatArray, FloatArray]:
    """Squared distances [S, n] of rows from members in their stds, and log peaks [S, 1]."""
    mean, std = members[:, :, None]
    squares = np.empty((len(mean), len(z)))
    block = max(1, _AT_ONCE // mean.size)
    for i in range(0, len(z), block):
        part = slice(i, i + block)
        squares[:, part] = np.square((z[part] - mean) / std).sum(axis=-1)
    return squares, -np.log(std * np.sqrt(2 * np.pi)).sum(axis=-1)


def _unseen(members: list[FloatArray], z: FloatArray, fold: FloatArray) -> PointPredictive:
    """All rows z beside the members of the fit that has not seen them."""
    squares, peaks = np.empty((2, members[0].shape[1], len(z)))
    for k, each in enumerate(members):
        squares[:, fold == k], peaks[:, fold == k] = _distances(each, z[fold == k])
    return PointPredictive(squares, peaks)
