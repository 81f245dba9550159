"""The rivals' criteria, each one setting of the engine that trains `Criterion`.

PAC²-variational learning (Masegosa 2020), variational inference with robust divergences (Futami,
Sato and Sugiyama 2018), generalised cross entropy (Zhang and Sabuncu 2018), and MMD-Bayes on a
grid (Chérief-Abdellatif and Alquier 2020). All but the last take their loss of a row from
log_lik[S, n], and their regulariser as Bayes does: with beta = 1 its weight is 1/n.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Self

import jax
import jax.numpy as jnp
import numpy as np
from scipy.spatial.distance import pdist
from scipy.special import logsumexp

from mtbayes import _check
from mtbayes.criteria import Criterion
from mtbayes.errors import InvalidInput
from mtbayes.maths.tlog import log_t_of_any_order
from mtbayes.types import Array, FloatArray

_ORDER_REMEDY = "Towards 0 it becomes the log loss; 0.1 to 0.5 is usual, larger is more robust."


class _Gibbs:
    """What all share: the loss is an expectation over q, so that the regulariser weighs 1/(n·beta).

    All settings but beta stay in the template, the order too: `power` is read off it.
    """

    m: float
    beta: float
    t_p: float
    joint = True

    def _check_shared(self) -> None:
        _check.members(self.m, infinite=False)
        _check.positive(
            self.beta, "beta", "beta = 1 is Bayes; larger trusts the data more.", infinite=True
        )
        _check.positive(
            self.t_p, "t_p", "t_p = 1 is the KL divergence; smaller forgives a wrong prior."
        )

    def regulariser_weight(self, n: float) -> float:
        """1/(n·beta), the weight of the divergence beside the mean loss over n rows."""
        return 0.0 if math.isinf(self.beta) else 1 / (n * self.beta)

    def numbers(self) -> tuple[float, ...]:
        """None: a compiled program serves one setting."""
        return ()

    def template(self) -> Self:
        """The criterion with beta set aside."""
        return replace(self, beta=math.inf)  # type: ignore[type-var]


# PAC²


@dataclass(frozen=True)
class PacSquared(_Gibbs):
    """PAC²-variational learning: the Gibbs loss less a variance, after a second-order Jensen.

    The loss of a row is E_q[-log p_θ(x)] - V(x), between the Gibbs and the ensemble's loss, with
    V(x) = h · Var_q p_θ(x), and for M = max_θ p_θ(x), μ = E_q p_θ(x)

        simple: h = 1/(2 M²)
        tight:  h = (log μ - log M)/(M - μ)² + 1/(μ (M - μ)), which is at least 1/(2 M²)

    m: members that estimate mean, variance (without bias), M and μ; at least 2, the authors use 2
    beta: how much rows count against the prior; 1 is Bayes
    form: "simple" (the authors' PAC²) or "tight" (PAC²_T)
    t_p: order of the Rényi regulariser; 1 is the KL divergence

    As in the authors' code no gradient flows through h, and M and μ are those of the members. The
    expectation is still at least the ensemble's loss in all that we tried; nobody proved it.

    >>> PacSquared(m=2, beta=0.5).regulariser_weight(n=5)
    0.4
    """

    m: float
    beta: float = 1.0
    form: str = "simple"
    t_p: float = 1.0

    def __post_init__(self) -> None:
        self._check_shared()
        if self.m < 2:
            raise InvalidInput(
                f"m must be at least 2 for PacSquared, got {self.m!r}: one draw has no variance. "
                "The authors use m = 2; Criterion(m=1, t=1.0) is the Gibbs loss alone."
            )
        _check.known("form", self.form, ["simple", "tight"])

    power = None

    def rows(self, log_lik: Array, log_integral: Array | None, *numbers: Array) -> Array:
        """Mean of -log p less V, averaged over the S/m groups: [S, n] -> [n].

        >>> log_lik = jnp.log(jnp.array([[0.9], [0.1]]))
        >>> PacSquared(m=2).rows(log_lik, None).round(4)  # 1.204 - 0.32/(2·0.81)
        Array([1.0064], dtype=float32)
        """
        groups = log_lik.reshape(-1, int(self.m), *log_lik.shape[1:])
        top = jax.lax.stop_gradient(jnp.max(groups, axis=1, keepdims=True))
        # In units of the row's largest likelihood, so that an outlier's do not underflow.
        below = jnp.where(jnp.isfinite(top), groups - top, 0.0)
        scaled = jnp.exp(below)
        variance = jnp.var(scaled, axis=1, ddof=1)
        if self.form == "simple":
            gain = 0.5 * variance
        else:
            gap = jnp.mean(-jnp.expm1(below), axis=1)
            gain = jax.lax.stop_gradient(_tight_factor(gap)) * variance
        return -jnp.mean(jnp.mean(groups, axis=1) + gain, axis=0)


# For M = 1 and d = 1 - μ: h = log(1-d)/d² + 1/((1-d) d) = Σ_k (k+1)/(k+2) d^k, a 0/0 at d = 0.
_TIGHT_SERIES = [(k + 1) / (k + 2) for k in range(26)]


def _tight_factor(gap: Array) -> Array:
    small = gap < 0.25
    near = jnp.polyval(jnp.array(_TIGHT_SERIES[::-1], gap.dtype), jnp.where(small, gap, 0.0))
    d = jnp.where(small, 0.5, gap)
    return jnp.where(small, near, jnp.log1p(-d) / d**2 + 1 / ((1 - d) * d))


# Robust divergences


@dataclass(frozen=True)
class BetaDivergence(_Gibbs):
    """Variational inference with the β-divergence (density power divergence) of order b > 0.

    The loss of a row is E_q[ -(1+b)/b (p_θ(x)^b - 1) + ∫ p_θ^(1+b) - 1 ], -log p as b -> 0. For
    labels it is (1+b) times the bi-tempered loss with t1 = 1-b, t2 = 1, `BiTempered` of
    `mtbayes.robust_likelihoods`.

    order: b
    m: members of θ in a step that estimate the expectation; it does not change what is minimised
    beta: how much rows count against the prior; 1 is Bayes (Futami et al. have no other)
    t_p: order of the Rényi regulariser; 1 is the KL divergence

    >>> BetaDivergence(0.5).power
    1.5
    """

    order: float
    m: float = 1
    beta: float = 1.0
    t_p: float = 1.0

    def __post_init__(self) -> None:
        _check.positive(self.order, "order", _ORDER_REMEDY)
        self._check_shared()

    @property
    def power(self) -> float:
        """The power 1 + b of the density whose integral the loss needs."""
        return 1 + self.order

    def rows(self, log_lik: Array, log_integral: Array | None, *numbers: Array) -> Array:
        """The mean over S members: log_lik and log_integral = log ∫ p^power, [S, n] -> [n].

        >>> p = jnp.array([0.5, 0.3, 0.2])
        >>> log_integral = jnp.log(jnp.sum(p**2))[None, None]
        >>> BetaDivergence(1.0).rows(jnp.log(p[:1])[None], log_integral).round(4)  # 1 + .38 - 1
        Array([0.38], dtype=float32)
        """
        integral = _needed(log_integral, "BetaDivergence")
        fit = (1 + self.order) * log_t_of_any_order(log_lik, 1 - self.order)
        return jnp.mean(jnp.expm1(integral) - fit, axis=0)


@dataclass(frozen=True)
class GammaDivergence(_Gibbs):
    """Variational inference with the γ-divergence of order g > 0.

    The loss of a row is E_q[ -(1+g)/g (p_θ(x)^g / (∫ p_θ^(1+g))^(g/(1+g)) - 1) ], -log p as
    g -> 0. It does not change when p_θ is multiplied by a constant.

    order: g
    m: members of θ in a step that estimate the expectation; it does not change what is minimised
    beta: how much rows count against the prior; 1 is Bayes (Futami et al. have no other)
    t_p: order of the Rényi regulariser; 1 is the KL divergence

    >>> GammaDivergence(0.5).power
    1.5
    """

    order: float
    m: float = 1
    beta: float = 1.0
    t_p: float = 1.0

    def __post_init__(self) -> None:
        _check.positive(self.order, "order", _ORDER_REMEDY)
        self._check_shared()

    @property
    def power(self) -> float:
        """The power 1 + g of the density whose integral the loss needs."""
        return 1 + self.order

    def rows(self, log_lik: Array, log_integral: Array | None, *numbers: Array) -> Array:
        """The mean over S members: log_lik and log_integral = log ∫ p^power, [S, n] -> [n].

        >>> p = jnp.array([0.5, 0.5])
        >>> log_integral = jnp.log(jnp.sum(p**2))[None, None]
        >>> GammaDivergence(1.0).rows(jnp.log(p[:1])[None], log_integral).round(4)  # 2 - √2
        Array([0.5858], dtype=float32)
        """
        integral = _needed(log_integral, "GammaDivergence")
        log_ratio = log_lik - integral / (1 + self.order)
        fit = (1 + self.order) * log_t_of_any_order(log_ratio, 1 - self.order)
        return -jnp.mean(fit, axis=0)


def _needed(log_integral: Array | None, name: str) -> Array:
    if log_integral is None:
        raise InvalidInput(
            f"log_integral must be log ∫ p^power for {name}, got None. Use a model with a "
            "likelihood that has log_power_integral, such as Categorical or Gaussian."
        )
    return log_integral


def generalised_cross_entropy(q: float, beta: float = 1.0) -> Criterion:
    """The loss (1 - p^q)/q of Zhang and Sabuncu (2018), which is -log_t p with t = 1-q.

    q: in [0, 1]; 0 is the log loss, 1 the mean absolute error; the authors use 0.7
    beta: how much rows count against the prior; 1 is Bayes

    >>> generalised_cross_entropy(0.75)
    Criterion(m=1, t=0.25, beta=1.0, t_p=1.0, joint=True)
    """
    _check.fraction(q, "q", "q = 0 is the log loss; larger is more robust.")
    return Criterion(m=1, t=1 - q, beta=beta)


# MMD-Bayes

_BLOCK = 2**22  # kernel values held at once
_MEDIAN_ROWS = 2000


def mmd_bayes(
    prior: Any, x: Any, mean: Any, std: Any, beta: float, bandwidth: float | None = None
) -> FloatArray:
    """MMD-Bayes on a grid: q ∝ prior · exp(-beta · MMD²(N(mean, std²), x)), as q[G].

    prior: [G], summing to 1
    x: [n] data
    mean, std: [G] means, and the standard deviation of the model, a number or [G]
    beta: the authors' β, above 0. It is on the scale of n and no other criterion's beta: MMD² is
        at most 2, and their guarantee needs β of at least n times a constant
    bandwidth: γ of the kernel exp(-(x-y)²/γ²); None takes the median distance between data (for
        more than 2,000 rows, between 2,000 of their quantiles)

    >>> grid = np.linspace(-5, 5, 101)
    >>> x = np.array([0.7, 0.8, 1.0, 1.2, 1.3, 40.0])
    >>> q = mmd_bayes(np.full(101, 1 / 101), x, grid, 1.0, beta=50.0)
    >>> round(float(q @ grid), 1)
    1.0
    """
    means = _check.finite("mean", mean, "It holds the model's mean at each grid point.")
    weight = _check.distribution("prior", prior, len(np.atleast_1d(means)), "the entries of mean")
    _check.positive(beta, "beta", "It is what MMD-Bayes calls beta; n is a first choice.")
    distance = gaussian_mmd_squared(means, std, x, bandwidth)
    with np.errstate(divide="ignore"):
        log_q = np.log(weight) - beta * distance
    result: FloatArray = np.exp(log_q - logsumexp(log_q))
    return result


def gaussian_mmd_squared(mean: Any, std: Any, x: Any, bandwidth: float | None = None) -> FloatArray:
    """MMD² between N(mean[g], std²) and the empirical distribution of x[n], as [G], exactly.

    With the authors' kernel k(x, y) = exp(-(x-y)²/γ²), γ the bandwidth,

        MMD² = γ/√(γ²+4 std²) - (2/n) Σ_i γ/√(γ²+2 std²) exp(-(mean-x_i)²/(γ²+2 std²))
               + (1/n²) Σ_ij k(x_i, x_j).

    mean, std: [G], and a number or [G]
    bandwidth: None takes the median distance between data, as in `mmd_bayes`

    >>> gaussian_mmd_squared([0.0], 1e-9, [0.0, 1.0], bandwidth=1.0).round(4)  # (1 - 1/e)/2
    array([0.3161])
    """
    means = np.atleast_1d(_check.finite("mean", mean, "It holds the model's means."))
    data = np.atleast_1d(_check.finite("x", x, "Drop or impute such rows first."))
    spread = _check.finite("std", std, "It is the standard deviation of the model.")
    for name, array in (("mean", means), ("x", data)):
        if array.ndim != 1 or not array.size:
            raise InvalidInput(
                f"{name} must be a vector with at least one entry, got shape {array.shape}. "
                "MMD here is for one-dimensional data."
            )
    if spread.shape not in ((), means.shape) or spread.min() <= 0:
        raise InvalidInput(
            f"std must be above 0, a number or of mean's shape {means.shape}, got shape "
            f"{spread.shape} with a minimum of {spread.min():g}. It is the model's spread."
        )
    gamma = _median_distance(data) if bandwidth is None else bandwidth
    _check.positive(gamma, "bandwidth", "It is the width γ of the kernel exp(-(x-y)²/γ²).")
    narrow, wide = gamma**2 + 2 * spread**2, gamma**2 + 4 * spread**2
    cross = gamma / np.sqrt(narrow) * _mean_kernel(means, data, narrow)
    own = _mean_kernel(data, data, np.float64(gamma**2)).mean()
    return np.maximum(gamma / np.sqrt(wide) - 2 * cross + own, 0.0)


def _mean_kernel(points: FloatArray, data: FloatArray, width: Any) -> FloatArray:
    """Mean over data of exp(-(point - data)²/width), for each point, in blocks."""
    widths = np.broadcast_to(width, points.shape)
    pieces = range(0, len(points), max(1, _BLOCK // len(data)))
    return np.concatenate(
        [
            np.exp(-((points[part, None] - data) ** 2) / widths[part, None]).mean(axis=1)
            for part in (slice(start, start + pieces.step) for start in pieces)
        ]
    )


def _median_distance(x: FloatArray) -> float:
    if len(x) > _MEDIAN_ROWS:
        x = np.quantile(x, np.linspace(0, 1, _MEDIAN_ROWS))
    median = float(np.median(pdist(x[:, None]))) if len(x) > 1 else 0.0
    if median == 0:
        raise InvalidInput(
            "bandwidth must be given for these data, got None: the median distance between them "
            "is 0. Pass a width of the kernel in units of x."
        )
    return median
