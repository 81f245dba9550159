"""Which training rows do harm: the influence of each on the loss of rows that are trusted.

The rows of the last `fit` are remembered while the estimator lives in this process and never travel
with it: not into files, pickles or clones. Elsewhere they are passed again.
"""

from __future__ import annotations

from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import jax
import jax.numpy as jnp
import numpy as np
from sklearn.utils.validation import check_is_fitted

from mtbayes import _check
from mtbayes.errors import InvalidInput
from mtbayes.theory.curvature import Curvature
from mtbayes.theory.influence import influence
from mtbayes.types import Array, FloatArray

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


class _Rows(NamedTuple):
    """Checked rows of a fit, as given: nothing is copied."""

    x: Array
    y: Array
    weight: FloatArray


_remembered: WeakKeyDictionary[Any, _Rows | None] = WeakKeyDictionary()


def remember(estimator: Any, x: Array, y: Array, weight: FloatArray) -> None:
    """Keep the rows of a fit for as long as the estimator is alive."""
    _remembered[estimator] = _Rows(x, y, weight)


def forget(estimator: Any) -> None:
    """After `partial_fit` the prior of the last rows is gone, and with it their J."""
    _remembered[estimator] = None


def harm(
    estimator: Any,
    test: tuple[Any, Any],
    train: tuple[Any, Any],
    sample_weight: Any,
    draws: int,
    curvature: Curvature | None,
) -> Harm:
    """The harm of each training row to test rows, by a fitted estimator."""
    check_is_fitted(estimator)
    _check.count(draws, "draws", "50 is the default.")
    if not isinstance(curvature, Curvature | None):
        raise InvalidInput(
            f"curvature must be a Curvature, got {curvature!r}. Try mtbayes.theory.curvature."
            "Curvature('gauss_newton', damping=0.1)."
        )
    rows = _training_rows(estimator, *train, sample_weight)
    x, y = _coded(estimator, *_checked(estimator, *test))
    recipe = estimator._recipe(len(rows.y), estimator._prior())
    with estimator._bar() as tell:
        found = influence(
            recipe.model,
            *_coded(estimator, rows.x, rows.y),
            recipe.criterion(estimator.t_),
            jax.tree.map(jnp.asarray, estimator.state_),
            posterior=recipe.posterior,
            prior=recipe.prior,
            weight=rows.weight,
            key=jax.random.wrap_key_data(jnp.asarray(estimator.members_)),
            draws=draws,
            curvature=CURVATURE if curvature is None else curvature,
            tell=tell,
        )
        effect = found.on_loss(x, y)
        values = -effect.without()
    return Harm(values, np.argsort(-values, kind="stable"), str(effect.status))


def _training_rows(estimator: Any, x: Any, y: Any, sample_weight: Any) -> _Rows:
    """The rows that are passed, or those of the last fit."""
    count = len(estimator.outlier_probability_)
    if x is None and y is None:
        if sample_weight is not None:
            raise InvalidInput(
                "sample_weight must come with X and y, the rows of `fit`; without them the weights "
                "of `fit` are taken."
            )
        rows = _remembered.get(estimator)
        if rows is None:
            raise InvalidInput(
                "X and y must be passed, the rows of `fit`: this estimator was loaded, copied or "
                "went on by partial_fit, and remembers none. After partial_fit fit all rows anew."
            )
        return rows
    if x is None or y is None:
        raise InvalidInput("X and y must be passed together, the rows of `fit`, or neither.")
    x, y = _checked(estimator, x, y)
    if len(x) != count:
        raise InvalidInput(
            f"X must be the {count} rows of `fit`, got {len(x)}. Pass them all, in any order."
        )
    weight = np.ones(count) if sample_weight is None else _check.row_weights(sample_weight, count)
    return _Rows(x, y, weight)


def _checked(estimator: Any, x: Any, y: Any) -> tuple[Array, Array]:
    """Rows and targets by scikit-learn's rules, as `fit` hands them on."""
    if hasattr(estimator, "classes_"):
        x, y = estimator._checked(x, y, reset=False)
        return x, estimator._codes(y)
    x, y = estimator._checked(x, y, reset=False, y_numeric=True)
    return x, np.asarray(y, float)


def _coded(estimator: Any, x: Array, y: Array) -> tuple[Array, Array]:
    """Rows in the network's units."""
    return estimator.features_.apply(x), estimator._coded(y)
