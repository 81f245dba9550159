"""Minimise J over points by all rows at once, where the model has no hidden layer.

Without hidden units the loss of a mode is convex at t = 1, and few of its dimensions are curved
much more than others. A quasi-Newton method then ends where gradients of batches would end after
many more steps, and no rate has to be chosen. At t < 1 it goes downhill from where it starts.
The gradient is a product of two matrices, so that nothing is compiled.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize

from mtbayes import _check
from mtbayes.maths.tlog import log_t_from_log
from mtbayes.progress import Callback, Progress, silent
from mtbayes.solve.problem import Held, Problem
from mtbayes.types import FloatArray, Rows, Solution, Status

_STEPS = 200
_FLAT = 1e-5  # the largest slope of J, in units of a parameter, at which it ends


def descend(problem: Problem, callback: Callback = silent) -> Solution:
    """The points of a `Problem` at a minimum of its J; its epochs, batches and rate do not count.

    Points begin at 0, or at the problem's start. The criterion has m = 1, the likelihood `slopes`.
    """
    shape = problem.posterior.components, problem.model.size
    first = np.zeros(shape) if problem.start is None else np.asarray(problem.start.mean, float)
    downhill = _Downhill.of(problem)

    def loss(flat: FloatArray) -> tuple[float, FloatArray]:
        return downhill.value(flat.reshape(shape))[:2]

    limits: Any = {"maxiter": _STEPS, "gtol": _FLAT}
    found = minimize(loss, first.ravel(), jac=True, method="L-BFGS-B", options=limits)
    callback(Progress(1.0, f"loss {found.fun:.3f}"))
    theta, sound = found.x.reshape(shape), bool(np.isfinite([found.fun, *found.x]).all())
    words = f"Went downhill for {found.nit} steps." if sound else "The loss is not finite."
    status = Status(sound, found.nit, float(found.fun), words)
    state = problem.posterior.state(theta.astype(downhill.rows.x.dtype))
    return Solution(state, status, np.array([downhill.value(theta)[2]]))


class _Downhill(NamedTuple):
    """J of K points of a linear map, and its slope."""

    problem: Any
    rows: Rows
    """x with a column of ones; the weights [K, n] of each point sum to 1."""
    strength: float
    """The regulariser's weight."""

    @classmethod
    def of(cls, problem: Problem) -> _Downhill:
        x, y, weight, trusted = problem.rows
        held = x if isinstance(x, Held) else Held.of(problem.model, x, y)
        (known, targets), k = held.rows, problem.posterior.components
        weights = np.broadcast_to(_check.row_weights(weight, len(held), k).T, (k, len(held)))
        total = weights.sum(axis=1)
        rows = Rows(
            np.concatenate([known, np.ones((len(known), 1), known.dtype)], axis=1),
            targets,
            weights / total[:, None],
            trusted,
        )
        return cls(problem, rows, problem.criterion.regulariser_weight(float(total.mean())))

    def value(self, theta: FloatArray) -> tuple[float, FloatArray, tuple[float, float, float]]:
        """J, its slope, flat, and (J, data term, divergence)."""
        model, criterion, prior = self.problem.model, self.problem.criterion, self.problem.prior
        (linear,), likelihood = model.linears, model.likelihood
        k, inputs, units = len(theta), linear.inputs + 1, linear.units
        wide = theta[:, : linear.size].reshape(k, inputs, units).transpose(1, 0, 2)
        outputs = (self.rows.x @ wide.reshape(inputs, -1).astype(self.rows.x.dtype)).reshape(
            -1, k, units
        )
        own = theta[:, linear.size :].astype(outputs.dtype)
        log_lik, *slopes = likelihood.slopes(outputs.transpose(1, 0, 2), own, self.rows.y)
        t = criterion.t
        t = t if self.rows.trusted is None else np.where(self.rows.trusted, 1.0, t)
        data = -float(np.sum(self.rows.weight * log_t_from_log(log_lik, t))) / k
        pull = (-self.rows.weight * np.exp((1 - t) * log_lik) / k).astype(outputs.dtype)
        by_outputs, by_own = (pull[..., None] * slope for slope in slopes)
        maps = self.rows.x.T @ by_outputs.transpose(1, 0, 2).reshape(len(self.rows.y), -1)
        maps = maps.reshape(inputs, k, units).transpose(1, 0, 2).reshape(k, -1)
        mean, std = np.asarray(prior.mean), np.asarray(prior.std)
        z = (theta - mean) / std
        divergence = 0.5 * float(np.sum(z * z)) / k
        slope = np.concatenate([maps, by_own.sum(axis=1)], axis=1) + self.strength * z / std / k
        loss = data + self.strength * divergence
        return loss, slope.ravel().astype(float), (loss, data, divergence)
