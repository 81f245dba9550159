"""Shares of good and wrong rows by maximum likelihood, and how sure they are."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, TypeAlias, TypeVar

import numpy as np
from scipy.optimize import brentq, minimize_scalar
from scipy.special import expit, gammaincinv, logsumexp

from mtbayes._values import storable
from mtbayes.laws.mixtures import TINY, explained, explained_below
from mtbayes.types import Array, FloatArray

FACTOR_SPREAD = 0.5  # of the log of a calibrating factor, before any row is seen
_LOOKS, _STEP = np.linspace(-3.0, 2.0, 8, retstep=True)  # at logs of a factor, all over
SLOPE_SPREAD = 3.0  # of the log odds of a wrong row between no doubt and all doubt, likewise
_STEPS = 100  # of Newton's, at most
_ENOUGH = 1e-11  # nats a row, that a further step would gain
_STUCK = 1e6  # of damping: no step gains
_EVEN = 1e-6  # logs of densities that are equal
_FINEST = 1e-3  # between points, beyond which none are added
_NEAR = 0.05  # of the log of a factor, where the curvature of its evidence is measured
_NONE = 0.0005  # of rows, that is said to be none
_OPEN = 0.05  # of the share of wrong rows, which an estimate may be too low by and be one
GOOD_ROWS = 10.0  # that count as seen where wrong rows are hard to tell
_Law = TypeVar("_Law")  # what log densities depend on: a law, or the log of a factor
# The best parameters of densities [k, n] of rows with weights [n], and the mean log density.
Explanation: TypeAlias = Callable[[FloatArray, Array], tuple[FloatArray, float]]
# Log density of the log of a calibrating factor before any row is seen, less a constant.
Prior: TypeAlias = Callable[[float], float]


@storable
class Contamination(NamedTuple):
    """An estimated share of wrong rows, and the ends of its confidence interval.

    >>> Contamination(0.1, 0.08, 0.4).at_least  # many more may be wrong than can be told
    True
    """

    value: float
    low: float
    high: float

    @property
    def at_least(self) -> bool:
        """Whether there is hardly more to say than how many rows are wrong at least."""
        above, below = self.high - self.value, self.value - self.low
        return above > _OPEN and above > 2 * below

    @property
    def words(self) -> str:
        """The interval, for people.

        >>> Contamination(0.1, 0.08, 0.4).words
        'at least 8.0 %; up to 40.0 % may be, where wrong values look plausible'
        >>> Contamination(0.0, 0.0, 0.485).words
        'perhaps none; up to 48.5 % may be, where wrong values look plausible'
        >>> Contamination(0.44, 0.0, 0.485).words  # many, if columns tell anything
        'but rows do not settle it: perhaps none, up to 48.5 %'
        """
        low, high = (f"{100 * end:.1f} %" for end in (self.low, self.high))
        if self.low < _NONE and self.value > _OPEN:
            return f"but rows do not settle it: perhaps none, up to {high}"
        if self.at_least:
            least = f"at least {low}" if self.low >= _NONE else "perhaps none"
            return f"{least}; up to {high} may be, where wrong values look plausible"
        return f"95 % interval {low} to {high}"


def near_one(log_factor: float, spread: float = FACTOR_SPREAD) -> float:
    """The prior of a calibrating factor of which nothing is known but that 1 should do."""
    return -0.5 * (log_factor / spread) ** 2


def calibrate(
    logs_at: Callable[[float], FloatArray],
    weight: Array,
    explain: Explanation | None = None,
    prior: Prior = near_one,
    ends: tuple[float, float] = (-2.0, 2.0),
) -> float:
    """The log of the factor that explains rows best; few rows do not move it far from the prior.

    ends: between which it lies
    """

    def loss(log_factor: float) -> float:
        return -_evidence(logs_at, weight, log_factor, explain or explained, prior)

    found = minimize_scalar(loss, bounds=ends, method="bounded", options={"xatol": 0.02})
    return float(found.x)


def calibrate_all_over(
    logs_at: Callable[[float], FloatArray], weight: Array, explain: Explanation, prior: Prior
) -> float:
    """As `calibrate`, where there may be several factors of which each is the best nearby.

    Few wrong labels beside one temperature, or many beside a lower one, may explain rows well, and
    what is between them less so: some are looked at all over, and the best of them is refined.
    """
    evidence = [_evidence(logs_at, weight, v, explain, prior) for v in _LOOKS]
    near = float(_LOOKS[int(np.argmax(evidence))])
    return calibrate(logs_at, weight, explain, prior, (near - _STEP, near + _STEP))


def _evidence(
    logs_at: Callable[[float], FloatArray],
    weight: Array,
    log_factor: float,
    explain: Explanation,
    prior: Prior,
) -> float:
    """Log likelihood of all rows at the best shares, with the factor's prior."""
    said = explain(logs_at(log_factor), weight)[1] * weight.sum()
    return float(said + prior(log_factor))


