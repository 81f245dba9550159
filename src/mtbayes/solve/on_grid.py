"""Theorem 1 on a grid: the exact minimiser of J over all distributions on a finite support.

The paper mixes q with T(q) by a fixed factor. Here each step mixes their logarithms, which is
mirror descent on J, with a damping that adapts so that J never increases; and Anderson's
acceleration, in the inner product weighted by q (the Fisher metric, in which the operator's
derivative is symmetric), proposes the step. A proposal that would increase J is not taken.

One start is enough, because J is convex in q for every m, every t in [0, 1] and t_p in (0, 1]:
by the integral of `maths.expectation`, R_t^m is a constant plus ∫ φ(u)^m u^{-a-1} du / Γ(1-a),
where φ(u) = Σ_g q_g e^{-u p_g / m} is linear in q and not negative, and x^m is convex for x >= 0.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.special import logsumexp

from mtbayes import _check
from mtbayes.criteria import Criterion
from mtbayes.errors import InvalidInput
from mtbayes.maths.expectation import MultiSample
from mtbayes.posteriors import grid
from mtbayes.types import BoolArray, FloatArray, Solution, Status

_MEMORY = 6
_SMALLEST_DAMPING = 1e-9
_LARGEST = 1e6


def fixed_point(
    log_lik: Any,
    prior: Any,
    criterion: Criterion,
    *,
    weight: Any = None,
    damping: float = 1.0,
    tol: float = 1e-7,
    max_steps: int = 1000,
) -> Solution:
    """Minimise J over all distributions q on a finite support.

    log_lik: [G, n], log p_θ(x_i); the support points are just indices, of any dimension
    prior: [G], summing to 1
    criterion: m, t, beta and t_p
    weight: [n], how often each row counts; ones by default
    damping: share of the way towards T(q) that the first step tries, in (0, 1]; it adapts
    tol: the total variation between q and T(q) at which to stop
    max_steps: evaluations of T allowed

    Returns a Solution: `state` is q[G], `status` says in words how it ended, `trace` is J after
    each step. For t_p <= 1 J is convex in q, so that the answer is the global minimum.

    >>> theta = np.linspace(-3, 3, 61)
    >>> log_lik = -0.5 * (theta[:, None] - np.array([0.5, 1.0])) ** 2
    >>> prior = np.full(61, 1 / 61)
    >>> bayes = fixed_point(log_lik, prior, Criterion(m=1, t=1.0))
    >>> round(float(bayes.state @ theta), 2)
    0.75
    >>> print(bayes.status)
    Converged after 1 step: q and T(q) differ by ... in total variation.
    """
    return fixed_points(
        log_lik,
        prior,
        [criterion],
        weight=weight,
        damping=damping,
        tol=tol,
        max_steps=max_steps,
    )[0]


def fixed_points(
    log_lik: Any,
    prior: Any,
    criteria: Sequence[Criterion],
    *,
    weight: Any = None,
    damping: float = 1.0,
    tol: float = 1e-7,
    max_steps: int = 1000,
) -> list[Solution]:
    """`fixed_point` for many criteria on the same data, in one sweep of matrix products.

    >>> log_lik = np.log([[0.9, 0.2], [0.4, 0.6]])
    >>> path = fixed_points(log_lik, [0.5, 0.5], [Criterion(m=2, t=t) for t in (1.0, 0.5)])
    >>> [solution.status.converged for solution in path]
    [True, True]
    """
    problem = _Problem(log_lik, prior, criteria, weight)
    if not 0 < damping <= 1:
        raise InvalidInput(
            f"damping must lie in (0, 1], got {damping!r}. 1 tries the full step first; "
            "it is reduced by itself where needed."
        )
    _check.positive(tol, "tol", "It is a total variation distance; 1e-7 is the default.")
    _check.count(max_steps, "max_steps", "1000 is the default.")
    descent = _Descent(problem, damping)
    descent.run(tol, max_steps)
    return [descent.solution(b, tol) for b in range(len(criteria))]


def objective(
    q: Any, log_lik: Any, prior: Any, criterion: Criterion, *, weight: Any = None
) -> float:
    """J(q), exact: mean_i R_t^m(q, x_i) + m/(n·beta) D^R_{t_p}(q||p).

    q: [G], prior: [G], log_lik: [G, n], weight: [n] or None. Infinite where q has mass that the
    prior lacks, and at t = 1 where q gives a row likelihood 0.

    >>> q = np.array([1.0, 0.0])
    >>> objective(q, np.log([[0.5], [0.1]]), [0.5, 0.5], Criterion(m=1, t=1.0))
    1.386294361119...
    """
    log_lik = _check.log_likelihoods(log_lik)
    q = _check.distribution("q", q, len(log_lik))
    prior = _check.distribution("prior", prior, len(log_lik))
    rows = _check.row_weights(weight, log_lik.shape[1])
    m, t = np.array([float(criterion.m)]), np.array([float(criterion.t)])
    mean, _ = MultiSample(log_lik[q > 0]).mean_and_slope(q[None, q > 0], m, t, rows)
    n = rows.sum()
    strength = criterion.regulariser_weight(n)
    penalty = strength * float(grid.divergence(q, prior, criterion.t_p)) if strength else 0.0
    return float(-mean[0] / n + penalty)


class _Problem:
    """The data of a sweep, on the support points that can carry mass."""

    def __init__(
        self, log_lik: Any, prior: Any, criteria: Sequence[Criterion], weight: Any
    ) -> None:
        log_lik = _check.log_likelihoods(log_lik)
        prior = _check.distribution("prior", prior, len(log_lik))
        rows = _check.row_weights(weight, log_lik.shape[1])
        self.support = _support(log_lik[:, rows > 0], prior, criteria)
        self.size = len(prior)
        self.largest = float(np.abs(log_lik[np.isfinite(log_lik)]).max(initial=0.0))
        if self.largest > _LARGEST:
            raise InvalidInput(
                f"log_lik must stay within ±{_LARGEST:g}, got {self.largest:.3g}. Rescale the "
                "data, or put -inf for what is impossible."
            )
        self.rows = rows[rows > 0]
        self.n = float(rows.sum())
        self.prior = prior[self.support]
        self.log_prior = np.log(self.prior)
        self.criteria = criteria
        self.loss = MultiSample(log_lik[self.support][:, rows > 0])
        self.m = np.array([float(c.m) for c in criteria])
        self.t = np.array([float(c.t) for c in criteria])
        self.strength = np.array([c.regulariser_weight(self.n) for c in criteria])

    def evaluate(self, log_q: FloatArray, which: Any) -> tuple[FloatArray, FloatArray]:
        """J, as [B], and the target log T(q), as [B, G], for the criteria numbered `which`."""
        q = np.exp(log_q)
        mean, slope = self.loss.mean_and_slope(q, self.m[which], self.t[which], self.rows)
        value = -mean / self.n
        target = np.empty_like(log_q)
        for b, c in enumerate(which):
            strength, t_p = self.strength[c], float(self.criteria[c].t_p)
            if math.isinf(self.m[c]):
                target[b] = _maximised(log_q[b], slope[b])
            else:
                target[b] = self._target(log_q[b], slope[b] / self.n, strength, t_p)
            if strength:
                value[b] += strength * grid.divergence(q[b], self.prior, t_p)
        return value, target

    def _target(
        self, log_q: FloatArray, slope: FloatArray, strength: float, t_p: float
    ) -> FloatArray:
        """log T(q): where the linearised J has its minimum, or a natural-gradient step there."""
        if strength == 0:
            target = log_q + slope  # no regulariser: a step of mirror descent
        elif t_p <= 1:
            return grid.tilt(self.log_prior, slope / strength, t_p)
        else:
            # Above order 1 the divergence is not convex in q: follow its gradient instead.
            log_ratio = (t_p - 1) * (log_q - self.log_prior)
            log_integral = logsumexp(log_q + log_ratio)
            pull = t_p / (t_p - 1) * np.expm1(log_ratio - log_integral)
            target = log_q + slope / strength - pull
        result: FloatArray = target - logsumexp(target)
        return result


def _maximised(log_q: FloatArray, slope: FloatArray) -> FloatArray:
    """log T(q), T(q) ∝ q_g Σ_i p̄_i^{-t} p_g(x_i): expectation maximisation, for m = ∞.

    It never increases J. q e^slope has the same fixed points, but overshoots without bound where q
    finds a row unlikely.
    """
    numbers = np.finfo(float)
    target = log_q + np.log(np.clip(slope, numbers.tiny, numbers.max))
    return np.asarray(target - logsumexp(target))


def _support(log_lik: FloatArray, prior: FloatArray, criteria: Sequence[Criterion]) -> BoolArray:
    """Points that may carry mass in a finite J."""
    if not criteria:
        raise InvalidInput("criteria must hold at least one Criterion, got none.")
    possible = prior > 0
    if any(c.t == 1 and not math.isinf(c.m) for c in criteria):
        possible &= np.isfinite(log_lik).all(axis=1)
    # At t < 1 an impossible row costs a constant; at t = 1 it makes J infinite for every q.
    strict = any(c.t == 1 for c in criteria)
    if not possible.any() or (strict and np.isneginf(log_lik[possible]).all(axis=0).any()):
        row = int(np.argmax(np.isneginf(log_lik).sum(axis=0)))
        raise InvalidInput(
            f"log_lik must leave a point of the prior's support that makes the data possible, got "
            f"none: row {row} has likelihood 0 at {np.isneginf(log_lik[:, row]).sum()} points. "
            "At t = 1 one such row is enough; choose t < 1 or a wider support."
        )
    return possible


class _Descent:
    """Columns of log q that descend independently, evaluated together."""

    def __init__(self, problem: _Problem, damping: float) -> None:
        columns = len(problem.criteria)
        self.problem = problem
        self.log_q = np.tile(problem.log_prior - logsumexp(problem.log_prior), (columns, 1))
        with np.errstate(all="ignore"):
            self.value, self.target = problem.evaluate(self.log_q, np.arange(columns))
        if not np.all(np.isfinite(self.value)):
            raise InvalidInput(
                f"log_lik must give a finite J at the prior, got {self.value.max()}. Its entries "
                f"reach {problem.largest:.3g} in size; rescale the data or the densities."
            )
        self.damping = np.full(columns, damping)
        self.steps = np.zeros(columns, int)
        self.traces = [[float(v)] for v in self.value]
        self.pasts = [_Anderson() for _ in range(columns)]

    def residual(self) -> FloatArray:
        """The total variation between q and T(q), as [B]."""
        result: FloatArray = 0.5 * np.abs(np.exp(self.target) - np.exp(self.log_q)).sum(axis=1)
        return result

    def run(self, tol: float, max_steps: int) -> None:
        """Step until every column has converged, stalls, or has used up its steps."""
        while True:
            active = np.flatnonzero(
                (self.residual() > tol)
                & (self.damping > _SMALLEST_DAMPING)
                & (self.steps < max_steps)
            )
            if not len(active):
                return
            proposals = np.stack([self._propose(b) for b in active])
            proposals -= logsumexp(proposals, axis=1, keepdims=True)
            values, targets = self.problem.evaluate(proposals, active)
            for b, log_q, value, target in zip(active, proposals, values, targets, strict=True):
                self._judge(b, log_q, value, target)

    def _propose(self, b: Any) -> FloatArray:
        log_q, target, damping, past = self.log_q[b], self.target[b], self.damping[b], self.pasts[b]
        if past.moves:
            return log_q + past.step(target - log_q, np.exp(log_q), damping)
        if self.problem.criteria[b].t_p < 1:
            # Towards the minimiser of a convex model J falls along the straight line for sure.
            with np.errstate(divide="ignore"):
                return np.logaddexp(np.log1p(-damping) + log_q, np.log(damping) + target)
        return log_q + damping * (target - log_q)

    def _judge(self, b: Any, log_q: FloatArray, value: float, target: FloatArray) -> None:
        self.steps[b] += 1
        past = self.pasts[b]
        if value <= self.value[b]:
            past.remember(
                log_q - self.log_q[b], (target - log_q) - (self.target[b] - self.log_q[b])
            )
            self.log_q[b], self.value[b], self.target[b] = log_q, value, target
            self.traces[b].append(float(value))
            self.damping[b] = min(1.0, 1.5 * self.damping[b])
        elif past.moves:
            past.forget()
        else:
            self.damping[b] /= 2

    def solution(self, b: int, tol: float) -> Solution:
        q = np.zeros(self.problem.size)
        q[self.problem.support] = np.exp(self.log_q[b])
        residual, steps = float(self.residual()[b]), int(self.steps[b])
        converged = residual <= tol
        counted = f"{steps} step{'' if steps == 1 else 's'}"
        gap = f"q and T(q) differ by {residual:.1e} in total variation"
        if converged:
            sentence = f"Converged after {counted}: {gap}."
        elif self.damping[b] <= _SMALLEST_DAMPING:
            sentence = (
                f"Stopped after {counted} at the limit of double precision: no step lowers J, "
                f"though {gap} (asked: {tol:.1e})."
            )
        else:
            sentence = (
                f"Not converged after {counted}: {gap} (asked: {tol:.1e}). "
                "Allow more with max_steps."
            )
        return Solution(
            q / q.sum(), Status(converged, steps, residual, sentence), np.array(self.traces[b])
        )


class _Anderson:
    """Anderson's acceleration of a damped iteration, over the last few moves."""

    def __init__(self) -> None:
        self.moves: list[FloatArray] = []
        self.changes: list[FloatArray] = []

    def remember(self, move: FloatArray, change: FloatArray) -> None:
        self.moves = [*self.moves, move][-_MEMORY:]
        self.changes = [*self.changes, change][-_MEMORY:]

    def forget(self) -> None:
        self.moves, self.changes = [], []

    def step(self, step: FloatArray, q: FloatArray, damping: float) -> FloatArray:
        """The damped step, after taking out what past moves explain of it (in the metric of q)."""
        moves, changes = np.array(self.moves), np.array(self.changes)
        root = np.sqrt(q)
        centred = (changes - (changes @ q)[:, None]) * root
        share, *_ = np.linalg.lstsq(centred.T, (step - step @ q) * root, rcond=1e-10)
        result: FloatArray = damping * (step - share @ changes) - share @ moves
        return result
