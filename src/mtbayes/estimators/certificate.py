"""Certificates of estimators: a prior from one part of the rows, the bound on the other.

Everything that looks at rows to make a choice (units, t, the law of wrong rows, the prior) sees the
prior's part alone, so that none of it needs payment. The posterior starts from the prior, sees all
rows, and is held near the prior by a regulariser whose weight is the slope of the bound itself. How
it was chosen needs no payment either, because the bounds hold for all q at once; those of drawn
members hold because the members are drawn after q, by random numbers of their own.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from sklearn.base import clone
from sklearn.utils import _safe_indexing, check_random_state

from mtbayes import _check
from mtbayes.criteria import Criterion
from mtbayes.errors import InvalidInput
from mtbayes.estimators.base import DRAWS
from mtbayes.estimators.recipe import Recipe
from mtbayes.maths import log_t_from_log
from mtbayes.posteriors import Prior
from mtbayes.predictive import predictive
from mtbayes.solve.gradient import Training, run
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
from mtbayes.types import Array, FloatArray

OF = ["predictor", "member", "members", "ensemble"]
# The whole ensemble's errors: members drawn, rows they may be wrong about, and the share of δ.
_MANY, _BEYOND, _MARKOV = 500, 0.001, 0.1
_ALL_SEEN = (
    " All these rows equal rows that the prior has seen; if they are copies and not draws of their "
    "own, this need not hold."
)


class Case(NamedTuple):
    """All that a bound needs, in the network's units."""

    predictor: Any
    """The estimator with the posterior, its members drawn."""
    prior: Any
    """The prior's state, the posterior's shape."""
    x: Array
    """The bound's rows."""
    y: Array
    """Their targets; -1 for a label that the prior has not seen."""
    alone: Array
    """Places among them of rows that equal none of the prior's and none before."""
    risk: str
    confidence: float
    key: Array
    facts: dict[str, float | str]

    @property
    def t(self) -> float:
        """Order of the loss."""
        return float(self.predictor.t_)

    @property
    def kl(self) -> float:
        """Divergence of one member from the prior."""
        return divergence(self.predictor.state_, self.prior)

    def label(self, whose: str) -> str:
        """What is bounded, for the sentence."""
        if self.risk == "error":
            return f"the error rate of {whose}"
        units = getattr(self.predictor, "targets_", None)
        per = "" if units is None else f", targets in units of {units.scale:.4g}"
        worst = f"at worst {1 / (1 - self.t):.3g}"
        return f"the mean log_t loss (t = {self.t:g}, {worst}{per}) of {whose}"


def certify(
    estimator: Any, x: Any, y: Any, confidence: float, prior_fraction: float, risk: str, of: str
) -> Bound:
    """See `RobustClassifier.certify` and `RobustRegressor.certify`."""
    _check.known("of", of, OF)
    checked_confidence(confidence)
    if risk == "log_t" and estimator.t != "auto":
        log_t_span(estimator.t)
    whole = estimator.m if risk == "log_t" else _MANY
    paid = {"predictor": DRAWS, "member": 1, "members": estimator.m, "ensemble": whole}[of]
    case = _prepared(estimator, x, y, confidence, prior_fraction, risk, paid)
    bound = _BOUNDS[of](case)
    if 0 < len(case.alone) < len(case.y):
        # Which of two worlds the rows come from is not known: the larger bound holds in both.
        fewer = case._replace(x=case.x[case.alone], y=case.y[case.alone])
        bound = max(bound, _BOUNDS[of](fewer), key=lambda each: each.value)
    terms = {**bound.terms, "KL of a member (nats)": case.kl, "t": case.t, **case.facts}
    statement = bound.statement + ("" if len(case.alone) else _ALL_SEEN)
    return replace(bound, terms=terms, statement=statement, predictor=case.predictor)


# The two fits.


def _prepared(
    estimator: Any, x: Any, y: Any, confidence: float, fraction: float, risk: str, paid: float
) -> Case:
    seed = check_random_state(estimator.random_state).randint(2**31)
    keys = [jax.random.fold_in(jax.random.key(seed), i) for i in range(3, 7)]
    learn, keep, alone = _parts(estimator, x, y, fraction, keys[0])
    first = clone(estimator).set_params(warm_start=False)
    if risk == "log_t" and first.t == "auto":
        first._path = tuple(t for t in first._path if t < 1)
    first.fit(_safe_indexing(x, learn), _safe_indexing(y, learn))
    vars(first).pop("_path", None)
    predictor = copy.copy(first)
    rows = first.features_.apply(first._checked(x, reset=False))
    targets = _targets(first, y)
    bound_rows = rows[keep], targets[keep]
    facts: dict[str, float | str] = {
        "rows of the prior": float(len(learn)),
        "rows that equal others": float(len(keep) - len(alone)),
    }
    case = Case(predictor, first.state_, *bound_rows, alone, risk, confidence, keys[3], facts)
    beta = _beta(case, paid)
    seen = np.flatnonzero(targets >= 0) if targets.dtype.kind == "i" else np.arange(len(targets))
    predictor.state_ = _posterior(first, rows[seen], targets[seen], beta, keys[1])
    predictor.members_ = np.asarray(jax.random.key_data(keys[2]))
    facts["beta"] = beta
    return case


