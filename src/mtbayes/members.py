"""Members for one evaluation of a network: given points, or drawn from Gaussians.

A Gaussian posterior can be drawn in two ways, both unbiased for the same J because the loss takes
its expectation row by row: one set of weights for all rows, or, for a layer that sees a row once,
the Gaussian pre-activations of each row themselves (local reparametrisation). The second needs two
matrix products in all for a layer whose input the members share; `plan` picks the cheaper of both.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

import jax.numpy as jnp
import numpy as np

from mtbayes._values import storable
from mtbayes.maths.tlog import namespace
from mtbayes.types import Array

# One random number costs about as much as this many multiplications; measured, not critical.
_NUMBER_COST = 60

Then = Callable[[Array], Array]


class Linear(NamedTuple):
    """Where a linear map's weights [inputs, units] and bias [units] lie in θ."""

    start: int
    inputs: int
    units: int
    positions: int
    """Places of a row that it is applied to: 1 for a dense layer, more for a convolution."""
    shared: bool
    """Whether its input is the same for all members: true for the first alone."""

    @property
    def size(self) -> int:
        """Number of parameters."""
        return (self.inputs + 1) * self.units

    def split(self, theta: Array) -> tuple[Array, Array]:
        """Weight [..., inputs, units] and bias [..., units] out of this map's part of θ."""
        end = self.inputs * self.units
        return theta[..., :end].reshape(*theta.shape[:-1], self.inputs, self.units), theta[
            ..., end:
        ]


class Members(Protocol):
    """S members."""

    @property
    def total(self) -> int:
        """S."""

    def part(self, start: int, size: int) -> Array:
        """θ[start : start + size] of each set, as [S, size]."""

    def affine(self, linear: Linear) -> tuple[Array, Array]:
        """Weight [S, inputs, units] and bias [S, units] of a linear map of each set."""

    def linear(self, linear: Linear, h: Array, then: Then) -> Array:
        """A linear map of each set: h is [n, ..., i] where shared, else [S, n, ..., i].

        then: a function of each number of the result, [S, n, ..., u]
        """


class Points(NamedTuple):
    """Weights θ[S, P] that are given."""

    theta: Array

    @property
    def total(self) -> int:
        """As many as points."""
        return len(self.theta)

    def part(self, start: int, size: int) -> Array:
        """A slice of each point."""
        return self.theta[:, start : start + size]

    def affine(self, linear: Linear) -> tuple[Array, Array]:
        """Out of each point."""
        return linear.split(self.part(linear.start, linear.size))

    def linear(self, linear: Linear, h: Array, then: Then) -> Array:
        """h times the weights plus the bias, for each set."""
        return then(_affine(linear, self.part(linear.start, linear.size), h))


class Apart(NamedTuple):
    """The same with arrays for each linear map, as a step of training has them.

    Cutting θ apart and putting its slope together again would take a quarter of a step. Rows lie
    last between two maps of flat rows, where few units would use the vector registers badly.
    """

    maps: tuple[tuple[Array, Array], ...]
    """Weight [S, units, inputs] and bias [S, units] of each."""
    rest: Array
    """[S, ...], parameters behind all maps."""

    @classmethod
    def of(cls, theta: Array, linears: tuple[Linear, ...]) -> Apart:
        """θ[..., P], cut."""
        maps, end = [], 0
        for each in linears:
            end = each.start + each.size
            weight, bias = each.split(theta[..., each.start : end])
            maps.append((weight.swapaxes(-1, -2), bias))
        return cls(tuple(maps), theta[..., end:])

    def theta(self) -> Array:
        """Put together again, [..., P]."""
        parts = []
        for weight, bias in self.maps:
            parts += [weight.swapaxes(-1, -2).reshape(*bias.shape[:-1], -1), bias]
        return jnp.concatenate([*parts, self.rest], axis=-1)

    @property
    def total(self) -> int:
        """As many as points."""
        return len(self.rest)

    def part(self, start: int, size: int) -> Array:
        """A slice of what lies behind the maps: those are asked for as maps."""
        behind = sum(weight[0].size + bias[0].size for weight, bias in self.maps)
        return self.rest[:, start - behind : start - behind + size]

    def _map(self, linear: Linear) -> tuple[Array, Array]:
        """The one that begins there."""
        start = 0
        for weight, bias in self.maps:
            if start == linear.start:
                return weight, bias
            start += weight[0].size + bias[0].size
        raise KeyError(linear)

    def affine(self, linear: Linear) -> tuple[Array, Array]:
        """The weight turned round."""
        weight, bias = self._map(linear)
        return weight.swapaxes(1, 2), bias

    def linear(self, linear: Linear, h: Array, then: Then) -> Array:
        """h times the weights plus the bias, for each set."""
        weight, bias = self._map(linear)
        places = h.shape[0 if linear.shared else 1 : -1]
        if linear.shared:
            found = jnp.einsum("sui,ri->sur", weight, h.reshape(-1, linear.inputs))
        else:
            h = h.reshape(len(weight), -1, linear.inputs)
            found = jnp.einsum("sui,sir->sur", weight, h.swapaxes(1, 2))
        # The next map turns it back, and XLA drops two turns in a row: so `then` is done before.
        turned = then(found + bias[..., None]).swapaxes(1, 2)
        return turned.reshape(len(weight), *places, linear.units)


