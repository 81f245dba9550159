"""Predictive distributions: for each row an equal mixture over the members of an ensemble.

A likelihood's `mixture` builds one inside a compiled program, from JAX arrays; `predictive` joins
the chunks of rows and hands it over with NumPy arrays, which everything below works on, in double
precision. Rows are independent of each other in `sample`: each is drawn from its own mixture.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import scipy.special
from jax.scipy.special import entr
from scipy.special import entr as entr_double
from scipy.special import logsumexp, ndtr, ndtri

from mtbayes import _check
from mtbayes.errors import InvalidInput
from mtbayes.maths import draws
from mtbayes.maths.softmax import log_softmax, softmax
from mtbayes.maths.tlog import namespace
from mtbayes.types import Array, FloatArray

# Numbers that a computation over members × rows × points holds at once, some ten times over.
_AT_ONCE = 2**19
_LOWEST = np.finfo(float).min  # below it is the log of nothing
_LOG_ROOT_2PI = 0.5 * float(np.log(2 * np.pi))
_MIXED = 100  # members of a mixture of predictives
_SIZE_REMEDY = "It is the number of draws for each row."


class ClassPredictive(NamedTuple):
    """Class probabilities of n rows. It keeps what the members amount to, [n, C], not them.

    >>> members = np.log([[[0.9, 0.1]], [[0.5, 0.5]]])  # two members, one row, two classes
    >>> ClassPredictive.of_members(members).probs.round(4)
    array([[0.7, 0.3]])
    """

    log_probs: Array
    """log of the mean over members of their probabilities, [n, C]."""
    aleatoric: Array
    """Mean over members of their entropies, [n]: doubt that more data would not remove."""
    trusted: Array | None = None
    """Of training rows, whether the target is known to be right, [n]."""

    @property
    def row_axis(self) -> int:
        """Rows come first."""
        return 0

    @classmethod
    def of_members(cls, log_probs: Array) -> ClassPredictive:
        """From the members' log probabilities [S, n, C]."""
        xp: Any = namespace(log_probs)
        total: Any = (jax.nn if xp is jnp else scipy.special).logsumexp(log_probs, axis=0)
        doubt: Any = (entr if xp is jnp else entr_double)(xp.exp(log_probs))
        return cls(total - np.log(len(log_probs)), doubt.sum(axis=-1).mean(axis=0))

    @classmethod
    def mixed(cls, parts: Sequence[ClassPredictive], shares: Sequence[float]) -> ClassPredictive:
        """Several predictives of the same rows as one, each with its share."""
        logs = np.stack([log_softmax(_double(part.log_probs), axis=-1) for part in parts])
        weight = np.asarray(shares, float)
        mean = logsumexp(logs, axis=0, b=weight[:, None, None])
        return cls(mean, weight @ np.stack([_double(part.aleatoric) for part in parts]))

    @property
    def probs(self) -> FloatArray:
        """Mean over members of their probabilities, [n, C]; rows sum to 1."""
        return softmax(_double(self.log_probs), axis=-1)

    @property
    def labels(self) -> Any:
        """The most probable class of each row, [n]."""
        return np.argmax(self.log_probs, axis=-1)

    @property
    def entropy(self) -> FloatArray:
        """Entropy of the mixture, in nats, [n]: all doubt, aleatoric plus epistemic."""
        return entr_double(self.probs).sum(axis=-1)

    @property
    def epistemic(self) -> FloatArray:
        """Mutual information of label and member, [n], never negative: the members' dispute."""
        return np.maximum(self.entropy - _double(self.aleatoric), 0.0)

    def log_prob(self, y: Any) -> FloatArray:
        """Log probability of labels y[n]."""
        n, classes = self.log_probs.shape
        labels = _check.finite("y", y, f"Labels are whole numbers 0..{classes - 1}.")
        wrong = labels[(labels < 0) | (labels >= classes) | (labels % 1 != 0)]
        if labels.shape != (n,) or wrong.size:
            got = wrong.flat[0] if wrong.size else f"shape {labels.shape}"
            raise InvalidInput(
                f"y must hold a label 0..{classes - 1} for each of {n} rows, got {got}. Code "
                "labels as they were coded for training."
            )
        return log_softmax(_double(self.log_probs), axis=-1)[np.arange(n), labels.astype(int)]

    def sample(self, key: Array | int, size: int) -> Any:
        """Labels [size, n], each row drawn from its own probabilities; key: JAX's, or an int."""
        size = _check.count(size, "size", _SIZE_REMEDY)
        n, classes = self.log_probs.shape
        # All rows' cumulative sums in one increasing list, row i's between i and i + 1.
        steps = np.cumsum(self.probs, axis=-1)
        row = np.arange(n)
        ladder = (steps / steps[:, -1:] + row[:, None]).ravel()
        uniform = _double(jax.random.uniform(draws.key(key), (size, n)))
        found = np.searchsorted(ladder, uniform + row, side="right") - classes * row
        return np.minimum(found, classes - 1)


