"""Images of which three labels in ten are wrong: accuracy and calibration against t (Fig. 5).

The same cells give the reliability diagrams (Fig. 10, 11), the NLL of clean and corrupted training
rows (Fig. 6), and, with more methods, a table over the rivals.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
from sklearn.metrics import roc_auc_score

from mtbayes import networks
from mtbayes.data import datasets
from mtbayes.data.contamination import flip_labels
from mtbayes.experiments.fits import Fit, Rows, some, trained
from mtbayes.experiments.methods import DEEP, GIBBS, METHODS, MODES, ROBUST
from mtbayes.experiments.results import Row
from mtbayes.experiments.runner import Columns, Found, Study
from mtbayes.likelihoods import Categorical
from mtbayes.metrics import expected_calibration_error, reliability
from mtbayes.models import Model
from mtbayes.types import BoolArray

EPSILON = 0.3
BINS = 15
T_GRID = tuple(round(0.1 * i, 1) for i in range(11))
SPLIT = (1.0, 0.7)
"""The t of Fig. 6."""
EDGES = np.linspace(0.0, 8.0, 41)
"""Bins of the NLL in Fig. 6; the last takes all beyond."""

_NETWORKS: dict[str, tuple[Callable[[], networks.Stack], int]] = {
    "mnist": (networks.mnist_mlp, 10),
    "emnist": (networks.emnist_mlp, 47),
    "cifar10": (networks.cifar_cnn, 10),
}


@dataclass(frozen=True)
class ImageCell:
    """One method on one data set and seed, for some t.

    rows: training rows, None for all; members: members of the predictive
    split: whether to measure the NLL of training rows too
    """

    dataset: str
    method: str
    m: int
    t_grid: tuple[float, ...]
    trust: float
    rows: int | None
    epochs: int
    learning_rate: float
    members: int
    seed: int
    split: bool = False
    epsilon: float = EPSILON

    @property
    def label(self) -> str:
        """Data set, method, seed."""
        return f"{self.dataset}: {self.method}, seed {self.seed}"

    @property
    def cost(self) -> float:
        """Network passes."""
        members = 1 if self.method == GIBBS else self.m
        count = 1 if self.method == DEEP else len(self.t_grid)
        return self.epochs * (2 + members) * count

    def run(self) -> Found:
        """Train and measure."""
        network, classes = _NETWORKS[self.dataset]
        model = Model(network(), Categorical(classes))
        rows = image_rows(self.dataset, self.rows, self.epsilon, self.seed)
        result = Found([], {})
        for fit in trained(
            self.method,
            model,
            rows,
            m=self.m,
            t_grid=self.t_grid,
            trust=self.trust,
            seed=self.seed,
            epochs=self.epochs,
            learning_rate=self.learning_rate,
        ):
            values, diagram = self._measured(fit, rows)
            result.rows.extend(self._row(fit, *each) for each in values.items())
            _extend(result.tables, "reliability", self._tagged(fit, diagram))
            if self.split:
                nll = -fit.predict(rows.x, self.seed, self.members).log_prob(rows.y)
                area = float(roc_auc_score(rows.touched, nll))
                result.rows.append(self._row(fit, "auroc", area))
                _extend(result.tables, "nll", self._tagged(fit, _histogram(nll, rows.touched)))
        return result

    def _measured(self, fit: Fit, rows: Rows) -> tuple[dict[str, float], Columns]:
        found = fit.predict(rows.test_x, self.seed, self.members)
        accuracy = float(np.mean(found.labels == rows.test_y))
        values = {
            "accuracy": accuracy,
            "ece": expected_calibration_error(found.probs, rows.test_y, BINS),
            "nll": -float(np.mean(found.log_prob(rows.test_y))),
            "overconfidence": float(found.probs.max(axis=1).mean()) - accuracy,
        }
        diagram = reliability(found.probs, rows.test_y, BINS)
        return values, {"bin": range(BINS), **diagram._asdict()}

    def _tagged(self, fit: Fit, columns: Columns) -> Columns:
        """The columns, with those that tell this fit from others."""
        tags = {"method": self.method, "t": fit.t, "seed": self.seed}
        size = len(next(iter(columns.values())))
        return {name: [value] * size for name, value in tags.items()} | {
            name: np.asarray(values).tolist() for name, values in columns.items()
        }

    def _row(self, fit: Fit, metric: str, value: float) -> Row:
        tags = ("images", self.method, self.dataset)
        return Row(*tags, *fit.settings, self.epsilon, self.seed, metric, value)


def image_rows(name: str, limit: int | None, epsilon: float, seed: int) -> Rows:
    """Pixels in units of their spread, flat for a fully connected network, and flipped labels."""
    data = datasets.load(name)
    which = some(len(data.y), limit, seed)
    x, test_x = (_scaled(a, flat=name != "cifar10") for a in (data.x[which], data.test_x))
    y = data.y[which].astype(np.int32)
    dirty = flip_labels(y, epsilon, seed=seed, how="other")
    return Rows(x, dirty.data.astype(np.int32), dirty.touched, test_x, data.test_y.astype(np.int32))


def _scaled(pixels: Any, *, flat: bool) -> Any:
    x = pixels.astype(np.float32) / 255
    return (x.reshape(len(x), -1) - 0.13) / 0.31 if flat else (x - 0.47) / 0.25


def _histogram(nll: Any, touched: BoolArray) -> Columns:
    capped = np.minimum(nll, EDGES[-1])
    clean, corrupted = (np.histogram(capped[touched == w], EDGES)[0] for w in (False, True))
    return {"left": EDGES[:-1], "clean": clean, "corrupted": corrupted}


def _extend(tables: dict[str, Columns], name: str, columns: Columns) -> None:
    whole = tables.setdefault(name, {column: [] for column in columns})
    for column, values in columns.items():
        whole[column] += values


@dataclass(frozen=True)
class ImageSpec:
    """A figure: methods over all t, rivals over some of them.

    together: how many t a cell trains at once; a small network gains by it, a CNN does not
    """

    dataset: str
    rows: int | None
    epochs: int
    seeds: int
    methods: tuple[str, ...] = (ROBUST, GIBBS, DEEP)
    t_grid: tuple[float, ...] = T_GRID
    rivals: tuple[str, ...] = ()
    rival_t_grid: tuple[float, ...] = ()
    together: int = len(T_GRID)
    m: int = 10
    trust: float = 5.0
    learning_rate: float = 0.01
    members: int = 100

    def cells(self) -> list[ImageCell]:
        """Seed by seed, so that a run that is stopped has whole seeds."""
        plans = [(name, group) for name in self.methods for group in self._groups(name)]
        plans += [(name, self.rival_t_grid) for name in self.rivals]
        return [
            ImageCell(
                self.dataset,
                method,
                self.m,
                group,
                self.trust,
                self.rows,
                self.epochs,
                self.learning_rate,
                self.members,
                seed,
                split=self.dataset == "cifar10" and method == ROBUST and set(group) <= set(SPLIT),
            )
            for seed, (method, group) in product(range(self.seeds), plans)
        ]

    def _groups(self, method: str) -> list[tuple[float, ...]]:
        if not METHODS[method].swept:
            return [(1.0,)]
        starts = range(0, len(self.t_grid), self.together)
        return [self.t_grid[i : i + self.together] for i in starts]


_RIVALS = tuple(name for name in METHODS if name not in (ROBUST, GIBBS, DEEP))
_MNIST_QUICK = ImageSpec(
    "mnist", 10_000, 10, 1, rivals=_RIVALS, rival_t_grid=(0.5, 0.0), members=20
)
_MNIST_FULL = replace(
    _MNIST_QUICK, rows=None, seeds=3, members=100, rival_t_grid=(0.9, 0.7, 0.5, 0.3, 0.0)
)
_CIFAR_QUICK = ImageSpec(
    "cifar10",
    2_500,
    8,
    1,
    t_grid=(0.3, 0.5, 0.7, 1.0),
    together=1,
    members=20,
    rivals=(MODES,),
    rival_t_grid=(0.7,),
)
_CIFAR_FULL = replace(
    _CIFAR_QUICK, rows=None, epochs=20, seeds=3, t_grid=T_GRID, rival_t_grid=(0.7,)
)

MNIST = Study(
    "mnist",
    "MNIST, accuracy and ECE against t, and rivals (Fig. 5a)",
    _MNIST_QUICK,
    _MNIST_FULL,
    "mnist",
)
EMNIST = Study(
    "emnist",
    "EMNIST in 47 classes, accuracy and ECE against t (Fig. 5b)",
    ImageSpec("emnist", 8_000, 10, 1, members=20, rivals=(MODES,), rival_t_grid=(0.7,)),
    ImageSpec("emnist", None, 20, 3, rivals=(MODES,), rival_t_grid=(0.9, 0.7, 0.5, 0.3)),
    "emnist",
)
CIFAR10 = Study(
    "cifar10",
    "CIFAR-10, accuracy and ECE against t (Fig. 5c)",
    _CIFAR_QUICK,
    _CIFAR_FULL,
    "cifar10",
)
NLL_SPLIT = Study(
    "nll-split",
    "NLL of clean and corrupted training rows of CIFAR-10 (Fig. 6)",
    replace(_CIFAR_QUICK, methods=(ROBUST,), t_grid=SPLIT, rivals=(), rival_t_grid=()),
    replace(_CIFAR_FULL, methods=(ROBUST,), t_grid=SPLIT, rivals=(), rival_t_grid=()),
    "cifar10",
)
RELIABILITY = Study(
    "reliability",
    "Reliability diagrams on MNIST (Fig. 10, 11)",
    replace(_MNIST_QUICK, rivals=(), rival_t_grid=()),
    replace(_MNIST_FULL, rivals=(), rival_t_grid=()),
    "mnist",
)
