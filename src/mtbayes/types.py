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
    """How a computation ended; `str(status)` is a sentence for a person.

    converged: on a grid whether the residual met the tolerance, for a fit whether it ended soundly
    steps: steps on a grid, epochs of a fit
    residual: distance from the fixed point on a grid, the last J of a fit
    """

    converged: bool
    steps: int
    residual: float
    sentence: str

    def __str__(self) -> str:
        return self.sentence


class Solution(NamedTuple):
    """What every solver returns.

    state: the answer; for a grid the distribution q[G], for a fit the posterior's parameters
    status: how it ended, in words
    trace: the objective on the way; on a grid J after each accepted step, never increasing, for a
        fit a row (J, data term, divergence) for each chunk of epochs
    """

    state: Any
    status: Status
    trace: FloatArray


class Rows(NamedTuple):
    """Rows of data, their targets, and how often each counts: arrays with rows along one axis.

    x: [n, ...]; y: [n]; weight: [n], or [n, K] where each of K modes has weights of its own
    trusted: [n], whether each target is known to be right; None where that is known of none
    """

    x: Array
    y: Array
    weight: Array
    trusted: Array | None = None

    def take(self, which: Any) -> Rows:
        """Some of them, by a slice or by their numbers."""
        return Rows(*(None if v is None else v[which] for v in self))
