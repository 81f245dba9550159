"""Data sets by name: from a local folder first, otherwise downloaded through scikit-learn.

A file `NAME.npz` is looked for in the folder that the environment variable MTBAYES_DATA names, then
in `mtbayes` of the user's cache folder. It holds `x_train`, `y_train`, `x_test` and `y_test`, or,
for a data set without a split of its own, `X` and `y`. What is downloaded is kept in that cache.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from mtbayes import _check, _files
from mtbayes.errors import InvalidInput
from mtbayes.types import Array


class Dataset(NamedTuple):
    """Rows to train on and rows to test on; images are uint8 as they come."""

    x: Array
    y: Array
    test_x: Array
    test_y: Array
    note: str
    """Which file or service it came from, and how many rows."""


class NotFound(InvalidInput):
    """The data set is in no local folder and could not be downloaded."""


class _Source(NamedTuple):
    files: tuple[str, ...]
    fetch: Callable[[], dict[str, Array]] | None


@lru_cache(maxsize=8)
def load(name: str) -> Dataset:
    """A data set: "mnist", "emnist" (47 classes), "cifar10" or "california".

    California Housing has no split of its own: a fifth of its rows, always the same, are for tests.
    """
    source = _SOURCES[_check.known("name", name, list(_SOURCES))]
    for folder in (os.environ.get("MTBAYES_DATA"), _cache()):
        for file in source.files:
            path = Path(folder, file) if folder else None
            if path is not None and path.is_file():
                return _read(name, path)
    return _downloaded(name, source)


def _read(name: str, path: Path) -> Dataset:
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {key: file[key] for key in file.files}
    except (OSError, ValueError) as error:
        raise InvalidInput(f"{path} cannot be read: {error}. Get a fresh copy.") from None
    return _dataset(name, arrays, str(path.name))


def _dataset(name: str, arrays: dict[str, Array], origin: str) -> Dataset:
    if {"X", "y"} <= arrays.keys():
        order = np.random.default_rng(0).permutation(len(arrays["y"]))
        test, train = np.split(order, [len(order) // 5])
        x, y = arrays["X"], arrays["y"]
        parts = (x[train], y[train], x[test], y[test])
    else:
        keys = ("x_train", "y_train", "x_test", "y_test")
        lacking = [key for key in keys if key not in arrays]
        if lacking:
            raise InvalidInput(
                f"{origin} must hold arrays {', '.join(keys)}, or X and y, got "
                f"{', '.join(arrays)}. Write it again with those names."
            )
        parts = tuple(arrays[key] for key in keys)
    return Dataset(*parts, f"{origin}: {len(parts[1]):,} + {len(parts[3]):,} rows")


def _downloaded(name: str, source: _Source) -> Dataset:
    where = f"put {source.files[0]} into the folder that MTBAYES_DATA names, or into {_cache()}"
    if source.fetch is None:
        raise NotFound(f"{name} is in no local folder, and scikit-learn has no download: {where}.")
    try:
        with warnings.catch_warnings(action="ignore"):  # one message tells of all attempts
            arrays = source.fetch()
    except Exception as error:  # any failure of a download ends in one message
        raise NotFound(
            f"{name} is in no local folder and could not be downloaded "
            f"({type(error).__name__}): {where}."
        ) from None
    with _files.atomic(_cache() / source.files[0]) as temporary, temporary.open("wb") as file:
        np.savez_compressed(file, **arrays)
    return _dataset(name, arrays, source.files[0])


def _cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "mtbayes"


def _openml(name: str, test: int, shape: tuple[int, ...]) -> dict[str, Array]:
    """An image set of OpenML, whose last `test` rows are its test rows."""
    from sklearn.datasets import fetch_openml

    found: Any = fetch_openml(name, version=1, as_frame=False)
    x = found.data.astype(np.uint8).reshape(-1, *shape)
    y = np.unique(found.target, return_inverse=True)[1]
    return {"x_train": x[:-test], "y_train": y[:-test], "x_test": x[-test:], "y_test": y[-test:]}


def _cifar() -> dict[str, Array]:
    arrays = _openml("CIFAR_10", 10_000, (3, 32, 32))
    return {k: v.transpose(0, 2, 3, 1) if k[0] == "x" else v for k, v in arrays.items()}


def _emnist() -> dict[str, Array]:
    return _openml("EMNIST_Balanced", 18_800, (28, 28))


def _california() -> dict[str, Array]:
    from sklearn.datasets import fetch_california_housing

    x, y = fetch_california_housing(return_X_y=True)
    return {"X": x.astype(np.float32), "y": y}


_SOURCES = {
    "mnist": _Source(("mnist.npz",), lambda: _openml("mnist_784", 10_000, (28, 28))),
    "emnist": _Source(("emnist.npz", "emnist47.npz"), _emnist),
    "cifar10": _Source(("cifar10.npz", "cifar10_10k.npz"), _cifar),
    "california": _Source(("california.npz", "california_housing.npz"), _california),
}