def around(
    logs_at: Callable[[float], FloatArray],
    weight: Array,
    factor: float,
    explain: Explanation,
    prior: Prior,
) -> FloatArray:
    """Logs of factors to look at: some standard errors of the best on both sides."""
    near = (factor - _NEAR, factor, factor + _NEAR)
    bend = np.diff([_evidence(logs_at, weight, v, explain, prior) for v in near], 2)[0]
    error = min(1 / np.sqrt(max(-bend / _NEAR**2, TINY)), FACTOR_SPREAD)
    return np.asarray(factor + error * np.linspace(-3, 3, 13))


def weighed(
    log_density: Callable[[float], float], looks: Array, least: float
) -> tuple[FloatArray, FloatArray]:
    """Points of a line, and the share of all mass near each; more points where it changes fast.

    The log of a density is taken for straight between two points, and points are added between
    those where it falls by more than 1, as long as more than a share `least` may lie there.

    >>> at, share = weighed(lambda v: -0.5 * ((v - 0.3) / 0.01) ** 2, np.linspace(-1, 1, 5), 1e-4)
    >>> bool(abs(at @ share - 0.3) < 1e-3 and abs(np.sqrt((at - 0.3) ** 2 @ share) - 0.01) < 2e-3)
    True
    """
    known = {float(v): log_density(float(v)) for v in looks}
    while True:
        at = np.array(sorted(known))
        logs = np.array([known[v] for v in at])
        density = np.exp(logs - logs.max())
        step, fall = np.diff(at), np.abs(np.diff(logs))
        # The logarithmic mean of both ends; of equal ones their own.
        mean = np.divide(np.abs(np.diff(density)), fall, where=fall > _EVEN, out=density[1:].copy())
        mass = step * mean
        top = int(logs.argmax())
        peak = np.isin(np.arange(len(step)), (top - 1, top)) & (
            fall[max(top - 1, 0) : top + 1].max() > 1
        )
        coarse = (step > _FINEST) & (peak | ((fall > 1) & (mass > least * mass.sum())))
        if not coarse.any():
            break
        known |= {float(v): log_density(float(v)) for v in (at[:-1] + step / 2)[coarse]}
    right = mass * density[1:] / (density[:-1] + density[1:] + TINY)
    share = np.append(mass - right, 0.0) + np.append(0.0, right)
    return at, share / share.sum()


def with_good_rows(
    logs_at: Callable[[_Law], FloatArray], weight: Array
) -> tuple[Callable[[_Law], FloatArray], FloatArray]:
    """Log densities [k, n+1] and weights with good rows among them that were seen before.

    They are a prior of the share of wrong rows, Beta(1, 1 + GOOD_ROWS).
    """

    def more_at(law: _Law) -> FloatArray:
        logs = logs_at(law)
        good = np.full((len(logs), 1), -np.inf)
        good[0] = 0.0
        return np.concatenate([logs, good], axis=1)

    return more_at, np.append(weight, GOOD_ROWS)


