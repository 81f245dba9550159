"""Convolutions of many members at once, with the largest of each window.

Feature maps lie as [blocks, (members,) channels, height, width, rows]. Rows come last: whatever is
done to a map is done to many rows at a place side by side, which a processor likes, however few the
channels are. Blocks of rows follow each other, so that what is computed of one stays in its cache.
"""

from __future__ import annotations

from functools import partial, reduce
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from mtbayes.maths.tlog import namespace
from mtbayes.types import Array

_AT_ONCE = 2**23  # numbers of a map of all members, of which a block has no more if it can
_FEWEST_ROWS = 32  # of a block


def blocks(rows: int, numbers: int) -> int:
    """How many blocks to make of rows that have so many numbers each: a power of 2.

    >>> blocks(128, 10 * 8 * 30 * 30)
    2
    """
    count = 1
    while rows % (2 * count) == 0 and rows >= 2 * count * _FEWEST_ROWS:
        if rows // count * numbers <= _AT_ONCE:
            break
        count *= 2
    return count


def as_maps(h: Array, count: int) -> Array:
    """Rows [..., n, height, width, channels] as maps, in so many blocks."""
    *lead, n, height, width, channels = h.shape
    # A block takes every so-many-th row: rows that devices share stay where they are.
    h = h.reshape(*lead, n // count, count, height, width, channels)
    return namespace(h).moveaxis(h, (-4, -1, -5), (0, -4, -1))


def as_rows(maps: Array) -> Array:
    """Maps as rows [..., n, height, width, channels]."""
    h = namespace(maps).moveaxis(maps, (-1, 0, -4), (-5, -4, -1))
    return h.reshape(*h.shape[:-5], -1, *h.shape[-3:])


def convolved(weight: Array, maps: Array, kernel: int, size: int = 1) -> Array:
    """The largest results of a convolution without padding in windows that do not overlap.

    weight: [S, units, kernel·kernel·channels] of the members
    maps: [blocks, channels, ...], which the members share, or [blocks, S, channels, ...]
    kernel: side of what a result is computed from; size: side of a window, a remainder at the edge
        is left out

    >>> maps = np.arange(9.0).reshape(1, 1, 3, 3, 1)  # one block, channel and row
    >>> convolved(np.ones((1, 1, 4)), maps, kernel=2).ravel()
    array([ 8., 12., 20., 24.])
    >>> convolved(np.ones((1, 1, 4)), maps, kernel=2, size=2).ravel()
    array([24.])
    """
    if namespace(weight, maps) is np:
        return np.stack([reduce(np.maximum, _corners(weight, h, kernel, size)) for h in maps])
    return _convolved(weight, maps, kernel, size)


def _corners(weight: Array, h: Array, kernel: int, size: int) -> list[Array]:
    """Of each place within a window, the results there in all windows, [S, units, ...]."""
    xp: Any = namespace(weight, h)
    rows, columns = ((side - kernel + 1) // size for side in h.shape[-3:-1])

    def seen(i: int, j: int) -> Array:
        """What lies at a place of the results' kernels, in all windows."""
        down = slice(i, i + size * (rows - 1) + 1, size)
        across = slice(j, j + size * (columns - 1) + 1, size)
        return h[..., down, across, :]

    found = []
    for i, j in square(size):
        inputs = xp.concatenate([seen(i + a, j + b) for a, b in square(kernel)], axis=-4)
        places, flat = inputs.shape[-3:], inputs.reshape(*inputs.shape[:-3], -1)
        shared = h.ndim == 4  # then it is one product for all members
        result = (weight.reshape(-1, weight.shape[2]) if shared else weight) @ flat
        found.append(result.reshape(*weight.shape[:2], *places))
    return found


def square(size: int) -> list[tuple[int, int]]:
    """The places of a square, line by line."""
    return [(i, j) for i in range(size) for j in range(size)]


@partial(jax.custom_vjp, nondiff_argnums=(2, 3))
def _convolved(weight: Array, maps: Array, kernel: int, size: int) -> Array:
    return _forward(weight, maps, kernel, size)[0]


def _forward(weight: Array, maps: Array, kernel: int, size: int) -> tuple[Array, Any]:
    last = size**2 - 1
    kind = np.min_scalar_type(last)

    def of_block(h: Array) -> tuple[Array, Array]:
        results = _corners(weight, h, kernel, size)
        best = reduce(jnp.maximum, results)
        which = jnp.full(best.shape, last, kind)
        for i in reversed(range(last)):  # of equal results the first wins
            which = jnp.where(results[i] == best, kind.type(i), which)
        return best, which

    # The loop over blocks also keeps XLA from computing the maxima anew for each who reads them.
    best, which = jax.lax.map(of_block, maps)
    return best, (weight, maps, which)


def _backward(kernel: int, size: int, saved: Any, slope: Array) -> tuple[Array, Array]:
    """Only the winner of a window passes a gradient on."""
    weight, maps, which = saved

    def of_block(so_far: Array, block: tuple[Array, Array, Array]) -> tuple[Array, Array]:
        h, won, own = block
        _, back = jax.vjp(lambda w, h: _corners(w, h, kernel, size), weight, h)
        of_weight, of_maps = back([jnp.where(won == i, own, 0.0) for i in range(size**2)])
        return so_far + of_weight, of_maps

    return jax.lax.scan(of_block, jnp.zeros_like(weight), (maps, which, slope))


_convolved.defvjp(_forward, _backward)
