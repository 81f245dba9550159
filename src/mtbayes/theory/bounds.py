"""Certificates: numbers that the risk of new rows does not exceed, with a stated confidence.

The rows of a bound are independent draws of (1-ε)ν + εξ, and the prior has not seen them. Then,
with probability 1-δ over these rows and for all q at once (Q = q^m and P = p^m, whose divergence is
m·KL(q||p)),

- Lemma 1, by Hoeffding, for a loss of width w:  R <= R̂ + (KL(Q||P) + log(K/δ))/β + βw²/(8n),
  at the best of K values of β (the paper's β in J, n times the library's `beta`);
- PAC-Bayes-kl, for the loss scaled to [0, 1]:   kl(R̂||R) <= (KL(Q||P) + log(ξ(n)/δ))/n.

-log_t p lies in an interval for t < 1 alone, so no bound of this kind exists at t = 1.

Both hold for one draw θ ~ Q too, with log dQ/dP(θ) in place of the divergence and confidence over
rows and draw together: E over rows and θ ~ Q of exp(n·kl(R̂(θ)||R(θ)) - log dQ/dP(θ)) is at most
E over rows and θ ~ P of exp(n·kl), which is ξ(n) or less (Rivasplata et al. 2020). With Rényi's
divergence of an order α > 1 in its place, log(1/δ) becomes (2α-1)/(α-1)·log(2/δ) (Viallard et al.
2021), and what is paid is known before the draw.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any, NamedTuple

import numpy as np
from scipy.special import gammaln, xlog1py, xlogy

from mtbayes import _check
from mtbayes.errors import InvalidInput
from mtbayes.maths import log_t
from mtbayes.types import Array, FloatArray

FORMS = ["kl", "hoeffding"]
_MONTE_CARLO = 0.1  # share of δ for the Monte Carlo error
_HALVINGS = 60


@dataclass(frozen=True)
class Bound:
    """A certificate.

    value: what the risk does not exceed
    terms: where it comes from. "empirical risk", "Monte Carlo error" and all that begins with "for"
        add up to the value; the others are facts: rows, confidence, how δ was split
    statement: the certificate in a sentence
    predictor: the fitted estimator that the sentence is about, where there is one
    """

    value: float
    terms: dict[str, float | str]
    statement: str
    predictor: Any = None

    def __str__(self) -> str:
        width = max(map(len, self.terms), default=0)
        lines = [
            f"  {name:<{width}}  {v if isinstance(v, str) else f'{v:.6g}'}"
            for name, v in self.terms.items()
        ]
        return "\n".join([self.statement, *lines])


class Span(NamedTuple):
    """The least and the greatest value of a loss."""

    low: float = 0.0
    high: float = 1.0

    @property
    def width(self) -> float:
        """What Hoeffding's inequality needs."""
        return self.high - self.low


def log_t_span(t: float, density: float = 1.0) -> Span:
    """Between what -log_t(p) lies for probabilities or densities p up to `density`, C.

    >>> log_t_span(0.5)
    Span(low=-0.0, high=2.0)
    """
    _check.loss_order(t)
    _check.positive(density, "density", "It bounds the likelihood: 1 for classes.")
    if t == 1:
        raise InvalidInput(
            "t must be below 1 for a certificate of the log_t risk, got 1. The log loss of one row "
            "has no upper limit, so that no finite number of rows bounds its mean. Use t = 0.9, "
            "or, for a classifier, certify the error rate."
        )
    return Span(-float(log_t(density, t)), 1 / (1 - t))


def kl_inverse(risk: Array, budget: Array) -> FloatArray:
    """The largest r in [risk, 1] with kl(risk||r) <= budget, from above: risk and r in [0, 1].

    kl is the divergence of two coins. The answer is exact or too large by rounding.

    >>> float(kl_inverse(0.0, 0.1).round(6))  # 1 - exp(-0.1)
    0.095163
    """
    return np.asarray(_kl_inverse(risk, budget), float)


@partial(np.vectorize, otypes=[float])
def _kl_inverse(risk: float, budget: float) -> float:
    """Of two numbers: arrays here are short, and Python halves a few faster than NumPy."""
    low, high = risk, 1.0
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        if not low < middle < high:
            break
        kl = risk * math.log(risk / middle) if risk > 0 else 0.0
        if risk < 1:
            kl += (1 - risk) * math.log((1 - risk) / (1 - middle))
        low, high = (middle, high) if kl <= budget else (low, middle)
    return high


