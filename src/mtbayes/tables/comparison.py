"""Methods compared on splits of a table: by rows as given, and by rows as far as trusted."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mtbayes.errors import InvalidInput
from mtbayes.experiments.results import write_columns
from mtbayes.experiments.runner import Found
from mtbayes.fitting.units import Targets
from mtbayes.tables.contenders import CONTENDERS, OURS, Split
from mtbayes.tables.scores import (
    LOG,
    OF_CLASSES,
    OF_NUMBERS,
    Score,
    Trial,
    Verdict,
    believed,
    scores,
    verdict,
)
from mtbayes.types import Array, FloatArray

_EVERY = 4  # of so many rows one is a test row
_FEWEST = 20
ALL, BELIEVED = "all rows as given", "rows by trust"


@dataclass(frozen=True)
class Cell:
    """One method on one split; see `mtbayes.experiments.runner`."""

    method: str
    repeat: int
    settings: Any
    classes: int
    x: FloatArray
    y: Array

    @property
    def label(self) -> str:
        """What the progress bar says."""
        return f"split {self.repeat + 1}: {self.method}"

    @property
    def cost(self) -> float:
        """Work, about."""
        return CONTENDERS[self.method][1]

    def run(self) -> Any:
        """What the method says about the test rows."""
        x, y, settings = self.x, self.y, self.settings
        test = test_rows(y, self.classes, settings.seed, self.repeat)
        learn = np.setdiff1d(np.arange(len(y)), test)
        own = settings._replace(seed=settings.seed + self.repeat)
        task = Split(x[learn], y[learn], x[test], y[test], self.classes, own)
        with warnings.catch_warnings(action="ignore"):
            return Found([], {"predicted": CONTENDERS[self.method][0](task)})


def test_rows(y: Array, classes: int, seed: int, repeat: int) -> Array:
    """Test rows, a quarter of all; of every class a quarter too, to a row."""
    rng = np.random.default_rng([seed, repeat])
    order = rng.permutation(len(y))
    if classes:
        order = order[np.argsort(y[order], kind="stable")]
    return np.sort(order[int(rng.integers(_EVERY)) :: _EVERY])


def coded_targets(y: Array, task: str) -> tuple[Array, int]:
    """Labels as whole numbers and how many there are; numbers as they are, and 0."""
    if len(y) < _FEWEST:
        raise InvalidInput(
            f"the file must have at least {_FEWEST} rows with a target to be split, got {len(y)}. "
            "`mtbayes fit` takes fewer."
        )
    if task == "number":
        return y, 0
    labels, codes, counts = np.unique(y, return_inverse=True, return_counts=True)
    if (counts > 1).sum() < 2:
        raise InvalidInput(
            "the target must have at least 2 classes with 2 rows each to be split, got "
            f"{(counts > 1).sum()}. Name another target, or add rows."
        )
    return codes, len(labels)


def cells_of(x: FloatArray, y: Array, classes: int, repeats: int, settings: Any) -> list[Cell]:
    """Every method on every split of rows; y as `CONTENDERS` take it."""
    return [
        Cell(name, repeat, settings, classes, x, y)
        for repeat in range(repeats)
        for name in CONTENDERS
    ]


@dataclass(frozen=True)
class Comparison:
    """Scores by rows (all as given, or by trust), method, name and split.

    tested: test rows for each row that was learned from
    wrong: share of wrong test rows, as all methods together judge
    """

    scores: tuple[Score, ...]
    values: dict[str, dict[str, dict[str, FloatArray]]]
    tested: float
    wrong: float

    @classmethod
    def of(cls, tests: list[Trial], rows: int) -> Comparison:
        """From what the methods said about test rows, of a file of so many rows."""
        named = OF_NUMBERS if "mean" in next(iter(tests[0].predicted.values())) else OF_CLASSES
        units = Targets.of(np.concatenate([test.y for test in tests]))
        right = believed(tests)
        values: dict[str, dict[str, dict[str, FloatArray]]] = {}
        for kind in (ALL, BELIEVED):
            values[kind] = {}
            for method in tests[0].predicted:
                each = [
                    scores(
                        test.predicted[method], test.y, w if kind == BELIEVED else w * 0 + 1, units
                    )
                    for test, w in zip(tests, right, strict=True)
                ]
                values[kind][method] = {s.name: np.array([e[s.name] for e in each]) for s in named}
        size = len(tests[0].y)
        return cls(named, values, size / (rows - size), 1 - float(np.concatenate(right).mean()))

    def write(self, path: Path) -> None:
        """A row for each rows, method, score and split."""
        lines = [
            (kind, method, name, i + 1, value)
            for kind, methods in self.values.items()
            for method, named in methods.items()
            for name, values in named.items()
            for i, value in enumerate(values.tolist())
            if not np.isnan(value)
        ]
        names = ("rows", "method", "score", "split", "value")
        write_columns(path, dict(zip(names, zip(*lines, strict=True), strict=True)))

    def verdicts(self) -> list[tuple[str, Score, Verdict]]:
        """By a score that wrong rows cannot spoil, and by the log score of rows that are right.

        Wrong rows lower everybody's accuracy alike, and leave the median error nearly alone: no
        judge is needed. They would decide the log score, so that is taken where they count little.
        """
        found = []
        for kind, score in ((ALL, self.scores[0]), (BELIEVED, LOG)):
            values = {method: named[score.name] for method, named in self.values[kind].items()}
            found.append((kind, score, verdict(values, score, OURS, self.tested)))
        return found

    def words(self) -> list[str]:
        """The verdicts as sentences."""
        return [_sentence(kind, score, v) for kind, score, v in self.verdicts()]

    def as_json(self) -> dict[str, Any]:
        """Means and standard deviations, and who is best."""
        return {
            "scores": {
                kind: {
                    method: {name: spread(values) for name, values in named.items()}
                    for method, named in methods.items()
                }
                for kind, methods in self.values.items()
            },
            "wrong": self.wrong,
            "best": [
                {"rows": kind, "score": score.name, **v._asdict()}
                for kind, score, v in self.verdicts()
            ],
            "verdict": self.words(),
        }


def spread(values: FloatArray) -> dict[str, float] | None:
    """Mean and, of several values, standard deviation; None where there are no numbers."""
    if np.isnan(values).any():
        return None
    sd = float(np.std(values, ddof=1)) if len(values) > 1 else float("nan")
    return {"mean": float(values.mean()), **({} if np.isnan(sd) else {"sd": sd})}


def _sentence(kind: str, score: Score, found: Verdict) -> str:
    where = "" if kind == ALL else f" ({kind})"
    value = f"{100 * found.value:.1f} %" if score.unit else f"{found.value:.4g}"
    opening = f"Best by {score.name}{where}: {found.best} ({value}), "
    if found.ahead == 0:
        return f"{opening}level with {found.other}."
    ahead = f"{100 * found.ahead:.1f} points" if score.unit else f"{found.ahead:.3g}"
    near = {
        True: "more than splits scatter",
        False: "less than splits scatter, so it may be chance",
        None: "and so few splits cannot tell whether that is chance",
    }[found.beyond]
    return f"{opening}ahead of {found.other} by {ahead}, {near}."