def leaned(logs: FloatArray, weight: Array, doubt: FloatArray) -> tuple[FloatArray, float]:
    """The best level and slope [2] of the log odds of a wrong row by its doubt [n].

    logs: log densities [2, n] of good and wrong rows
    Returns also the mean log density of a row, less the slope's prior.
    """
    top = logs.max(axis=0)
    good, wrong = np.exp(logs - top)
    gap, share = wrong - good, weight / weight.sum()
    good += TINY
    # Sums over rows of what a line's pull and bend are weighted by: 1, doubt and its square.
    sums = share * np.stack([np.ones_like(doubt), doubt, doubt**2])
    curb = float(1 / (SLOPE_SPREAD**2 * weight.sum()))

    def loss(level: float, slope: float) -> Bent:
        odd = expit(level + slope * doubt)
        mixed = good + odd * gap
        pull = gap / mixed * odd * (1 - odd)
        first, second = (sums[:2] @ pull).tolist()
        a, b, c = (sums @ (pull * (pull - 1 + 2 * odd))).tolist()
        value = 0.5 * curb * slope**2 - float(np.log(mixed) @ share)
        return Bent(value, (-first, curb * slope - second), (a, b, c + curb))

    starts = ((-2.0, 0.0), (-4.0, 4.0))  # as many everywhere; where doubt is large
    bounds = ((-15.0, 15.0), (0.0, 30.0))  # mistakes make doubt, never certainty
    found = [least_within(loss, start, bounds) for start in starts]
    best, value = min(found, key=lambda each: each[1])
    return np.array(best), float(top @ share) - value


class Bent(NamedTuple):
    """A function of two numbers at a point: its value, its slopes and its curvature, a b; b c."""

    value: float
    slope: tuple[float, float]
    curve: tuple[float, float, float]


def least_within(
    loss: Callable[[float, float], Bent],
    start: tuple[float, float],
    bounds: tuple[tuple[float, float], tuple[float, float]],
) -> tuple[tuple[float, float], float]:
    """Where a function of two numbers is least near the start, and its value there.

    bounds: the least and the largest value of each
    Newton's steps, damped until they gain. For two numbers they take a fifth of the time of
    scipy's minimisers, whose care for many is what costs, and half of that of NumPy's matrices.
    """
    at, here, damping = start, loss(*start), 1e-3
    for _ in range(_STEPS):
        moves = _damped(at, here, bounds, damping)
        new = tuple(
            min(max(v + move, low), high)
            for v, move, (low, high) in zip(at, moves, bounds, strict=True)
        )
        there = loss(*new)
        gain = here.value - there.value
        if gain >= 0:
            at, here, damping = (new[0], new[1]), there, damping / 10
        else:
            damping = max(10 * damping, 1e-6)
        if abs(gain) < _ENOUGH or damping > _STUCK:
            break
    return at, here.value


def _damped(
    at: tuple[float, float],
    here: Bent,
    bounds: tuple[tuple[float, float], tuple[float, float]],
    damping: float,
) -> tuple[float, float]:
    """-(|H| + damping)⁻¹ times the slope, |H| with the eigenvalues' sizes; none out of bounds."""
    free = [
        v > low if slope > 0 else v < high
        for v, slope, (low, high) in zip(at, here.slope, bounds, strict=True)
    ]
    a, b, c = here.curve
    if not all(free):
        (p, q), (first, second) = here.slope, free
        return (
            -p / (abs(a) + damping) if first else 0.0,
            -q / (abs(c) + damping) if second else 0.0,
        )
    p, q = here.slope
    middle, half = 0.5 * (a + c), 0.5 * (a - c)
    radius = math.hypot(half, b)
    large, small = (1 / (abs(middle + d) + damping) for d in (radius, -radius))
    mean, turn = 0.5 * (large + small), 0.5 * (large - small) / radius if radius else 0.0
    return -mean * p - turn * (half * p + b * q), -mean * q - turn * (b * p - half * q)


