"""Robust pseudo-likelihoods: rivals that change the likelihood and leave the criterion alone.

They answer to the same protocol as `mtbayes.likelihoods`. The bi-tempered loss of Amid et al. is
not the logarithm of any density; Student's t and Huber's density are proper ones with tails
heavier than a Gaussian's.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import betaln as jax_betaln
from jax.scipy.special import erf
from scipy.special import betaln

from mtbayes import _check
from mtbayes.errors import InvalidInput
from mtbayes.likelihoods import Categorical, Gaussian
from mtbayes.maths.tlog import log_t_of_any_order
from mtbayes.types import Array

_FLOOR_REMEDY = "It keeps the density bounded, without which the t-logarithm bounds nothing."


# The bi-tempered logistic loss

_LARGEST_T2 = 10.0


@dataclass(frozen=True)
class BiTempered:
    """The bi-tempered logistic loss of Amid, Warmuth, Anil and Koren (2019).

    With probabilities p = tempered softmax of the logits, of order t2, the loss of label y is

        -log_t1 p_y + (Σ_c p_c^(2-t1) - 1)/(2-t1),

    and log_lik is minus that: at least -1/(1-t1), whatever the logits. Train it with m = 1, t = 1.

    classes: number of classes
    t1: in [0, 1]; below 1 bounds the loss of an outlier far from the boundary
    t2: in [1, 10]; above 1 gives the probabilities a heavy tail, for mislabelled rows near it

    t1 = t2 = 1 is the softmax cross entropy.

    >>> outputs, own, y = jnp.zeros((1, 1, 2)), jnp.zeros((1, 0)), jnp.array([1])
    >>> BiTempered(2, t1=0.0, t2=1.0).log_lik(outputs, own, y)  # p = ½: -(1-p) - (2 p² - 1)/2
    Array([[-0.25]], dtype=float32)
    """

    classes: int
    t1: float = 0.8
    t2: float = 1.2

    def __post_init__(self) -> None:
        Categorical(self.classes)
        _check.loss_order(self.t1, "t1")
        _check_t2(self.t2)

    @property
    def outputs(self) -> int:
        """One logit a class."""
        return self.classes

    size = 0

    def initial(self) -> Array:
        """No parameters of its own."""
        return jnp.zeros(0)

    def check(self, y: Array) -> None:
        """Labels are whole numbers from 0 to classes-1."""
        Categorical(self.classes).check(y)

    def log_lik(self, outputs: Array, own: Array, y: Array) -> Array:
        """Minus the loss."""
        log_p = tempered_log_softmax(outputs, self.t2)
        hot = jax.nn.one_hot(y, self.classes, dtype=outputs.dtype)
        fit = log_t_of_any_order(jnp.sum(log_p * hot, axis=-1), self.t1)
        # Σ p^(2-t1) - 1, with Σ p = 1 taken out beforehand: exact at t1 = 1 and near it.
        excess = jnp.sum(jnp.exp(log_p) * jnp.expm1((1 - self.t1) * log_p), axis=-1)
        return fit - excess / (2 - self.t1)

    def log_power_integral(self, outputs: Array, own: Array, power: Array) -> Array:
        """Has no meaning: exp(-loss) is not a density."""
        raise InvalidInput(
            "likelihood must be a density for a loss that integrates its powers, got BiTempered. "
            "Use Categorical with BetaDivergence or GammaDivergence, or BiTempered with "
            "Criterion(m=1, t=1.0)."
        )


def tempered_log_softmax(logits: Array, t2: float) -> Array:
    """log p for p_c = exp_t2(a_c - λ), λ such that Σ_c p_c = 1; over the last axis.

    logits: [..., classes]
    t2: in [1, 10]; 1 is the ordinary softmax, larger has heavier tails

    With w = -log max p it reads log p_c = -w - log(1 + (t2-1) v_c e^{-(t2-1) w})/(t2-1), where v_c
    is how far a_c lies below the largest logit. Newton's method finds w between 0 and log classes;
    where it leaves the bracket, a bisection replaces the step.

    >>> log_p = tempered_log_softmax(jnp.array([0.0, -8 / 3]), 2.0)  # log of 1/z and 1/(z + 8/3)
    >>> [round(float(p), 4) for p in jnp.exp(log_p)]
    [0.75, 0.25]
    """
    _check_t2(t2)
    if t2 == 1:
        return jax.nn.log_softmax(logits)
    return _compiled(logits, float(t2))


@partial(jax.custom_jvp, nondiff_argnums=(1,))
def _tempered_log_softmax(logits: Array, t2: float) -> Array:
    s = t2 - 1
    below = jnp.max(logits, axis=-1, keepdims=True) - logits

    def evaluate(w: Array) -> tuple[Array, Array]:
        z = s * below * jnp.exp(-s * w)
        return -w - jnp.log1p(z) / s, z

    def step(_: int, state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        w, low, high = state
        log_p, z = evaluate(w)
        excess = jax.nn.logsumexp(log_p, axis=-1, keepdims=True)
        slope = jnp.sum(jnp.exp(log_p - excess) / (1 + z), axis=-1, keepdims=True)
        low, high = jnp.where(excess > 0, w, low), jnp.where(excess > 0, high, w)
        newton = w + excess / slope
        inside = (newton >= low) & (newton <= high)
        return jnp.where(inside, newton, (low + high) / 2), low, high

    # Worst cases to twelve digits, up to 1,000 classes: 6 for t2 <= 1.5, 8 up to 10.
    steps = 6 if t2 <= 1.5 else 10
    low = jnp.zeros_like(below[..., :1])
    high = jnp.full_like(low, math.log(logits.shape[-1]))
    w, _, _ = jax.lax.fori_loop(0, steps, step, (low, low, high))
    return evaluate(w)[0]


@_tempered_log_softmax.defjvp
def _tempered_log_softmax_jvp(t2: float, primals: Any, tangents: Any) -> Any:
    (logits,), (d_logits,) = primals, tangents
    log_p = _tempered_log_softmax(logits, t2)
    # d log p_c = p_c^(t2-1) (da_c - dλ), and dλ is the mean of da under the escort p^t2.
    escort = jax.nn.softmax(t2 * log_p)
    d_lambda = jnp.sum(escort * d_logits, axis=-1, keepdims=True)
    return log_p, jnp.exp((t2 - 1) * log_p) * (d_logits - d_lambda)


# Outside a compiled program the loop would be compiled anew at each call.
_compiled = jax.jit(_tempered_log_softmax, static_argnums=1)


def _check_t2(t2: Any) -> None:
    remedy = "t2 = 1 is the ordinary softmax; larger has heavier tails, 1.2 is a good start."
    number = _check.positive(t2, "t2", remedy)
    if not 1 <= number <= _LARGEST_T2:
        raise InvalidInput(f"t2 must lie in [1, {_LARGEST_T2:g}], got {t2!r}. {remedy}")


# Regression


class _LikeGaussian(ABC):
    """Location and scale, and how they are learned, as `Gaussian` has them."""

    @property
    @abstractmethod
    def _gaussian(self) -> Gaussian:
        """The Gaussian with the same settings."""

    @property
    def outputs(self) -> int:
        """The location, and the raw scale where the network gives it."""
        return self._gaussian.outputs

    @property
    def size(self) -> int:
        """The raw scale where it is learned."""
        return self._gaussian.size

    def initial(self) -> Array:
        """A scale of 1 and a little."""
        return self._gaussian.initial()

    def check(self, y: Array) -> None:
        """Targets are finite numbers."""
        self._gaussian.check(y)


@dataclass(frozen=True)
class StudentT(_LikeGaussian):
    """y = f + scale · (Student's t with df degrees of freedom).

    df: degrees of freedom ν, above 0; 1 is Cauchy's density, large is Gaussian
    scale: a number; "learned", one more parameter; or "by_input", a second output of the network.
        The standard deviation is scale·√(ν/(ν-2)) for ν > 2
    floor: the smallest scale that learning may reach, in units of y

    >>> outputs, own, y = jnp.zeros((1, 1, 1)), jnp.zeros((1, 0)), jnp.array([1.0])
    >>> round(float(StudentT(df=1.0, scale=1.0).log_lik(outputs, own, y)[0, 0]), 4)  # -log 2π
    -1.8379
    """

    df: float = 4.0
    scale: float | str = "learned"
    floor: float = 0.01

    def __post_init__(self) -> None:
        _check.positive(self.df, "df", "4 is usual; smaller has heavier tails.")
        _check_scale("scale", self.scale, self.floor)

    @property
    def _gaussian(self) -> Gaussian:
        return Gaussian(self.scale, self.floor)

    def _log_peak(self) -> float:
        """Log density at 0 for scale 1: Γ((ν+1)/2)/(Γ(ν/2) √(νπ)), exact for large ν too."""
        return float(-betaln(0.5, self.df / 2) - 0.5 * np.log(self.df))

    def log_lik(self, outputs: Array, own: Array, y: Array) -> Array:
        """Log density of the target."""
        location, scale = self._gaussian.moments(outputs, own)
        u = jnp.abs(y - location) / (scale * math.sqrt(self.df))
        far = u > 1e9  # there u² may overflow, and 1 + u² is u² anyway
        near = jnp.log1p(jnp.square(jnp.where(far, 0.0, u)))
        tail = jnp.where(far, 2 * jnp.log(jnp.where(far, u, 1.0)), near)
        return self._log_peak() - jnp.log(scale) - 0.5 * (self.df + 1) * tail

    def log_power_integral(self, outputs: Array, own: Array, power: Array) -> Array:
        """log ∫ p^k = k log p(0) + log scale + ½ log ν + log B(½, (k(ν+1)-1)/2), k(ν+1) > 1."""
        _, scale = self._gaussian.moments(outputs, own)
        shape = jax_betaln(0.5, (power * (self.df + 1) - 1) / 2) + 0.5 * math.log(self.df)
        return power * self._log_peak() + shape + (1 - power) * jnp.log(scale)


@dataclass(frozen=True)
class Huber(_LikeGaussian):
    """Huber's density: exp(-ρ(z))/(Z std), z = (y - f)/std, Gaussian within delta, then Laplace.

    ρ(z) = z²/2 for |z| <= δ, else δ|z| - δ²/2; Z = √(2π) erf(δ/√2) + (2/δ) e^{-δ²/2}. A fixed std
    gives Huber's loss up to a constant; with a learned one Z keeps the fit honest.

    delta: δ, above 0, in units of std; 1.345 loses 5 % of efficiency on clean Gaussian data
    std: a number; "learned", one more parameter; or "by_input", a second output of the network
    floor: the smallest std that learning may reach, in units of y

    >>> outputs, own = jnp.zeros((1, 1, 1)), jnp.zeros((1, 0))
    >>> at = lambda y: Huber(1.0).log_lik(outputs, own, jnp.array([y]))
    >>> at(3.0) - at(0.0)  # ½ - 3
    Array([[-2.5]], dtype=float32)
    """

    delta: float = 1.345
    std: float | str = 1.0
    floor: float = 0.01

    def __post_init__(self) -> None:
        _check.positive(self.delta, "delta", "1.345 is usual; smaller is more robust.")
        _check_scale("std", self.std, self.floor)

    @property
    def _gaussian(self) -> Gaussian:
        return Gaussian(self.std, self.floor)

    def log_lik(self, outputs: Array, own: Array, y: Array) -> Array:
        """Log density of the target."""
        location, std = self._gaussian.moments(outputs, own)
        z = jnp.abs(y - location) / std
        inner = jnp.minimum(z, self.delta)
        return -inner * (z - 0.5 * inner) - jnp.log(std) - self._log_normaliser(1.0)

    def log_power_integral(self, outputs: Array, own: Array, power: Array) -> Array:
        """log ∫ p^k, from ∫ e^{-kρ} = √(2π/k) erf(δ√(k/2)) + 2/(kδ) e^{-kδ²/2}."""
        _, std = self._gaussian.moments(outputs, own)
        integral = self._log_normaliser(power) - power * self._log_normaliser(1.0)
        return integral + (1 - power) * jnp.log(std)

    def _log_normaliser(self, power: Array) -> Array:
        centre = jnp.sqrt(2 * math.pi / power) * erf(self.delta * jnp.sqrt(power / 2))
        return jnp.log(centre + 2 / (power * self.delta) * jnp.exp(-power * self.delta**2 / 2))


def _check_scale(name: str, scale: Any, floor: Any) -> None:
    if isinstance(scale, str):
        _check.known(name, scale, ["learned", "by_input"])
    else:
        _check.positive(scale, name, "It is the spread of the noise.")
    _check.positive(floor, "floor", _FLOOR_REMEDY)
