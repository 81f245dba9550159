"""Which training rows do harm: the influence of each on the loss of rows that are trusted.

The rows of a fit are remembered while the `Fitted` lives in this process and never travel with it:
not into files or pickles. Elsewhere they are passed again.
"""

from __future__ import annotations

from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import jax
import jax.numpy as jnp
import numpy as np

from mtbayes import _check
from mtbayes.errors import InvalidInput
from mtbayes.fitting.fitted import Fitted
from mtbayes.progress import Callback, silent
from mtbayes.theory.curvature import Curvature
from mtbayes.theory.influence import influence
from mtbayes.types import Array, FloatArray, Rows

# Near a minimum, not at it, a Hessian has negative directions; Gauss-Newton has none. A damping of
# .1 ranks wrong labels better than .01 (`benchmarks/influence.py mnist --damping 0.01`).
CURVATURE = Curvature("gauss_newton", damping=0.1, tol=1e-3, steps=100)


class Harm(NamedTuple):
    """What training rows do to the mean log loss of test rows."""

    harm: FloatArray
    """By how much the loss would fall without each training row, [n]; below 0 the row helps.

    Good for ranking; damping makes the default's numbers several times too small.
    """
    order: Array
    """Training rows from the most harmful to the most helpful, [n]."""
    status: str
    """How the linear system behind it was solved."""


_remembered: WeakKeyDictionary[Fitted, Rows] = WeakKeyDictionary()


def remember(fitted: Fitted, rows: Rows) -> None:
    """Keep the rows of a fit for as long as it is alive; they are not copied."""
    _remembered[fitted] = rows


def remembered(fitted: Fitted) -> Rows | None:
    """The rows of a fit, if they are known here."""
    return _remembered.get(fitted)


def harm(
    fitted: Fitted,
    test: tuple[Array, Array],
    train: Rows | None,
    *,
    members: int = 50,
    curvature: Curvature | None = None,
    callback: Callback = silent,
) -> Harm:
    """The harm of each training row to test rows.

    test: trusted rows and their targets; train: the rows of the fit, where they are not remembered
    members: how many the loss is computed by
    """
    _check.count(members, "members", "50 is the default.")
    if not isinstance(curvature, Curvature | None):
        raise InvalidInput(
            f"curvature must be a Curvature, got {curvature!r}. Try mtbayes.theory.curvature."
            "Curvature('gauss_newton', damping=0.1)."
        )
    learner: Any = fitted.learner
    if not hasattr(learner, "problem"):
        raise InvalidInput(
            f"influence needs a learner with a posterior, got {fitted.speakers}. Set "
            "learner='network'."
        )
    rows = train if train is not None else remembered(fitted)
    if rows is None:
        raise InvalidInput(
            "X and y must be passed, the rows of `fit`: this estimator was loaded, copied or "
            "went on by partial_fit, and remembers none. After partial_fit fit all rows anew."
        )
    if rows.trusted is not None:
        raise InvalidInput(
            "influence needs a fit that treats all rows alike, got one with trusted rows. Fit them "
            "anew without trusted."
        )
    problem = learner.problem(_coded(fitted, rows), fitted.t)
    found = influence(
        problem.model,
        problem.rows.x,
        problem.rows.y,
        problem.criterion,
        jax.tree.map(jnp.asarray, fitted.state),
        posterior=problem.posterior,
        prior=problem.prior,
        weight=rows.weight,
        key=fitted.members_key,
        members=members,
        curvature=CURVATURE if curvature is None else curvature,
        callback=callback,
    )
    effect = found.on_loss(*_coded(fitted, Rows(*test, None))[:2])
    values = -effect.without()
    return Harm(values, np.argsort(-values, kind="stable"), str(effect.status))


def _coded(fitted: Fitted, rows: Rows) -> Rows:
    units = fitted.units
    x, y = units.features.apply(rows.x), units.targets.code(rows.y)
    return rows._replace(x=x, y=y)
