"""Questions about rows that do not fit in memory, asked block by block."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import wraps
from inspect import signature
from typing import Any, TypeVar

import jax
import numpy as np
from sklearn.utils.validation import check_is_fitted

from mtbayes.data.sources import is_streamed, open_features, open_stream
from mtbayes.data.stream import rechunked
from mtbayes.types import Rows

_ROWS = 2**13  # at once; a hundred members answer each of them

Method = TypeVar("Method", bound=Callable[..., Any])


def blocks_of(estimator: Any, x: Any, y: Any = None, weight: Any = None) -> Iterator[Rows]:
    """The rows of a data set, an array on disk or an iterator; its columns as in `fit`."""
    check_is_fitted(estimator)
    names = getattr(estimator, "feature_names_in_", None)
    features = None if names is None else tuple(names)
    if y is None:
        stream = open_features(x, features)
    else:
        stream = open_stream(x, y, weight, features=features)
    return rechunked(stream.blocks(), _ROWS)


def by_blocks(method: Method) -> Method:
    """A method of rows X, and targets y if it has any, whose answers are joined.

    Memory is bounded beside the answer. For a data set y is the name of a column.
    """
    form = signature(method)

    @wraps(method)
    def asked(self: Any, X: Any, *rest: Any, **named: Any) -> Any:
        if not is_streamed(X):
            return method(self, X, *rest, **named)
        given = form.bind(self, X, *rest, **named)
        parts = []
        for block in blocks_of(self, X, given.arguments.get("y")):
            given.arguments["X"] = block
            if "y" in form.parameters:
                given.arguments["y"] = block.y
            parts.append(method(*given.args, **given.kwargs))
        return jax.tree.map(lambda *each: np.concatenate(each), *parts)

    return asked  # type: ignore[return-value]
