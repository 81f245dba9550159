"""The training criterion: which loss, how large an ensemble, how strong a regulariser."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Protocol

import jax
import jax.numpy as jnp
import numpy as np

from mtbayes import _check
from mtbayes.errors import InvalidInput
from mtbayes.maths.tlog import log_t_of_any_order
from mtbayes.types import Array


class Objective(Protocol):
    """What a solver needs of a criterion: a loss a row, and the regulariser's weight and order.

    The rivals' criteria have it too, so that each is one setting of the same engine.
    """

    @property
    def m(self) -> float:
        """Members that enter a row's loss together."""

    @property
    def t_p(self) -> float:
        """Order of the regulariser."""

    @property
    def joint(self) -> bool:
        """Whether a posterior's modes enter a row's loss together, or each has its own."""

    @property
    def power(self) -> float | None:
        """The power whose integral over targets the loss needs, if any."""

    def regulariser_weight(self, n: float) -> float:
        """Weight of the divergence beside the mean loss over n rows."""

    def numbers(self) -> tuple[float, ...]:
        """What `rows` takes as traced values, so that one compiled program serves them all."""

    def template(self) -> Objective:
        """The criterion without those numbers: what a compiled program depends on."""

    def rows(self, log_lik: Array, log_integral: Array | None, *numbers: Array) -> Array:
        """The loss of each row, [n], from log_lik[S, n] (S a multiple of m)."""


@dataclass(frozen=True)
class Criterion:
    """The generalised free energy J = mean_i R_t^m(q, x_i) + m/(n·beta) D^R_{t_p}(q||p).

    m: members of the ensemble; more repair a model that is too simple. math.inf is the loss of
        the whole ensemble and goes with beta = math.inf (see below)
    t: order of the t-logarithm, in [0, 1]; 1 is the log loss, smaller bounds what an outlier can do
    beta: how much rows count against the prior, above 0; 1 is Bayes whatever n is, larger trusts
        the data more, math.inf drops the regulariser
    t_p: order of the Rényi regulariser, above 0; 1 is the KL divergence, smaller forgives a
        wrong prior
    joint: for a posterior of K modes q_k. True is the paper's J, of their mixture. False is
        mean_k J(q_k), the mean of what each mode has by itself; J is convex in q, so that it is an
        upper bound on the mixture's. At m = 1 both are the same

    (m=1, t=1) is Bayes, (m, 1) is PAC^m, (1, t) the robust Gibbs predictor, (1, 1, t_p) Rényi
    variational inference.

    >>> Criterion(m=10, t=0.5, beta=1.0).regulariser_weight(n=5)
    2.0
    """

    m: float
    t: float
    beta: float = 1.0
    t_p: float = 1.0
    joint: bool = True

    def __post_init__(self) -> None:
        _check.members(self.m)
        if self.t is None or np.ndim(self.t):
            raise InvalidInput(f"t must be one number in [0, 1], got {self.t!r}. {_check.T_REMEDY}")
        _check.loss_order(self.t)
        _check.positive(
            self.beta, "beta", "beta = 1 is Bayes; larger trusts the data more.", infinite=True
        )
        _check.positive(
            self.t_p, "t_p", "t_p = 1 is the KL divergence; smaller forgives a wrong prior."
        )
        if not isinstance(self.joint, bool):
            raise InvalidInput(
                f"joint must be True or False, got {self.joint!r}. True is the paper's J."
            )
        if math.isinf(self.m) and not math.isinf(self.beta):
            raise InvalidInput(
                f"beta must be math.inf when m is, got {self.beta!r}: the regulariser's weight "
                "m/(n·beta) would be infinite and the answer the prior. Choose a finite m, or "
                "beta = math.inf for the ensemble's loss alone."
            )

    power = None

    def regulariser_weight(self, n: float) -> float:
        """m/(n·beta), the weight of the divergence beside the mean loss over n rows."""
        return 0.0 if math.isinf(self.beta) else self.m / (n * self.beta)

    def numbers(self) -> tuple[float, ...]:
        """T alone: one compiled program serves all t."""
        return (float(self.t),)

    def template(self) -> Criterion:
        """The criterion with t and beta set aside."""
        return replace(self, t=1.0, beta=math.inf)

    def rows(self, log_lik: Array, log_integral: Array | None, *numbers: Array) -> Array:
        """-log_t of the mean of m likelihoods, averaged over the S/m groups: [S, n] -> [n].

        >>> Criterion(m=2, t=1.0).rows(jnp.log(jnp.array([[0.9], [0.1]])), None, 1.0).round(4)
        Array([0.6931], dtype=float32)
        """
        (t,) = numbers
        return multi_sample_loss(log_lik, self.m, t)


def multi_sample_loss(log_lik: Array, m: float, t: Array) -> Array:
    """R_t^m by Monte Carlo: log_lik[S, n] in S/m groups of m independent members -> [n].

    m = math.inf takes all S members for the whole ensemble.
    """
    size = log_lik.shape[0] if math.isinf(m) else int(m)
    if log_lik.shape[0] % size:
        raise InvalidInput(
            f"log_lik must have a multiple of m = {size} members, got {log_lik.shape[0]}. Draw "
            "more of them, or choose a smaller m."
        )
    groups = log_lik.reshape(-1, size, *log_lik.shape[1:])
    log_mean = jax.nn.logsumexp(groups, axis=1) - math.log(size)
    return -jnp.mean(log_t_of_any_order(log_mean, t), axis=0)
