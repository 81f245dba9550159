"""How the fits of an estimator are made."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from mtbayes.criteria import Criterion
from mtbayes.errors import InvalidInput
from mtbayes.estimators.rows import Rows
from mtbayes.solve.checkpoint import Checkpoint
from mtbayes.solve.gradient import Progress, Training, run
from mtbayes.types import Array, FloatArray, Solution

MIDDLE = 0.7
"""The t at which a fit to a smaller one begins: from a random start it may never find the rows."""
_SHARE = 0.2  # of a fit's epochs, for those at its own t


class Legs(NamedTuple):
    """A fit in two parts, at `MIDDLE` and at its own t; a chunk's length divides both."""

    first: int
    second: int
    chunk: int


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

    @property
    def legs(self) -> Legs:
        """How many epochs a fit takes at `MIDDLE`, and then at its own t."""
        chunk = max(1, round(_SHARE * self.epochs / 2))
        return Legs(chunk * max(1, round(self.epochs / chunk) - 2), 2 * chunk, chunk)

    def settled(
        self,
        rows: Rows,
        t: float,
        key: Array,
        *,
        start: Any,
        place: Place,
        callback: Callable[[Progress], None],
    ) -> Solution:
        """The fit that is kept; at a small t in two legs, as those of folds are."""
        if start is not None or t >= MIDDLE:
            final = place.file("final")
            return self.fit(rows, t, key, start=start, checkpoint=final, callback=callback)
        legs, parts, state = self.legs, [], None
        done, total = 0, self.legs.first + self.legs.second
        for name, at, epochs in (("final-start", MIDDLE, legs.first), ("final", t, legs.second)):
            parts.append(
                self.fit(
                    rows,
                    at,
                    jax.random.fold_in(key, done),
                    epochs=epochs,
                    start=state,
                    chunk=legs.chunk,
                    checkpoint=place.file(name),
                    callback=_part(callback, done / total, epochs / total),
                )
            )
            state, done = parts[-1].state, done + epochs
        sound = all(part.status.converged for part in parts)
        trace = np.concatenate([part.trace for part in parts])
        status = parts[-1].status._replace(
            converged=sound,
            steps=sum(part.status.steps for part in parts),
            sentence=" ".join(dict.fromkeys(part.status.sentence for part in parts)),
        )
        return Solution(state, status, trace)


def history(solution: Solution) -> list[dict[str, float]]:
    """Loss, data term and divergence along a fit, by epoch."""
    chunks = solution.trace.tolist()
    length = solution.status.steps / max(1, len(chunks))
    return [
        {"epoch": int((i + 1) * length), "loss": a, "data": b, "divergence": c}
        for i, (a, b, c) in enumerate(chunks)
    ]


def _part(
    callback: Callable[[Progress], None], before: float, share: float
) -> Callable[[Progress], None]:
    """A callback for a part of the work that begins where `before` of it is done."""
    return lambda p: callback(p._replace(share=before + share * p.share))
