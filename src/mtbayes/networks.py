"""Networks that run many members at once: our own stacks, and adapters for others'.

A network maps S `Members` and rows x[n, ...] to outputs [S, n, k]. All its
parameters are one flat vector θ[P], so that a step of training draws random numbers once.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, partial, reduce
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from mtbayes import _check
from mtbayes._values import storable
from mtbayes.errors import InvalidInput
from mtbayes.maths.convolution import as_maps, as_rows, blocks, convolved, square
from mtbayes.maths.tlog import namespace
from mtbayes.members import Linear, Members
from mtbayes.types import Array


class Network(Protocol):
    """What a model needs of a network."""

    @property
    def size(self) -> int:
        """Number of parameters P."""

    @property
    def linears(self) -> tuple[Linear, ...]:
        """Its linear maps, for drawing layer by layer; empty where weights are all it knows."""

    def initial(self, normals: Array) -> Array:
        """Starting points θ[..., P], made of as many standard normal numbers."""

    def scale(self) -> Array:
        """The size [P] of a typical parameter at the start."""

    def unravel(self, theta: Array) -> Any:
        """θ[..., P] as the network's own tree of parameters."""

    def outputs(self, members: Members, x: Array) -> Array:
        """Outputs [S, n, k] for S members."""


@jax.custom_jvp
def _elu(x: Array) -> Array:
    return jnp.where(x > 0, x, jnp.exp(jnp.minimum(x, 0.0)) - 1)


