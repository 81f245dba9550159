"""California Housing with targets replaced by noise: clean NLL against t (Fig. 7), and rivals.

Targets are scaled to [0, 1], the likelihood is N(y | f(x), 0.1²). The paper writes N(y | f, 0.1);
read as a variance, that is wider than the targets' own spread, and no target an outlier.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np

from mtbayes.data import datasets
from mtbayes.data.contamination import replace_targets
from mtbayes.experiments.adversarial import Adversarial
from mtbayes.experiments.fits import Fit, Rows, some, trained
from mtbayes.experiments.methods import DEEP, GIBBS, METHODS, ROBUST
from mtbayes.experiments.results import Row
from mtbayes.experiments.runner import Found, Study
from mtbayes.fitting.units import Features
from mtbayes.likelihoods import Gaussian
from mtbayes.models import Model
from mtbayes.networks import housing_mlp, mlp

STD = 0.1
EPSILONS = (0.0, 0.1, 0.2, 0.3)
T_GRID = tuple(round(0.1 * i, 1) for i in range(11))
LEARNED = "deep ensemble, learned variance"
"""As its authors have it for regression: a variance for each input."""
ADVERSARIAL = f"{LEARNED}, adversarial"
"""The same with adversarial rows, the authors' option."""
STEP = 0.06
"""Of an adversarial row: the authors' hundredth of the range of a feature, which is 6 here."""


def housing_model() -> Model:
    """The paper's 8-10-10-1 network under a fixed standard deviation."""
    return Model(housing_mlp(), Gaussian(STD))


@dataclass(frozen=True)
class HousingCell:
    """One method at one ε and seed, for all t."""

    method: str
    m: int
    t_grid: tuple[float, ...]
    trust: float
    epsilon: float
    rows: int | None
    epochs: int
    learning_rate: float
    members: int
    seed: int

    @property
    def label(self) -> str:
        """Method, ε, seed."""
        return f"{self.method}, ε = {self.epsilon:g}, seed {self.seed}"

    @property
    def cost(self) -> float:
        """Fits, and a compilation."""
        return 2 + len(self.t_grid)

    def run(self) -> Found:
        """Train and measure."""
        rows = housing_rows(self.rows, self.epsilon, self.seed)
        learned = self.method in (LEARNED, ADVERSARIAL)
        model = Model(mlp((8, 10, 10, 2)), Gaussian("by_input")) if learned else housing_model()
        fits = trained(
            DEEP if learned else self.method,
            Adversarial(model, STEP) if self.method == ADVERSARIAL else model,
            rows,
            m=self.m,
            t_grid=self.t_grid,
            trust=self.trust,
            seed=self.seed,
            epochs=self.epochs,
            learning_rate=self.learning_rate,
        )
        plain = (fit._replace(model=model) for fit in fits)  # nobody tests on adversarial rows
        return Found([self._row(fit, *each) for fit in plain for each in self._measured(fit, rows)])

    def _measured(self, fit: Fit, rows: Rows) -> list[tuple[str, float]]:
        return list(measured(fit, rows, self.seed, self.members).items())

    def _row(self, fit: Fit, metric: str, value: float) -> Row:
        tags = ("housing", self.method, "california")
        return Row(*tags, *fit.settings, self.epsilon, self.seed, metric, value)


def measured(fit: Fit, rows: Rows, seed: int, members: int) -> dict[str, float]:
    """NLL and root mean squared error on clean rows."""
    found = fit.predict(rows.test_x, seed, members)
    return {
        "nll": -float(np.mean(found.log_prob(rows.test_y))),
        "rmse": float(np.sqrt(np.mean((found.mean - rows.test_y) ** 2))),
    }


def housing_rows(limit: int | None, epsilon: float, seed: int) -> Rows:
    """Features in units of their spread, targets in [0, 1], ε of them uniform noise."""
    data = datasets.load("california")
    which = some(len(data.y), limit, seed)
    units = Features.of(data.x[which])
    low, high = data.y.min(), data.y.max()
    y, test_y = ((v.astype(np.float64) - low) / (high - low) for v in (data.y[which], data.test_y))
    dirty = replace_targets(y, epsilon, seed=seed, how=lambda rng, size: rng.uniform(0, 1, size))
    return Rows(
        units.apply(data.x[which]), dirty.data, dirty.touched, units.apply(data.test_x), test_y
    )


@dataclass(frozen=True)
class HousingSpec:
    """Figure 7: methods over all t and ε, rivals over some of them."""

    rows: int | None
    epochs: int
    seeds: int
    rival_t_grid: tuple[float, ...]
    rival_epsilons: tuple[float, ...]
    rivals: tuple[str, ...] = (
        LEARNED,
        ADVERSARIAL,
        *(name for name in METHODS if name not in (ROBUST, GIBBS, DEEP)),
    )
    methods: tuple[str, ...] = (ROBUST, GIBBS, DEEP)
    t_grid: tuple[float, ...] = T_GRID
    epsilons: tuple[float, ...] = EPSILONS
    m: int = 5
    trust: float = 5.0
    learning_rate: float = 0.01
    members: int = 100

    def cells(self) -> list[HousingCell]:
        """Seed by seed, so that a run that is stopped has whole seeds."""
        plans = [(m, e, self.t_grid) for m, e in product(self.methods, self.epsilons)]
        plans += [
            (name, e, self.rival_t_grid) for name, e in product(self.rivals, self.rival_epsilons)
        ]
        return [
            HousingCell(
                name,
                self.m,
                t_grid if name in METHODS and METHODS[name].swept else (1.0,),
                self.trust,
                epsilon,
                self.rows,
                self.epochs,
                self.learning_rate,
                self.members,
                seed,
            )
            for seed, (name, epsilon, t_grid) in product(range(self.seeds), plans)
        ]


STUDY = Study(
    "housing",
    "California Housing, clean NLL against t, and rivals (Fig. 7)",
    HousingSpec(5_000, 40, 1, (0.9, 0.7), (0.0, 0.3)),
    HousingSpec(None, 60, 3, (0.9, 0.8, 0.7, 0.5), (0.0, 0.3)),
    "california",
)
