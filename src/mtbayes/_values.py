"""Values as JSON and arrays, for files that are data and never code.

A class takes part by being `storable`: a frozen dataclass or a NamedTuple, known by its name. What
a file names is looked up among these, so that a stranger's file runs nothing of theirs.
"""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any, TypeVar, get_args

import numpy as np

from mtbayes.errors import InvalidInput

_KINDS: dict[str, Any] = {}
_DEEPEST = 30

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
        f"{name} must be numbers, text, arrays or a network of our own layers to be saved, got a "
        f"{type(value).__name__}. A file holds data, never code; use network='mlp', 'cnn' or a "
        "Stack, and an int as random_state, or pickle the estimator."
    )


def unpacked(value: Any, arrays: dict[str, Any], depth: int = _DEEPEST) -> Any:
    """What `packed` was given; what no `packed` gives is an InvalidInput."""
    if depth == 0:
        raise InvalidInput(f"values must be nested at most {_DEEPEST} deep. The file is damaged.")
    if isinstance(value, list):
        return [unpacked(v, arrays, depth - 1) for v in value]
    if not isinstance(value, dict):
        return value
    if "array" in value:
        return arrays[value["array"]]
    if "labels" in value:
        return np.array(value["labels"], dtype=object if value["object"] else None)
    if "kind" in value:
        inside = {n: unpacked(v, arrays, depth - 1) for n, v in value["fields"].items()}
        return made(_KINDS[value["kind"]], inside)
    if "tuple" in value:
        return tuple(unpacked(v, arrays, depth - 1) for v in value["tuple"])
    return {k: unpacked(v, arrays, depth - 1) for k, v in value["dict"].items()}


def made(kind: Any, found: dict[str, Any]) -> Any:
    """A value of a class from fields that a file holds, each of the type that it must have."""
    known = _annotations(kind)
    if set(found) != set(known):
        raise InvalidInput(f"a {kind.__name__} must have {sorted(known)}, got {sorted(found)}.")
    for name, annotation in known.items():
        if not _fits(found[name], annotation):
            raise InvalidInput(
                f"{name} of a {kind.__name__} must be {annotation}, got "
                f"{type(found[name]).__name__}. The file is damaged."
            )
    return kind(**found)


def _annotations(kind: Any) -> dict[str, str]:
    given = {f.name: f.type for f in fields(kind)} if is_dataclass(kind) else kind.__annotations__
    return {name: _spelled(annotation) for name, annotation in given.items()}


def _spelled(annotation: Any) -> str:
    """An annotation as the source spells it, whether it is kept as text or as a type."""
    if isinstance(annotation, type) and not get_args(annotation):
        return annotation.__name__
    return getattr(annotation, "__forward_arg__", str(annotation))


def must(holds: Any, what: str) -> None:
    """Refuse what a file holds unless it fits together; what: the part that does not."""
    if not holds:
        raise InvalidInput(f"what it holds does not fit together: {what}")


def must_be_array(values: Any, shape: tuple[int, ...] | None, what: str) -> None:
    """Refuse all but an array of real numbers of this shape, or of any."""
    plain = isinstance(values, np.ndarray) and values.dtype.kind == "f"
    must(plain and (shape is None or values.shape == shape), what)


def _fits(value: Any, annotation: str) -> bool:
    """Whether a value is of a type, as the source spells it."""
    if annotation.endswith("]"):  # of a tuple or a list; a union within has no meaning of its own
        outer, _, inner = annotation[:-1].partition("[")
        if outer == "tuple" and inner.endswith(", ..."):
            inner = inner.removesuffix(", ...")
            return isinstance(value, tuple) and all(_fits(v, inner) for v in value)
        return isinstance(value, {"tuple": tuple, "list": list, "dict": dict}[outer])
    if " | " in annotation:
        return any(_fits(value, part) for part in annotation.split(" | "))
    if annotation in _TYPES:
        return _TYPES[annotation](value)
    return type(value).__name__ in _KINDS  # of a protocol, or what stands in for a class


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and value == value


_TYPES: dict[str, Any] = {
    "Any": lambda value: True,
    "None": lambda value: value is None,
    "bool": lambda value: isinstance(value, bool),
    "int": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "float": _is_number,
    "str": lambda value: isinstance(value, str),
    "Array": lambda value: isinstance(value, np.ndarray),
    "FloatArray": lambda value: isinstance(value, np.ndarray) and value.dtype.kind == "f",
}


def _fields(value: Any) -> dict[str, Any]:
    if is_dataclass(value):
        return {field.name: getattr(value, field.name) for field in fields(value)}
    return dict(value._asdict())
