"""All input checks, once. Each message gives name, value, rule and remedy."""

from __future__ import annotations

import math
import operator
from difflib import get_close_matches
from typing import Any

import numpy as np

from mtbayes.errors import InvalidInput
from mtbayes.types import FloatArray

T_REMEDY = "t = 1 is the ordinary log loss; smaller is more robust."
_NOT_NUMBERS = (TypeError, ValueError, OverflowError)  # what NumPy and Python say of them


def is_traced(x: Any) -> bool:
    """Whether x is a value that JAX has not computed yet, so that no check can see it."""
    from jax.core import Tracer

    return isinstance(x, Tracer)


def _number(name: str, value: Any, rule: str, remedy: str) -> float:
    try:
        if isinstance(value, (str, bytes, bool)):
            raise TypeError
        return float(value)
    except _NOT_NUMBERS:
        raise InvalidInput(f"{name} must be {rule}, got {value!r}. {remedy}") from None


def loss_order(t: Any, name: str = "t") -> None:
    """T, a number or an array of numbers, lies in [0, 1]; a traced t passes unseen."""
    if is_traced(t):
        return
    try:
        values = np.asarray(t, dtype=float)
    except _NOT_NUMBERS:
        raise InvalidInput(f"{name} must be a number in [0, 1], got {t!r}. {T_REMEDY}") from None
    bad = values[~((values >= 0) & (values <= 1))]
    if bad.size:
        raise InvalidInput(f"{name} must lie in [0, 1], got {bad.flat[0]:g}. {T_REMEDY}")


def order(value: Any, name: str = "t") -> None:
    """An order of an entropy or divergence is at least 0; a traced one passes unseen."""
    if is_traced(value):
        return
    values = np.asarray(value, dtype=float)
    bad = values[~((values >= 0) & np.isfinite(values))]
    if bad.size:
        raise InvalidInput(
            f"{name} must be finite and at least 0, got {bad.flat[0]:g}. "
            "Order 1 is the Shannon entropy or the KL divergence."
        )


def members(m: Any, *, infinite: bool = True) -> float:
    """M is a whole number from 1 upwards, or infinity where that is allowed."""
    remedy = "m is the size of the ensemble: 1 is a single model drawn at random, 10 a good start."
    rule = "a whole number of at least 1" + (" or math.inf" if infinite else "")
    if isinstance(m, float) and math.isinf(m) and m > 0 and infinite:
        return math.inf
    whole = _whole(int(m) if isinstance(m, float) and m.is_integer() else m)
    if whole is None:
        raise InvalidInput(f"m must be {rule}, got {m!r}. {remedy}")
    return float(whole)


def positive(value: Any, name: str, remedy: str, *, infinite: bool = False) -> float:
    """A number above 0; infinity only where that is allowed."""
    rule = "a number above 0" if infinite else "a finite number above 0"
    number = _number(name, value, rule, remedy)
    if not number > 0 or (math.isinf(number) and not infinite):
        raise InvalidInput(f"{name} must be {rule}, got {value!r}. {remedy}")
    return number


def ordinary(value: Any, name: str, remedy: str, most: str = "1e12") -> float:
    """A number above 0 whose inverse and small powers single precision can hold."""
    rule = f"between 1e-12 and {most}"
    number = _number(name, value, f"a number {rule}", remedy)
    if not 1e-12 <= number <= float(most):
        raise InvalidInput(f"{name} must lie {rule}, got {value!r}. {remedy}")
    return number


def fraction(value: Any, name: str, remedy: str) -> float:
    """A number in [0, 1]."""
    number = _number(name, value, "a number in [0, 1]", remedy)
    if not 0 <= number <= 1:
        raise InvalidInput(f"{name} must lie in [0, 1], got {value!r}. {remedy}")
    return number


def between(value: Any, name: str, remedy: str) -> float:
    """A number above 0 and below 1."""
    number = _number(name, value, "a number between 0 and 1", remedy)
    if not 0 < number < 1:
        raise InvalidInput(f"{name} must lie between 0 and 1, got {value!r}. {remedy}")
    return number


def count(value: Any, name: str, remedy: str) -> int:
    """A whole number of at least 1."""
    whole = _whole(value)
    if whole is None:
        raise InvalidInput(f"{name} must be a whole number of at least 1, got {value!r}. {remedy}")
    return whole