@lru_cache(maxsize=256)
def moment(n: int) -> float:
    """ξ(n) = Σ_k C(n,k) (k/n)^k (1-k/n)^(n-k), at least E exp(n·kl(R̂||R)); between √n and 2√n.

    Maurer (2004): for losses in [0, 1] the coin is the worst case, and there it is this sum.

    >>> moment(1), round(moment(10_000) / math.sqrt(10_000 * math.pi / 2), 2)
    (2.0, 1.01)
    """
    n = _check.count(n, "rows", "A bound needs rows that the prior has not seen.")
    k = np.arange(n + 1)
    ways = gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)
    return float(np.sum(np.exp(ways + xlogy(k, k / n) + xlog1py(n - k, -k / n))))


def beta_grid(n: int, width: float) -> FloatArray:
    """Values of β from 1/w to 8n/w: ξ(n) of them, as much as the kl form pays for its freedom.

    Outside of this range the bound of Lemma 1 is hardly less than the loss's width. So many points
    make the best of them as good as the best of all, and the kl form never looser (Pinsker).
    """
    return np.geomspace(1 / width, 8 * n / width, math.ceil(moment(n)))


def monte_carlo_error(values: Array, delta: float) -> float:
    """What the mean of independent values in [0, 1] lacks at most, with probability 1-δ.

    The empirical Bernstein inequality of Maurer and Pontil (2009).

    >>> round(monte_carlo_error(np.full(1000, 0.3), 0.01), 4)
    0.0124
    """
    values = np.asarray(values, float)
    price = math.log(2 / delta) / len(values)
    more = 7 * math.log(2 / delta) / (3 * (len(values) - 1))
    return math.sqrt(2 * float(np.var(values, ddof=1)) * price) + more


def pac_bayes(
    risk: Any,
    complexity: float,
    rows: int,
    *,
    confidence: float = 0.95,
    span: Span = Span(),  # noqa: B008
    form: str = "kl",
    order: float | None = None,
    tried: int = 1,
    betas: Any = None,
    of: str = "the risk",
) -> Bound:
    """A bound on the risk of new rows by the risk of `rows` that the prior has not seen.

    risk: the mean loss of these rows under Q; or, where that is not known, independent Monte Carlo
        values of it [S]
    complexity: KL(Q||P), which is m·KL(q||p) for m members; for one draw log dQ/dP of it, or
        Rényi's divergence
    span: between what the loss lies
    form: "kl", or "hoeffding" for Lemma 1 as it stands
    order: above 1, where `complexity` is Rényi's divergence of that order; the bound is then on the
        risk of one draw from Q, whose own empirical risk is `risk`
    tried: how many such bounds are looked at to report one: values of t, priors, losses. Different
        q need no payment
    betas: for "hoeffding" values of β (in J) fixed in advance, `beta_grid` by default
    of: what is bounded, for the sentence

    >>> bound = pac_bayes(0.05, complexity=3.0, rows=10_000)
    >>> print(bound.statement)
    With 95 % confidence the risk is at most 0.0608 on new rows drawn like these 10,000.
    """
    delta = 1 - checked_confidence(confidence)
    _check.known("form", form, FORMS)
    _check.count(tried, "tried", "1 is a bound whose settings were fixed in advance.")
    rows = _check.count(rows, "rows", "A bound needs rows that the prior has not seen.")
    span = _span(span)
    values = _scaled(risk, span)
    complexity = _complexity(complexity)
    monte_carlo = _MONTE_CARLO * delta if values.ndim else 0.0
    prices = {
        "for confidence": _log_confidence(delta - monte_carlo, order),
        "for settings tried": _log_confidence(delta - monte_carlo, order, tried)
        - _log_confidence(delta - monte_carlo, order),
        "for complexity": complexity,
    }
    empirical = float(np.mean(values))
    # Each of the settings tried may have a Monte Carlo error of its own.
    error = monte_carlo_error(values, monte_carlo / tried) if values.ndim else 0.0
    error = min(error, 1 - empirical)
    facts: dict[str, float] = {}
    if form == "kl":
        parts = _by_kl(empirical + error, prices, rows)
    else:
        parts, facts = _by_hoeffding(empirical + error, prices, rows, span, betas)
    terms: dict[str, float | str] = {
        "empirical risk": span.low + span.width * empirical,
        "Monte Carlo error": span.width * error,
        **{name: span.width * part for name, part in parts.items()},
    }
    value = float(sum(v for v in terms.values() if isinstance(v, float)))
    terms |= {
        "bounds": of,
        "form": form if order is None else f"{form}, Rényi of order {order:g}",
        "rows": float(rows),
        "complexity (nats)": complexity,
        "settings tried": float(tried),
        "δ": delta,
        "δ for Monte Carlo": monte_carlo,
        "Monte Carlo values": float(values.size if values.ndim else 0),
        "least loss": float(span.low),
        "largest loss": float(span.high),
        **facts,
    }
    return Bound(value, terms, sentence(value, terms))


