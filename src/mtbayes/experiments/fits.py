"""What the cells of the image and housing studies share: rows, fits, and measures of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from mtbayes.criteria import Objective
from mtbayes.experiments.methods import METHODS
from mtbayes.maths import draws
from mtbayes.models import LogLik
from mtbayes.posteriors import Posterior, Prior, prior
from mtbayes.predicting import predictive
from mtbayes.solve import sweep
from mtbayes.types import Array, BoolArray


class Rows(NamedTuple):
    """Dirty rows to train on, and clean ones to test on."""

    x: Array
    y: Array
    touched: BoolArray
    test_x: Array
    test_y: Array


class Fit(NamedTuple):
    """One trained ensemble."""

    t: float
    criterion: Objective
    posterior: Posterior
    state: Any
    model: LogLik

    def predict(self, x: Array, seed: int, members: int) -> Any:
        """Its predictive for rows x."""
        key = draws.key(1000 + seed)
        return predictive(self.model, self.posterior, self.state, x, key=key, members=members)

    @property
    def settings(self) -> tuple[float, float, float, float]:
        """m, t, t_p and beta, as a tidy row has them."""
        c: Any = self.criterion
        return c.m, self.t, c.t_p, c.beta


def trained(
    method: str,
    model: LogLik,
    rows: Rows,
    *,
    m: int,
    t_grid: tuple[float, ...],
    trust: float,
    seed: int,
    epochs: int,
    learning_rate: float = 0.01,
    law: Prior | None = None,
) -> Iterator[Fit]:
    """A fit for each t, all t that one program can serve at once; for one t if it has none."""
    how = METHODS[method]
    values = t_grid if how.swept else (1.0,)
    groups: dict[Objective, list[tuple[float, Objective]]] = {}
    for t in values:
        criterion = how.criterion(m, t, trust)
        groups.setdefault(criterion.template(), []).append((t, criterion))
    posterior = how.posterior(m)
    for group in groups.values():
        table = sweep(
            model,
            rows.x,
            rows.y,
            [criterion for _, criterion in group],
            keys=[draws.key(seed)],
            posterior=posterior,
            prior=prior(0.0, 1.0) if law is None else law,
            epochs=epochs,
            learning_rate=learning_rate,
        )
        for (t, criterion), (solution,) in zip(group, table, strict=True):
            yield Fit(t, criterion, posterior, solution.state, model)


def some(n: int, limit: int | None, seed: int) -> Array:
    """Which of n rows to take: `limit` of them at random, in order, or all."""
    if limit is None or limit >= n:
        return np.arange(n)
    return np.sort(np.random.default_rng([seed, 1]).permutation(n)[:limit])