def leaning_share(epsilon: float, lean: FloatArray) -> FloatArray:
    """Share of wrong rows [n] where log odds exceed those of epsilon by lean [n]."""
    wrong = epsilon * np.exp(lean)
    return wrong / (1 - epsilon + wrong)


def one_may_be(epsilon: float, rows: float) -> float:
    """A share of wrong rows that is no less than one of so many.

    None were found, but one may be there, or come: a law that rules it out would call no row wrong,
    however absurd.
    """
    return max(epsilon, 1 / max(float(rows), 2))


def profile(
    logs_at: Callable[[float], FloatArray],
    weight: Array,
    level: float,
    lean: FloatArray | None = None,
    most: float = 1.0,
    prior: Prior = near_one,
    find: Callable[..., float] = calibrate,
) -> Contamination:
    """Where the log likelihood of ε, at its best factor, is within a chi-square of its best.

    logs_at: log densities [2, n] of good and wrong rows by the log of the calibrating factor
    lean: by how much the log odds that a row is wrong exceed those of ε, [n]; None if they do not
    most: the largest ε; prior: of the log of the factor; find: how the best one is
    """

    def share(epsilon: float) -> Any:
        return epsilon if lean is None else leaning_share(epsilon, lean)

    def explain(logs: FloatArray, weight: Array) -> tuple[FloatArray, float]:
        """The best ε beside the lean."""
        top = logs.max(axis=0)
        good, wrong = np.exp(logs - top)

        def loss(epsilon: float) -> float:
            return -float(np.log(good + share(epsilon) * (wrong - good) + TINY) @ weight)

        found = minimize_scalar(loss, bounds=(0, most), method="bounded", options={"xatol": 1e-5})
        return np.array([1 - found.x, found.x]), float((top @ weight - found.fun) / weight.sum())

    how = partial(explained_below, most=most) if lean is None else explain
    factor = find(logs_at, weight, how, prior)
    best = float(how(logs_at(factor), weight)[0][1])
    looks = around(logs_at, weight, factor, how, prior)
    logs = np.stack([logs_at(v) for v in looks])
    densities = np.exp(logs - logs.max(axis=1, keepdims=True))
    top = logs.max(axis=1) @ weight + np.array([prior(v) for v in looks])

    def loss(epsilon: float) -> float:
        mixed = densities[:, 0] + share(epsilon) * (densities[:, 1] - densities[:, 0])
        return float(-(np.log(mixed + TINY) @ weight + top).max())

    lowest, allowed = loss(best), allowance(level)

    def crossing(end: float) -> float:
        excess: Callable[[float], float] = lambda e: loss(e) - lowest - allowed  # noqa: E731
        if excess(end) <= 0:
            return end
        return float(brentq(excess, min(best, end), max(best, end)))

    found = [best, crossing(0.0), crossing(most)]
    if lean is not None:
        found = [float(np.average(share(epsilon), weights=weight)) for epsilon in found]
    return Contamination(*found)


def allowance(level: float) -> float:
    """Nats below the best at which a confidence interval of one number ends: chi-square's by 2.

    >>> round(2 * allowance(0.95), 4)
    3.8415
    """
    return float(gammaincinv(0.5, level))


def wrong_probability(logs: FloatArray, shares: FloatArray) -> FloatArray:
    """Probability [n] that a row is wrong, from log densities [k, n] with the good ones first."""
    wrong = logsumexp(logs[1:], axis=0, b=shares[1:, None])
    with np.errstate(divide="ignore"):
        good = logs[0] + np.log(shares[0])
    impossible = np.isneginf(wrong)
    wrong = np.where(impossible, 0.0, wrong)
    return np.where(impossible, 0.0, np.exp(wrong - np.logaddexp(good, wrong)))
