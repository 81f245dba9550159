"""Make clean data dirty on purpose, and remember where: the ε-contamination of the paper.

Each function touches exactly ε·n rows (rounded, halves upwards), chosen uniformly without
replacement, and leaves its input as it was. `seed` is an int, a `numpy.random.Generator` (drawn
from, so that it moves on) or a JAX key; an equal seed gives an equal result. With one seed, the
rows touched at a smaller ε are among those touched at a larger one, in every function, so that a
sweep over ε compares like with like.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from mtbayes import _check
from mtbayes.errors import InvalidInput
from mtbayes.types import Array, BoolArray, FloatArray, Seed

Sampler: TypeAlias = Callable[[np.random.Generator, int], Array]
"""Takes a random generator and a size k, gives k independent rows [k, ...]."""


class Contaminated(NamedTuple):
    """Dirtied data, and which of its rows were touched: data[n, ...], touched[n]."""

    data: Array
    touched: BoolArray


def huber(clean: Sampler, outlier: Sampler, n: int, epsilon: float, *, seed: Seed) -> Contaminated:
    """Huber's (1-ε)·clean + ε·outlier: n rows, exactly ε·n from `outlier`, in random order.

    clean, outlier: samplers `(rng, size) -> [size, ...]`

    >>> dirty = huber(
    ...     lambda rng, k: rng.normal(0, 1, k), lambda rng, k: rng.normal(50, 1, k), 20, 0.1, seed=0
    ... )
    >>> len(dirty.data), int(dirty.touched.sum()), bool((dirty.data[dirty.touched] > 40).all())
    (20, 2, True)
    """
    n = _check.count(n, "n", "It is the number of rows to draw.")
    rng = _generator(seed)
    order = rng.permutation(n)
    bad = _touched_count(epsilon, n)
    sources = [("clean", clean, n - bad), ("outlier", outlier, bad)]
    drawn = [_draw(name, sampler, rng, size) for name, sampler, size in sources if size]
    if len(drawn) == 2 and drawn[0].shape[1:] != drawn[1].shape[1:]:
        raise InvalidInput(
            f"clean and outlier must give rows of one shape, got {drawn[0].shape[1:]} and "
            f"{drawn[1].shape[1:]}. Reshape one of them."
        )
    rows = np.concatenate(drawn[::-1])  # _mask marks the first of the order
    data = np.empty_like(rows)
    data[order] = rows
    return Contaminated(data, _mask(order, bad))


def flip_labels(
    y: Array,
    epsilon: float,
    *,
    seed: Seed,
    how: str | Array = "other",
    classes: Any = None,
    probs: Any = None,
) -> Contaminated:
    """Redraw the labels of ε·n rows, each from a law that depends on its class, or on its row.

    y: [n], labels of any kind: whole numbers, strings
    how: "other" (each other class equally likely), "any" (each class equally likely, so that a
        touched row may keep its label), "pair" (the next class, the last becomes the first), or a
        transition matrix [K, K] with p(given | true) in row `true`; a matrix with epsilon=1
        applies to every row; or "confusable", as people err: rows that a reference is in doubt
        about are touched more often, and get the class that it holds for likely beside the true one
    probs: read by "confusable" alone: what the reference, which should not have seen the row, says
        of each class, [n, K]
    classes: the K labels, in the order that "pair" and a matrix mean; np.unique(y) by default

    >>> dirty = flip_labels(["cat", "dog", "cat", "dog"], 0.5, seed=0, how="pair")
    >>> (dirty.data != ["cat", "dog", "cat", "dog"]).tolist() == dirty.touched.tolist()
    True
    >>> flip_labels([0, 1, 1], 1.0, seed=0, how=[[1, 0], [1, 0]]).data.tolist()
    [0, 0, 0]
    """
    labels = _rows("y", np.asarray(y), 1)
    names = np.unique(labels) if classes is None else np.asarray(classes)
    codes = _codes(labels, names)
    if isinstance(how, str) and how == "confusable":
        return _confused(labels, names, codes, epsilon, seed, probs)
    transition = _transition(how, len(names))
    rng = _generator(seed)
    touched = _choose(rng, epsilon, len(labels))
    given = codes.copy()
    for true, law in enumerate(transition):
        rows = touched & (codes == true)
        given[rows] = rng.choice(len(names), size=int(rows.sum()), p=law)
    return Contaminated(np.where(touched, names[given], labels), touched)


def _confused(
    labels: Array, names: Array, codes: Array, epsilon: float, seed: Seed, probs: Any
) -> Contaminated:
    """Rows by a reference's doubt, and other classes by its probability."""
    n = len(labels)
    if probs is None or np.shape(probs) != (n, len(names)):
        raise InvalidInput(
            f"probs must have shape ({n}, {len(names)}), a probability of each class for each row, "
            f"got {None if probs is None else np.shape(probs)}. Take those of a model that was "
            "fitted to other rows."
        )
    other = np.maximum(_check.finite("probs", probs, "They are probabilities."), 1e-6)
    other[np.arange(n), codes] = 0.0
    doubt = other.sum(axis=1)
    rng = _generator(seed)
    count = _touched_count(epsilon, n)
    picked = rng.choice(n, size=count, replace=False, p=doubt / doubt.sum())
    ladder = np.cumsum(other[picked], axis=1)
    drawn = rng.random((count, 1)) * ladder[:, -1:]
    given = labels.copy()
    given[picked] = names[(ladder <= drawn).sum(axis=1)]
    touched = np.zeros(n, bool)
    touched[picked] = True
    return Contaminated(given, touched)


