"""Families of ensembling distributions q, one file each."""

from typing import Any, Protocol

from mtbayes.members import Members, Plan
from mtbayes.models import LogLik
from mtbayes.posteriors.mixture import Mixture, mean_field
from mtbayes.posteriors.particles import Particles
from mtbayes.posteriors.prior import Prior, prior
from mtbayes.types import Array


class Posterior(Protocol):
    """A family of distributions over θ that gradients can train."""

    @property
    def components(self) -> int:
        """K, over which draws are stratified."""

    @property
    def drawn(self) -> bool:
        """Whether members need random numbers."""

    def init(self, key: Array, model: LogLik) -> Any:
        """Starting parameters φ, a NamedTuple of arrays."""

    def members(self, state: Any, normals: Array, plan: Plan, members: int) -> Members:
        """S members for a step of training."""

    def sample(self, key: Array, state: Any, members: int) -> Array:
        """θ[S, P] for prediction."""

    def divergence(self, state: Any, prior: Prior, t_p: float) -> Array:
        """D^R_{t_p}(q||p), or a bound on it."""


__all__ = ["Mixture", "Particles", "Posterior", "Prior", "mean_field", "prior"]
