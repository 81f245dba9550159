"""A model of a table: an estimator, and the schema by which rows of files become its numbers."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from mtbayes.data.schema import Schema
from mtbayes.errors import InvalidInput
from mtbayes.estimators import RobustClassifier, RobustRegressor
from mtbayes.estimators.files import read, save
from mtbayes.fitting.fitted import marks
from mtbayes.types import Array, FloatArray

_TABLES = (".csv", ".tsv", ".txt", ".parquet", ".feather", ".arrow")
_KINDS: dict[str, Any] = {"classes": RobustClassifier, "number": RobustRegressor}


@dataclass(frozen=True)
class TableModel:
    """What a model's file holds; nothing else is needed to predict."""

    estimator: Any
    schema: Schema
    seen: Array | None = None
    """A `mark` of each fitted row, in the order of `Fitted.training`; None if not kept."""
    sampled: bool = False
    """Whether more rows were fitted, of which there are no marks."""

    def save(self, path: Path) -> None:
        """Write one file, whole or not at all."""
        self.estimator.verbose = 0
        beside = self.schema.as_json()
        if self.seen is not None:
            beside["seen"] = base64.b64encode(self.seen.astype("<u8").tobytes()).decode()
            beside["sampled"] = self.sampled
        save(self.estimator, path, beside)

    @classmethod
    def load(cls, path: Path) -> TableModel:
        """Read it; nothing in it is run."""
        if not path.is_file():
            what = "the folder" if path.is_dir() else "what does not exist,"
            raise InvalidInput(
                f"MODEL must be a file that `mtbayes fit` wrote, got {what} {str(path)!r}. Look "
                "for a misspelt name."
            )
        try:
            estimator, beside = read(path)
        except InvalidInput:
            if path.suffix.lower() not in _TABLES:
                raise
            raise InvalidInput(
                f"MODEL must be a file that `mtbayes fit` wrote, got the table {str(path)!r}. The "
                "model is named first, the rows after it."
            ) from None
        if beside is None:
            raise InvalidInput(
                f"{path} must be a model of a table, got an estimator that knows no columns. Load "
                "it with mtbayes.load in Python, or write one with `mtbayes fit`."
            )
        schema = Schema.from_json(beside)
        try:
            seen = beside.get("seen")
            marks = None if seen is None else np.frombuffer(base64.b64decode(seen), "<u8")
            fits = _fits(estimator, schema, marks)
        except (TypeError, ValueError, AttributeError):
            fits = False
        if not fits:
            raise InvalidInput(
                f"{path} must hold a model and the columns that it was fitted to, got columns that "
                "do not go with it. Get a fresh copy, or fit it anew."
            )
        return cls(estimator, schema, marks, bool(beside.get("sampled")))


def _fits(estimator: Any, schema: Schema, seen: Array | None) -> bool:
    """Whether an estimator can have learned from rows that a schema has coded."""
    kind, classes = _KINDS[schema.task], getattr(estimator, "classes_", None)
    labels = "i" if schema.whole else "U"
    return (
        isinstance(estimator, kind)
        and estimator.n_features_in_ == len(schema.features)
        and (classes is None or classes.dtype.kind == labels)
        and (seen is None or len(seen) == len(estimator.outlier_probability_))
    )


class TableRows(NamedTuple):
    """Rows of a file that have a target."""

    table: Any
    """As in the file, those without a target left out."""
    place: Array
    """Where each was among the rows of the file, from 1."""
    x: FloatArray
    y: Array

    def take(self, which: Array) -> TableRows:
        """Some of them."""
        return TableRows(self.table.take(which), self.place[which], self.x[which], self.y[which])


def mark(rows: TableRows) -> Array:
    """A number [n] for each row, by which it is known again: equal rows alone have equal ones."""
    return marks(rows.x, rows.y)


class Settings(NamedTuple):
    """Options of a fit, as a person gave them."""

    t: str
    m: str
    epochs: int | None
    seed: int
    learner: str = "auto"

    def estimator(self, task: str, *, verbose: bool) -> Any:
        """The estimator for a task."""
        return _KINDS[task](
            learner=self.learner,
            m=self.m if self.m == "auto" else int(self.m),
            t=self.t if self.t == "auto" else float(self.t),
            epochs="auto" if self.epochs is None else self.epochs,
            random_state=self.seed,
            verbose=int(verbose),
        )

    def check(self) -> None:
        """Refuse what no estimator takes, before any file is read."""
        for name, value, kind, rule in (
            ("t", self.t, float, "a number from 0 to 1, got {!r}. Smaller is more robust."),
            ("m", self.m, int, "a whole number from 1 up, got {!r}. 10 repairs a simple model."),
        ):
            try:
                _ = value if value == "auto" else kind(value)
            except ValueError:
                raise InvalidInput(f"{name} must be auto or {rule.format(value)}") from None
        estimator = self.estimator("classes", verbose=False)
        estimator.check_parameters()
