"""A mixture of K diagonal Gaussians over θ[P]; one component is the paper's mean field.

The members of a step are stratified: the same number from each component. The divergence from the
prior is bounded through convexity, so that J stays an upper bound and a certificate stays valid:
KL(q||p) <= (1/K) Σ_k KL(q_k||p), and likewise for Rényi's divergence.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from mtbayes import _check
from mtbayes._values import storable
from mtbayes.maths import draws, gaussian_kl_divergence, gaussian_renyi_divergence
from mtbayes.maths.tlog import namespace
from mtbayes.members import Gaussians, Plan
from mtbayes.models import LogLik
from mtbayes.posteriors.prior import Prior
from mtbayes.types import Array

# The start's standard deviation beside the parameters' scale: small, so that training starts.
_START = 0.1


@storable
class MixtureState(NamedTuple):
    """The parameters φ of q."""

    mean: Array
    """[K, P]"""
    log_std: Array
    """[K, P]"""

    @property
    def components(self) -> int:
        """K."""
        return len(self.mean)


@storable
@dataclass(frozen=True)
class Mixture:
    """q = (1/K) Σ_k N(mean_k, std_k²), each with a diagonal covariance.

    >>> Mixture(2).components
    2
    """

    components: int
    drawn = True
    cut = False
    state = MixtureState

    def __post_init__(self) -> None:
        _check.count(self.components, "components", "1 is the mean field.")

    def init(self, key: Array, model: LogLik) -> MixtureState:
        """Different starts for the components, each with little spread."""
        mean = model.initial(draws.normals(key, (self.components, model.size)))
        log_std = np.log(_START * np.asarray(model.scale()))
        return MixtureState(mean, np.tile(log_std, (self.components, 1)))

    def members(self, state: MixtureState, normals: Array, plan: Plan, members: int) -> Gaussians:
        """S members, as many from each component."""
        return Gaussians(state.mean, jnp.exp(state.log_std), normals, plan, members)

    def sample(self, key: Array, state: MixtureState, members: int) -> Array:
        """θ[S, P]: each component as often as any other, as far as S allows."""
        which = np.arange(members) % self.components
        numbers = draws.normals(key, (members, state.mean.shape[1]))
        return state.mean[which] + namespace(state.mean).exp(state.log_std[which]) * numbers

    def divergence(self, state: MixtureState, prior: Prior, t_p: float) -> Array:
        """A bound on D^R_{t_p}(q||p), exact for one component; KL at t_p = 1."""
        std = jnp.exp(state.log_std)
        if t_p == 1:
            each = gaussian_kl_divergence(state.mean, std, prior.mean, prior.std)
            return jnp.sum(each) / self.components
        each = gaussian_renyi_divergence(state.mean, std, prior.mean, prior.std, t_p)
        total = jnp.sum(each, axis=1)
        if t_p < 1:
            return jnp.mean(total)
        # Above 1 it is ∫ q^t_p p^(1-t_p) that is convex in q.
        log_mean = jax.nn.logsumexp((t_p - 1) * total) - math.log(self.components)
        return log_mean / (t_p - 1)


def mean_field() -> Mixture:
    """One diagonal Gaussian, the paper's posterior."""
    return Mixture(1)
