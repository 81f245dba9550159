"""scipy's softmax and its log, to the last bit and without its care for other kinds of arrays.

A law looks at hundreds of temperatures of a few hundred rows: that care took most of the time.
"""

from __future__ import annotations

import numpy as np

from mtbayes.types import FloatArray


def softmax(x: FloatArray, axis: int) -> FloatArray:
    """Probabilities in proportion to exp(x) along an axis.

    >>> softmax(np.log([[1.0, 3.0]]), axis=1)
    array([[0.25, 0.75]])
    """
    raised = np.exp(x - x.max(axis=axis, keepdims=True))
    raised /= raised.sum(axis=axis, keepdims=True)
    return raised


def log_softmax(x: FloatArray, axis: int) -> FloatArray:
    """The log of `softmax`, also where that underflows.

    >>> log_softmax(np.array([[0.0, -2000.0]]), axis=1)
    array([[    0., -2000.]])
    """
    top = x.max(axis=axis, keepdims=True)
    below = x - np.where(np.isfinite(top), top, 0.0)
    with np.errstate(divide="ignore"):
        return np.asarray(below - np.log(np.exp(below).sum(axis=axis, keepdims=True)))