@storable
class Factor(NamedTuple):
    """What a linear map of K members has beside the weights that they share."""

    before: Array
    """[K, inputs], on what goes in."""
    after: Array
    """[K, units], on what comes out."""
    bias: Array
    """[K, units]"""


class Factors(NamedTuple):
    """K members whose weights are shared W[i, u] times before[k, i] times after[k, u].

    A member needs inputs and units of a map as numbers of its own, in place of their product.
    """

    weights: tuple[Array, ...]
    """Of each linear map, [inputs, units]."""
    factors: tuple[Factor, ...]
    own: Array
    """[K, ...], parameters behind all maps."""

    @property
    def total(self) -> int:
        """As many as factors."""
        return len(self.own)

    @property
    def starts(self) -> list[int]:
        """Where each map begins in θ."""
        sizes = [(w.shape[0] + 1) * w.shape[1] for w in self.weights]
        return [sum(sizes[:i]) for i in range(len(sizes) + 1)]

    def theta(self) -> Array:
        """The members as points, [K, P]."""
        parts = []
        for w, f in zip(self.weights, self.factors, strict=True):
            whole = f.before[:, :, None] * w * f.after[:, None, :]
            parts += [whole.reshape(len(whole), -1), f.bias]
        return namespace(self.own).concatenate([*parts, self.own], axis=1)

    def part(self, start: int, size: int) -> Array:
        """A slice of each member: what lies behind the maps, or of whole members."""
        behind = self.starts[-1]
        if start >= behind:
            return self.own[:, start - behind : start - behind + size]
        return self.theta()[:, start : start + size]

    def affine(self, linear: Linear) -> tuple[Array, Array]:
        """Out of whole members."""
        return linear.split(self.part(linear.start, linear.size))

    def linear(self, linear: Linear, h: Array, then: Then) -> Array:
        """One product of all members' rows with the shared weights."""
        place = self.starts.index(linear.start)
        weight, factor = self.weights[place], self.factors[place]
        h = h[None] if linear.shared else h
        middle = (1,) * (h.ndim - 2)
        before, after, bias = (v.reshape(len(v), *middle, -1) for v in factor)
        wide = h * before
        out = (wide.reshape(-1, linear.inputs) @ weight).reshape(*wide.shape[:-1], linear.units)
        return then(out * after + bias)


class Plan(NamedTuple):
    """How each part of θ is drawn, and where its random numbers lie."""

    by_row: tuple[tuple[int, int], ...]
    """Start in θ of each map drawn row by row, and where its random numbers begin."""
    by_weight: tuple[tuple[int, int], ...]
    size: int
    """Random numbers in all."""


def plan(linears: tuple[Linear, ...], total: int, components: int, members: int, rows: int) -> Plan:
    """Pick for each linear map of θ[total] the cheaper way to draw `members` from `components`.

    >>> first = Linear(0, 784, 25, positions=1, shared=True)
    >>> second = Linear(first.size, 25, 10, positions=1, shared=False)
    >>> chosen = plan((first, second), first.size + second.size, components=1, members=10, rows=128)
    >>> chosen.by_row  # the first map alone
    ((0, 0),)
    """
    by_row, by_weight, used, end = [], [], 0, 0
    for linear in linears:
        products = rows * linear.positions * linear.inputs * linear.units
        numbers = rows * linear.units
        of_rows = 6 * products * (components if linear.shared else members)
        of_weights = 3 * products * members + _NUMBER_COST * members * linear.size
        if linear.positions == 1 and of_rows + _NUMBER_COST * members * numbers < of_weights:
            by_row.append((linear.start, used))
            used += members * numbers
        else:
            by_weight.append((linear.start, used))
            used += members * linear.size
        end = linear.start + linear.size
    if end < total:
        by_weight.append((end, used))
        used += members * (total - end)
    return Plan(tuple(by_row), tuple(by_weight), used)


