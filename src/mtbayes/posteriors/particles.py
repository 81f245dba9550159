"""K points in parameter space: with m = 1 and t = 1 the deep ensemble."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from mtbayes import _check
from mtbayes._values import storable
from mtbayes.maths import draws
from mtbayes.members import Apart, Members, Plan, Points
from mtbayes.models import LogLik
from mtbayes.posteriors.prior import Prior
from mtbayes.types import Array


@storable
class ParticlesState(NamedTuple):
    """The parameters φ of q."""

    mean: Any
    """The points, [K, P]; within a step of training `members.Apart`."""

    @property
    def components(self) -> int:
        """K."""
        return len(self.mean)


@storable
@dataclass(frozen=True)
class Particles:
    """q = (1/K) Σ_k δ(θ - θ_k).

    >>> Particles(10).components
    10
    """

    components: int
    drawn = False
    cut = True
    state = ParticlesState

    def __post_init__(self) -> None:
        _check.count(self.components, "components", "A deep ensemble has 5 or 10.")

    def init(self, key: Array, model: LogLik) -> ParticlesState:
        """K different starts."""
        return ParticlesState(model.initial(draws.normals(key, (self.components, model.size))))

    def members(self, state: ParticlesState, normals: Array, plan: Plan, members: int) -> Members:
        """Every point, as often as S asks for."""
        times = members // self.components
        all_ = jax.tree.map(lambda v: jnp.repeat(v, times, axis=0), state.mean)
        return all_ if isinstance(all_, Apart) else Points(all_)

    def sample(self, key: Array, state: ParticlesState, members: int) -> Array:
        """θ[S, P], the points in turn."""
        return state.mean[np.arange(members) % self.components]

    def divergence(self, state: ParticlesState, prior: Prior, t_p: float) -> Array:
        """The mean of -log p(θ_k) up to a constant.

        A point's KL divergence is infinite; what depends on where the point lies is its weight
        decay towards the prior's mean, at every order t_p.
        """
        # A number is the same for every map.
        alike = (
            v if isinstance(v, Apart) else jax.tree.map(lambda _, v=v: v, state.mean) for v in prior
        )
        far = jax.tree.map(
            lambda v, mean, std: jnp.sum(jnp.square((v - mean) / std)), state.mean, *alike
        )
        return 0.5 * sum(jax.tree.leaves(far)) / self.components
