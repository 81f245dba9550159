"""Values as JSON and arrays, for files that are data and never code.

A class takes part by being `storable`: a frozen dataclass or a NamedTuple, known by its name. What
a file names is looked up among these, so that a stranger's file runs nothing of theirs.
"""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any, TypeVar

import numpy as np

from mtbayes.errors import InvalidInput

_KINDS: dict[str, Any] = {}

Kind = TypeVar("Kind", bound=type)


def storable(kind: Kind) -> Kind:
    """A class decorator: values of this class can be put into files."""
    if kind.__name__ in _KINDS and _KINDS[kind.__name__].__module__ != kind.__module__:
        raise InvalidInput(
            f"a storable class must have a name of its own, got another {kind.__name__}. Rename it."
        )
    _KINDS[kind.__name__] = kind
    return kind


def packed(value: Any, arrays: dict[str, Any], name: str) -> Any:
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
    if type(value).__name__ in _KINDS:
        inside = {n: packed(v, arrays, f"{name}.{n}") for n, v in _fields(value).items()}
        return {"kind": type(value).__name__, "fields": inside}
    if isinstance(value, tuple):
        return {"tuple": [packed(v, arrays, f"{name}.{i}") for i, v in enumerate(value)]}
    if isinstance(value, list):
        return [packed(v, arrays, f"{name}.{i}") for i, v in enumerate(value)]
    if isinstance(value, dict):
        return {"dict": {k: packed(v, arrays, f"{name}.{k}") for k, v in value.items()}}
    raise InvalidInput(
        f"{name} must be numbers, text or a network of our own layers to be saved, got a "
        f"{type(value).__name__}. A file holds data, never code; use learner='auto', 'network', "
        "'linear' or 'trees', network='mlp', 'cnn' or a Stack, and an int as random_state, or "
        "pickle the estimator."
    )


def unpacked(value: Any, arrays: dict[str, Any]) -> Any:
    """What `packed` was given."""
    if isinstance(value, list):
        return [unpacked(v, arrays) for v in value]
    if not isinstance(value, dict):
        return value
    if "array" in value:
        return arrays[value["array"]]
    if "labels" in value:
        return np.array(value["labels"], dtype=object if value["object"] else None)
    if "kind" in value:
        inside = {n: unpacked(v, arrays) for n, v in value["fields"].items()}
        return _KINDS[value["kind"]](**inside)
    if "tuple" in value:
        return tuple(unpacked(v, arrays) for v in value["tuple"])
    return {k: unpacked(v, arrays) for k, v in value["dict"].items()}


def _fields(value: Any) -> dict[str, Any]:
    if is_dataclass(value):
        return {field.name: getattr(value, field.name) for field in fields(value)}
    return dict(value._asdict())
