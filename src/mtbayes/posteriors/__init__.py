"""Families of ensembling distributions q, one file each."""

import math
from typing import Any, Protocol

from mtbayes.members import Members, Plan
from mtbayes.models import LogLik
from mtbayes.posteriors.mixture import Mixture, mean_field
from mtbayes.posteriors.particles import Particles
from mtbayes.posteriors.prior import Prior, prior
from mtbayes.posteriors.rank1 import Rank1
from mtbayes.types import Array


class Posterior(Protocol):
    """A family of distributions over θ that gradients can train."""

    @property
    def components(self) -> int:
        """K, over which draws are stratified."""

    @property
    def drawn(self) -> bool:
        """Whether members need random numbers."""

    @property
    def cut(self) -> bool:
        """Whether all its parameters are points θ[..., P], which may be `members.Apart`."""

    @property
    def state(self) -> type:
        """The class of its parameters φ, which tell their `components`."""

    def init(self, key: Array, model: LogLik) -> Any:
        """Starting parameters φ, a NamedTuple of arrays."""

    def members(self, state: Any, normals: Array, plan: Plan, members: int) -> Members:
        """S members for a step of training."""

    def sample(self, key: Array, state: Any, members: int) -> Array:
        """θ[S, P] for prediction, the components in turn."""

    def divergence(self, state: Any, prior: Prior, t_p: float) -> Array:
        """D^R_{t_p}(q||p), or a bound on it."""


def members_of(criterion: Any, posterior: Posterior) -> int:
    """The fewest members that make whole groups: m of a mixture, or m of each of its modes."""
    m, k = 1 if math.isinf(criterion.m) else int(criterion.m), posterior.components
    return max(m, k) if criterion.joint else m * k


def grouped(criterion: Any, posterior: Posterior, key: Array, state: Any, members: int) -> Array:
    """θ[S, P] in an order in which m that follow each other enter a row's loss together.

    members: S, a multiple of `members_of`
    """
    theta = posterior.sample(key, state, members)
    if criterion.joint:
        return theta
    return (
        theta.reshape(-1, posterior.components, theta.shape[1]).swapaxes(0, 1).reshape(theta.shape)
    )


__all__ = [
    "Mixture",
    "Particles",
    "Posterior",
    "Prior",
    "Rank1",
    "grouped",
    "mean_field",
    "members_of",
    "prior",
]
