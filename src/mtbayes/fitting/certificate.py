"""Certificates of estimators: a prior from one part of the rows, the bound on the other.

Everything that looks at rows to make a choice (units, t, the law of wrong rows, the prior) sees the
prior's part alone, so that none of it needs payment. The posterior starts from the prior, sees all
rows, and is held near the prior by a regulariser whose weight is the slope of the bound itself. How
it was chosen needs no payment either, because the bounds hold for all q at once; those of drawn
members hold because the members are drawn after q, by random numbers of their own.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from mtbayes import _check
from mtbayes.errors import InvalidInput
from mtbayes.fitting.fitted import Fitted
from mtbayes.fitting.kept_rows import by_test_rows
from mtbayes.learners import MEMBERS
from mtbayes.learners.network import NetworkLearner
from mtbayes.maths import draws, log_t_from_log
from mtbayes.theory.bounds import (
    Bound,
    Span,
    checked_confidence,
    kl_inverse,
    log_t_span,
    moment,
    pac_bayes,
    sentence,
)
from mtbayes.theory.sampling import (
    Loss,
    divergence,
    doubt,
    log_ratio,
    log_t_loss,
    mean_losses,
    wrong,
)
from mtbayes.theory.votes import log_t_factor, margin_for, order_factor, times
from mtbayes.types import Array, FloatArray, Rows

OF = ["predictor", "member", "members", "ensemble"]
# The whole ensemble's errors: members drawn, rows they may be wrong about, and the share of δ.
_MANY, _BEYOND, _MARKOV = 500, 0.001, 0.1
_ALL_SEEN = (
    " All these rows equal rows that the prior has seen; if they are copies and not draws of their "
    "own, this need not hold."
)


class Parts(NamedTuple):
    """Places of rows by what they are for."""

    learn: Array
    """The prior's."""
    keep: Array
    """The bound's."""
    alone: Array
    """Among the bound's, those that equal none of the prior's and none before."""

    @classmethod
    def of(cls, x: Array, y: Array, fraction: float, key: Array) -> Parts:
        """At random, a fraction for the prior."""
        share = _check.fraction(fraction, "prior_fraction", "0.5 is a good start.")
        size = round(share * len(x))
        if not 1 < size < len(x):
            raise InvalidInput(
                "prior_fraction must leave rows for the prior and for the bound, got "
                f"{fraction!r} of {len(x)} rows. A bound on rows that the prior has seen does not "
                "hold; try 0.5, or give more rows."
            )
        order = np.asarray(jax.random.permutation(_own(key, 0), len(x)))
        learn, keep = np.sort(order[:size]), np.sort(order[size:])
        prints = np.array(
            [hash((row.tobytes(), one)) for row, one in zip(np.asarray(x), y, strict=True)]
        )
        first = np.unique(prints[keep], return_index=True)[1]
        return cls(learn, keep, np.sort(first[~np.isin(prints[keep][first], prints[learn])]))


class Evidence(NamedTuple):
    """All that a bound needs, in the learner's units."""

    predictor: Fitted
    """The posterior, its members drawn."""
    prior: Any
    """The prior's state, the posterior's shape."""
    x: Array
    """The bound's rows."""
    y: Array
    """Their targets; -1 for a label that the prior has not seen."""
    alone: Array
    """As in `Parts`."""
    risk: str
    confidence: float
    key: Array
    facts: dict[str, float | str]

    @property
    def learner(self) -> NetworkLearner:
        """Whose model and posterior are bounded."""
        found: Any = self.predictor.learner
        return found

    @property
    def t(self) -> float:
        """Order of the loss."""
        return float(self.predictor.t)

    @property
    def kl(self) -> float:
        """Divergence of one member from the prior."""
        return divergence(self.predictor.state, self.prior)

    def label(self, whose: str) -> str:
        """What is bounded, for the sentence."""
        if self.risk == "error":
            return f"the error rate of {whose}"
        scale = getattr(self.predictor.units.targets, "scale", None)
        per = "" if scale is None else f", targets in units of {scale:.4g}"
        worst = f"at worst {1 / (1 - self.t):.3g}"
        return f"the mean log_t loss (t = {self.t:g}, {worst}{per}) of {whose}"


def check_question(confidence: float, of: str) -> None:
    """Refuse what no bound can answer, before anything is learned."""
    _check.known("of", of, OF)
    checked_confidence(confidence)


