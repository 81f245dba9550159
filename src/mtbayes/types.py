"""The nouns that every room shares."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

Array: TypeAlias = Any
"""A NumPy or a JAX array; functions of `maths` answer in the kind they were given."""

FloatArray: TypeAlias = npt.NDArray[np.float64]
"""A NumPy array in double precision: what the exact computations work in."""

BoolArray: TypeAlias = npt.NDArray[np.bool_]

Seed: TypeAlias = Any
"""An int, a `numpy.random.Generator`, or a JAX key."""


class Status(NamedTuple):
    """How a computation ended; `str(status)` is a sentence for a person."""

    converged: bool
    steps: int
    residual: float
    sentence: str

    def __str__(self) -> str:
        return self.sentence


class Solution(NamedTuple):
    """What every solver returns.

    state: the answer, for a grid the distribution q[G]
    status: how it ended, in words
    trace: the objective after each accepted step, never increasing
    """

    state: Any
    status: Status
    trace: FloatArray
