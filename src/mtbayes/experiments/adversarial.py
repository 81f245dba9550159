"""Adversarial training as deep ensembles have it (Lakshminarayanan et al. 2017), as a model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp

from mtbayes.members import Members, Points
from mtbayes.models import Model
from mtbayes.types import Array


@dataclass(frozen=True)
class Adversarial:
    """A model whose log-likelihood of a row is the mean of two: as it is, and moved for the worse.

    Each member moves each row by its own fast gradient sign: x - step·sign(∂ log p_θ(y|x)/∂x).

    step: in units of x
    """

    model: Model
    step: float
    linears = ()

    @property
    def size(self) -> int:
        """The model's."""
        return self.model.size

    def initial(self, normals: Array) -> Array:
        """The model's."""
        return self.model.initial(normals)

    def scale(self) -> Array:
        """The model's."""
        return self.model.scale()

    def unravel(self, theta: Array) -> Any:
        """The model's."""
        return self.model.unravel(theta)

    def check(self, x: Array, y: Array) -> None:
        """The model's."""
        self.model.check(x, y)

    def log_lik(self, members: Members, x: Array, y: Array) -> Array:
        """The mean of log p_θ(y_i | x_i) and log p_θ(y_i | x_i moved), as [S, n]."""

        def member(theta: Array) -> Array:
            def own(rows: Array) -> Array:
                return self.model.log_lik(Points(theta[None]), rows, y)[0]

            slope = jax.grad(lambda rows: own(rows).sum())(x)
            moved = jax.lax.stop_gradient(x - self.step * jnp.sign(slope))
            return 0.5 * (own(x) + own(moved))

        return jax.vmap(member)(members.part(0, self.size))

    def log_power_integral(self, members: Members, x: Array, power: float) -> Array:
        """The model's."""
        return self.model.log_power_integral(members, x, power)