def replace_targets(
    y: Array, epsilon: float, *, seed: Seed, how: str | Sampler = "uniform", factor: float = 10.0
) -> Contaminated:
    """Replace the targets of ε·n rows by values that have nothing, or too much, to do with them.

    y: [n], finite numbers
    how: "uniform" (over the range of y), "gaussian" (with y's mean and standard deviation),
        "scaled" (multiplied by `factor`; a target of 0 stays 0), or any other law as a sampler
        `(rng, size) -> [size]`
    factor: read by "scaled" alone

    >>> dirty = replace_targets([1.0, 2.0, 3.0, 4.0], 0.5, seed=0, how="scaled", factor=-1)
    >>> sorted(abs(dirty.data).tolist()), int((dirty.data < 0).sum())
    ([1.0, 2.0, 3.0, 4.0], 2)
    >>> replace_targets([1.0, 2.0], 1.0, seed=0, how=lambda rng, k: rng.normal(9, 0, k)).data
    array([9., 9.])
    """
    targets = _rows("y", _check.finite("y", y, "Drop or fill the rows without a target."), 1)
    multiple = _check.finite("factor", factor, "It multiplies the targets; 10 is the default.")
    rng = _generator(seed)
    touched = _choose(rng, epsilon, len(targets))
    laws: dict[str, Sampler] = {
        "uniform": lambda rng, size: rng.uniform(targets.min(), targets.max(), size),
        "gaussian": lambda rng, size: rng.normal(targets.mean(), targets.std(), size),
        "scaled": lambda rng, size: multiple * targets[touched],
    }
    law = how if callable(how) else laws[_check.known("how", how, list(laws))]
    data = targets.copy()
    if touched.any():
        data[touched] = _rows("how's draw", _draw("how", law, rng, int(touched.sum())), 1)
    return Contaminated(data, touched)


def corrupt_features(x: Array, epsilon: float, *, seed: Seed, scale: float = 10.0) -> Contaminated:
    """Throw ε·n rows of x[n, d] far away: x_ij + scale · s_j · N(0, 1), a draw for each feature.

    s_j is the standard deviation of feature j over the given rows, or 1 for a constant feature.

    >>> dirty = corrupt_features(np.zeros((4, 2)), 0.25, seed=0)
    >>> sorted((dirty.data != 0).sum(axis=1).tolist())
    [0, 0, 0, 2]
    """
    features = _rows("x", _check.finite("x", x, "Drop or fill the missing entries."), 2)
    scale = _check.positive(scale, "scale", "It counts standard deviations; 10 is the default.")
    rng = _generator(seed)
    touched = _choose(rng, epsilon, len(features))
    # A constant feature's computed deviation may be a rounding error above 0; its range is not.
    spread = np.where(np.ptp(features, axis=0) > 0, features.std(axis=0), 1.0)
    data = features.copy()
    data[touched] += scale * spread * rng.standard_normal(data[touched].shape)
    return Contaminated(data, touched)


def _generator(seed: Seed) -> np.random.Generator:
    if isinstance(seed, np.random.Generator):
        return seed
    words = _words(seed)
    if not words or min(words) < 0:
        raise InvalidInput(
            "seed must be a whole number of at least 0, a numpy.random.Generator or a JAX key, "
            f"got {seed!r}. Give seed=0, say: the same seed dirties the same rows again."
        )
    return np.random.default_rng(words)


