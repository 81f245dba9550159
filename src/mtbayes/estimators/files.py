"""Fitted estimators as files: arrays and JSON, never code.

One file holds everything that predictions need, and what `fit` found out about the rows. Names in
it are looked up in fixed lists, so that loading a stranger's file runs nothing of theirs.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mtbayes._files import read_arrays, write_arrays
from mtbayes._values import packed, unpacked
from mtbayes.errors import InvalidInput
from mtbayes.estimators.restoring import restored


def save(estimator: Any, path: Any, beside: Any = None) -> None:
    """Write a fitted estimator to one file, atomically; see `load`.

    beside: numbers, text, lists, dicts and arrays, for `read` to give back
    """
    learner = getattr(estimator, "learner", "")
    if not isinstance(learner, str):
        raise InvalidInput(
            "learner must be 'auto', 'network', 'linear' or 'trees' to be saved, got a "
            f"{type(learner).__name__}. A file holds data, never code; pickle the estimator."
        )
    arrays: dict[str, Any] = {}
    state = {name: packed(value, arrays, name) for name, value in vars(estimator).items()}
    settings = {
        "estimator": type(estimator).__name__,
        "state": state,
        "beside": packed(beside, arrays, "beside"),
    }
    write_arrays(Path(path), arrays, settings)


def load(path: Any) -> Any:
    """The estimator that `save` wrote, with the same predictions to the last bit.

    Loading runs no code from the file. A file that is cut short, changed, foreign or from a newer
    version is refused.
    """
    return read(path)[0]


def read(path: Any) -> tuple[Any, Any]:
    """The estimator, and what `save` put beside it."""
    from mtbayes.estimators import ESTIMATORS

    try:
        arrays, settings = read_arrays(Path(path))
    except (FileNotFoundError, IsADirectoryError, TypeError) as error:
        raise InvalidInput(f"path must be a saved estimator, got {path}: {error}") from None
    name = settings.get("estimator")
    if not isinstance(name, str) or name not in ESTIMATORS:
        raise InvalidInput(
            f"{path} must hold an estimator, got {name!r}. A checkpoint is read by "
            "fit(..., checkpoint=...)."
        )
    try:
        state = {key: unpacked(value, arrays) for key, value in settings["state"].items()}
        estimator = restored(ESTIMATORS[name](), state)
        beside = unpacked(settings.get("beside"), arrays)
    except (KeyError, IndexError, TypeError, AttributeError, ValueError, OverflowError) as error:
        raise InvalidInput(
            f"{path} does not hold what a {name} needs ({error}). It is "
            "damaged, or of another version: fit the model anew."
        ) from None
    return estimator, beside