def _whole(value: Any) -> int | None:
    """The value if it is a whole number from 1 to what 32 bits hold."""
    try:
        number = operator.index(value)
    except TypeError:
        return None
    return number if 1 <= number < 2**31 and not isinstance(value, bool) else None


def log_likelihoods(log_lik: Any) -> FloatArray:
    """log_lik[G, n] in double precision: no NaN, no +inf; -inf (likelihood 0) is allowed."""
    array = _float_array("log_lik", log_lik)
    if array.ndim != 2 or 0 in array.shape:
        raise InvalidInput(
            f"log_lik must have shape [G, n] with G, n >= 1, got {array.shape}. "
            "Rows are support points, columns are data."
        )
    bad = np.argwhere(np.isnan(array) | (array == np.inf))
    if len(bad):
        g, i = bad[0]
        raise InvalidInput(
            f"log_lik must be free of NaN and +inf, got {array[g, i]} at [{g}, {i}] "
            f"({len(bad)} such entries). Check the model and the data row {i}."
        )
    return array


def distribution(name: str, values: Any, size: int, of: str = "log_lik's rows") -> FloatArray:
    """A probability vector with `size` entries: not negative, summing to 1 within 1e-6."""
    array = _float_array(name, values)
    if array.shape != (size,):
        raise InvalidInput(
            f"{name} must have shape ({size},), one entry for each of {of}, got {array.shape}."
        )
    if not np.all(np.isfinite(array)) or array.min() < 0:
        bad = array[~(array >= 0) | ~np.isfinite(array)][0]
        raise InvalidInput(
            f"{name} must be finite and not negative, got {bad:g}. It is a list of probabilities."
        )
    total = float(array.sum())
    if abs(total - 1) > 1e-6:
        raise InvalidInput(
            f"{name} must sum to 1, got a sum of {total:.6g}. Divide it by its sum: "
            f"{name} / {name}.sum()."
        )
    return array / total


def row_weights(weight: Any, n: int, modes: int | None = None) -> FloatArray:
    """weight[n], not negative, not all 0; None stands for ones.

    modes: K, where a weight[n, K] may be given, of each row for each mode
    """
    if weight is None:
        return np.ones(n)
    array = _float_array("weight", weight)
    if array.shape not in ((n,), (n, modes)):
        raise InvalidInput(
            f"weight must have shape ({n},), one entry for each data row, got {array.shape}."
        )
    if not np.all(np.isfinite(array)) or array.min() < 0 or np.any(array.sum(axis=0) == 0):
        raise InvalidInput(
            f"weight must be finite, not negative and not all 0, got a minimum of {array.min():g} "
            f"and a sum of {array.sum():g}. Weight 2 counts a row twice, 0 leaves it out."
        )
    return array


def densities(p: Any, name: str) -> None:
    """Probabilities or densities: no NaN, none negative. Traced values pass unseen."""
    if is_traced(p):
        return
    array = np.asarray(p)
    if array.size and not np.all(array >= 0):
        bad = array[~(array >= 0)].flat[0]
        raise InvalidInput(
            f"{name} must be free of NaN and not negative, got {bad:g}. "
            "It holds probabilities, or densities on a grid."
        )


def known(name: str, value: Any, allowed: list[str], else_: str = "") -> str:
    """One of the allowed names; the message lists them, the nearest first, and what else may be."""
    if isinstance(value, str) and value in allowed:
        return value
    near = get_close_matches(str(value), allowed, n=max(1, len(allowed)), cutoff=0.3)
    listed = near + [a for a in allowed if a not in near]
    names = ", ".join(map(repr, listed))
    raise InvalidInput(f"{name} must be one of {names}{else_}, got {value!r}.")


def _float_array(name: str, values: Any) -> FloatArray:
    try:
        if np.iscomplexobj(values):
            raise TypeError("they are complex")
        return np.asarray(values, dtype=np.float64)
    except _NOT_NUMBERS as error:
        raise InvalidInput(
            f"{name} must be an array of numbers, got a {type(values).__name__} that is "
            f"not: {error}. Code or drop what is no number."
        ) from None


def finite(name: str, values: Any, remedy: str) -> FloatArray:
    """An array of numbers in double precision, free of NaN and infinities."""
    array = _float_array(name, values)
    bad = np.argwhere(~np.isfinite(array))
    if len(bad):
        where = tuple(bad[0].tolist())
        raise InvalidInput(
            f"{name} must be finite, got {array[where]}"
            f"{f' at {list(where)}' if where else ''} ({len(bad)} such entries). {remedy}"
        )
    return array