def certify(
    first: Fitted,
    x: Array,
    y: Array,
    parts: Parts,
    confidence: float,
    risk: str,
    of: str,
    key: Array,
) -> Bound:
    """A bound whose `predictor` is the `Fitted` that it is about.

    first: what was learned from the rows x[parts.learn] alone; x, y: all rows, in the user's units
    risk, of: as for `RobustClassifier.certify`
    """
    learner: Any = first.learner
    if not hasattr(learner, "near"):
        return by_test_rows(first, x[parts.keep], y[parts.keep], confidence, risk)
    m = int(learner.m)
    whole = m if risk == "log_t" else _MANY
    paid = {"predictor": MEMBERS, "member": 1, "members": m, "ensemble": whole}[of]
    evidence = _evidence(first, x, y, parts, confidence, risk, paid, key)
    bound = _BOUNDS[of](evidence)
    if 0 < len(evidence.alone) < len(evidence.y):
        # Which of two worlds the rows come from is not known: the larger bound holds in both.
        fewer = evidence._replace(x=evidence.x[evidence.alone], y=evidence.y[evidence.alone])
        bound = max(bound, _BOUNDS[of](fewer), key=lambda each: each.value)
    terms = {**bound.terms, "KL of a member (nats)": evidence.kl, "t": evidence.t}
    statement = bound.statement + ("" if len(evidence.alone) else _ALL_SEEN)
    return replace(
        bound, terms=terms | evidence.facts, statement=statement, predictor=evidence.predictor
    )


# The posterior.


def _own(key: Array, i: int) -> Array:
    """A key for each use: rows' parts, the posterior's fit, its members, Monte Carlo."""
    return draws.child(key, 3 + i)


def _evidence(
    first: Fitted,
    x: Array,
    y: Array,
    parts: Parts,
    confidence: float,
    risk: str,
    paid: float,
    key: Array,
) -> Evidence:
    rows, targets = first.units.features.apply(x), _targets(first, y)
    facts: dict[str, float | str] = {
        "rows of the prior": float(len(parts.learn)),
        "rows that equal others": float(len(parts.keep) - len(parts.alone)),
    }
    kept = rows[parts.keep], targets[parts.keep]
    evidence = Evidence(
        first, first.state, *kept, parts.alone, risk, confidence, _own(key, 3), facts
    )
    beta = _beta(evidence, paid)
    seen = np.flatnonzero(targets >= 0) if targets.dtype.kind == "i" else np.arange(len(targets))
    learner = evidence.learner
    all_rows = learner.prepared(Rows(rows[seen], targets[seen], np.ones(len(seen))))
    state = learner.near(first.state, all_rows, first.t, beta, _own(key, 1))
    members = np.asarray(jax.random.key_data(_own(key, 2)))
    predictor = replace(first, state=state, key=members)
    return evidence._replace(predictor=predictor, facts=facts | {"beta": beta})


def _targets(first: Fitted, y: Array) -> Array:
    """Targets in the learner's units; a label that the prior has not seen is -1."""
    classes = getattr(first.units.targets, "classes", None)
    if classes is None:
        return first.units.targets.apply(y).astype(np.float32)  # none is nearer than it is
    known = np.isin(y, classes)
    codes = first.units.targets.code(np.where(known, y, classes[0]))
    return np.where(known, codes, -1).astype(np.int32)


def _beta(evidence: Evidence, paid: float) -> float:
    """The beta at which the regulariser's weight is what a nat of KL costs in the bound.

    Around KL = 0 the bound is risk + (distance to the bound)·√(budget), so that a nat for each of
    `paid` members costs paid·distance/(2·budget·n), in units of the loss's width.
    """
    n, loss = len(evidence.y), _row_losses(evidence)
    span = _span(evidence)
    risk = float(np.clip((loss.mean() - span.low) / span.width, 0, 1))
    budget = math.log(moment(n) / (1 - evidence.confidence)) / n
    slope = float(kl_inverse(risk, budget) - risk) / (2 * budget)
    return evidence.learner.m / (paid * span.width * max(slope, 1e-6))


# Bounds, by what they are of.


def _of_predictor(evidence: Evidence) -> Bound:
    """The members that `predict` uses: no Monte Carlo, the density ratio of this very draw."""
    classes = hasattr(evidence.predictor.units.targets, "classes")
    name = "classifier" if classes else "regressor"
    losses, span = _row_losses(evidence), _span(evidence)
    key = evidence.predictor.members_key
    return _with_members(
        pac_bayes(
            float(losses.mean()),
            _log_ratio(evidence, key, MEMBERS),
            len(losses),
            confidence=evidence.confidence,
            span=span,
            of=evidence.label(f"this {name}"),
        ),
        MEMBERS,
    )


def _of_members(evidence: Evidence, members: int, whose: str, tried: int = 1) -> Bound:
    """The mean over all draws of so many members, by Monte Carlo."""
    loss: Loss = wrong
    span = Span()
    if evidence.risk == "log_t":
        span, loss = log_t_span(evidence.t, _density(evidence, 1.0)), log_t_loss(evidence.t)
    return _monte_carlo(evidence, loss, members, span, evidence.label(whose), tried)


def _of_member(evidence: Evidence) -> Bound:
    return _of_members(evidence, 1, "one member drawn at random")


def _of_m_members(evidence: Evidence) -> Bound:
    m = evidence.learner.m
    return _of_members(evidence, m, f"{m} members drawn at random and averaged")