def _parts(
    estimator: Any, x: Any, y: Any, fraction: float, key: Array
) -> tuple[Array, Array, Array]:
    """Places of the prior's rows, of the bound's, and among these of rows that equal no other."""
    share = _check.fraction(fraction, "prior_fraction", "0.5 is a good start.")
    numeric = {} if hasattr(estimator, "decision_function") else {"y_numeric": True}
    rows, targets = clone(estimator)._checked(x, y, reset=True, **numeric)
    size = round(share * len(rows))
    if not 1 < size < len(rows):
        raise InvalidInput(
            f"prior_fraction must leave rows for the prior and for the bound, got {fraction!r} of "
            f"{len(rows)} rows. A bound on rows that the prior has seen does not hold; try 0.5, or "
            "give more rows."
        )
    order = np.asarray(jax.random.permutation(key, len(rows)))
    learn, keep = np.sort(order[:size]), np.sort(order[size:])
    prints = np.array(
        [hash((row.tobytes(), target)) for row, target in zip(rows, targets, strict=True)]
    )
    first = np.unique(prints[keep], return_index=True)[1]
    alone = np.sort(first[~np.isin(prints[keep][first], prints[learn])])
    return learn, keep, alone


def _targets(estimator: Any, y: Any) -> Array:
    """Targets in the network's units; a label that the prior has not seen is -1."""
    if not hasattr(estimator, "classes_"):
        return estimator._coded(np.asarray(y, float).ravel())
    labels, classes = np.asarray(y).ravel(), estimator.classes_
    known = np.isin(labels, classes)
    codes = np.searchsorted(classes, np.where(known, labels, classes[0]))
    return np.where(known, codes, -1).astype(np.int32)


def _beta(case: Case, paid: float) -> float:
    """The beta at which the regulariser's weight is what a nat of KL costs in the bound.

    Around KL = 0 the bound is risk + (distance to the bound)·√(budget), so that a nat for each of
    `paid` members costs paid·distance/(2·budget·n), in units of the loss's width.
    """
    n, loss = len(case.y), _row_losses(case)
    span = _span(case)
    risk = float(np.clip((loss.mean() - span.low) / span.width, 0, 1))
    budget = math.log(moment(n) / (1 - case.confidence)) / n
    slope = float(kl_inverse(risk, budget) - risk) / (2 * budget)
    return case.predictor.m / (paid * span.width * max(slope, 1e-6))


