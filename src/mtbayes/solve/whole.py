"""Minimise J over points by all rows at once, where the model has no hidden layer.

Without hidden units the loss of a mode is convex at t = 1, and few of its dimensions are curved
much more than others. A quasi-Newton method then ends where gradients of batches would end after
many more steps, and no rate has to be chosen. At t < 1 it goes downhill from where it starts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy.optimize import minimize

from mtbayes.progress import Callback, Progress, silent
from mtbayes.solve.gradient import Training
from mtbayes.solve.problem import Problem
from mtbayes.solve.program import Hyper, Settings, Terms, estimate
from mtbayes.types import Array, Rows, Solution, Status

_STEPS = 200
_FLAT = 1e-5  # the largest slope of J, in units of a parameter, at which it ends


def descend(problem: Problem, key: Array, callback: Callback = silent) -> Solution:
    """The points of a `Problem` at a minimum of its J; its epochs, batches and rate do not count.

    Points begin at 0, or at the problem's start.
    """
    if problem.start is None:
        shape = problem.posterior.components, problem.model.size
        zeros = np.zeros(shape, jnp.result_type(float))
        problem = replace(problem, start=problem.posterior.state(zeros))
    training = Training(problem, key)
    feed: Any = training.feed
    rows, first, hyper = feed.rows, training.start.posterior, training.hyper
    slope = _slope(training.settings._replace(batch_size=len(rows.y), batches=1))

    def at(flat: Any) -> Any:
        return first._replace(mean=flat.reshape(first.mean.shape).astype(first.mean.dtype))

    def loss(flat: Any) -> tuple[float, Any]:
        (value, _), gradient = slope(at(flat), rows, hyper)
        return float(value), np.asarray(gradient.mean, float).ravel()

    begin = np.asarray(first.mean, float).ravel()
    limits: Any = {"maxiter": _STEPS, "gtol": _FLAT}
    found = minimize(loss, begin, jac=True, method="L-BFGS-B", options=limits)
    callback(Progress(1.0, f"loss {found.fun:.3f}"))
    state, sound = at(found.x), bool(np.isfinite(found.x).all() and np.isfinite(found.fun))
    (_, terms), _ = slope(state, rows, hyper)
    words = f"Went downhill for {found.nit} steps." if sound else "The loss is not finite."
    status = Status(sound, found.nit, float(found.fun), words)
    return Solution(state, status, np.array([terms], float))


@lru_cache(maxsize=64)
def _slope(settings: Settings) -> Callable[[Any, Rows, Hyper], tuple[tuple[Array, Terms], Any]]:
    """J of all rows with its terms, and its gradient, compiled."""

    def loss(state: Any, rows: Rows, hyper: Hyper) -> tuple[Array, Terms]:
        terms = estimate(settings, state, rows, jnp.zeros(0), jax.random.key(0), hyper)
        return terms.loss, terms

    return jax.jit(jax.value_and_grad(loss, has_aux=True))
