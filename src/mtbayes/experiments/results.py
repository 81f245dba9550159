"""Numbers in files: the tidy rows that all experiments share, and plain tables of curves."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from mtbayes import _files
from mtbayes.types import FloatArray


class Row(NamedTuple):
    """One measured number and all that it depends on."""

    experiment: str
    method: str
    dataset: str
    m: float
    t: float
    t_p: float
    beta: float
    epsilon: float
    seed: int
    metric: str
    value: float


COLUMNS = tuple(Row.__annotations__)
_TEXT = ("experiment", "method", "dataset", "metric")


def write_rows(path: Path, rows: Iterable[Row]) -> None:
    """Write tidy rows as CSV, all or nothing."""
    with _files.atomic(path) as temporary, temporary.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        writer.writerows([_shown(v) for v in row] for row in rows)


def read_rows(path: Path) -> list[Row]:
    """Read what `write_rows` wrote."""
    with path.open(newline="") as file:
        return [Row(*map(_parsed, COLUMNS, record)) for record in list(csv.reader(file))[1:]]


def write_columns(path: Path, columns: Mapping[str, Sequence[Any] | FloatArray]) -> None:
    """Write named columns of equal length as CSV, all or nothing."""
    with _files.atomic(path) as temporary, temporary.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows([_shown(v) for v in row] for row in zip(*columns.values(), strict=True))


def read_columns(path: Path) -> dict[str, FloatArray]:
    """Read numeric columns by name."""
    with path.open(newline="") as file:
        names, *rows = csv.reader(file)
    return dict(zip(names, np.array(rows, dtype=float).T, strict=True))


def read_table(path: Path) -> dict[str, Any]:
    """Read columns by name, numbers where a whole column is numbers, and texts elsewhere."""
    with path.open(newline="") as file:
        names, *rows = csv.reader(file)
    columns = zip(*rows, strict=True) if rows else ((),) * len(names)
    return {name: _numbers(column) for name, column in zip(names, columns, strict=True)}


def _numbers(column: Sequence[str]) -> Any:
    try:
        return np.array(column, dtype=float)
    except ValueError:
        return np.array(column)


def _parsed(column: str, text: str) -> Any:
    return text if column in _TEXT else int(text) if column == "seed" else float(text)


def _shown(value: Any) -> Any:
    return f"{value:.10g}" if isinstance(value, float) else value