def _posterior(first: Any, x: Array, y: Array, beta: float, key: Array) -> Any:
    """The fit to all rows that goes out from the prior."""
    start = jax.tree.map(jnp.asarray, first.state_)
    near = Prior(start.mean, jnp.exp(start.log_std))
    recipe: Recipe = first._recipe(len(y), Prior(near.mean[0], near.std[0]))
    training = Training(
        recipe.model,
        Criterion(m=first.m, t=first.t_, beta=beta, t_p=first.t_p),
        x,
        y,
        key=key,
        posterior=recipe.posterior,
        prior=recipe.prior,
        learning_rate=0.3 * recipe.learning_rate,
        epochs=max(1, recipe.epochs // 3),
        batch_size=recipe.batch_size,
        start=start,
    )
    # Each component has a prior of its own, [K, P]: where the first fit left it.
    training.hyper = training.hyper._replace(prior=near)
    return jax.tree.map(np.asarray, run(training).state)


# Bounds, by what they are of.


def _of_predictor(case: Case) -> Bound:
    """The members that `predict` uses: no Monte Carlo, the density ratio of this very draw."""
    name = "classifier" if hasattr(case.predictor, "classes_") else "regressor"
    losses, span = _row_losses(case), _span(case)
    key = jax.random.wrap_key_data(jnp.asarray(case.predictor.members_))
    return _with_members(
        pac_bayes(
            float(losses.mean()),
            _log_ratio(case, key, DRAWS),
            len(losses),
            confidence=case.confidence,
            span=span,
            of=case.label(f"this {name}"),
        ),
        DRAWS,
    )


def _of_members(case: Case, members: int, whose: str, tried: int = 1) -> Bound:
    """The mean over all draws of so many members, by Monte Carlo."""
    loss: Loss = wrong
    span = Span()
    if case.risk == "log_t":
        span, loss = log_t_span(case.t, _density(case, 1.0)), log_t_loss(case.t)
    return _monte_carlo(case, loss, members, span, case.label(whose), tried)


def _of_member(case: Case) -> Bound:
    return _of_members(case, 1, "one member drawn at random")


def _of_m_members(case: Case) -> Bound:
    m = case.predictor.m
    return _of_members(case, m, f"{m} members drawn at random and averaged")


def _of_ensemble(case: Case) -> Bound:
    """The whole ensemble: that of m members bounds its log_t risk; for errors the best relation."""
    m, of = case.predictor.m, case.label("the whole ensemble")
    if case.risk == "log_t":
        bound = _of_members(case, m, "the whole ensemble")
        return replace(bound, terms=bound.terms | {"relation": f"at most that of {m} members"})
    tried = 3 + (case.t < 1)
    found = {
        "first order": times(_monte_carlo(case, doubt, 1, Span(), of, tried), order_factor(1), of),
        "second order": times(_monte_carlo(case, doubt, 2, Span(), of, tried), order_factor(2), of),
        "margin": _by_margin(case, of, tried),
    }
    if case.t < 1:
        by_loss = _monte_carlo(case, log_t_loss(case.t), m, log_t_span(case.t), of, tried)
        found["log_t"] = times(by_loss, log_t_factor(case.t), of)
    best = min(found, key=lambda name: found[name].value)
    values: dict[str, float | str] = {f"value by {k}": bound.value for k, bound in found.items()}
    return replace(found[best], terms=found[best].terms | {"relation": best} | values)


def _by_margin(case: Case, of: str, tried: int) -> Bound:
    """The error rate of the whole ensemble by the margins of many members, drawn for this."""
    predictor, delta = case.predictor, 1 - case.confidence
    key, members = jax.random.fold_in(case.key, 1), _MANY
    raw = predictive(*_drawn_by(predictor), case.x, key=key, draws=members)
    margin = margin_for(members, _BEYOND, _MARKOV * delta / tried)
    bound = pac_bayes(
        float(np.mean(_margins(raw.probs, case.y) <= margin)),
        _log_ratio(case, key, members),
        len(case.y),
        confidence=1 - (1 - _MARKOV) * delta,
        tried=tried,
        of=of,
    )
    terms = bound.terms | {"for members not drawn": _BEYOND, "δ": delta, "margin": margin}
    value = bound.value + _BEYOND
    return _with_members(Bound(value, terms, sentence(value, terms)), members)


def _monte_carlo(case: Case, loss: Loss, members: int, span: Span, of: str, tried: int) -> Bound:
    """A bound on the mean over all draws of so many members."""
    values = mean_losses(
        case.predictor.model_,
        loss,
        case.predictor.state_,
        case.x,
        case.y,
        members=members,
        key=case.key,
    )
    bound = pac_bayes(
        values,
        members * case.kl,
        len(case.y),
        confidence=case.confidence,
        span=span,
        tried=tried,
        of=of,
    )
    return _with_members(bound, members)


_BOUNDS: dict[str, Callable[[Case], Bound]] = {
    "predictor": _of_predictor,
    "member": _of_member,
    "members": _of_m_members,
    "ensemble": _of_ensemble,
}


def _with_members(bound: Bound, members: int) -> Bound:
    return replace(bound, terms=bound.terms | {"members": float(members)})


# The members that are drawn once.


def _row_losses(case: Case) -> FloatArray:
    """The loss of each of the bound's rows, as the predictor is called."""
    predictor, y = case.predictor, case.y
    found = predictor.law_.calibrated(predictor._raw(case.x))
    if case.risk == "error":
        return (found.labels != y).astype(float)
    unknown = y < 0 if y.dtype.kind == "i" else np.zeros(len(y), bool)
    loss = -np.asarray(log_t_from_log(found.log_prob(np.where(unknown, 0, y)), case.t))
    return np.where(unknown, _span(case).high, loss)


def _margins(probs: FloatArray, y: Array) -> FloatArray:
    """Probability of the label less that of the best other class, [n]; -1 for an unknown label."""
    own = np.take_along_axis(probs, np.maximum(y, 0)[:, None], axis=1)[:, 0]
    others = np.where(np.arange(probs.shape[1]) == y[:, None], -np.inf, probs)
    return np.where(y < 0, -1.0, own - others.max(axis=1))


def _drawn_by(predictor: Any) -> tuple[Any, Any, Any]:
    """Model, posterior and state."""
    return predictor.model_, predictor._posterior(), jax.tree.map(jnp.asarray, predictor.state_)


def _log_ratio(case: Case, key: Array, members: int) -> float:
    """log dQ/dP of the members that `predictive` draws."""
    _, posterior, state = _drawn_by(case.predictor)
    sets = -(-members // posterior.components) * posterior.components
    return log_ratio(posterior.sample(key, state, sets), state, case.prior)


def _density(case: Case, scale: float) -> float:
    """What bounds the likelihood: 1 for classes, the peak of the narrowest Gaussian else."""
    floor = getattr(case.predictor.model_.likelihood, "floor", None)
    return 1.0 if floor is None else 1 / (scale * floor * math.sqrt(2 * math.pi))


def _span(case: Case) -> Span:
    """Between what the predictor's loss lies, calibrated as it is."""
    if case.risk == "error":
        return Span()
    return log_t_span(case.t, _density(case, getattr(case.predictor.law_, "scale", 1.0)))