class GaussianPredictive(NamedTuple):
    """An equal mixture of S Gaussians for each of n rows.

    >>> two = GaussianPredictive(np.array([[-3.0], [3.0]]), np.array([[1.0], [1.0]]))
    >>> two.mean, two.aleatoric, two.epistemic
    (array([0.]), array([1.]), array([9.]))
    >>> low, high = two.interval(0.9)  # mean ± 1.64 std would reach to 5.2
    >>> low.round(4), high.round(4)
    (array([-4.2816]), array([4.2816]))
    """

    means: Array
    """The members' means, [S, n]."""
    stds: Array
    """The members' standard deviations, [S, n]."""
    trusted: Array | None = None
    """Of training rows, whether the target is known to be right, [n]."""

    @property
    def row_axis(self) -> int:
        """Rows come second."""
        return 1

    @classmethod
    def mixed(
        cls, parts: Sequence[GaussianPredictive], shares: Sequence[float]
    ) -> GaussianPredictive:
        """Several predictives of the same rows as one, each with its share to a hundredth.

        A part's members are taken in turn, those of few members several times.
        """
        ends = np.rint(_MIXED * np.cumsum(shares) / np.sum(shares)).astype(int)
        counts = np.diff(ends, prepend=0)
        picked = [
            np.arange(count) * max(1, len(part.means) // max(1, count)) % len(part.means)
            for part, count in zip(parts, counts, strict=True)
        ]
        both = zip(parts, picked, strict=True)
        means, stds = zip(*((part.means[own], part.stds[own]) for part, own in both), strict=True)
        return cls(np.concatenate(means), np.concatenate(stds))

    @property
    def mean(self) -> FloatArray:
        """Mean, [n]."""
        return np.mean(self.means, axis=0, dtype=float)

    @property
    def aleatoric(self) -> FloatArray:
        """Mean of the members' variances, [n]: noise that more data would not remove."""
        return np.mean(np.square(self.stds, dtype=float), axis=0)

    @property
    def epistemic(self) -> FloatArray:
        """Variance of the members' means, [n]: the members' dispute."""
        return np.var(self.means, axis=0, dtype=float)

    @property
    def variance(self) -> FloatArray:
        """Variance of the mixture, [n]: aleatoric plus epistemic."""
        return self.aleatoric + self.epistemic

    @property
    def std(self) -> FloatArray:
        """Standard deviation of the mixture, [n]; a number also where its square is none."""
        off = _double(self.means) - self.mean
        size = np.maximum(np.abs(off).max(axis=0), np.max(self.stds, axis=0))
        unit = np.ldexp(1.0, np.clip(np.frexp(size)[1], -1000, 1000))  # costs no digit
        squares = np.square(_double(self.stds) / unit) + np.square(off / unit)
        return unit * np.sqrt(squares.mean(axis=0))

    def log_prob(self, y: Any) -> FloatArray:
        """Log density at y: a number, [n], or [n, k] for k points in each row."""

        def log_density(y: FloatArray, mean: FloatArray, std: FloatArray) -> FloatArray:
            each = -0.5 * np.square((y - mean) / std) - np.log(std) - _LOG_ROOT_2PI
            return _log_mean_exp(each)

        return self._at(log_density, y)

    def cdf(self, y: Any) -> FloatArray:
        """Probability of at most y: a number, [n], or [n, k] for k points in each row."""
        return self._at(lambda y, mean, std: ndtr((y - mean) / std).mean(axis=0), y)

    def quantile(self, alpha: Any) -> FloatArray:
        """Where the cdf is alpha, to rounding: [n] for a number, [n, k] for k numbers.

        Where alpha falls into a gap between modes that holds no probability to 12 digits, any
        point of the gap is right, and one is returned.
        """
        levels = _check.finite("alpha", alpha, "0.5 gives the median.")
        wrong = levels[(levels <= 0) | (levels >= 1)]
        if levels.ndim > 1 or levels.size == 0 or wrong.size:
            got = f"{wrong.flat[0]:g}" if wrong.size else f"shape {levels.shape}"
            raise InvalidInput(
                f"alpha must be a number or a list of numbers between 0 and 1, got {got}. A "
                "Gaussian mixture reaches 0 and 1 at infinity alone."
            )
        every = np.broadcast_to(levels, (self.means.shape[1], levels.size))
        found = self._rows(_inverse_cdf, every)
        return found if levels.ndim else found[:, 0]

    def interval(self, coverage: float) -> tuple[FloatArray, FloatArray]:
        """Low and high end, each [n], of the central interval with that probability."""
        outside = 1 - _check.fraction(coverage, "coverage", "0.9 is usual.")
        if outside == 0:
            raise InvalidInput("coverage must be below 1, got 1. Only the whole line has that.")
        ends = self.quantile([outside / 2, 1 - outside / 2])
        return ends[:, 0], ends[:, 1]

    def sample(self, key: Array | int, size: int) -> FloatArray:
        """Draws [size, n], each from a member drawn for it; key: JAX's, or an int."""
        size = _check.count(size, "size", _SIZE_REMEDY)
        which, around = jax.random.split(draws.key(key))
        members, n = self.means.shape
        member = np.asarray(jax.random.randint(which, (size, n), 0, members))
        normal = _double(jax.random.normal(around, (size, n)))
        row = np.arange(n)
        return self.means[member, row] + self.stds[member, row] * normal

    def _at(self, function: Callable[..., FloatArray], y: Any) -> FloatArray:
        """A function of points, means and stds at y, in y's own shape."""
        n = self.means.shape[1]
        points = _check.finite("y", y, "Drop such rows first.")
        if points.ndim > 2 or (points.ndim and len(points) != n):
            raise InvalidInput(
                f"y must be a number or have shape ({n},) or ({n}, k), got {points.shape}. It goes "
                "with the rows that were predicted."
            )
        columns = points.reshape(n, -1) if points.ndim else np.full((n, 1), points)
        found = self._rows(function, columns)
        return found if points.ndim == 2 else found[:, 0]

    def _rows(self, function: Callable[..., FloatArray], points: FloatArray) -> FloatArray:
        """A function of points[n, k], means and stds[S, n, 1] as [n, k], some rows at a time."""
        members, n = self.means.shape
        result = np.empty(points.shape)
        block = max(1, _AT_ONCE // max(1, members * points.shape[1]))
        for i in range(0, n, block):
            rows = slice(i, i + block)
            mean, std = (_double(v[:, rows])[..., None] for v in (self.means, self.stds))
            result[rows] = function(points[rows], mean, std)
        return result


def _inverse_cdf(alpha: FloatArray, mean: FloatArray, std: FloatArray) -> FloatArray:
    """Quantiles [n, k] at alpha[n, k]: Newton's steps, and halving wherever those go astray."""
    # Mirrored above the median: a small probability has more digits than one close to 1.
    mirror = np.where(alpha > 0.5, -1.0, 1.0).ravel()
    tail = np.minimum(alpha, 1 - alpha).ravel()
    shape = (len(mean), *alpha.shape)
    mean = mirror * np.broadcast_to(mean, shape).reshape(len(mean), -1)
    std = np.broadcast_to(std, shape).reshape(len(mean), -1)
    ends = mean + std * ndtri(tail)  # the answer lies between the members' own
    low, high = ends.min(axis=0), ends.max(axis=0)
    x = 0.5 * (low + high)
    last, before = high - low, high - low
    todo = np.arange(x.size)
    while todo.size:
        at = x[todo]
        z = (at - mean[:, todo]) / std[:, todo]
        excess = ndtr(z).mean(axis=0) - tail[todo]
        slope = (np.exp(-0.5 * z * z - _LOG_ROOT_2PI) / std[:, todo]).mean(axis=0)
        a, b = np.where(excess < 0, at, low[todo]), np.where(excess < 0, high[todo], at)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            newton = at - excess / slope
        quick = (newton > a) & (newton < b) & (2 * np.abs(newton - at) <= before[todo])
        new = np.where(quick, newton, 0.5 * (a + b))
        # Written so that NaN ends the search too.
        wide = b - a > 2 * np.spacing(np.maximum(np.abs(a), np.abs(b)))
        going = wide & (np.abs(excess) > 1e-12 * tail[todo])
        low[todo], high[todo] = a, b
        before[todo], last[todo] = last[todo], np.abs(new - at)
        x[todo] = np.where(going, new, at)
        todo = todo[going]
    return (mirror * x).reshape(alpha.shape)


def _log_mean_exp(logs: FloatArray) -> FloatArray:
    """The log of the mean of exp(logs[S, ...]) over the first axis, at a third of scipy's time."""
    top = logs.max(axis=0)
    with np.errstate(divide="ignore"):
        return _double(np.log(np.exp(logs - np.maximum(top, _LOWEST)).mean(axis=0)) + top)


def _double(values: Any) -> FloatArray:
    return np.asarray(values, dtype=np.float64)


def in_order(parts: list[Any], group: Array) -> Any:
    """Predictives of groups of rows as one of all rows, in the order of the rows.

    group: [n], the group of each row; parts: of the groups, from the lowest upwards
    """
    axis = parts[0].row_axis
    place = np.argsort(np.argsort(group, kind="stable"), kind="stable")
    return jax.tree.map(lambda *each: np.concatenate(each, axis).take(place, axis), *parts)


def of_rows(predictive: Any, which: Any) -> Any:
    """The predictive of some of the rows, by a slice or by their numbers."""

    def taken(values: Any) -> Any:
        return values[(slice(None),) * min(predictive.row_axis, values.ndim - 1) + (which,)]

    return type(predictive)(*(None if v is None else taken(v) for v in predictive))


def beside_trust(predictive: Any, trusted: Array | None) -> Any:
    """The predictive of rows of which some targets are known to be right, [n] whether."""
    return predictive if trusted is None else predictive._replace(trusted=trusted)
