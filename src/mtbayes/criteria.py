"""The training criterion: which loss, how large an ensemble, how strong a regulariser."""

from __future__ import annotations

import math
from dataclasses import dataclass

from mtbayes import _check
from mtbayes.errors import InvalidInput


@dataclass(frozen=True)
class Criterion:
    """The generalised free energy J = mean_i R_t^m(q, x_i) + m/(n·beta) D^R_{t_p}(q||p).

    m: members of the ensemble; more repair a model that is too simple. math.inf is the loss of
        the whole ensemble and goes with beta = math.inf (see below)
    t: order of the t-logarithm, in [0, 1]; 1 is the log loss, smaller bounds what an outlier can do
    beta: inverse temperature, above 0; 1 is Bayes whatever n is, larger trusts the data more,
        math.inf drops the regulariser
    t_p: order of the Rényi regulariser, above 0; 1 is the KL divergence, smaller forgives a
        wrong prior

    (m=1, t=1) is Bayes, (m, 1) is PAC^m, (1, t) the robust Gibbs predictor, (1, 1, t_p) Rényi
    variational inference.

    >>> Criterion(m=10, t=0.5, beta=1.0).regulariser_weight(n=5)
    2.0
    """

    m: float
    t: float
    beta: float = 1.0
    t_p: float = 1.0

    def __post_init__(self) -> None:
        _check.members(self.m)
        _check.temperature(self.t)
        _check.positive(
            self.beta, "beta", "beta = 1 is Bayes; larger trusts the data more.", infinite=True
        )
        _check.positive(
            self.t_p, "t_p", "t_p = 1 is the KL divergence; smaller forgives a wrong prior."
        )
        if math.isinf(self.m) and not math.isinf(self.beta):
            raise InvalidInput(
                f"beta must be math.inf when m is, got {self.beta!r}: the regulariser's weight "
                "m/(n·beta) would be infinite and the answer the prior. Choose a finite m, or "
                "beta = math.inf for the ensemble's loss alone."
            )

    def regulariser_weight(self, n: float) -> float:
        """m/(n·beta), the weight of the divergence beside the mean loss over n rows."""
        return 0.0 if math.isinf(self.beta) else self.m / (n * self.beta)