def _of_ensemble(evidence: Evidence) -> Bound:
    """The whole ensemble: that of m members bounds its log_t risk; for errors the best relation."""
    m, of = evidence.learner.m, evidence.label("the whole ensemble")
    if evidence.risk == "log_t":
        bound = _of_members(evidence, m, "the whole ensemble")
        return replace(bound, terms=bound.terms | {"relation": f"at most that of {m} members"})
    tried = 3 + (evidence.t < 1)
    found = {
        "first order": times(
            _monte_carlo(evidence, doubt, 1, Span(), of, tried), order_factor(1), of
        ),
        "second order": times(
            _monte_carlo(evidence, doubt, 2, Span(), of, tried), order_factor(2), of
        ),
        "margin": _by_margin(evidence, of, tried),
    }
    if evidence.t < 1:
        by_loss = _monte_carlo(
            evidence, log_t_loss(evidence.t), m, log_t_span(evidence.t), of, tried
        )
        found["log_t"] = times(by_loss, log_t_factor(evidence.t), of)
    best = min(found, key=lambda name: found[name].value)
    values: dict[str, float | str] = {f"value by {k}": bound.value for k, bound in found.items()}
    return replace(found[best], terms=found[best].terms | {"relation": best} | values)


def _by_margin(evidence: Evidence, of: str, tried: int) -> Bound:
    """The error rate of the whole ensemble by the margins of many members, drawn for this."""
    delta = 1 - evidence.confidence
    key, members = draws.child(evidence.key, 1), _MANY
    raw = evidence.learner.predictive(evidence.predictor.state, evidence.x, key, members)
    margin = margin_for(members, _BEYOND, _MARKOV * delta / tried)
    bound = pac_bayes(
        float(np.mean(_margins(raw.probs, evidence.y) <= margin)),
        _log_ratio(evidence, key, members),
        len(evidence.y),
        confidence=1 - (1 - _MARKOV) * delta,
        tried=tried,
        of=of,
    )
    terms = bound.terms | {"for members not drawn": _BEYOND, "δ": delta, "margin": margin}
    value = bound.value + _BEYOND
    return _with_members(Bound(value, terms, sentence(value, terms)), members)


def _monte_carlo(
    evidence: Evidence, loss: Loss, members: int, span: Span, of: str, tried: int
) -> Bound:
    """A bound on the mean over all draws of so many members."""
    values = mean_losses(
        evidence.learner.model,
        loss,
        evidence.predictor.state,
        evidence.x,
        evidence.y,
        members=members,
        key=evidence.key,
    )
    bound = pac_bayes(
        values,
        members * evidence.kl,
        len(evidence.y),
        confidence=evidence.confidence,
        span=span,
        tried=tried,
        of=of,
    )
    return _with_members(bound, members)


_BOUNDS: dict[str, Callable[[Evidence], Bound]] = {
    "predictor": _of_predictor,
    "member": _of_member,
    "members": _of_m_members,
    "ensemble": _of_ensemble,
}


def _with_members(bound: Bound, members: int) -> Bound:
    return replace(bound, terms=bound.terms | {"members": float(members)})


# The members that are drawn once.


def _row_losses(evidence: Evidence) -> FloatArray:
    """The loss of each of the bound's rows, as the predictor is called."""
    predictor, y = evidence.predictor, evidence.y
    found = predictor.law.told(predictor.coded(evidence.x))
    if evidence.risk == "error":
        return (found.labels != y).astype(float)
    unknown = y < 0 if y.dtype.kind == "i" else np.zeros(len(y), bool)
    loss = -np.asarray(log_t_from_log(found.log_prob(np.where(unknown, 0, y)), evidence.t))
    return np.where(unknown, _span(evidence).high, loss)


def _margins(probs: FloatArray, y: Array) -> FloatArray:
    """Probability of the label less that of the best other class, [n]; -1 for an unknown label."""
    own = np.take_along_axis(probs, np.maximum(y, 0)[:, None], axis=1)[:, 0]
    others = np.where(np.arange(probs.shape[1]) == y[:, None], -np.inf, probs)
    return np.where(y < 0, -1.0, own - others.max(axis=1))


def _log_ratio(evidence: Evidence, key: Array, members: int) -> float:
    """log dQ/dP of the members that `predictive` draws."""
    posterior, state = evidence.learner.posterior, evidence.predictor.state
    state = jax.tree.map(jnp.asarray, state)
    members = -(-members // posterior.components) * posterior.components
    return log_ratio(posterior.sample(key, state, members), state, evidence.prior)


def _density(evidence: Evidence, scale: float) -> float:
    """What bounds the likelihood: 1 for classes, the peak of the narrowest Gaussian else."""
    floor = getattr(evidence.learner.model.likelihood, "floor", None)
    return 1.0 if floor is None else 1 / (scale * floor * math.sqrt(2 * math.pi))


def _span(evidence: Evidence) -> Span:
    """Between what the predictor's loss lies, calibrated as it is."""
    if evidence.risk == "error":
        return Span()
    return log_t_span(evidence.t, _density(evidence, getattr(evidence.predictor.law, "scale", 1.0)))
