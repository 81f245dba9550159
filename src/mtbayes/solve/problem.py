"""A fit as a value: what is minimised, over which family, on which rows, by which steps."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import jax
import numpy as np
import optax

from mtbayes import _check
from mtbayes.criteria import Objective
from mtbayes.models import LogLik
from mtbayes.posteriors import Posterior, Prior, mean_field
from mtbayes.posteriors import prior as gaussian_prior
from mtbayes.solve.checkpoint import describe
from mtbayes.solve.checks import check_groups, check_parts, check_start, checked_rows
from mtbayes.types import Array, Rows

_FEW_ROWS = 4096


def few_sizes(rows: int) -> int:
    """Room for so many rows: a power of 2, or of many rows a multiple of 4,096.

    Numbers of rows that are alike share compiled programs so.

    >>> few_sizes(60), few_sizes(569), few_sizes(20_000)
    (64, 1024, 20480)
    """
    if rows <= _FEW_ROWS:
        return max(64, 1 << (rows - 1).bit_length())
    return _FEW_ROWS * -(-rows // _FEW_ROWS)


@dataclass(frozen=True, eq=False)
class Held:
    """Checked rows on the device, where many fits find them: they are uploaded once.

    x, y: with rows behind the last that are never picked, up to one of `few_sizes`
    count: of the rows
    """

    x: Array
    y: Array
    count: int

    @classmethod
    def of(cls, model: LogLik, x: Any, y: Any) -> Held:
        """Rows that a model can take."""
        x, y = (np.asarray(v) for v in checked_rows(model, x, y))
        room = few_sizes(len(x)) - len(x)
        wide = [np.concatenate([v, np.zeros((room, *v.shape[1:]), v.dtype)]) for v in (x, y)]
        on_device: Any = jax.device_put(wide)
        return cls(on_device[0], on_device[1], len(x))

    def __len__(self) -> int:
        return self.count

    @property
    def rows(self) -> tuple[Any, Any]:
        """x and y without what is behind the last row, as NumPy's."""
        return np.asarray(self.x)[: self.count], np.asarray(self.y)[: self.count]

    @cached_property
    def digest(self) -> str:
        """By which a checkpoint knows them again."""
        return describe((self.x, self.y))


@dataclass(frozen=True, eq=False)
class Problem:
    """All that a fit follows from, but for its random numbers.

    model: a `Model` or `CustomModel`; criterion: `Criterion(m, t, beta, t_p)` or a rival's
    rows: x, y and weight as `fit` takes them; x may be `Held`, with no y beside it
    posterior: a family; prior: of θ
    optimiser: any optax transformation, or None for Adam at a `learning_rate` that falls to 0
    epochs: passes over the rows; batch_size: rows a step; shuffle: in a new order each epoch
    start: a state of the posterior, or None for a random one
    mesh: of devices that share a step, or None
    chunk: epochs between two looks at the fit, or None for about twenty looks
    """

    model: LogLik
    criterion: Objective
    rows: Rows
    posterior: Posterior = field(default_factory=mean_field)
    prior: Prior = field(default_factory=gaussian_prior)
    optimiser: optax.GradientTransformation | None = None
    learning_rate: float = 0.01
    epochs: int = 20
    batch_size: int = 128
    start: Any = None
    shuffle: bool = True
    mesh: Any = None
    chunk: int | None = None

    def __post_init__(self) -> None:
        check_parts(self.model, self.criterion, self.posterior, self.prior)
        _check.count(self.epochs, "epochs", "20 is the default.")
        _check.count(self.batch_size, "batch_size", "128 is the default.")
        _check.positive(self.learning_rate, "learning_rate", "0.01 is the default.")
        check_groups(self.criterion, self.posterior)
        check_start(self.start, self.posterior, self.model)
