"""Two branches under a model with one, and outliers between them (Fig. 4, Table II).

ν: a ~ U[-10.5, 10.5], b = ±μ_a + N(0, 1), μ_a = 7 sin(3a/4) + a/2; ξ: the same a, b ~ N(0, .1).
The model is N(b | f(a), 1) with a 1-50-50-1 network, the posterior a mixture of K Gaussians, of
which K = 1 is the paper's.

The loss has many poor minima, and three means lead around them (docs/multimodal.md):

- the first layer's kinks are spread over the inputs at the start, not all at 0;
- training begins under a likelihood three times as wide, which narrows in stages, so that no branch
  is out of sight; the fits of all t start from one at t = .8;
- one Gaussian gets a switch: a bias of the first layer so uncertain that its unit is either off or
  far on, and silences half of the second layer where it is on. So members fall into two groups.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import norm

from mtbayes.criteria import Criterion
from mtbayes.data.contamination import Contaminated, huber
from mtbayes.experiments.results import Row
from mtbayes.experiments.runner import Columns, Found, Study
from mtbayes.laws import mixture_shares
from mtbayes.likelihoods import Gaussian
from mtbayes.maths import draws
from mtbayes.metrics.distance import total_variation
from mtbayes.models import Model
from mtbayes.networks import mlp
from mtbayes.posteriors import Mixture, mean_field
from mtbayes.posteriors.mixture import MixtureState
from mtbayes.predicting import predictive
from mtbayes.solve import fit, sweep
from mtbayes.types import Array, FloatArray

TABLE_2 = {(0.0, 1.0): 1.38, (0.1, 1.0): 2.15, (0.1, 0.9): 1.88, (0.1, 0.8): 1.79}
"""The paper's Table II: total variation, in units of its own, for each (ε, t)."""

EDGE, UNITS, MEMBERS = 10.5, 50, 20
LED, LONG, PLAIN, STRONG = "led", "long", "plain", "strong"
UNSWITCHED, UNSTAGED = "unswitched", "unstaged"
WAYS = {
    LED: "",
    LONG: ", four times the steps",
    UNSWITCHED: ", no switch",
    UNSTAGED: ", no wide stages",
    PLAIN: ", plain start",
    STRONG: ", plain start, beta = m",
}
"""Ways to train, and what the names of their rows end in: around the poor minima, that with one
part left out, or from the usual start at each t."""


class Metrics(NamedTuple):
    """What is measured of a fit, by the names of its rows."""

    tv: str
    score: str
    epsilon: str


CHOICES = (
    Metrics("tv", "score", "epsilon_found"),
    Metrics("tv_weighted", "score_weighted", "epsilon_found_weighted"),
)
"""Components of equal weight, as trained, and with the weights that unseen rows give them."""

_MIDDLE = 0.8  # the t from which the fits of all t start
_WIDE = (3.0, 2.0)  # standard deviations of the first likelihoods, at t = .9
_STD = 0.01  # of the weights at the start
_SWITCH = 30.0  # standard deviation of the switch
_BATCH, _RATE = 125, 0.01
_MEMBERS = 400
_A = EDGE * (2 * (np.arange(60) + 0.5) / 60 - 1)
_B = np.linspace(-30, 30, 601)
_SHOWN_A, _SHOWN_B = np.linspace(-EDGE, EDGE, 64), np.linspace(-16, 16, 65)
_SHOWN_POINTS = 600
_BINS = 60  # narrow laws of wrong targets


def branch(a: FloatArray) -> FloatArray:
    """μ_a, the upper or lower of the two branches ±μ_a."""
    result: FloatArray = 7 * np.sin(0.75 * a) + a / 2
    return result


def true_density(a: FloatArray, b: FloatArray) -> FloatArray:
    """ν(b|a) as [a, b]."""
    mean = branch(a)[:, None]
    result: FloatArray = 0.5 * (norm.pdf(b, mean, 1) + norm.pdf(b, -mean, 1))
    return result