def sentence(value: float, terms: dict[str, float | str]) -> str:
    """The certificate in words, from its terms."""
    of, rows, delta = terms["bounds"], int(terms["rows"]), float(terms["δ"])
    said = (
        f"With {100 - 100 * delta:.6g} % confidence {of} is at most {_shown(of, value)} on new "
        f"rows drawn like these {rows:,}."
    )
    return said + _vacuous(value, terms)


def id_bound(bound: Bound, epsilon: float) -> Bound:
    """Lemma 1 for clean rows: what a bound on rows from (1-ε)ν + εξ says about rows from ν.

    (bound + ε log_t C)/(1-ε), for a loss -log_t p with p up to C: -log_t C is the least loss, which
    the bound knows from its span. With C = 1, as for classes and for the error rate, it is
    bound/(1-ε) whatever t is. Nothing is assumed of ξ.

    >>> id_bound(pac_bayes(0.05, 3.0, 10_000), 0.1).value.__round__(4)
    0.0676
    """
    epsilon = _share(epsilon)
    value = (bound.value - epsilon * float(bound.terms["least loss"])) / (1 - epsilon)
    return _on_clean(bound, value, f"at most {100 * epsilon:.4g} % of rows are outliers")


def uniform_flips(bound: Bound, epsilon: float, classes: int) -> Bound:
    """The error rate on clean labels, if a share ε of labels is flipped to any other class.

    Flips at random, whatever the row: then the error on dirty labels is ε + (1 - ε·C/(C-1)) times
    the error on clean ones, for every classifier. Below an error of 1 - 1/C a smaller ε gives a
    larger bound: take the least ε that you are sure of.

    >>> uniform_flips(pac_bayes(0.35, 3.0, 30_000), 0.3, 10).value.__round__(3)
    0.095
    """
    epsilon = _share(epsilon)
    if (bound.terms["least loss"], bound.terms["largest loss"]) != (0, 1):
        raise InvalidInput(
            f"bound must be of an error rate, got one of {bound.terms['bounds']}, at most "
            f"{bound.terms['largest loss']:g}. Use id_bound, which is for every loss."
        )
    if _check.count(classes, "classes", "A classifier has at least 2.") == 1:
        raise InvalidInput("classes must be at least 2, got 1. There is no other class to flip to.")
    keep = 1 - epsilon * classes / (classes - 1)
    if keep <= 0:
        raise InvalidInput(
            f"epsilon must be below 1 - 1/classes = {1 - 1 / classes:g}, got {epsilon:g}. From "
            "there on labels say nothing about the class."
        )
    value = max(0.0, (bound.value - epsilon) / keep)
    return _on_clean(
        bound, value, f"{100 * epsilon:.4g} % of labels are flipped to any other class"
    )


def _on_clean(bound: Bound, value: float, if_: str) -> Bound:
    of = bound.terms["bounds"]
    terms = {**bound.terms, "for clean rows": value - bound.value, "assumed": if_}
    statement = (
        f"{bound.statement} If {if_}, then {of} is at most {_shown(of, value)} on clean rows."
        f"{_vacuous(value, terms)}"
    )
    return replace(bound, value=float(value), terms=terms, statement=statement)


def _vacuous(value: float, terms: dict[str, float | str]) -> str:
    """What is to be said of a bound that no loss exceeds anyway."""
    return "" if value < float(terms["largest loss"]) else " No loss is larger: this says nothing."


