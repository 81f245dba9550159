"""What a fit must be given: rows that the model can take, and parts that fit together."""

from __future__ import annotations

from itertools import zip_longest
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from mtbayes import _check
from mtbayes.criteria import Objective
from mtbayes.errors import InvalidInput
from mtbayes.maths import draws
from mtbayes.models import LogLik
from mtbayes.posteriors import Posterior, Prior, Rank1
from mtbayes.types import Array


def checked_rows(
    model: LogLik, x: Any, y: Any, name: str = "", *, narrow: bool = False
) -> tuple[Any, Any]:
    """x and y as arrays that the model can take, or an InvalidInput that names the argument.

    narrow: x of small whole numbers, such as pixels, may stay as it is, a quarter of the size
    """
    x, y = _numbers(f"{name}x", x), _numbers(f"{name}y", y)
    if x.ndim < 1 or len(x) == 0:
        raise InvalidInput(f"{name}x must have at least one row, got shape {x.shape}.")
    if y.shape[:1] != x.shape[:1]:
        raise InvalidInput(
            f"{name}y must have one entry for each of the {len(x)} rows of x, got shape {y.shape}."
        )
    kind = jnp.result_type(float)
    whole = y.dtype.kind in "biu" and (not y.size or np.abs(y).max() < 2**31)
    doubtful = [x.dtype.kind == "f", y.dtype.kind == "f"]  # whole numbers are finite
    with np.errstate(over="ignore"):  # what overflows is found just below
        if not (narrow and x.dtype.kind in "biu" and x.dtype.itemsize <= 2):
            x = x.astype(kind, copy=False)
        y = y.astype(np.int32, copy=False) if whole else y.astype(kind, copy=False)
    for label, values, doubt in zip("xy", (x, y), doubtful, strict=True):
        if doubt and not np.isfinite(values).all():
            _check.finite(f"{name}{label}", values, "Impute, rescale or drop such rows first.")
    model.check(x, y)
    return x, y


def _numbers(name: str, values: Any) -> Any:
    try:
        array = np.asarray(values)
    except ValueError:
        array = np.empty(0, object)
    if array.dtype.kind not in "biuf":
        raise InvalidInput(
            f"{name} must be an array of real numbers, got dtype {array.dtype}. Code text and "
            "categories as numbers, and make all rows of one length."
        )
    return array


def check_parts(model: Any, criterion: Any, posterior: Any, prior: Any) -> None:
    """Each part is what it is said to be."""
    _check_part("model", model, "log_lik", "Build it with Model(network, likelihood).")
    _check_criterion(criterion)
    _check_part("posterior", posterior, "divergence", "Try mean_field(), with its brackets.")
    if not isinstance(prior, Prior):
        raise InvalidInput(f"prior must come from prior(mean, std), got {prior!r}.")
    for name, value in prior._asdict().items():
        each = (model.size,), (posterior.components, model.size)
        if np.shape(value) not in ((), (1,), *each):
            raise InvalidInput(
                f"prior {name} must be one number or one for each of the {model.size} parameters, "
                f"got shape {np.shape(value)}."
            )


def _check_part(name: str, value: Any, method: str, remedy: str) -> None:
    if isinstance(value, type) or not hasattr(value, method):
        raise InvalidInput(f"{name} must have a method {method}, got {value!r}. {remedy}")


def _check_criterion(value: Any) -> None:
    _check_part("criterion", value, "rows", "Try Criterion(m=10, t=0.5).")


def listed_criteria(criteria: Any) -> list[Objective]:
    """Criteria of several fits, each what it is said to be."""
    found = _listed("criteria", criteria, "Try [Criterion(m=10, t=t) for t in (1.0, 0.5)].")
    for criterion in found:
        _check_criterion(criterion)
    return found


def listed_keys(keys: Any) -> list[Array]:
    """JAX keys of several fits, from themselves or from whole numbers."""
    found = _listed("keys", keys, "Try keys=[0, 1, 2], or jax.random.split(key, 3).")
    return [draws.key(key, "each of keys") for key in found]


def _listed(name: str, values: Any, remedy: str) -> list[Any]:
    """Entries, of which there is at least one."""
    try:
        found = list(values)
    except TypeError:
        raise InvalidInput(f"{name} must be a list, got {values!r}. {remedy}") from None
    if not found:
        raise InvalidInput(f"{name} must hold at least one entry, got none. {remedy}")
    return found


def check_groups(criterion: Objective, posterior: Posterior) -> None:
    """Members can be shared out evenly over components."""
    m, k = _check.members(criterion.m, infinite=False), posterior.components
    if criterion.joint and max(m, k) % min(m, k):
        raise InvalidInput(
            f"m must divide the posterior's {k} components or be a multiple of them, so that draws "
            f"can be shared out evenly, got m = {m:g}. Choose m = {k} or {2 * k}, or joint=False, "
            "with which each component has m members of its own."
        )


def check_numbers(size: int, members: int) -> None:
    """Places in the pool of random numbers, four times as large as a step needs, fit in 32 bits."""
    each = size // members
    if 4 * size >= 2**31:
        raise InvalidInput(
            f"m must make at most {(2**29 - 1) // each} members, for each of which a step draws "
            f"{each} random numbers, got {members}. 10 is a good start."
        )


def check_start(start: Any, posterior: Posterior, model: LogLik) -> None:
    """A state to start from is one of the posterior's, for this model."""
    if start is None:
        return
    k = getattr(start, "components", "no")
    if not isinstance(start, posterior.state) or k != posterior.components:
        raise InvalidInput(
            f"start must be a state of {posterior!r}, got {type(start).__name__} with {k} "
            "components. Give the `Solution.state` of a fit with this posterior."
        )
    states = start, posterior.init(draws.key(0), model)
    shapes, wanted = (list(map(np.shape, jax.tree.leaves(state))) for state in states)
    if shapes != wanted:
        got, rule = next((g, w) for g, w in zip_longest(shapes, wanted) if g != w)
        raise InvalidInput(
            f"start must have an array of shape {rule} for this model, got {got}. Give the "
            "`Solution.state` of a fit of this model."
        )


def check_means(state: Any, posterior: Posterior, model: LogLik) -> None:
    """A state has a mean for each component and parameter, as that of shared weights has not."""
    if isinstance(posterior, Rank1):
        raise InvalidInput(
            f"posterior must be Mixture or Particles, got {posterior!r}. Fit with one of them."
        )
    held, wanted = np.shape(getattr(state, "mean", ())), (posterior.components, model.size)
    if held != wanted:
        raise InvalidInput(
            f"state must hold means of shape {wanted} for this model and {posterior!r}, got "
            f"{held or type(state).__name__}. Give `Solution.state`."
        )
