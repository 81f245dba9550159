"""Likelihoods: a network's outputs and a target give log_lik[S, n], the narrow waist.

A likelihood may own parameters (a noise scale); they follow the network's in θ. Densities must be
bounded: log_t of an unbounded density is unbounded too, and the fit could run into a spike on one
row. So every Gaussian here has a floor under its standard deviation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import jax
import jax.numpy as jnp
import numpy as np
import scipy.special

from mtbayes import _check
from mtbayes._values import storable
from mtbayes.errors import InvalidInput
from mtbayes.maths.tlog import namespace
from mtbayes.predictives import ClassPredictive, GaussianPredictive
from mtbayes.types import Array


class Likelihood(Protocol):
    """What a model needs of a likelihood.

    For `predictive` it needs one method more, `mixture(outputs, own)`: a NamedTuple of arrays, such
    as those of `mtbayes.predictives`.
    """

    @property
    def outputs(self) -> int:
        """Outputs k that the network must have."""

    @property
    def size(self) -> int:
        """Parameters of its own."""

    def initial(self) -> Array:
        """Where its own parameters start, [size]."""

    def check(self, y: Array) -> None:
        """Raise InvalidInput unless y is a possible target."""

    def log_lik(self, outputs: Array, own: Array, y: Array) -> Array:
        """log p(y | outputs) as [S, n], from outputs [S, n, k], own [S, size] and y[n]."""

    def log_power_integral(self, outputs: Array, own: Array, power: Array) -> Array:
        """log ∫ p(y | outputs)^power dy as [S, n]; what the rivals' divergences need."""


@storable
@dataclass(frozen=True)
class Categorical:
    """Classes 0..classes-1 by softmax.

    >>> Categorical(3).log_lik(jnp.zeros((1, 1, 3)), jnp.zeros((1, 0)), jnp.array([2])).round(4)
    Array([[-1.0986]], dtype=float32)
    """

    classes: int

    def __post_init__(self) -> None:
        if _check.count(self.classes, "classes", "A classifier needs at least 2.") < 2:
            raise InvalidInput(f"classes must be at least 2, got {self.classes}.")

    @property
    def outputs(self) -> int:
        """One logit a class."""
        return self.classes

    size = 0

    def initial(self) -> Array:
        """No parameters of its own."""
        return np.zeros(0, np.float32)

    def check(self, y: Array) -> None:
        """Labels are whole numbers from 0 to classes-1."""
        labels = np.asarray(y)
        if labels.dtype.kind not in "iu":
            raise InvalidInput(
                f"y must hold whole numbers 0..{self.classes - 1}, got dtype {labels.dtype}. "
                "Code labels with sklearn.preprocessing.LabelEncoder."
            )
        if labels.size and (labels.min() < 0 or labels.max() >= self.classes):
            bad = labels[(labels < 0) | (labels >= self.classes)][0]
            raise InvalidInput(
                f"y must hold labels 0..{self.classes - 1}, got {bad}. Raise `classes`, or code "
                "the labels from 0 on."
            )

    def log_lik(self, outputs: Array, own: Array, y: Array) -> Array:
        """Log probability of the label."""
        # A sum with the one-hot label: cheaper to differentiate on a CPU than a gather.
        hot = jax.nn.one_hot(y, self.classes, dtype=outputs.dtype)
        return jnp.sum(outputs * hot, axis=-1) - jax.nn.logsumexp(outputs, axis=-1)

    def slopes(self, outputs: Array, own: Array, y: Array) -> tuple[Array, Array, Array]:
        """`log_lik` [S, n], its slopes by the outputs [S, n, k] and by own [S, n, 0], in NumPy."""
        log_p = scipy.special.log_softmax(outputs, axis=-1)
        hot = np.arange(self.classes) == y[:, None]
        return log_p[:, hot], hot - np.exp(log_p), np.zeros((*log_p.shape[:2], 0), log_p.dtype)

    def log_power_integral(self, outputs: Array, own: Array, power: Array) -> Array:
        """log Σ_c p_c^power."""
        return jax.nn.logsumexp(power * jax.nn.log_softmax(outputs), axis=-1)

    def mixture(self, outputs: Array, own: Array) -> ClassPredictive:
        """The predictive distribution of members with these outputs."""
        special = jax.nn if namespace(outputs) is jnp else scipy.special
        return ClassPredictive.of_members(special.log_softmax(outputs, axis=-1))


