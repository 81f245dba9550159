"""A model is what gives log_lik[S, n] for S members: a network under a likelihood."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np

from mtbayes._values import storable
from mtbayes.errors import InvalidInput
from mtbayes.likelihoods import Likelihood
from mtbayes.maths.tlog import namespace
from mtbayes.members import Linear, Members, Points
from mtbayes.networks import Adapter, Network, from_function
from mtbayes.types import Array


class LogLik(Protocol):
    """What posteriors and solvers need of a model; θ[P] is all its parameters in one vector."""

    @property
    def size(self) -> int:
        """Number of parameters P."""

    @property
    def linears(self) -> tuple[Linear, ...]:
        """Linear maps that may be drawn row by row."""

    def initial(self, normals: Array) -> Array:
        """Starting points θ[..., P], made of as many standard normal numbers."""

    def scale(self) -> Array:
        """The size [P] of a typical parameter at the start."""

    def unravel(self, theta: Array) -> Any:
        """θ[P] as a tree of named arrays."""

    def check(self, x: Array, y: Array) -> None:
        """Raise InvalidInput unless rows x and targets y fit the model."""

    def log_lik(self, members: Members, x: Array, y: Array) -> Array:
        """log p_θ(y_i | x_i) as [S, n]."""

    def log_power_integral(self, members: Members, x: Array, power: float) -> Array:
        """log ∫ p_θ(y | x_i)^power dy as [S, n], for rivals that need it."""


class Parameters(NamedTuple):
    """θ of a Model as a tree; fields in the order of θ, which a dict would not keep."""

    network: Any
    likelihood: Array


@storable
@dataclass(frozen=True)
class Model:
    """A network under a likelihood.

    >>> from mtbayes.likelihoods import Gaussian
    >>> from mtbayes.networks import mlp
    >>> Model(mlp((8, 10, 10, 1)), Gaussian("learned")).size
    212
    """

    network: Network
    likelihood: Likelihood

    @property
    def size(self) -> int:
        """Parameters of the network, then the likelihood's own."""
        return self.network.size + self.likelihood.size

    @property
    def linears(self) -> tuple[Linear, ...]:
        """The network's linear maps."""
        return self.network.linears

    def initial(self, normals: Array) -> Array:
        """Starting points θ[..., P]; the likelihood's own parameters start all alike."""
        network = self.network.initial(normals[..., : self.network.size])
        own = self.likelihood.initial().astype(network.dtype)
        alike = np.broadcast_to(own, (*network.shape[:-1], len(own)))
        return namespace(network).concatenate([network, alike], axis=-1)

    def scale(self) -> Array:
        """The size [P] of a typical parameter at the start."""
        if not self.likelihood.size:
            return self.network.scale()
        scale = self.network.scale()
        own = np.full(self.likelihood.size, 0.1, scale.dtype)
        return namespace(scale).concatenate([scale, own])

    def unravel(self, theta: Array) -> Parameters:
        """The network's tree and the likelihood's vector."""
        size = self.network.size
        return Parameters(self.network.unravel(theta[..., :size]), theta[..., size:])

    def check(self, x: Array, y: Array) -> None:
        """Rows fit the network, targets the likelihood, and the network the likelihood."""
        if np.ndim(y) != 1:
            raise InvalidInput(
                f"y must have shape ({len(x)},), one target for each row, got {np.shape(y)}. Use "
                "y.ravel() for a single column, y.argmax(1) for one-hot labels."
            )
        self.likelihood.check(y)
        self.check_rows(x)

    def check_rows(self, x: Array) -> None:
        """Rows fit the network, and the network the likelihood."""
        shape = getattr(self.network, "input_shape", None)
        if shape is not None and tuple(x.shape[1:]) != tuple(shape):
            raise InvalidInput(
                f"x must have shape (n, {', '.join(map(str, shape))}), got {tuple(x.shape)}. "
                "Reshape it, or build the network for that shape."
            )
        try:
            given = self._outputs_for(x)
        except InvalidInput:
            raise
        except (TypeError, ValueError) as error:
            raise InvalidInput(
                f"x must have rows that the network takes, got shape {tuple(x.shape)}. The network "
                f"says: {error}"
            ) from error
        if given != self.likelihood.outputs:
            raise InvalidInput(
                f"network must have {self.likelihood.outputs} outputs for "
                f"{type(self.likelihood).__name__}, got {given}. Change its last layer."
            )

    def _outputs_for(self, x: Array) -> int:
        """How many outputs the network has for a row: known, or found without computing any."""
        known = getattr(self.network, "output_shape", None)
        if known is not None:
            return int(known[-1])
        theta: Any = jax.eval_shape(lambda: jnp.zeros((1, self.size)))
        found = jax.eval_shape(lambda theta: self.network.outputs(Points(theta), x[:1]), theta)
        return int(found.shape[-1])

    def outputs(self, members: Members, x: Array) -> tuple[Array, Array]:
        """Outputs [S, n, k] and the likelihood's own parameters [S, size]."""
        own = self.likelihood.size
        extra = members.part(self.network.size, own) if own else np.zeros((1, 0), np.float32)
        return self.network.outputs(members, x), extra

    def log_lik(self, members: Members, x: Array, y: Array) -> Array:
        """log p_θ(y_i | x_i) as [S, n]."""
        return self.likelihood.log_lik(*self.outputs(members, x), y)

    def log_power_integral(self, members: Members, x: Array, power: float) -> Array:
        """log ∫ p_θ(y | x_i)^power dy as [S, n]."""
        return self.likelihood.log_power_integral(*self.outputs(members, x), power)


