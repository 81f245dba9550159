"""Gaussians over rows: a density, learned by the (m,t)-robust criterion."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from mtbayes._values import storable
from mtbayes.errors import InvalidInput
from mtbayes.laws import PointPredictive
from mtbayes.learners import MEMBERS, Place, Trained
from mtbayes.learners.network import Legs, NetworkLearner, solved, trained
from mtbayes.maths import draws
from mtbayes.members import Members
from mtbayes.posteriors import prior
from mtbayes.posteriors.mixture import MixtureState
from mtbayes.solve.problem import Held, Problem
from mtbayes.types import Array, FloatArray, Rows, Solution

_FLOOR = 0.05  # of a member's standard deviation, in units of the columns' scales
_FAR = 1e4  # where training sees a row that is farther away
_SPREAD = 3.0  # of the prior
_START_RAW, _START_LOG_STD = 0.0, -3.0
_STARTS = 4  # rows taken by k-means++, beside the components
_CLAIM = 0.7  # of its share of the rows, by a component; the last one must not be left outliers
_FEW_MEMBERS = 30  # of a fold's density
_LATER_RATE = 0.5  # of the learning rate, for fits that start where another ended
_AT_ONCE = 2**20  # numbers held while distances are computed


@storable
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

    def initial(self, normals: Array) -> Array:
        """A mean near 0."""
        return np.where(np.arange(self.size) < self.dimensions, normals, _START_RAW)

    def scale(self) -> Array:
        """1 throughout."""
        return np.ones(self.size, np.float32)

    def unravel(self, theta: Array) -> dict[str, Array]:
        """Means and standard deviations, [..., d] each."""
        raw = theta[..., self.dimensions :]
        return {"mean": theta[..., : self.dimensions], "std": _FLOOR + jax.nn.softplus(raw)}

    def check(self, x: Array, y: Array) -> None:
        """Rows have as many columns as the Gaussian."""
        if x.shape[1:] != (self.dimensions,):
            raise InvalidInput(f"x must have shape (n, {self.dimensions}), got {x.shape}.")

    def log_lik(self, members: Members, x: Array, y: Array) -> Array:
        """log p_θ(x_i) as [S, n], in units of volume that make it 0 for N(0, 1) on average.

        log_t is not blind to units: far below 0, as it would be for many columns, t < 1 would set
        the rows' weight beside the prior to nothing.
        """
        mean, std = (v[:, None] for v in self.unravel(members.part(0, self.size)).values())
        return 0.5 * jnp.sum(1 - jnp.square((x - mean) / std) - 2 * jnp.log(std), axis=-1)

    def log_power_integral(self, members: Members, x: Array, power: float) -> Array:
        """A bare density has no targets to integrate over."""
        raise InvalidInput("criterion must do without ∫ p^power for a density; use a Criterion.")


@storable
@dataclass(frozen=True)
class CloudLearner:
    """A `Cloud` whose means and spreads have a mixture for a posterior.

    inner: its model, posterior and steps, as of any model that is learned by gradients
    path: the values of t that are walked through from the smallest up; one that t = 1 has spread
        over the outliers would stay there
    """

    inner: NetworkLearner
    path: tuple[float, ...]
    name = "density"

    def prepared(self, rows: Rows) -> tuple[Rows, Rows]:
        """Rows on the device, and as they are: distances are taken in double precision."""
        near = np.clip(rows.x, -_FAR, _FAR).astype(np.float32)
        held = Held.of(self.inner.model, near, np.zeros(len(near)))
        return rows._replace(x=held, y=None), rows

    def looks(self, rows: int, folds: int) -> int:
        """All folds walk through all t."""
        return folds

    def fit(
        self,
        prepared: tuple[Rows, Rows],
        t: float,
        key: Array,
        *,
        place: Place = Place(),
        start: Any = None,
    ) -> Trained:
        """From the smallest t up to this one."""
        walked = self._walk(prepared[0], self.path[self.path.index(t) :], key, place)
        return trained(walked[0])

    def unseen(
        self,
        prepared: tuple[Rows, Rows],
        fold: Array,
        which: Sequence[int],
        path: Sequence[float],
        key: Array,
        *,
        place: Place = Place(),
    ) -> Sequence[PointPredictive]:
        """One t after another as they are asked for: distances to all members are many numbers."""
        held, rows = prepared
        states = []
        for i, k in enumerate(which):
            own = draws.child(key, 1 + k)
            part = held._replace(weight=np.where(fold == k, 0.0, held.weight))
            walked = self._walk(part, path, own, place.part(i / len(which), 1 / len(which)))
            states.append([self._members(w.state, own, _FEW_MEMBERS) for w in walked])
        asked = np.isin(fold, which)
        return _Unseen(states, rows.x[asked], fold[asked])

    def predictive(
        self, state: Any, x: Array, key: Array, members: int = MEMBERS
    ) -> PointPredictive:
        """Rows beside members drawn with the key."""
        return PointPredictive(*_distances(self._members(state, key, members), x))

    @property
    def row_shape(self) -> tuple[int, ...]:
        """The shape of a row."""
        return self.inner.row_shape

    def check(self, state: Any, shape: tuple[int, ...], classes: int) -> None:
        """As of any posterior of means and spreads."""
        self.inner.check(state, shape, classes)

    def members(self, state: Any, key: Array) -> FloatArray:
        """Means and standard deviations of members drawn from the posterior, [2, S, d]."""
        return self._members(state, key, MEMBERS)

    def _members(self, state: Any, key: Array, members: int) -> FloatArray:
        posterior = self.inner.posterior
        count = -(-members // posterior.components) * posterior.components
        theta = posterior.sample(key, jax.tree.map(jnp.asarray, state), count)
        model: Any = self.inner.model
        parts = model.unravel(theta)
        return np.stack([np.asarray(v, float) for v in parts.values()])

    def _walk(self, held: Rows, path: Sequence[float], key: Array, place: Place) -> list[Solution]:
        """Fit at one t after another, each from where the one before has ended, as in `path`."""
        problem: Problem = replace(self.inner.problem(held, path[0]), prior=prior(0.0, _SPREAD))
        # Chunks of one length for all fits of the path, so that one compiled program serves them.
        _, second, chunk = Legs.of(problem.epochs)
        lengths = [chunk * max(2, round(problem.epochs / chunk)), *[second] * (len(path) - 1)]
        x = held.x.rows[0]
        state = _start(self.inner.posterior.components, x, held.weight, key)
        found: list[Solution] = []
        for i, (t, epochs) in enumerate(zip(path[::-1], lengths, strict=True)):
            pace = 1.0 if i == 0 else _LATER_RATE
            leg = replace(
                problem,
                criterion=self.inner.criterion(t),
                learning_rate=pace * problem.learning_rate,
                epochs=epochs,
                start=state,
                chunk=chunk,
            )
            here = place.part(sum(lengths[:i]) / sum(lengths), epochs / sum(lengths))
            found.append(solved(leg, draws.child(key, i), "density", here))
            state = found[-1].state
        return found[::-1]


class _Unseen(Sequence[PointPredictive]):
    """Rows beside the members of the fits that have not seen them, for each t when asked for."""

    def __init__(self, members: list[list[FloatArray]], x: FloatArray, fold: Array) -> None:
        self.members, self.x, self.fold = members, x, fold

    def __len__(self) -> int:
        return len(self.members[0])

    def __getitem__(self, i: Any) -> Any:
        squares, peaks = np.empty((2, self.members[0][i].shape[1], len(self.x)))
        for each, k in zip(self.members, np.unique(self.fold), strict=True):
            own = self.fold == k
            squares[:, own], peaks[:, own] = _distances(each[i], self.x[own])
        return PointPredictive(squares, peaks)


def _start(components: int, x: Array, weight: FloatArray, key: Array) -> MixtureState:
    """Components where rows are many, with little doubt about where they are.

    k-means++ finds clusters, but outliers too, which are far from all rows: so it takes more rows
    than there are components, and those with most others around get them. As components weigh the
    same, each claims most of its share of the rows, near it, before the next one looks.
    """
    from sklearn.cluster import kmeans_plusplus
    from sklearn.metrics import pairwise_distances_argmin

    kept = weight > 0
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


def _distances(members: FloatArray, z: Array) -> tuple[FloatArray, FloatArray]:
    """Squared distances [S, n] of rows from members in their stds, and log peaks [S, 1]."""
    mean, std = members[:, :, None]
    squares = np.empty((len(mean), len(z)))
    block = max(1, _AT_ONCE // mean.size)
    for i in range(0, len(z), block):
        part = slice(i, i + block)
        squares[:, part] = np.square((z[part] - mean) / std).sum(axis=-1)
    return squares, -np.log(std * np.sqrt(2 * np.pi)).sum(axis=-1)
