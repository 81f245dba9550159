"""What a user hands to an estimator, as checked arrays."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.utils.validation import _check_sample_weight, validate_data

from mtbayes import _check
from mtbayes.errors import InvalidInput
from mtbayes.estimators.annotations import Annotations
from mtbayes.learners.frame import Frame
from mtbayes.types import Array, BoolArray, FloatArray, Rows

# In scikit-learn's words.
_TEXT = ("could not convert string", "bytes/strings")
_AXES = "Found array with dim"
_ONE_TARGET = "y should be a 1d array"
_LARGE = 1e300
_NO_LABEL = "y must hold a label for each row, got rows without one. Drop such rows first."
# How the names of types of dates, times and durations begin in NumPy, pandas, Polars and Arrow.
_DATES = re.compile("date|time|duration|period", re.IGNORECASE)


def refuse_name(y: Any) -> None:
    """Refuse the name of a column where targets are wanted."""
    if isinstance(y, str):
        raise InvalidInput(
            f"y must hold the targets themselves where X is in memory, got {y!r}. Take that column "
            "out of X and give it as y; names are for data sets on disk."
        )


def refuse_annotations(y: Any) -> None:
    """Refuse what several people said where one target for each row is wanted."""
    if isinstance(y, Annotations):
        raise InvalidInput(
            f"y must hold one target for each row here, got {y!r}, which `fit` alone takes. Fit "
            "them first, and give the consensus_ of that fit in their place."
        )


def checked(
    estimator: Any, x: Any, *, images: bool, y_numeric: bool = False, **options: Any
) -> tuple[Any, ...]:
    """(X,) or (X, y) by scikit-learn's rules, X in double precision, and y too if `y_numeric`."""
    if isinstance(x, Rows):  # whose columns were chosen by their names
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "X does not have valid feature names")
            return checked(estimator, x.x, images=images, y_numeric=y_numeric, **options)
    refuse_masks(X=x, y=options.get("y"))
    if issparse(x):
        raise InvalidInput(
            "X must be dense, got a sparse matrix. Use X.toarray(), and in a pipeline "
            "OneHotEncoder(sparse_output=False) or ColumnTransformer(..., sparse_threshold=0)."
        )
    if any(_DATES.match(str(kind)) for kind in _types(x)):
        raise InvalidInput(
            "X must hold numbers, got dates or times. Count days or seconds from a day of your "
            "choice first, in pandas (dates - pd.Timestamp('2020-01-01')).dt.days."
        )
    try:
        with np.errstate(invalid="ignore"):  # infinities of both signs are summed there, and told
            found = validate_data(
                estimator, x, dtype=np.float64, ensure_2d=not images, allow_nd=images, **options
            )
    except OverflowError as error:
        raise InvalidInput(
            f"X must hold numbers of at most 1.8e308, {error}. Divide such a column first."
        ) from None
    except ValueError as error:
        if str(error) == "Input contains NaN":  # in text
            raise InvalidInput(_NO_LABEL) from None
        if _ONE_TARGET in str(error):
            raise InvalidInput(
                f"y must hold one target for each row, {error} Use y.ravel() for a single column, "
                "and Annotations.wide(y) where several people labelled each row."
            ) from None
        if _AXES in str(error):
            pictures = "network='cnn' takes images, " if hasattr(estimator, "network") else ""
            raise InvalidInput(
                f"X must hold rows by columns. {error} {pictures}"
                "X.reshape(len(X), -1) makes columns."
            ) from None
        if "X contains NaN" in str(error) and hasattr(estimator, "learner"):
            raise InvalidInput(
                "X must hold numbers everywhere, got an array that contains NaN. "
                f"{_filled(estimator.learner, images=images)}"
            ) from None
        if not any(words in str(error) for words in _TEXT):
            raise
        raise InvalidInput(
            f"X must hold numbers, {error}. Give a data frame, whose columns are coded for you, or "
            "code categories with sklearn.preprocessing.OneHotEncoder before this estimator."
        ) from None
    rows, *rest = found if isinstance(found, tuple) else (found,)
    if rows.size == 0:
        raise InvalidInput(f"X must not be empty, got shape {rows.shape}. Look how it was made.")
    return rows, *(_numbers(y) if y_numeric else _labels(y) for y in rest)