def _by_kl(risk: float, prices: dict[str, float], rows: int) -> dict[str, float]:
    """What each price adds, in turn, to the inverse of kl."""
    paid = np.cumsum([math.log(moment(rows)), *prices.values()])[1:]
    steps = kl_inverse(risk, np.maximum(paid, 0) / rows)
    return dict(zip(prices, np.diff(steps, prepend=risk).tolist(), strict=True))


def _by_hoeffding(
    risk: float, prices: dict[str, float], rows: int, span: Span, betas: Any
) -> tuple[dict[str, float], dict[str, float]]:
    """What each price adds at the best β, in units of the width, and that β."""
    grid = beta_grid(rows, span.width) if betas is None else np.atleast_1d(betas).astype(float)
    if grid.ndim != 1 or not len(grid) or not np.all((grid > 0) & np.isfinite(grid)):
        raise InvalidInput(f"betas must be finite and above 0, got {betas!r}. They are those of J.")
    scaled = grid * span.width  # for the loss in [0, 1]
    prices = {**prices, "for values of β": math.log(len(grid))}
    best = int(np.argmin(sum(prices.values()) / scaled + scaled / (8 * rows)))
    at = float(scaled[best])
    parts = {"for spread": at / (8 * rows)} | {name: price / at for name, price in prices.items()}
    # No loss is above its span: there the parts end.
    steps = np.minimum(np.cumsum(list(parts.values())), 1 - risk)
    parts = dict(zip(parts, np.diff(steps, prepend=0.0).tolist(), strict=True))
    return parts, {"β": float(grid[best]), "values of β": float(len(grid))}


def _log_confidence(delta: float, order: float | None, tried: int = 1) -> float:
    """What certainty 1-δ of the best of `tried` bounds costs, in nats."""
    if order is None:
        return math.log(tried / delta)
    if not isinstance(order, int | float) or not 1 < order < math.inf:
        raise InvalidInput(
            f"order must be a number above 1 for a certificate, got {order!r}. Rényi's change of "
            "measure is false below; certify with the KL divergence, which holds for every q."
        )
    return (2 * order - 1) / (order - 1) * math.log(2 * tried / delta)


def checked_confidence(value: Any) -> float:
    """A number between 0 and 1, neither of both."""
    return _check.between(value, "confidence", "0.95 is usual; 1 would need infinitely many rows.")


def _share(epsilon: Any) -> float:
    number = _check.fraction(epsilon, "epsilon", "It is the share of rows that are outliers.")
    if number == 1:
        raise InvalidInput("epsilon must be below 1, got 1. Some rows must be clean.")
    return number


def _span(span: Any) -> Span:
    low, high = span
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise InvalidInput(
            f"span must go from a least to a greater finite loss, got {low!r} and {high!r}. An "
            "unbounded loss has no certificate; `log_t_span` gives that of log_t."
        )
    return Span(low, high)


def _scaled(risk: Any, span: Span) -> FloatArray:
    """A risk, or Monte Carlo values of it, in units of [0, 1]."""
    values = (_check.finite("risk", risk, "It is a mean loss.") - span.low) / span.width
    if values.ndim > 1 or (values.ndim and len(values) < 2):
        raise InvalidInput(
            f"risk must be a number or a list of at least two Monte Carlo values, got shape "
            f"{values.shape}."
        )
    if np.any(values < -1e-6) or np.any(values > 1 + 1e-6):
        raise InvalidInput(
            f"risk must lie between {span.low:g} and {span.high:g}, got values from "
            f"{np.min(risk):g} to {np.max(risk):g}. Name the loss's span."
        )
    return np.clip(values, 0.0, 1.0)


def _complexity(value: Any) -> float:
    """A divergence; that of one draw may be negative, and infinity is a vacuous bound."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise InvalidInput(
            f"complexity must be a number, got {value!r}. It is a divergence from the prior."
        ) from None
    if math.isnan(number):
        raise InvalidInput("complexity must be a number, got NaN. The fit has failed.")
    return number


def _shown(of: Any, value: float) -> str:
    """Rounded up: what is shown is a bound too."""
    up = math.ceil(1e4 * value) / 1e4
    return f"{100 * up:.4g} %" if str(of).startswith("the error rate") else f"{up:.4g}"