def _words(seed: Seed) -> list[int]:
    """The whole numbers that a seed stands for; none if it is no seed."""
    dtype = getattr(seed, "dtype", None)
    if dtype is not None and not isinstance(dtype, np.dtype):
        import jax
        import jax.numpy as jnp

        if not jnp.issubdtype(dtype, jax.dtypes.prng_key):
            return []
        seed = jax.random.key_data(seed)  # the words of an old key, uint32[2]
    if np.ndim(seed) == 1 and getattr(seed, "dtype", None) == np.uint32:
        return [int(word) for word in np.asarray(seed)]
    try:
        return [] if isinstance(seed, bool) else [operator.index(seed)]
    except TypeError:
        return []


def _touched_count(epsilon: float, n: int) -> int:
    share = _check.fraction(epsilon, "epsilon", "It is the share of rows to dirty: 0.1 is a tenth.")
    # 0.145 * 100 is a rounding error below 14.5 and has to count as 15 all the same.
    return math.floor(share * n * (1 + 1e-12) + 0.5)


def _choose(rng: np.random.Generator, epsilon: float, n: int) -> BoolArray:
    return _mask(rng.permutation(n), _touched_count(epsilon, n))


def _mask(order: npt.NDArray[np.int64], count: int) -> BoolArray:
    touched = np.zeros(len(order), dtype=np.bool_)
    touched[order[:count]] = True
    return touched


def _draw(name: str, sampler: Any, rng: np.random.Generator, size: int) -> Array:
    remedy = "A sampler takes (rng, size) and gives an array [size, ...]."
    if not callable(sampler):
        raise InvalidInput(f"{name} must be a sampler, got {sampler!r}. {remedy}")
    rows = np.asarray(sampler(rng, size))
    if rows.ndim == 0 or len(rows) != size:
        raise InvalidInput(
            f"{name} must give as many rows as it is asked for, {size}, "
            f"got an array of shape {rows.shape}. {remedy}"
        )
    return rows


def _rows(name: str, array: Array, ndim: int) -> Array:
    if array.ndim != ndim or 0 in array.shape:
        shape = "[n]" if ndim == 1 else "[n, d]"
        raise InvalidInput(
            f"{name} must have shape {shape} with no side 0, got {array.shape}. "
            f"One entry along the first axis is one row of data; reshape it."
        )
    return array


def _codes(labels: Array, names: Array) -> npt.NDArray[np.int64]:
    code = {label: k for k, label in enumerate(names.tolist())}
    if names.ndim != 1 or len(code) != len(names):
        raise InvalidInput(
            f"classes must be a list of labels that all differ, got {names.tolist()!r}. "
            "Leave classes out to take the labels that occur in y."
        )
    strange = [label for label in labels.tolist() if label not in code]
    if strange:
        raise InvalidInput(
            f"y must hold labels from classes only, got {strange[0]!r} ({len(strange)} such rows). "
            f"Add it to classes, now {names.tolist()!r}."
        )
    return np.array([code[label] for label in labels.tolist()])


_TRANSITIONS: dict[str, Callable[[int], FloatArray]] = {
    "other": lambda k: (1 - np.eye(k)) / (k - 1),
    "any": lambda k: np.full((k, k), 1 / k),
    "pair": lambda k: np.roll(np.eye(k), 1, axis=1),
}


def _transition(how: Any, k: int) -> FloatArray:
    """The matrix [K, K] of p(given | true) that `how` names or is."""
    if isinstance(how, str):
        name = _check.known("how", how, list(_TRANSITIONS))
        if k < 2 and name != "any":
            raise InvalidInput(
                f"classes must hold at least 2 labels for how={name!r}, got {k}. "
                "Name the classes that y could have held: classes=[...]."
            )
        return _TRANSITIONS[name](k)
    matrix = _check.finite("how", how, "Row by row it holds p(given | true).")
    if matrix.shape != (k, k):
        raise InvalidInput(
            f"how must be {', '.join(map(repr, _TRANSITIONS))} or a matrix of shape ({k}, {k}), "
            f"a row and a column for each class, got shape {matrix.shape}. "
            "Name all classes with classes=[...] if y does not hold them all."
        )
    return np.stack(
        [_check.distribution(f"how[{i}]", row, k, "the classes") for i, row in enumerate(matrix)]
    )
