"""K points that share their weights but for factors of rank 1: members for the memory of one.

After Dusenberry et al. 2020 (rank-1 factors around shared weights) and Gorishniy et al. 2024 (as
points rather than distributions; random signs before the first map alone tell members apart).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from mtbayes import _check
from mtbayes._values import storable
from mtbayes.errors import InvalidInput
from mtbayes.maths import draws
from mtbayes.members import Factor, Factors, Plan
from mtbayes.models import LogLik
from mtbayes.posteriors.prior import Prior
from mtbayes.types import Array


@storable
class Rank1State(NamedTuple):
    """The parameters φ of q: those of `members.Factors`."""

    weights: tuple[Array, ...]
    factors: tuple[Factor, ...]
    own: Array

    @property
    def components(self) -> int:
        """K."""
        return len(self.own)


@storable
@dataclass(frozen=True)
class Rank1:
    """q = (1/K) Σ_k δ(θ - θ_k), the weights of a map in θ_k being before_k · W · after_k.

    >>> Rank1(10).components
    10
    """

    components: int
    drawn = False
    cut = False
    state = Rank1State

    def __post_init__(self) -> None:
        _check.count(self.components, "components", "10 is usual.")

    def init(self, key: Array, model: LogLik) -> Rank1State:
        """One start; random signs before the first map tell the points apart."""
        if not model.linears:
            raise InvalidInput(
                "posterior Rank1 needs a network whose linear maps are known, got one without. Use "
                "mlp or a Stack, or Particles as the posterior."
            )
        k, start = self.components, model.initial(draws.normals(key, (model.size,)))
        signs = draws.generator(draws.child(key, 0))
        weights, factors = [], []
        for linear in model.linears:
            weight, bias = linear.split(start[linear.start : linear.start + linear.size])
            before, after = (np.ones((k, s), start.dtype) for s in (linear.inputs, linear.units))
            if linear.shared:
                before = signs.choice(np.array([-1, 1], start.dtype), before.shape)
            weights.append(weight)
            factors.append(Factor(before, after, np.tile(bias, (k, 1))))
        end = model.linears[-1].start + model.linears[-1].size
        own = np.tile(start[end:], (k, 1))
        return Rank1State(tuple(weights), tuple(factors), own)

    def members(self, state: Rank1State, normals: Array, plan: Plan, members: int) -> Factors:
        """Every point, as often as S asks for."""
        times = members // self.components
        factors, own = jax.tree.map(
            lambda v: jnp.repeat(v, times, axis=0), (state.factors, state.own)
        )
        return Factors(state.weights, factors, own)

    def sample(self, key: Array, state: Rank1State, members: int) -> Array:
        """θ[S, P], the points in turn."""
        return Factors(*state).theta()[np.arange(members) % self.components]

    def divergence(self, state: Rank1State, prior: Prior, t_p: float) -> Array:
        """The mean of -log p(θ_k) up to a constant, as for points of their own."""
        z = (Factors(*state).theta() - prior.mean) / prior.std
        return 0.5 * jnp.sum(z * z) / self.components