class Gaussians(NamedTuple):
    """Members from K diagonal Gaussians, the same number from each."""

    mean: Array
    """[K, P]"""
    std: Array
    """[K, P]"""
    normals: Array
    """[plan.size] standard normal numbers."""
    plan: Plan
    members: int

    @property
    def total(self) -> int:
        """As many as are drawn."""
        return self.members

    def part(self, start: int, size: int) -> Array:
        """A slice of S members, components in blocks."""
        # A slice within a block (a likelihood's own, after a network without maps) has its numbers
        # within the block's.
        block, offset = max(pair for pair in self.plan.by_weight if pair[0] <= start)
        offset += self.members * (start - block)
        normals = self.normals[offset : offset + self.members * size].reshape(self.members, size)
        mean, std = (self._spread(v[:, start : start + size]) for v in (self.mean, self.std))
        return mean + std * normals

    def affine(self, linear: Linear) -> tuple[Array, Array]:
        """Out of S members."""
        return linear.split(self.part(linear.start, linear.size))

    def linear(self, linear: Linear, h: Array, then: Then) -> Array:
        """The pre-activations, drawn row by row or through weights as planned."""
        offset = dict(self.plan.by_row).get(linear.start)
        if offset is None:
            return then(_affine(linear, self.part(linear.start, linear.size), h))
        part = slice(linear.start, linear.start + linear.size)
        weight, bias = linear.split(self.mean[:, part])
        weight_var, bias_var = linear.split(jnp.square(self.std[:, part]))
        # A row seen at one position may still have axes for it: (1, 1) after a whole-image window.
        ones = h.shape[1 if linear.shared else 2 : -1]
        h = h.reshape(*h.shape[: h.ndim - 1 - len(ones)], linear.inputs)
        if linear.shared:
            mean, var = _shared_product(h, weight), _shared_product(h * h, weight_var)
        else:
            h = h.reshape(len(weight), -1, linear.inputs)  # a component's members as more rows
            mean, var = (
                jnp.einsum("kri,kiu->kru", v, w).reshape(self.members, -1, linear.units)
                for v, w in ((h, weight), (h * h, weight_var))
            )
        mean = self._spread(mean) + self._spread(bias[:, None])
        var = self._spread(var) + self._spread(bias_var[:, None])
        rows = mean.shape[1]
        normals = self.normals[offset : offset + self.members * rows * linear.units]
        drawn = mean + jnp.sqrt(var) * normals.reshape(self.members, rows, linear.units)
        return then(drawn.reshape(self.members, rows, *ones, linear.units))

    def _spread(self, values: Array) -> Array:
        """Values [K, ...] of components for each of their members; [S, ...] and [1, ...] stay."""
        k = values.shape[0]
        return values if k in (1, self.members) else jnp.repeat(values, self.members // k, axis=0)


def _affine(linear: Linear, theta: Array, h: Array) -> Array:
    """h times weights plus bias; theta is this map's part of θ, [S, size]."""
    if namespace(theta, h) is np:
        weight, bias = linear.split(theta)
        rows = h.reshape(-1, linear.inputs) if linear.shared else h.reshape(len(h), -1, h.shape[-1])
        result = rows @ weight + bias[:, None]
        return result.reshape(len(theta), *h.shape[0 if linear.shared else 1 : -1], linear.units)
    if linear.shared:
        # The bias as one more row of the weights, for an input of 1: into the loop of an addition
        # XLA would draw the whole computation of the bias, once for each row.
        both = theta.reshape(-1, linear.inputs + 1, linear.units)
        h = jnp.concatenate([h, jnp.ones((*h.shape[:-1], 1), theta.dtype)], axis=-1)
        result = _shared_product(h.reshape(-1, linear.inputs + 1), both)
        return result.reshape(-1, *h.shape[:-1], linear.units)
    weight, bias = linear.split(theta)
    result = jnp.einsum("sri,siu->sru", h.reshape(len(weight), -1, linear.inputs), weight)
    return (result + bias[:, None]).reshape(*h.shape[:-1], linear.units)


def _shared_product(h: Array, weight: Array) -> Array:
    """h[r, i] times each of weight[S, i, u], as [S, r, u]."""
    if len(weight) == 1:  # the same, but XLA does it a third faster
        return (h @ weight[0])[None]
    return jnp.einsum("ri,siu->sru", h, weight)