@dataclass(frozen=True)
class Bernoulli:
    """Labels 0 and 1 by one logit."""

    outputs = 1
    size = 0

    def initial(self) -> Array:
        """No parameters of its own."""
        return np.zeros(0, np.float32)

    def check(self, y: Array) -> None:
        """Labels are 0 or 1."""
        labels = np.asarray(y)
        bad = labels[~np.isin(labels, (0, 1))]
        if bad.size:
            raise InvalidInput(f"y must hold 0 and 1 alone, got {bad.flat[0]}. Code it as 0/1.")

    def log_lik(self, outputs: Array, own: Array, y: Array) -> Array:
        """Log probability of the label."""
        return jax.nn.log_sigmoid(jnp.where(y > 0, 1.0, -1.0) * outputs[..., 0])

    def log_power_integral(self, outputs: Array, own: Array, power: Array) -> Array:
        """log (p^power + (1-p)^power)."""
        logit = outputs[..., 0]
        return jnp.logaddexp(power * jax.nn.log_sigmoid(logit), power * jax.nn.log_sigmoid(-logit))

    def mixture(self, outputs: Array, own: Array) -> ClassPredictive:
        """The predictive distribution of members with these outputs: classes 0 and 1."""
        xp = namespace(outputs)
        both = xp.concatenate([-outputs, outputs], axis=-1)
        return ClassPredictive.of_members(-xp.logaddexp(-both, 0.0))


_FLOOR_REMEDY = "It keeps the density bounded, without which the t-logarithm bounds nothing."


@storable
@dataclass(frozen=True)
class Gaussian:
    """y ~ N(f, std²) with a standard deviation that is fixed, learned, or given by the network.

    std: a number; "learned", one more parameter; or "by_input", a second output of the network
    floor: the smallest standard deviation that learning may reach, in units of y

    >>> Gaussian(0.1).outputs, Gaussian("by_input").outputs, Gaussian("learned").size
    (1, 2, 1)
    """

    std: float | str = "learned"
    floor: float = 0.01

    def __post_init__(self) -> None:
        if isinstance(self.std, str):
            _check.known("std", self.std, ["learned", "by_input"])
        else:
            _check.positive(self.std, "std", "It is the standard deviation of the noise.")
        _check.positive(self.floor, "floor", _FLOOR_REMEDY)

    @property
    def outputs(self) -> int:
        """The mean, and the raw scale where the network gives it."""
        return 2 if self.std == "by_input" else 1

    @property
    def size(self) -> int:
        """The raw scale where it is learned."""
        return 1 if self.std == "learned" else 0

    def initial(self) -> Array:
        """A standard deviation of 1 and a little."""
        return np.full(self.size, np.log(np.expm1(1.0)))

    def check(self, y: Array) -> None:
        """Targets are finite numbers."""
        _check.finite("y", y, "Drop or impute such rows first.")

    def moments(self, outputs: Array, own: Array) -> tuple[Array, Array]:
        """Mean and standard deviation, each [S, n]."""
        mean, xp = outputs[..., 0], namespace(outputs, own)
        if isinstance(self.std, str):
            raw = outputs[..., 1] if self.std == "by_input" else own
            std = xp.broadcast_to(self.floor + xp.logaddexp(raw, 0.0), mean.shape)
        else:
            std = xp.full_like(mean, self.std)
        return mean, std

    def log_lik(self, outputs: Array, own: Array, y: Array) -> Array:
        """Log density of the target."""
        mean, std = self.moments(outputs, own)
        return -0.5 * jnp.square((y - mean) / std) - jnp.log(std) - 0.5 * np.log(2 * np.pi)

    def slopes(self, outputs: Array, own: Array, y: Array) -> tuple[Array, Array, Array]:
        """`log_lik` [S, n], its slopes by the outputs [S, n, k] and by own [S, n, size]: NumPy's.

        >>> one = np.ones((1, 1, 1))
        >>> Gaussian(2.0).slopes(one, np.zeros((1, 0)), np.array([3.0]))[1].item()  # (3 - 1)/2²
        0.5
        """
        mean, std = self.moments(outputs, own)
        z = (y - mean) / std
        log_lik = -0.5 * np.square(z) - np.log(std) - 0.5 * np.log(2 * np.pi)
        by_mean, none = (z / std)[..., None], np.zeros((*mean.shape, 0), mean.dtype)
        if not isinstance(self.std, str):
            return log_lik, by_mean, none
        raw = outputs[..., 1] if self.std == "by_input" else own
        by_raw = ((np.square(z) - 1) / std * scipy.special.expit(raw))[..., None]
        if self.std == "by_input":
            return log_lik, np.concatenate([by_mean, by_raw], axis=-1), none
        return log_lik, by_mean, by_raw

    def log_power_integral(self, outputs: Array, own: Array, power: Array) -> Array:
        """log ∫ N^power = (1-power)/2 log(2π std²) - ½ log power."""
        _, std = self.moments(outputs, own)
        return (1 - power) * (jnp.log(std) + 0.5 * np.log(2 * np.pi)) - 0.5 * jnp.log(power)

    def mixture(self, outputs: Array, own: Array) -> GaussianPredictive:
        """The predictive distribution of members with these outputs."""
        return GaussianPredictive(*self.moments(outputs, own))