@dataclass(frozen=True, eq=False)
class CustomModel:
    """A user's own `function(params, x, y) -> log_lik[n]` and its starting parameters.

    >>> model = CustomModel(lambda p, x, y: -jnp.square(y - p * x), jnp.array(1.0))
    >>> model.size
    1
    """

    function: Callable[[Any, Array, Array], Array]
    params: Any
    linears = ()
    _adapter: Adapter = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_adapter", from_function(lambda _params, x: x, self.params))

    @property
    def size(self) -> int:
        """Number of parameters."""
        return self._adapter.size

    def initial(self, normals: Array) -> Array:
        """The parameters given, with a little noise."""
        return self._adapter.initial(normals)

    def scale(self) -> Array:
        """Root mean square of each leaf."""
        return self._adapter.scale()

    def unravel(self, theta: Array) -> Any:
        """The user's own tree."""
        return self._adapter.unravel(theta)

    def check(self, x: Array, y: Array) -> None:
        """The function gives one number a row, and none is NaN at the start."""
        theta = Points(self._adapter.flat[None])
        try:
            values = jax.jit(lambda: self.log_lik(theta, x, y))()
        except InvalidInput:
            raise
        except (TypeError, ValueError, AttributeError) as error:
            raise InvalidInput(
                f"log_lik function must take (params, x, y) and return one number a row; called so "
                f"it says: {error}"
            ) from error
        if values.shape != (1, x.shape[0]):
            raise InvalidInput(
                f"log_lik function must return shape ({x.shape[0]},), one number for each row, got "
                f"{values.shape[1:]}. Sum over everything but rows."
            )
        bad = np.flatnonzero(~(np.asarray(values[0]) < np.inf))
        if len(bad):
            raise InvalidInput(
                f"log_lik function must be free of NaN and +inf at its starting parameters, got "
                f"{float(values[0, bad[0]])} for row {bad[0]}."
            )

    def log_lik(self, members: Members, x: Array, y: Array) -> Array:
        """The function for each set of weights, [S, n]."""
        theta = members.part(0, self.size)
        return jax.vmap(lambda each: self.function(self.unravel(each), x, y))(theta)

    def log_power_integral(self, members: Members, x: Array, power: float) -> Array:
        """A bare log-likelihood does not know it."""
        raise InvalidInput(
            "criterion must do without ∫ p^power for a model that is a bare log_lik function; use "
            "Model(network, likelihood), or a Criterion."
        )
