"""The exact multi-sample loss on a finite support: E[log_t of a mean of m members] by quadrature.

With a = 1-t in [0, 1) and any reference r > 0

    log_t(s) = log_t(r) + 1/Γ(1-a) ∫_0^∞ (e^{-ur} - e^{-us}) u^{-a-1} du .

For S = p_θ + T, T a sum of m-1 independent members, E e^{-uS} is a product, so that the mean over
all m-1 members is one integral whatever m is. Take r = E S: the factor e^{-u p_θ} comes out, and

    E log_t S = log_t(p_θ + (m-1) p̄) - ∫ e^{-u p_θ} w(u) dlog u ,
    w(u) = u^{-a}/Γ(1-a) · e^{-u (m-1) p̄} · expm1((m-1) K(u)) ,
    K(u) = log Σ_g q_g e^{-u p_g} + u p̄  >= 0 ,

where w does not depend on θ: one matrix expm1(-u_k p_g), two products with it, for every m and t.
The integrand is analytic in the strip |Im log u| < π/2, so that the trapezium rule in log u with
step h errs by about exp(-π²/h): 1e-12 at h = 0.35. It falls as u^(1+t) on the left; on the right
it is followed until it has died.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from scipy.special import logsumexp, rgamma

from mtbayes import _check
from mtbayes.maths.tlog import log_t_of_any_order
from mtbayes.types import FloatArray

_STEP = 0.35
_BLOCK = 64
_TINY = 1e-16
_UNDERFLOW = 1e-290  # a sum below may have lost terms
_TABLE_BYTES = 2**24
_CACHE_BYTES = 2**28


def expected_log_t(log_lik: FloatArray, q: FloatArray, m: float, t: float) -> FloatArray:
    """E over m-1 independent members θ_j from q of log_t((p_θ + Σ_j p_θj)/m).

    log_lik: [G, n], log p_θ(x_i) at G support points and n data rows
    q: [G], a distribution over the support points
    m: size of the ensemble, 1 or more; math.inf puts p̄ = E_q p_θ in place of the mean of m
    t: in [0, 1]

    Returns [G, n]: the exponent of Theorem 1 before the sum over data. The mean over θ ~ q is
    minus the multi-sample loss R_t^m. Computed in double precision, in time independent of m.

    >>> log_lik = np.log([[0.9], [0.1]])
    >>> expected_log_t(log_lik, np.array([0.5, 0.5]), m=2, t=1.0).round(6).tolist()
    [[-0.399254], [-1.497866]]
    >>> round(float(0.5 * np.log(0.9) + 0.5 * np.log((0.9 + 0.1) / 2)), 6)  # the first by hand
    -0.399254
    """
    log_lik = _check.log_likelihoods(log_lik)
    q = _check.distribution("q", q, len(log_lik))
    m = _check.members(m)
    _check.loss_order(t)
    chunks = MultiSample(log_lik).chunks(q[None], np.array([m]), np.array([float(t)]))
    return np.concatenate([value[:, 0] for _, value in chunks]).T


class MultiSample:
    """The integral above for one log_lik[G, n], and B triples of q, m and t at once.

    Tables of expm1(-u p) do not depend on q, m or t and are kept between calls while they fit
    into memory, so that an iteration over q costs matrix products alone.
    """

    def __init__(self, log_lik: FloatArray) -> None:
        top = log_lik.max(axis=0)
        # Likelihoods in units of the row's largest: an outlier's row is as well scaled as others.
        self.top = np.where(np.isfinite(top), top, 0.0)
        self.log_p = np.ascontiguousarray((log_lik - self.top).T)
        self.p = np.exp(self.log_p)
        self.nodes_used = 0
        self._tables: dict[tuple[int, int], FloatArray] = {}
        self._free = _CACHE_BYTES

    def chunks(
        self, q: FloatArray, m: FloatArray, t: FloatArray
    ) -> Iterator[tuple[slice, FloatArray]]:
        """E log_t for each triple (q[b], m[b], t[b]): slices of data rows with [rows, B, G]."""
        n, size = self.p.shape
        length = max(1, _TABLE_BYTES // (8 * _BLOCK * size))
        a = (1 - t)[:, None]
        finite = np.isfinite(m)
        # The sum in the logarithm is own·p_θ + rest·p̄ on average; m = infinity is p̄ alone.
        own = finite.astype(float)[:, None]
        rest = np.where(finite, m - 1, 1.0)[:, None]
        log_m = np.log(np.where(finite, m, 1.0))[:, None]
        spread = finite & (m > 1) & (t > 0)
        for start in range(0, n, length):
            rows = slice(start, min(start + length, n))
            log_mean = self._log_mean(rows, q)[:, :, None]
            with np.errstate(divide="ignore"):
                log_total = np.logaddexp(
                    np.log(own) + self.log_p[rows, None], np.log(rest) + log_mean
                )
            # log_t(c s) = log_t(c) + c^a log_t(s) undoes the units and divides by m.
            scale = self.top[rows, None, None] - log_m
            value = log_t_of_any_order(log_total + scale, 1 - a)
            if spread.any():
                value[:, spread] -= np.exp(a * scale)[:, spread] * self._integral(
                    rows, q[spread], log_mean[:, spread], rest[spread], a[spread]
                )
            yield rows, value

    def mean_and_slope(
        self, q: FloatArray, m: FloatArray, t: FloatArray, weight: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """-Σ_i weight_i R_t^m(q, x_i), as [B], and its derivative in q, as [B, G].

        The derivative is m times the expectation given θ; for m = infinity it is p̄^(-t) p_θ.
        """
        finite = np.isfinite(m)
        mean, slope = np.zeros(len(q)), np.zeros_like(q)
        for rows, value in self.chunks(q, m, t):
            given = np.einsum("i,ibg->bg", weight[rows], value)
            mean += np.einsum("bg,bg->b", q, given)
            slope[finite] += m[finite, None] * given[finite]
            if not finite.all():
                slope[~finite] += self._slope_of_mean(rows, q[~finite], t[~finite], weight[rows])
        return mean, slope

    def _slope_of_mean(
        self, rows: slice, q: FloatArray, t: FloatArray, weight: FloatArray
    ) -> FloatArray:
        log_p = self.log_p[rows]
        log_factor = (1 - t[:, None]) * self.top[rows] - t[:, None] * self._log_mean(rows, q).T
        with np.errstate(over="ignore", invalid="ignore"):
            slope = np.exp(np.where(np.isneginf(log_p), -np.inf, log_factor[:, :, None] + log_p))
        result: FloatArray = np.einsum("i,big->bg", weight, slope)
        return result

    def _log_mean(self, rows: slice, q: FloatArray) -> FloatArray:
        """log Σ_g q_g p_g, as [rows, B]; -inf only where it is exactly 0."""
        mean = self.p[rows] @ q.T
        i, b = np.nonzero(mean < _UNDERFLOW)
        with np.errstate(divide="ignore"):
            result: FloatArray = np.log(mean)
            result[i, b] = logsumexp(self.log_p[rows][i] + np.log(q[b]), axis=-1)
        return result

    def _integral(
        self, rows: slice, q: FloatArray, log_mean: FloatArray, others: FloatArray, a: FloatArray
    ) -> FloatArray:
        """∫ e^{-u p_θ} w(u) dlog u, as [rows, B, G]; `others` is m-1."""
        total = np.zeros((len(log_mean), *q.shape))
        gain = _STEP * rgamma(1 - a)
        rates = np.concatenate([self.log_p[rows].ravel(), log_mean.ravel()])
        last = math.ceil((4.0 - rates[np.isfinite(rates)].min(initial=0.0)) / _STEP)
        k = _first_node(float(others.max()), float(a.max()))
        while True:
            v = _STEP * np.arange(k, k + _BLOCK)
            table = self._table(rows, k)
            with np.errstate(divide="ignore", over="ignore"):
                log_product = others * np.log1p(np.maximum(q @ table, -1.0))
                drift = others * np.exp(v + log_mean)
            size = gain * np.exp(-a * v)
            w = size * _difference(log_product, drift)
            total += w.sum(axis=-1, keepdims=True) + w @ table.swapaxes(1, 2)
            k += _BLOCK
            self.nodes_used += _BLOCK
            # e^-drift <= φ^(m-1), so this bounds all that follows (and not the rise on the left).
            if np.all(size[:, -1] * np.exp(log_product[..., -1]) < _TINY):
                return total
            if k > last:
                return total + self._tail(rows, q, log_mean, others, a, gain, k)

    def _tail(
        self,
        rows: slice,
        q: FloatArray,
        log_mean: FloatArray,
        others: FloatArray,
        a: FloatArray,
        gain: FloatArray,
        k: int,
    ) -> FloatArray:
        """What is left where only likelihoods of exactly 0 keep the integrand alive.

        There it is a pure e^{-a v}, whose remaining sum is geometric; at t = 1 it is infinite.
        Where the mean is 0 as well, there is nothing to integrate.
        """
        impossible = np.isneginf(self.log_p[rows]).astype(float)
        alive = (impossible @ q.T)[:, :, None] ** others * impossible[:, None]
        with np.errstate(divide="ignore", invalid="ignore"):
            rest = gain * np.exp(-a * _STEP * k) / -np.expm1(-a * _STEP)
            return np.where((alive > 0) & np.isfinite(log_mean), alive * rest, 0.0)

    def _table(self, rows: slice, k: int) -> FloatArray:
        """expm1(-u p_g) for the block of nodes from k, as [rows, G, nodes]."""
        table = self._tables.get((rows.start, k))
        if table is None:
            v = _STEP * np.arange(k, k + _BLOCK)
            with np.errstate(over="ignore"):
                table = np.expm1(-np.exp(self.log_p[rows, :, None] + v))
            if table.nbytes <= self._free:
                self._tables[rows.start, k] = table
                self._free -= table.nbytes
        return table


def _first_node(others: float, a: float) -> int:
    """Left of here the integrand, of order (u m)^(1+t)/m, is below rounding."""
    t = 1 - a
    start = (math.log(_TINY) - t * math.log(1 + others)) / (1 + t)
    return _BLOCK * math.floor(start / (_STEP * _BLOCK))  # aligned, so that tables are shared


def _difference(log_product: FloatArray, drift: FloatArray) -> FloatArray:
    """e^log_product - e^-drift, without cancellation where the two are close."""
    with np.errstate(invalid="ignore"):
        gap = log_product + drift
        close = np.exp(-drift) * np.expm1(np.minimum(gap, 1.0))
        return np.where(gap < 1, close, np.exp(log_product) - np.exp(-drift))
