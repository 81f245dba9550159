"""A prior in the wrong place: NLL against its mean and the order t_p of the regulariser (Fig. 8).

The housing model on clean rows, prior N(Δμ, 0.1) (a variance), t = 1. First Δμ from 0 to 1 at
t_p = 1 and 0.5, then t_p from 0 to 1 at Δμ = 1. Here `beta` is the same at every m, as in the
paper: the regulariser weighs m/(n·beta), ten times as much at m = 10.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from mtbayes.criteria import Criterion
from mtbayes.experiments.fits import Fit
from mtbayes.experiments.housing import housing_model, housing_rows, measured
from mtbayes.experiments.runner import Found, Study
from mtbayes.maths import draws
from mtbayes.posteriors import mean_field, prior
from mtbayes.solve import sweep

STD = math.sqrt(0.1)
COLUMNS = ("m", "t_p", "beta", "prior_mean", "seed", "nll", "rmse")


@dataclass(frozen=True)
class PriorCell:
    """One (m, t_p) and seed, for several prior means and beta; one program serves them all."""

    m: int
    t_p: float
    betas: tuple[float, ...]
    prior_means: tuple[float, ...]
    rows: int | None
    epochs: int
    members: int
    seed: int

    @property
    def label(self) -> str:
        """m, t_p and seed."""
        return f"m = {self.m}, t_p = {self.t_p:g}, seed {self.seed}"

    @property
    def cost(self) -> float:
        """Fits, and a compilation."""
        return 2 + len(self.prior_means)

    def run(self) -> Found:
        """Train and measure."""
        rows = housing_rows(self.rows, 0.0, self.seed)
        model, posterior = housing_model(), mean_field()
        criteria = [Criterion(self.m, 1.0, beta, self.t_p) for beta in self.betas]
        columns: dict[str, list[float]] = {name: [] for name in COLUMNS}
        for centre in self.prior_means:
            table = sweep(
                model,
                rows.x,
                rows.y,
                criteria,
                keys=[draws.key(self.seed)],
                posterior=posterior,
                prior=prior(centre, STD),
                epochs=self.epochs,
            )
            for criterion, (solution,) in zip(criteria, table, strict=True):
                fit = Fit(1.0, criterion, posterior, solution.state, model)
                found = measured(fit, rows, self.seed, self.members)
                settings = (self.m, self.t_p, criterion.beta, centre, self.seed)
                for name, value in zip(COLUMNS, (*settings, *found.values()), strict=True):
                    columns[name].append(value)
        return Found([], {"nll": columns})


@dataclass(frozen=True)
class PriorSpec:
    """Figure 8: both panels."""

    rows: int | None
    epochs: int
    seeds: int
    orders: tuple[float, ...]
    prior_means: tuple[float, ...] = (0.0, 0.25, 0.5, 0.75, 1.0)
    sizes: tuple[int, ...] = (1, 10)
    betas: tuple[float, ...] = (1.0, 0.1)
    members: int = 100

    def cells(self) -> list[PriorCell]:
        """All prior means at t_p = 1 and 0.5, the last alone elsewhere."""
        return [
            PriorCell(
                m,
                t_p,
                self.betas,
                self.prior_means if t_p in (1.0, 0.5) else self.prior_means[-1:],
                self.rows,
                self.epochs,
                self.members,
                seed,
            )
            for seed in range(self.seeds)
            for m in self.sizes
            for t_p in self.orders
        ]


STUDY = Study(
    "prior",
    "A prior in the wrong place, KL against Rényi (Fig. 8)",
    PriorSpec(5_000, 40, 1, (0.05, 0.25, 0.5, 0.75, 1.0)),
    PriorSpec(None, 60, 3, (0.01, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)),
    "california",
)
