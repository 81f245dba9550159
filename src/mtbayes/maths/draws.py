"""Keys and random numbers outside of compiled programs: made by NumPy, so that none is compiled."""

from __future__ import annotations

import operator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from mtbayes.errors import InvalidInput
from mtbayes.types import Array


def key(seed: Any, name: str = "key") -> Array:
    """A JAX key as it is, or that of a whole number, the same as `jax.random.key`.

    >>> bool(key(7) == jax.random.key(7) == key(key(7)))
    True
    """
    kind = getattr(seed, "dtype", None)
    if kind is not None and jnp.issubdtype(kind, jax.dtypes.prng_key) and not seed.ndim:
        return seed
    try:
        if kind == np.uint32 and np.ndim(seed):
            return jax.random.wrap_key_data(seed)  # an old key, `jax.random.PRNGKey`
        if isinstance(seed, bool | jax.Array):  # a part of an old key is such a number
            raise TypeError
        number = operator.index(seed)
    except TypeError:
        got = repr(seed) if kind is None else f"{kind} of shape {np.shape(seed)}"
        raise InvalidInput(
            f"{name} must be a whole number or one JAX key, got {got}. Try 0, or "
            "jax.random.key(0): the same key gives the same result."
        ) from None
    words: Array = np.array([number >> 32 & 0xFFFFFFFF, number & 0xFFFFFFFF], np.uint32)
    return jax.random.wrap_key_data(words, impl="threefry2x32")


def child(parent: Array, *path: int) -> Array:
    """One of a key's children, of its children and so on; `jax.random.fold_in` without a program.

    >>> len({str(jax.random.key_data(child(key(0), i))) for i in range(100)})
    100
    """
    parent = key(parent)
    words = _words(parent)
    made = np.random.SeedSequence(words.ravel().tolist(), spawn_key=path)
    own: Array = made.generate_state(words.size).reshape(words.shape)
    return jax.random.wrap_key_data(own, impl=jax.random.key_impl(parent))


def _words(parent: Array) -> Any:
    """The numbers that a key is made of, also while a program is traced that knows the key."""
    with jax.ensure_compile_time_eval():
        return np.asarray(jax.random.key_data(key(parent)))


def generator(parent: Array) -> np.random.Generator:
    """NumPy's generator that follows from a JAX key.

    >>> one, two = (generator(key(3)).integers(1000) for _ in range(2))
    >>> bool(one == two)
    True
    """
    return np.random.default_rng(_words(parent).ravel().tolist())


def normals(parent: Array, shape: tuple[int, ...]) -> Any:
    """Standard normal numbers in JAX's precision.

    >>> normals(key(0), (2, 3)).shape
    (2, 3)
    """
    return generator(parent).standard_normal(shape, np.dtype(jnp.result_type(float)))