def draw(n: int, epsilon: float, seed: Any) -> Contaminated:
    """Rows (a, b), exactly ε·n of them from ξ."""

    def clean(rng: np.random.Generator, size: int) -> FloatArray:
        a = rng.uniform(-EDGE, EDGE, size)
        sign = rng.choice([-1.0, 1.0], size)
        return np.stack([a, sign * branch(a) + rng.standard_normal(size)], axis=1)

    def outlier(rng: np.random.Generator, size: int) -> FloatArray:
        return np.stack([rng.uniform(-EDGE, EDGE, size), rng.normal(0, np.sqrt(0.1), size)], axis=1)

    return huber(clean, outlier, n, epsilon, seed=seed)


def model(std: float = 1.0) -> Model:
    """The paper's network under a Gaussian likelihood."""
    return Model(mlp((1, UNITS, UNITS, 1)), Gaussian(std))


def start(components: int, key: Array, *, switch: bool) -> MixtureState:
    """The first layer's kinks spread over the inputs, and in each component a switch if asked."""
    mean = Mixture(components).init(key, model()).mean
    rng = draws.generator(draws.child(key, 1))
    weight = mean[:, :UNITS]
    mean[:, UNITS : 2 * UNITS] = -weight * rng.uniform(-EDGE, EDGE, weight.shape)
    log_std = np.tile(np.log(_STD * model().scale()), (components, 1))
    if switch:
        # Unit 0 sees its bias alone, and is -1 or large; then it silences half of the next layer.
        bias, onward = UNITS, slice(2 * UNITS, 3 * UNITS)
        mean[:, 0] = mean[:, bias] = 0.0
        mean[:, onward] = np.where(rng.permutation(UNITS) < UNITS // 2, -1.0, 0.0)
        log_std[:, bias] = np.log(_SWITCH)
    return MixtureState(mean, log_std)


@dataclass(frozen=True)
class MultimodalCell:
    """Fits with K components at one ε and seed, for all t."""

    components: int
    way: str
    t_grid: tuple[float, ...]
    epsilon: float
    rows: int
    steps: int
    beta: float
    seed: int

    @property
    def label(self) -> str:
        """K, ε, seed."""
        return f"K = {self.components}, {self.way}, ε = {self.epsilon:g}, seed {self.seed}"

    @property
    def cost(self) -> float:
        """Fits, in thousand steps."""
        fits = len(self.t_grid)
        stages = 4 * fits if self._plainly else 3 + fits
        return self.steps * stages * (4 if self.way == LONG else 1) / 1000

    @property
    def _plainly(self) -> bool:
        return self.way in (PLAIN, STRONG)

    def run(self) -> Found:
        """Train and measure."""
        train, unseen = (
            draw(n, self.epsilon, np.random.default_rng([self.seed, part]))
            for part, n in enumerate((self.rows, self.rows // 4))
        )
        states = self._plain(train.data) if self._plainly else self._led(train.data)
        fits = list(zip(self.t_grid, states, strict=True))
        rows = [
            self._row(t, *each)
            for t, state in fits
            for each in measured(state, unseen.data).items()
        ]
        drawn = self.seed == 0 and self.way == LED and self.components <= 2
        return Found(rows, self._tables(train, fits) if drawn else {})

    def _fit(self, data: Array, t: float, key: int, begin: Any, std: float, rate: float) -> Any:
        steps = self.steps * (4 if self.way == LONG else 1)
        return fit(
            model(std),
            data[:, :1],
            data[:, 1],
            Criterion(MEMBERS, t, self.beta),
            key=draws.child(draws.key(self.seed), key),
            posterior=Mixture(self.components),
            epochs=steps * _BATCH // self.rows,
            batch_size=_BATCH,
            learning_rate=rate,
            start=begin,
        ).state

    def _led(self, data: Array) -> list[Any]:
        """From wide likelihoods to t in the middle, and from there to each t."""
        switch = self.components == 1 and self.way != UNSWITCHED
        state = start(self.components, draws.key(self.seed), switch=switch)
        for i, std in enumerate((1.0,) * len(_WIDE) if self.way == UNSTAGED else _WIDE):
            state = self._fit(data, 0.9, i, state, std, _RATE)
        state = self._fit(data, _MIDDLE, 2, state, 1.0, _RATE)
        return [self._fit(data, t, 3, state, 1.0, _RATE / 2) for t in self.t_grid]

    def _plain(self, data: Array) -> list[Any]:
        """As many steps for each t, from the usual start."""
        found = sweep(
            model(),
            data[:, :1],
            data[:, 1],
            [Criterion(MEMBERS, t, self.beta) for t in self.t_grid],
            keys=[draws.key(self.seed)],
            posterior=Mixture(self.components),
            epochs=4 * self.steps * _BATCH // self.rows,
            batch_size=_BATCH,
            learning_rate=_RATE,
        )
        return [solution.state for (solution,) in found]

    def _row(self, t: float, metric: str, value: float) -> Row:
        settings = (MEMBERS, t, 1.0, self.beta, self.epsilon, self.seed)
        name = method(self.components, self.way)
        return Row("multimodal", name, "multimodal", *settings, metric, value)

    def _shown(self, t: float, state: Any) -> Columns:
        density = _densities(state, _SHOWN_A, _SHOWN_B).mean(axis=0)
        a, b = np.meshgrid(_SHOWN_A, _SHOWN_B, indexing="ij")
        size = a.size
        return {
            "components": [self.components] * size,
            "epsilon": [self.epsilon] * size,
            "t": [t] * size,
            "a": a.round(3).ravel(),
            "b": b.round(3).ravel(),
            "density": density.round(5).ravel(),
        }

    def _tables(self, train: Contaminated, fits: list[tuple[float, Any]]) -> dict[str, Columns]:
        """What Figure 4 draws: densities and points of the first seed."""
        shown = [self._shown(t, state) for t, state in fits if (self.epsilon, t) in TABLE_2]
        joined = {k: np.concatenate([s[k] for s in shown]) for k in shown[0]}
        a, b = train.data[:_SHOWN_POINTS].T.round(3)
        points = {
            "epsilon": [self.epsilon] * len(a),
            "a": a,
            "b": b,
            "outlier": train.touched[:_SHOWN_POINTS].astype(float),
        }
        return {"densities": joined} | ({"points": points} if self.components == 2 else {})


def method(components: int, way: str = LED) -> str:
    """The name that rows of a fit carry."""
    return f"K={components}{WAYS[way]}"


def measured(state: Any, unseen: Array) -> dict[str, float]:
    """For both choices: the distance from ν, the score of unseen rows, the share of wrong ones."""
    a, b = unseen.T
    logs = np.stack([_members(part, a, _MEMBERS).log_prob(b) for part in _parts(state)])
    densities = _densities(state, _A, _B)
    alike = np.logaddexp.reduce(logs, axis=0) - np.log(len(logs))
    result: dict[str, Any] = {}
    for choice, laws, predictives in (
        (CHOICES[0], alike[None], densities.mean(axis=0, keepdims=True)),
        (CHOICES[1], logs, densities),
    ):
        score, shares = explained(laws, b)
        kept = shares if shares.any() else np.ones(len(shares))  # a hopeless fit keeps all
        density = np.tensordot(kept / kept.sum(), predictives, 1)
        result |= dict(zip(choice, (_distance(density), score, 1 - shares.sum()), strict=True))
    return {name: float(value) for name, value in result.items()}


def explained(logs: FloatArray, b: FloatArray) -> tuple[float, FloatArray]:
    """The score of rows with targets b[n], and the shares of laws with log densities logs[k, n].

    A wrong target follows some law that knows nothing of a: a mixture of narrow Gaussians all over
    the range of targets. Its shares and those of the laws maximise the likelihood of one half of
    the rows, and the score is the mean log density of the other.
    """
    centres = np.linspace(b.min(), b.max(), _BINS)
    width = 0.6 * (centres[1] - centres[0])
    noise = norm.logpdf(b, centres[:, None], width)
    every = np.concatenate([logs, noise])
    halves = np.arange(len(b)) % 2
    scores = []
    for half in (0, 1):
        shares = mixture_shares(every[:, halves == half], np.ones(int((halves == half).sum())))
        scores.append(_log_mixture(shares, every[:, halves != half]))
    shares = mixture_shares(every, np.ones(len(b)))
    return float(np.concatenate(scores).mean()), shares[: len(logs)]


def _log_mixture(shares: FloatArray, logs: FloatArray) -> FloatArray:
    largest = logs.max(axis=0)
    result: FloatArray = largest + np.log(shares @ np.exp(logs - largest) + 1e-300)
    return result


def _parts(state: Any) -> list[MixtureState]:
    """The components, each a mean field of its own."""
    return [MixtureState(*(v[k : k + 1] for v in state)) for k in range(len(state.mean))]


def _members(part: MixtureState, a: FloatArray, members: int) -> Any:
    return predictive(model(), mean_field(), part, a[:, None], key=draws.key(0), members=members)


def _densities(state: Any, a: FloatArray, b: FloatArray) -> FloatArray:
    """The components' predictives as [K, a, b]."""
    parts, grid = _parts(state), np.broadcast_to(b, (len(a), len(b)))
    members = -(-_MEMBERS // len(parts))
    return np.exp([_members(part, a, members).log_prob(grid) for part in parts])


def _distance(density: FloatArray) -> float:
    spacing = float(_B[1] - _B[0])
    return float(np.mean(total_variation(density, true_density(_A, _B), spacing).value))


class Chosen(NamedTuple):
    """The fit that a rule takes."""

    method: str
    t: float
    tv: float
    epsilon: float


def chosen(rows: list[Row], choice: Metrics) -> Chosen:
    """Of all fits to one data set the one with the highest score of unseen rows."""
    values = {(r.method, r.t, r.metric): r.value for r in rows}
    best = max((r for r in rows if r.metric == choice.score), key=lambda r: r.value)
    at = best.method, best.t
    return Chosen(*at, values[*at, choice.tv], values[*at, choice.epsilon])


@dataclass(frozen=True)
class MultimodalSpec:
    """K against t with and without outliers; and what one Gaussian needs, without outliers."""

    rows: int
    steps: int
    seeds: int
    components: tuple[int, ...]
    clean_t_grid: tuple[float, ...]
    t_grid: tuple[float, ...]
    ways: tuple[str, ...]
    epsilon: float = 0.1
    beta: float = 1000.0

    def cells(self) -> list[MultimodalCell]:
        """Seed by seed, so that a run that is stopped has whole seeds."""
        return [cell for seed in range(self.seeds) for cell in self._of(seed)]

    def _of(self, seed: int) -> list[MultimodalCell]:
        worlds = ((0.0, self.clean_t_grid), (self.epsilon, self.t_grid))
        kinds = [(k, LED, ts, e) for e, ts in worlds for k in self.components]
        kinds += [(1, PLAIN, (1.0,), e) for e, _ in worlds]
        kinds += [(1, way, (1.0,), 0.0) for way in self.ways]
        return [
            MultimodalCell(
                k, way, ts, epsilon, self.rows, self.steps,
                float(MEMBERS) if way == STRONG else self.beta, seed,
            )
            for k, way, ts, epsilon in kinds
        ]  # fmt: skip


STUDY = Study(
    "multimodal",
    "Two branches, outliers between them, and how many components to take (Fig. 4, Table II)",
    MultimodalSpec(1_000, 320, 1, (1, 2, 4), (1.0,), (1.0, 0.9, 0.8), ()),
    MultimodalSpec(
        2_000,
        1_200,
        3,
        (1, 2, 4, 10),
        (1.0, 0.8),
        (1.0, 0.9, 0.8, 0.5),
        (LONG, UNSWITCHED, UNSTAGED, STRONG),
    ),
)