def _filled(learner: Any, *, images: bool) -> str:
    """What to do about gaps in an array."""
    if images:
        return "Fill them, or drop such images."
    if isinstance(learner, str):
        return (
            "Give a data frame, such as pandas.DataFrame(X), whose gaps are coded for you, or put "
            "SimpleImputer() before this estimator in make_pipeline."
        )
    return (
        "Put SimpleImputer() before it in make_pipeline, use HistGradientBoostingClassifier() or "
        "its regressor, or leave learner to 'auto' and give a data frame, whose gaps are coded."
    )


def checked_beside(estimator: Any, rows: Frame, *, reset: bool, **options: Any) -> Any:
    """Rows as they are, for an estimator that looks at them itself; or they and y, checked."""
    refuse_masks(y=options.get("y"))
    stand_in = Rows(np.zeros(rows.shape), None, None)
    _, *rest = checked(estimator, stand_in, images=False, reset=reset, **options)
    validate_data(estimator, rows.table, reset=reset, skip_check_array=True)  # names of columns
    return (rows, *rest) if rest else rows


def refuse_masks(**given: Any) -> None:
    """NumPy's checks take what is under a mask for a value."""
    for name, values in given.items():
        if np.ma.is_masked(values):
            raise InvalidInput(
                f"{name} must have a value everywhere, got a masked array. Fill it with "
                ".filled(...), or drop such rows."
            )


def _types(x: Any) -> list[Any]:
    """Types of the columns of a table, or of an array."""
    if hasattr(x, "schema") and hasattr(x.schema, "types"):  # Arrow
        return list(x.schema.types)
    kinds = getattr(x, "dtypes", getattr(x, "dtype", []))
    return list(kinds) if isinstance(kinds, Iterable) else [kinds]


def _numbers(y: Array) -> FloatArray:
    if y.dtype.kind in "mM":
        raise InvalidInput("y must hold numbers, got dates or times. Count days or seconds first.")
    if y.dtype.kind in "OUS":
        try:
            y = np.array(y.tolist(), float)
        except ValueError as error:
            raise InvalidInput(
                f"y must hold numbers, {error}. Use RobustClassifier for labels."
            ) from None
        except (TypeError, OverflowError):
            pass  # no labels; told below
    return _check.finite("y", y, "Drop such rows first.")


def check_size(y: FloatArray) -> None:
    """Refuse targets whose spread no arithmetic can carry; a few wild ones among others are fine.

    >>> check_size(np.array([1.0, 2.0, 1e308, 3.0]))
    """
    size = np.abs(y)
    for wrong, side, remedy in (
        (
            np.quantile(size, 0.5, method="lower") > _LARGE,
            f"at most {_LARGE:g}",
            "Divide them first.",
        ),
        (0 < size.max(initial=0.0) < 1 / _LARGE, f"at least {1 / _LARGE:g}", "Multiply them."),
    ):
        if wrong:
            raise InvalidInput(
                f"y must hold numbers of {side}, got sizes from {size.min():g} to {size.max():g}. "
                f"{remedy}"
            )


def _labels(y: Array) -> Array:
    if y.dtype == object and any(v is None or v != v for v in y):
        raise InvalidInput(_NO_LABEL)
    return y


def weights(sample_weight: Any, x: Array) -> FloatArray:
    """sample_weight[n], ones where none is given."""
    refuse_masks(sample_weight=sample_weight)
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


def mask(trusted: Any, x: Array) -> BoolArray | None:
    """trusted[n]: whether each row's target is known to be right; None where no row's is."""
    if trusted is None:
        return None
    refuse_masks(trusted=trusted)
    found = np.asarray(trusted)
    whether = found.dtype == bool or (found.dtype.kind in "iuf" and np.isin(found, (0, 1)).all())
    if found.shape != (len(x),) or not whether:
        got = f"shape {found.shape}" if found.shape != (len(x),) else f"values of {found.dtype}"
        raise InvalidInput(
            f"trusted must say True or False of each of {len(x)} rows, got {got}. True is for a "
            "row whose target is known to be right."
        )
    return found.astype(bool) if found.any() else None
