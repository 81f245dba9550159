"""How the fits of an estimator are made."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from mtbayes.criteria import Criterion
from mtbayes.errors import InvalidInput
from mtbayes.estimators.rows import Rows
from mtbayes.solve.checkpoint import Checkpoint
from mtbayes.solve.gradient import Progress, Training, run
from mtbayes.types import Array, FloatArray, Solution


class Place(NamedTuple):
    """Where an estimator's fits run and are kept.

    folder: of checkpoints, or None; mesh: of devices that share the rows of a step, or None
    """

    folder: Path | None = None
    mesh: Any = None

    @classmethod
    def of(cls, checkpoint: Any, mesh: Any) -> Place:
        """What a user gives."""
        folder = None if checkpoint is None else Path(checkpoint)
        if folder is not None and folder.exists() and not folder.is_dir():
            raise InvalidInput(f"checkpoint must be a folder, got the file {folder}.")
        return cls(folder, mesh)

    def file(self, name: str) -> Path | None:
        """The checkpoint of one fit."""
        return None if self.folder is None else self.folder / name


class Recipe(NamedTuple):
    """All that fits of one estimator have in common."""

    model: Any
    posterior: Any
    prior: Any
    law: Any
    criterion: Callable[[float], Criterion]
    epochs: int
    batch_size: int
    learning_rate: float
    mesh: Any = None

    def fit(
        self,
        rows: Rows,
        t: float,
        key: Array,
        *,
        weight: FloatArray | None = None,
        epochs: int | None = None,
        pace: float = 1.0,
        start: Any = None,
        chunk: int | None = None,
        checkpoint: Path | None = None,
        callback: Callable[[Progress], None] | None = None,
    ) -> Solution:
        """Rows fitted at t.

        weight, epochs: others than the rows' and the recipe's
        pace: factor on the learning rate
        start: a state to begin at; chunk: epochs between two calls back
        checkpoint: a file
        """
        training = Training(
            self.model,
            self.criterion(t),
            rows.x,
            rows.y,
            key=key,
            posterior=self.posterior,
            prior=self.prior,
            weight=rows.weight if weight is None else weight,
            learning_rate=pace * self.learning_rate,
            epochs=self.epochs if epochs is None else epochs,
            batch_size=self.batch_size,
            start=start,
            mesh=self.mesh,
            chunk=chunk,
        )
        saved = None if checkpoint is None else Checkpoint(checkpoint, training.fingerprint())
        return run(training, saved=saved, callback=callback)
