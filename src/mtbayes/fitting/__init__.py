"""From rows to a `Fitted`: units, the choice of learner and t, the law of wrong rows, the fit."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import jax
import numpy as np
from sklearn.exceptions import ConvergenceWarning

from mtbayes.errors import InvalidInput
from mtbayes.fitting.choice import Option, choose
from mtbayes.fitting.fitted import Fitted, Judgement, Units, judgement, marks
from mtbayes.fitting.pooling import pool
from mtbayes.fitting.rows import distinct, in_copies
from mtbayes.laws import Contamination, Law
from mtbayes.learners import Place, Trained
from mtbayes.maths import draws
from mtbayes.predictives import beside_trust
from mtbayes.types import Array, FloatArray, Rows

__all__ = ["Fitted", "Judgement", "Option", "Units", "further", "learn"]

_ENOUGH = 20  # rows, below which nothing can be learned about wrong ones
_FEW_MEMBERS = 30  # for a weight of each training row


def learn(
    options: Sequence[Option],
    rows: Rows,
    units: Units | Callable[[Rows], Units],
    law: Any,
    key: Array,
    place: Place = Place(),
    start: Any = None,
    together: bool = False,
) -> Fitted:
    """Choose a learner and its t, and fit all rows with it; or pool several.

    rows: a user's, with their weights
    units: what they are learned in, or what makes that of the rows without copies
    law: the class of the law of wrong rows
    options: learners, each with values of t; where rows are too few to choose, the first of them
    start: a state to begin at
    together: whether the options are learned all and speak together; else one is chosen
    """
    merged, place_of = in_copies(*distinct(*rows))
    units = units(merged) if callable(units) else units
    own = _coded(merged, units)
    if together and len(own.y) >= _ENOUGH:
        fitted, unseen = _pooled(options, own, units, law, key, place)
        fitted = replace(fitted, marks=marks(rows.x, rows.y))
        return _about_rows(fitted, rows, own, place_of, unseen)
    if not hasattr(options[0].learner, "fit"):
        raise InvalidInput(
            f"X must have at least {_ENOUGH} rows of weight above 0 for a learner whose members "
            f"each leave some out, got {len(own.y)}. Use learner='auto'."
        )
    found = None
    if len(own.y) >= _ENOUGH:
        found = choose(options, own, law, draws.child(key, 0), place.part(0.0, 0.6))
    learner, t = (options[0].learner, options[0].path[0]) if found is None else found[:2]
    prepared = learner.prepared(own) if found is None else found.prepared
    fit_key = draws.child(key, 1)
    trained = learner.fit(prepared, t, fit_key, place=place.part(0.6, 0.4), start=start)
    _warn(trained)
    members_key = draws.child(key, 2)
    unseen = found and found.unseen
    if found is None:
        unseen = learner.predictive(trained.state, own.x, members_key)
        unseen = beside_trust(unseen, own.trusted)
    if found is None:
        known = law.none(own.y, own.weight)
        share = Contamination(0.0, 0.0, _open_share(own))
    else:
        known = found.law
        share = known.contamination(unseen, own.y, own.weight)
    fitted = Fitted(
        learner,
        trained.state,
        np.asarray(jax.random.key_data(members_key)),
        units,
        known,
        t,
        [] if found is None else found.table,
        share,
        trained.sentence,
        trained.history,
    )
    return _about_rows(fitted, rows, own, place_of, unseen)


def _open_share(rows: Rows) -> float:
    """The largest share of wrong rows that is possible, where no fit has left any out."""
    if rows.trusted is None:
        return 1.0
    return float(np.average(~np.asarray(rows.trusted, bool), weights=rows.weight))


def _pooled(
    options: Sequence[Option], own: Rows, units: Units, law: Any, key: Array, place: Place
) -> tuple[Fitted, Any]:
    """All options as one; and what is said of rows by members that have not seen them."""
    found = pool(options, own, law, key, place)
    fitted = Fitted(
        found.learner,
        found.state,
        np.asarray(jax.random.key_data(draws.child(key, 0))),
        units,
        found.law,
        found.t,
        found.table,
        found.law.contamination(found.unseen, own.y, own.weight),
        f"Learned by {found.learner.words}.",
        found.history,
    )
    return fitted, found.unseen


def further(fitted: Fitted, rows: Rows, key: Any) -> Fitted:
    """More rows: judged by what was learned so far, which is then what is known before them."""
    if not hasattr(fitted.learner, "further"):
        raise InvalidInput(
            f"partial_fit needs a learner that can take more rows, got {fitted.speakers}. "
            "Set learner='network' or 'linear', or fit all rows anew."
        )
    learner: Any = fitted.learner
    merged, place_of = distinct(*rows)
    own = _coded(merged, fitted.units)
    unseen = fitted.coded(own.x)
    trained = learner.further(fitted.state, learner.prepared(own), fitted.t, key)
    _warn(trained)
    share = fitted.law.contamination(unseen, own.y, own.weight)
    # The rows were judged before they were learned from; how much they pull shows afterwards.
    fitted = replace(fitted, state=trained.state, contamination=share)
    return _about_rows(fitted, rows, own, place_of, unseen)


def after(fitted: Fitted, trained: Trained, law: Law, unseen: Any, rows: Rows) -> Fitted:
    """The same learner after a fit to more rows, with a law; unseen, rows: of coded rows."""
    _warn(trained)
    return replace(
        fitted,
        state=trained.state,
        law=law,
        contamination=law.contamination(unseen, rows.y, rows.weight),
        status=trained.sentence,
        history=trained.history,
    )


def _coded(rows: Rows, units: Units) -> Rows:
    x, y = units.features.apply(rows.x), units.targets.code(rows.y)
    return rows._replace(x=x, y=y)


def _about_rows(fitted: Fitted, rows: Rows, own: Rows, place_of: Array, unseen: Any) -> Fitted:
    """With what is known about the training rows, in the order they came in.

    own: the rows without their copies, coded; unseen: their predictive by fits that have not seen
    them; place_of: where each row is among them, -1 for one of weight 0, which no fit has seen
    """
    known = judgement(fitted.law, unseen, own.y, fitted.units).take(place_of)
    by_heart = getattr(fitted.learner, "by_heart", False)
    weight = _pull(fitted, unseen if by_heart else fitted.coded(own.x, _FEW_MEMBERS), own)[place_of]
    left_out = place_of < 0
    if left_out.any():
        known = known.beside(fitted.judge(rows.x[left_out], rows.y[left_out]), left_out)
        weight[left_out] = 0.0
    return replace(fitted, training=known, row_weight=weight)


def _warn(trained: Trained) -> None:
    if not trained.sound:
        warnings.warn(trained.sentence, ConvergenceWarning, stacklevel=4)


def _pull(fitted: Fitted, said: Any, rows: Rows) -> FloatArray:
    """p^(1-t) of each row, what a fit multiplies its gradient with; the largest is 1.

    Of several learners each has its own t, and counts by its share.
    said: of the rows by the fit, or, where it may know them by heart, by members without them
    """
    log_prob = said.log_prob(rows.y)
    parts = getattr(fitted.learner, "parts", ())
    spoken = [(part.t, part.share) for part in parts] or [(fitted.t, 1.0)]
    found = sum(share * np.exp((1 - t) * (log_prob - log_prob.max())) for t, share in spoken)
    return found if rows.trusted is None else np.where(rows.trusted, 1.0, found)