@_elu.defjvp
def _elu_jvp(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    # e^x is y + 1 where x < 0: the gradient needs no second exponential.
    y = _elu(*primals)
    return y, jnp.where(y > 0, 1.0, y + 1) * tangents[0]


ACTIVATIONS: dict[str, Callable[[Array], Array]] = {
    "elu": _elu,
    "relu": jax.nn.relu,
    "tanh": jnp.tanh,
    "linear": lambda x: x,
}
_IN_NUMPY: dict[str, Callable[[Array], Array]] = {
    "elu": lambda x: np.where(x > 0, x, np.exp(np.minimum(x, 0.0)) - 1),
    "relu": lambda x: np.maximum(x, 0.0),
    "tanh": np.tanh,
    "linear": lambda x: x,
}


def _activated(name: str, x: Array) -> Array:
    """Same kind in, same kind out: what predicts need not be compiled."""
    return (ACTIVATIONS if namespace(x) is jnp else _IN_NUMPY)[name](x)


@storable
@dataclass(frozen=True)
class Dense:
    """A fully connected layer on the last axis."""

    units: int
    activation: str = "elu"

    def __post_init__(self) -> None:
        _check.count(self.units, "units", "It is the width of the layer.")
        _check.known("activation", self.activation, list(ACTIVATIONS))

    def shapes(self, shape: tuple[int, ...]) -> tuple[tuple[int, int] | None, tuple[int, ...]]:
        """The (inputs, units) of its weights, and the shape of what it gives for one row."""
        return (shape[-1], self.units), (*shape[:-1], self.units)

    def apply(self, members: Members, linear: Linear, h: Array) -> Array:
        """One layer of every set of weights."""
        return members.linear(linear, h, partial(_activated, self.activation))


@storable
@dataclass(frozen=True)
class Conv:
    """A convolution without padding over [height, width, channels], as a product with patches."""

    filters: int
    kernel: int
    activation: str = "elu"

    def __post_init__(self) -> None:
        _check.count(self.filters, "filters", "It is the number of output channels.")
        _check.count(self.kernel, "kernel", "It is the side of the square window.")
        _check.known("activation", self.activation, list(ACTIVATIONS))

    def shapes(self, shape: tuple[int, ...]) -> tuple[tuple[int, int] | None, tuple[int, ...]]:
        """The (inputs, filters) of its weights, and the shape of what it gives for one row."""
        height, width, channels = _image(shape, self.kernel)
        return (
            (self.kernel**2 * channels, self.filters),
            (height - self.kernel + 1, width - self.kernel + 1, self.filters),
        )

    def apply(self, members: Members, linear: Linear, h: Array, size: int = 1) -> Array:
        """One layer of every set of weights on maps, and the maximum over windows after it.

        Activations increase, so that they may follow the maximum, on fewer numbers. Where the
        window covers all of a row, h is rows and not maps: they may be drawn row by row.
        """
        if linear.positions == 1:
            flat = h.reshape(*h.shape[:-3], 1, 1, linear.inputs)
            return members.linear(linear, flat, partial(_activated, self.activation))
        weight, bias = members.affine(linear)
        result = convolved(weight.swapaxes(1, 2), h, self.kernel, size)
        return _activated(self.activation, result + bias[..., None, None, None])


@storable
@dataclass(frozen=True)
class MaxPool:
    """The maximum over windows that do not overlap; a remainder at the edge is left out."""

    size: int = 2

    def __post_init__(self) -> None:
        _check.count(self.size, "size", "It is the side of the square window.")

    def shapes(self, shape: tuple[int, ...]) -> tuple[tuple[int, int] | None, tuple[int, ...]]:
        """No weights; height and width divided by the size."""
        height, width, channels = _image(shape, self.size)
        return None, (height // self.size, width // self.size, channels)

    def reshape(self, h: Array, axes: int) -> Array:
        """The maximum of each window."""
        s = self.size
        rows, columns = h.shape[-3] // s, h.shape[-2] // s
        h = h[..., : rows * s, : columns * s, :]
        # Strided slices and maximum: far cheaper on a CPU than a windowed reduction.
        return reduce(namespace(h).maximum, (h[..., i::s, j::s, :] for i, j in square(s)))


@storable
@dataclass(frozen=True)
class Flatten:
    """All axes of a row into one."""

    def shapes(self, shape: tuple[int, ...]) -> tuple[tuple[int, int] | None, tuple[int, ...]]:
        """No weights; one axis."""
        return None, (math.prod(shape),)

    def reshape(self, h: Array, axes: int) -> Array:
        """The last `axes` axes become one."""
        return h.reshape(*h.shape[: h.ndim - axes], -1)


def _image(shape: tuple[int, ...], size: int) -> tuple[int, int, int]:
    if len(shape) != 3 or min(shape[:2]) < size:
        raise InvalidInput(
            f"input_shape must be (height, width, channels) with sides of at least {size} before a "
            f"window of that size, got {shape}. Add a channel axis, or put Flatten after the layer."
        )
    return shape[0], shape[1], shape[2]


class Affine(NamedTuple):
    """Parameters of a linear map; fields in the order of θ, which a dict would not keep."""

    weight: Array
    """[inputs, units]"""
    bias: Array
    """[units]"""


@storable
@dataclass(frozen=True)
class Stack:
    """A network of our own layers.

    input_shape: shape of one row
    layers: of Dense, Conv, MaxPool and Flatten

    >>> Stack((784,), (Dense(25), Dense(10, "linear"))).size
    19885
    """

    input_shape: tuple[int, ...]
    layers: tuple[Any, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "input_shape", tuple(self.input_shape))
        object.__setattr__(self, "layers", tuple(self.layers))
        if not self.linears:
            raise InvalidInput(f"layers must hold a Dense or Conv layer, got {self.layers!r}.")

    @cached_property
    def _steps(self) -> tuple[tuple[Any, Linear | None, int], ...]:
        """For each layer: itself, its linear map if any, and the axes of a row that enters it."""
        shape, start, steps, shared = tuple(self.input_shape), 0, [], True
        for layer in self.layers:
            axes = len(shape)
            weights, shape = layer.shapes(shape)
            linear = None
            if weights is not None:
                inputs, units = weights
                linear = Linear(start, inputs, units, math.prod(shape[:-1]), shared)
                start, shared = start + linear.size, False
            steps.append((layer, linear, axes))
        return tuple(steps)

    @property
    def linears(self) -> tuple[Linear, ...]:
        """The linear maps, in order."""
        return tuple(linear for _, linear, _ in self._steps if linear is not None)

    @property
    def output_shape(self) -> tuple[int, ...]:
        """The shape of what it gives for one row."""
        return reduce(lambda shape, layer: layer.shapes(shape)[1], self.layers, self.input_shape)

    @property
    def size(self) -> int:
        """Number of parameters."""
        return sum(linear.size for linear in self.linears)

    def scale(self) -> Array:
        """1/√inputs for each weight and bias."""
        parts = [np.full(s.size, s.inputs**-0.5) for s in self.linears]
        return np.concatenate(parts).astype(jnp.result_type(float))

    def initial(self, normals: Array) -> Array:
        """Gaussian weights of variance 1/inputs, biases 0."""
        scale = self.scale()
        for s in self.linears:
            scale[s.start + s.inputs * s.units : s.start + s.size] = 0.0
        return scale * normals

    def unravel(self, theta: Array) -> list[Affine]:
        """For each linear map its weight and bias."""
        return [Affine(*s.split(theta[..., s.start : s.start + s.size])) for s in self.linears]

    def outputs(self, members: Members, x: Array) -> Array:
        """Outputs [S, n, k] for S members."""
        h, mapped, steps = x, False, list(self._steps)
        while steps:
            layer, linear, axes = steps.pop(0)
            wide = linear is not None and isinstance(layer, Conv) and linear.positions > 1
            if wide and not mapped:
                h, mapped = as_maps(h, _blocks(members, linear, h)), True
            elif mapped and not wide and not isinstance(layer, MaxPool):
                h, mapped = as_rows(h), False
            if linear is None:
                h = layer.reshape(h, axes)
            elif wide and steps and isinstance(steps[0][0], MaxPool):
                h = layer.apply(members, linear, h, steps.pop(0)[0].size)
            else:
                h = layer.apply(members, linear, h)
        return as_rows(h) if mapped else h


def _blocks(members: Members, linear: Linear | None, h: Array) -> int:
    """Of rows [..., n, height, width, channels], for the maps that come next."""
    if linear is None or namespace(h) is np:
        return 1
    return blocks(h.shape[-4], members.total * linear.units * linear.positions)


@dataclass(frozen=True, eq=False)
class Adapter:
    """Any function `apply(params, x[n, ...]) -> [n, k]` of a tree of parameters, as a network."""

    apply: Callable[[Any, Array], Array]
    params: Any
    linears: tuple[Linear, ...] = field(default=(), init=False)

    @cached_property
    def _flat(self) -> tuple[Array, Callable[[Array], Any]]:
        with jax.ensure_compile_time_eval():  # the first use may be inside a traced function
            return ravel_pytree(self.params)

    @property
    def flat(self) -> Array:
        """The parameters given, as θ[P]."""
        return self._flat[0]

    @property
    def size(self) -> int:
        """Number of parameters."""
        return int(self._flat[0].size)

    def scale(self) -> Array:
        """For each leaf the root mean square of its entries (0.1 where they are all 0)."""
        rms = jax.tree.map(
            lambda p: jnp.full(jnp.shape(p), _or_tenth(jnp.sqrt(jnp.mean(jnp.square(p))))),
            self.params,
        )
        return ravel_pytree(rms)[0]

    def initial(self, normals: Array) -> Array:
        """The parameters given, with a tenth of their scale as noise so that starts differ."""
        return self._flat[0] + 0.1 * self.scale() * normals

    def unravel(self, theta: Array) -> Any:
        """The user's own tree."""
        unravel = self._flat[1]
        for _ in range(jnp.ndim(theta) - 1):
            unravel = jax.vmap(unravel)
        return unravel(theta)

    def outputs(self, members: Members, x: Array) -> Array:
        """Outputs [S, n, k] for S members."""
        theta = members.part(0, self.size)
        result = jax.vmap(lambda each: self.apply(self.unravel(each), x))(theta)
        if result.ndim == 2:
            result = result[..., None]
        if result.ndim != 3 or result.shape[1] != x.shape[0]:
            raise InvalidInput(
                f"apply must return one row of outputs for each row of x, shape ({x.shape[0]}, k), "
                f"got {result.shape[1:]}. Map it over rows with jax.vmap."
            )
        return result


def _or_tenth(value: Array) -> Array:
    return jnp.where(value > 0, value, 0.1)


def from_function(apply: Callable[[Any, Array], Array], params: Any) -> Adapter:
    """A pure function `apply(params, x[n, ...]) -> [n, k]` and its parameters.

    >>> line = from_function(lambda p, x: x * p["slope"] + p["shift"], {"slope": 1.0, "shift": 0.0})
    >>> line.size
    2
    """
    if not jax.tree.leaves(params):
        raise InvalidInput(f"params must hold at least one number, got {params!r}.")
    return Adapter(apply, jax.tree.map(lambda p: jnp.asarray(p, jnp.result_type(float)), params))


def from_equinox(module: Any) -> Adapter:
    """An Equinox module that maps one row; its inexact arrays are the parameters."""
    import equinox as eqx

    params, static = eqx.partition(module, eqx.is_inexact_array)
    return Adapter(lambda p, x: jax.vmap(eqx.combine(p, static))(x), params)


def from_flax(module: Any) -> Adapter:
    """A Flax nnx module that maps rows x[n, ...]; its `nnx.Param`s are the parameters."""
    from flax import nnx

    parts: Any = nnx.split(module, nnx.Param, ...)
    definition, params, rest = parts
    return Adapter(lambda p, x: nnx.merge(definition, p, rest)(x), params)


def mlp(sizes: tuple[int, ...], activation: str = "elu") -> Stack:
    """A fully connected network: sizes of input, hidden layers and output.

    >>> mlp((8, 10, 10, 1)).size
    211
    """
    if len(sizes) < 2:
        raise InvalidInput(
            f"sizes must hold input and output at least, got {sizes!r}. Try (784, 25, 10)."
        )
    hidden = tuple(Dense(units, activation) for units in sizes[1:-1])
    return Stack((sizes[0],), (*hidden, Dense(sizes[-1], "linear")))


def mnist_mlp() -> Stack:
    """784-25-10, the paper's network for MNIST."""
    return mlp((784, 25, 10))


def emnist_mlp() -> Stack:
    """784-25-25-47, the paper's network for Extended MNIST."""
    return mlp((784, 25, 25, 47))


def cifar_cnn() -> Stack:
    """Two convolutions (8 of 3x3, 4 of 2x2) and 25 units, the paper's network for CIFAR-10.

    The paper names no pooling; a 2x2 maximum follows each convolution here.
    """
    features: tuple[Any, ...] = (Conv(8, 3), MaxPool(2), Conv(4, 2), MaxPool(2), Flatten())
    return Stack((32, 32, 3), (*features, Dense(25), Dense(10, "linear")))


def housing_mlp() -> Stack:
    """8-10-10-1, the paper's network for California Housing."""
    return mlp((8, 10, 10, 1))


def multimodal_mlp() -> Stack:
    """1-50-50-1, the paper's network for the multimodal regression."""
    return mlp((1, 50, 50, 1))
