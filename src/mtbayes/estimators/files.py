"""Fitted estimators as files: arrays and JSON, never code.

One file holds everything that predictions need, and what `fit` found out about the rows. Names in
it are looked up in fixed lists, so that loading a stranger's file runs nothing of theirs.
"""

from __future__ import annotations

from dataclasses import asdict, fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mtbayes._files import read_arrays, write_arrays
from mtbayes.errors import InvalidInput
from mtbayes.estimators.scaling import Columns, Features, Targets
from mtbayes.networks import Conv, Dense, Flatten, MaxPool, Stack
from mtbayes.noise import Contamination, WrongLabels, WrongPoints, WrongTargets
from mtbayes.posteriors.mixture import MixtureState

_LAYERS = {kind.__name__: kind for kind in (Dense, Conv, MaxPool, Flatten)}
# What a fitted attribute may be made of, beside arrays, numbers, text, lists and dicts.
_KINDS: dict[str, Any] = {
    kind.__name__: kind
    for kind in (
        Features,
        Targets,
        Columns,
        Contamination,
        WrongLabels,
        WrongTargets,
        WrongPoints,
        MixtureState,
    )
}
_REBUILT = {"model_"}


def save(estimator: Any, path: Any, beside: Any = None) -> None:
    """Write a fitted estimator to one file, atomically; see `load`.

    beside: anything that JSON holds, for `read` to give back
    """
    arrays: dict[str, Any] = {}
    state = {
        name: _packed(value, arrays, name)
        for name, value in vars(estimator).items()
        if name not in _REBUILT
    }
    settings = {"estimator": type(estimator).__name__, "state": state, "beside": beside}
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
    if name not in ESTIMATORS:
        raise InvalidInput(
            f"{path} must hold an estimator, got {name!r}. A checkpoint is read by "
            "fit(..., checkpoint=...)."
        )
    estimator = ESTIMATORS[name]()
    try:
        for key, value in settings["state"].items():
            setattr(estimator, key, _unpacked(value, arrays))
        estimator._rebuild()
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise InvalidInput(
            f"{path} does not hold what a {name} needs ({error}). Save it anew."
        ) from None
    return estimator, settings.get("beside")


def _packed(value: Any, arrays: dict[str, Any], name: str) -> Any:
    """A value as JSON, its arrays put aside under names that begin with `name`."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        if value.dtype.kind in "OUS":
            return {"labels": value.tolist(), "object": value.dtype.kind == "O"}
        arrays[name] = value
        return {"array": name}
    if isinstance(value, Stack):
        layers = [[type(layer).__name__, asdict(layer)] for layer in value.layers]
        return {"stack": list(value.input_shape), "layers": layers}
    if type(value).__name__ in _KINDS:
        names = [f.name for f in fields(value)] if is_dataclass(value) else value._fields
        inside = {n: _packed(getattr(value, n), arrays, f"{name}.{n}") for n in names}
        return {"kind": type(value).__name__, "fields": inside}
    if isinstance(value, tuple):
        return {"tuple": [_packed(v, arrays, f"{name}.{i}") for i, v in enumerate(value)]}
    if isinstance(value, list):
        return [_packed(v, arrays, f"{name}.{i}") for i, v in enumerate(value)]
    if isinstance(value, dict):
        return {"dict": {k: _packed(v, arrays, f"{name}.{k}") for k, v in value.items()}}
    raise InvalidInput(
        f"{name} must be numbers, text or a network of our own layers to be saved, got a "
        f"{type(value).__name__}. A file holds data, never code; use network='mlp', 'cnn' or a "
        "Stack, and an int as random_state, or pickle the estimator."
    )


def _unpacked(value: Any, arrays: dict[str, Any]) -> Any:
    if isinstance(value, list):
        return [_unpacked(v, arrays) for v in value]
    if not isinstance(value, dict):
        return value
    if "array" in value:
        return arrays[value["array"]]
    if "labels" in value:
        return np.array(value["labels"], dtype=object if value["object"] else None)
    if "stack" in value:
        layers = tuple(_LAYERS[kind](**options) for kind, options in value["layers"])
        return Stack(tuple(value["stack"]), layers)
    if "kind" in value:
        inside = {n: _unpacked(v, arrays) for n, v in value["fields"].items()}
        return _KINDS[value["kind"]](**inside)
    if "tuple" in value:
        return tuple(_unpacked(v, arrays) for v in value["tuple"])
    return {k: _unpacked(v, arrays) for k, v in value["dict"].items()}
