"""Several learners that speak together, each with its share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from mtbayes._values import must, storable
from mtbayes.errors import InvalidInput
from mtbayes.learners import MEMBERS
from mtbayes.maths import draws
from mtbayes.maths.softmax import log_softmax
from mtbayes.predictives import ClassPredictive
from mtbayes.types import Array


@storable
class Part(NamedTuple):
    """A learner of a pool, the t that it was fitted at, and how loud it speaks.

    law: by which its predictive of new rows is calibrated; how sure each is of itself is its own
        affair
    """

    learner: Any
    t: float
    share: float
    law: Any


@storable
@dataclass(frozen=True, eq=False)
class Pool:
    """The mixture of what calibrated learners say; its state has one of each part."""

    parts: tuple[Part, ...]

    name = "pool"
    by_heart = True

    def __post_init__(self) -> None:
        shares = [part.share for part in self.parts]
        if not self.parts or min(shares) <= 0 or abs(sum(shares) - 1) > 1e-6:
            raise InvalidInput(
                f"shares of a pool must be above 0 and add up to 1, got {shares}. The file is "
                "damaged; fit the model anew."
            )

    @property
    def words(self) -> str:
        """Who speaks, and how loud."""
        loud = [f"{name} ({share:.0%})" for name, share in self.shares.items()]
        if len(loud) == 1:
            return loud[0].split(" (")[0] + " alone"
        return f"{', '.join(loud[:-1])} and {loud[-1]} together"

    @property
    def shares(self) -> dict[str, float]:
        """By the learners' names, the largest first."""
        ordered = sorted(self.parts, key=lambda part: -part.share)
        return {part.learner.name: float(part.share) for part in ordered}

    def predictive(
        self, state: tuple[Any, ...], x: Array, key: Array, members: int = MEMBERS
    ) -> Any:
        """What the parts say of new rows, mixed."""
        found = [
            part.law.calibrated(part.learner.predictive(own, x, draws.child(key, i), members))
            for i, (part, own) in enumerate(zip(self.parts, state, strict=True))
        ]
        return mixed(found, [part.share for part in self.parts])

    @property
    def row_shape(self) -> tuple[int, ...]:
        """The shape of a row that its parts take; () where any will do."""
        shapes = (getattr(part.learner, "row_shape", ()) for part in self.parts)
        return next((shape for shape in shapes if shape), ())

    def check(self, state: Any, shape: tuple[int, ...], classes: int) -> None:
        """A state for each part, which is one of its learner's."""
        must(isinstance(state, tuple) and len(state) == len(self.parts), "parts of the pool")
        for part, own in zip(self.parts, state, strict=True):
            part.law.check(shape, classes)
            part.learner.check(own, shape, classes)


def mixed(predictives: list[Any], shares: list[float]) -> Any:
    """Predictives of the same rows as one."""
    return type(predictives[0]).mixed(predictives, shares)


def geometric_mean(parts: Sequence[ClassPredictive]) -> ClassPredictive:
    """The geometric mean of what each says of the same rows, normalised.

    >>> two = [ClassPredictive(np.log([p]), np.zeros(1)) for p in ([0.9, 0.1], [0.5, 0.5])]
    >>> geometric_mean(two).probs.round(4)  # odds 9 and 1, so 3 together
    array([[0.75, 0.25]])
    """
    logs = np.mean([np.asarray(part.log_probs, float) for part in parts], axis=0)
    doubt = np.mean([np.asarray(part.aleatoric, float) for part in parts], axis=0)
    return ClassPredictive(log_softmax(logs, axis=1), doubt)
