"""What a user hands to an estimator, as checked arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import _check_sample_weight, validate_data

from mtbayes import _check
from mtbayes.errors import InvalidInput
from mtbayes.types import Array, FloatArray

# In scikit-learn's words.
_TEXT = ("could not convert string", "bytes/strings")


def checked(
    estimator: Any, x: Any, *, images: bool, y_numeric: bool = False, **options: Any
) -> tuple[Any, ...]:
    """(X,) or (X, y) by scikit-learn's rules, X in double precision, and y too if `y_numeric`."""
    try:
        found = validate_data(
            estimator, x, dtype=np.float64, ensure_2d=not images, allow_nd=images, **options
        )
    except OverflowError as error:
        raise InvalidInput(
            f"X must hold numbers of at most 1.8e308, {error}. Divide such a column first."
        ) from None
    except ValueError as error:
        if not any(words in str(error) for words in _TEXT):
            raise
        raise InvalidInput(
            f"X must hold numbers, {error}. Code categories with "
            "sklearn.preprocessing.OneHotEncoder in a ColumnTransformer before this estimator."
        ) from None
    rows, *rest = found if isinstance(found, tuple) else (found,)
    if rows.size == 0:
        raise InvalidInput(f"X must not be empty, got shape {rows.shape}. Look how it was made.")
    return rows, *(_check.finite("y", y, "Drop such rows first.") if y_numeric else y for y in rest)


def weights(sample_weight: Any, x: Array) -> FloatArray:
    """sample_weight[n], ones where none is given."""
    try:
        weight = _check_sample_weight(sample_weight, x, dtype=np.float64, ensure_non_negative=True)
    except OverflowError as error:
        raise InvalidInput(f"sample_weight must hold numbers, {error}.") from None
    with np.errstate(over="ignore"):
        total = float(weight.sum())
    if total == 0:
        raise InvalidInput("sample_weight must not be 0 for all rows. Weight 1 counts a row once.")
    _check.ordinary(total, "sample_weight's sum", "Weight 1 counts a row once.")
    return np.asarray(weight)
