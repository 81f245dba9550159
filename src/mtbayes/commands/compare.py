"""`mtbayes compare`: ours beside a network, a deep ensemble and trees, on splits of a file."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from mtbayes.commands import manners
from mtbayes.commands.manners import GOES_ON, Screen, new_file, percent, stem, unfinished
from mtbayes.errors import InvalidInput
from mtbayes.types import Array, FloatArray

if TYPE_CHECKING:
    from mtbayes.commands.scores import Score, Trial, Verdict

_EVERY = 4  # of so many rows one is a test row
_FEWEST = 20
ALL, BELIEVED = "all rows as given", "rows by trust"


def compare(
    data: manners.Data,
    target: manners.Target,
    out: Annotated[
        Path | None, manners.out("Every score, as CSV; DATA's name with -compare.csv if none.")
    ] = None,
    repeats: Annotated[int, typer.Option(min=1, help="Random splits of the rows.")] = 5,
    jobs: Annotated[int, typer.Option(min=1, help="Processes.")] = 1,
    task: manners.Task = None,
    t: manners.T = "auto",
    m: manners.M = 10,
    epochs: manners.Epochs = None,
    resume: manners.Resume = False,
    seed: manners.Seed = 0,
    force: manners.Force = False,
    as_json: manners.Json = False,
    quiet: manners.Quiet = False,
    debug: manners.Debug = False,
) -> None:
    """Learn a column by five methods, ours among them, and score rows that none has seen.

    Test rows are as dirty as the others. So all scores come twice: for all rows as given, and for
    rows weighted by the probability that they are right, as all methods together judge it.

    Example: mtbayes compare houses.csv --target price --repeats 5 --jobs 2
    """
    with Screen(quiet=quiet, as_json=as_json, debug=debug, stopped=GOES_ON) as screen:
        path = new_file(out or Path(f"{stem(data)}-compare.csv"), force, (".csv",))
        from mtbayes.commands.model import Settings, opened, read_file
        from mtbayes.commands.scores import Trial
        from mtbayes.estimators.progress import bar
        from mtbayes.experiments.runner import compute

        settings = Settings(t, m, epochs, seed)
        settings.check()
        schema, rows = read_file(screen, opened(screen, data), target, task)
        y, classes = _coded(rows.y, schema.task)
        cells = cells_of(rows.x, y, classes, repeats, settings)
        with unfinished(path, resume) as done, bar("comparing", shown=screen.bars) as tell:
            contents = compute(cells, done, tell, jobs)
            tests = [Trial(y[split(y, classes, seed, r)], {}) for r in range(repeats)]
            for cell, content in zip(cells, contents, strict=True):
                told = {k: np.array(v) for k, v in content["tables"]["told"].items()}
                tests[cell.repeat].told[cell.method] = told
            found = Comparison.of(tests, len(y))
            found.write(path)
        times = [
            (cell.method, content["seconds"]) for cell, content in zip(cells, contents, strict=True)
        ]
        _show(screen, found, len(y), _mean_by(times))
        screen.line(f"Every score: {path} ({screen.seconds:g} s)")
        screen.line(" ".join(found.words()))
        screen.done({"out": str(path), "task": schema.task, **found.as_json()})


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
        from mtbayes.commands.methods import METHODS

        return METHODS[self.method][1]

    def run(self) -> Any:
        """What the method says about the test rows."""
        from mtbayes.commands.methods import METHODS, Task
        from mtbayes.experiments.runner import Found

        x, y, settings = self.x, self.y, self.settings
        test = split(y, self.classes, settings.seed, self.repeat)
        learn = np.setdiff1d(np.arange(len(y)), test)
        own = settings._replace(seed=settings.seed + self.repeat)
        task = Task(x[learn], y[learn], x[test], y[test], self.classes, own)
        with warnings.catch_warnings(action="ignore"):
            return Found([], {"told": METHODS[self.method][0](task)})


def split(y: Array, classes: int, seed: int, repeat: int) -> Array:
    """Test rows, a quarter of all; of every class a quarter too, to a row."""
    rng = np.random.default_rng([seed, repeat])
    order = rng.permutation(len(y))
    if classes:
        order = order[np.argsort(y[order], kind="stable")]
    return np.sort(order[int(rng.integers(_EVERY)) :: _EVERY])


def _coded(y: Array, task: str) -> tuple[Array, int]:
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
    """Every method on every split of rows; y as `METHODS` take it."""
    from mtbayes.commands.methods import METHODS

    return [
        Cell(name, repeat, settings, classes, x, y) for repeat in range(repeats) for name in METHODS
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
        from mtbayes.commands.scores import OF_CLASSES, OF_NUMBERS, believed, scores
        from mtbayes.estimators.scaling import Targets

        named = OF_NUMBERS if "mean" in next(iter(tests[0].told.values())) else OF_CLASSES
        units = Targets.of(np.concatenate([test.y for test in tests]))
        right = believed(tests)
        values: dict[str, dict[str, dict[str, FloatArray]]] = {}
        for kind in (ALL, BELIEVED):
            values[kind] = {}
            for method in tests[0].told:
                each = [
                    scores(test.told[method], test.y, w if kind == BELIEVED else w * 0 + 1, units)
                    for test, w in zip(tests, right, strict=True)
                ]
                values[kind][method] = {s.name: np.array([e[s.name] for e in each]) for s in named}
        size = len(tests[0].y)
        return cls(named, values, size / (rows - size), 1 - float(np.concatenate(right).mean()))

    def write(self, path: Path) -> None:
        """A row for each rows, method, score and split."""
        from mtbayes.experiments.tidy import write_columns

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
        from mtbayes.commands.methods import OURS
        from mtbayes.commands.scores import LOG, verdict

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
                    method: {name: _spread(values) for name, values in named.items()}
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


def _spread(values: FloatArray) -> dict[str, float] | None:
    if np.isnan(values).any():
        return None
    sd = float(np.std(values, ddof=1)) if len(values) > 1 else float("nan")
    return {"mean": float(values.mean()), **({} if np.isnan(sd) else {"sd": sd})}


def _sentence(kind: str, score: Score, found: Verdict) -> str:
    where = "" if kind == ALL else f" ({kind})"
    value = percent(found.value) if score.unit else f"{found.value:.4g}"
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


def _mean_by(pairs: list[tuple[str, float]]) -> dict[str, float]:
    return {
        name: float(np.mean([value for other, value in pairs if other == name]))
        for name, _ in pairs
    }


def _show(screen: Screen, found: Comparison, rows: int, seconds: dict[str, float]) -> None:
    from rich.table import Table

    methods = next(iter(found.values.values()))
    splits = len(next(iter(next(iter(methods.values())).values())))
    tests = round(rows * found.tested / (1 + found.tested))
    screen.line()
    screen.line(
        f"{splits} random splits: {rows - tests} rows to learn from, {tests} to be judged by; mean "
        "± standard deviation over splits."
    )
    for kind, named in found.values.items():
        table = Table(kind, box=None, pad_edge=False, padding=(0, 1))
        last = ["s/fit"] if kind == ALL else []
        for name in (*(score.name for score in found.scores), *last):
            table.add_column(name, justify="right", no_wrap=True)
        for method, values in named.items():
            cells = [_cell(values[score.name], score) for score in found.scores]
            table.add_row(method, *cells, *([f"{seconds[method]:.1f}"] if last else []))
        screen.line()
        screen.table(table)
    screen.line()
    screen.line(
        "Test rows are dirty too. The first table blames a method for every wrong value; the "
        "second forgives rows that no method understands. Its judge is the mean of all methods, "
        f"each with an equal say: {percent(found.wrong)} wrong. Log scores have 1 % of a blind "
        "guess in every prediction, lest one row decide."
    )


def _cell(values: FloatArray, score: Score) -> str:
    """Mean ± sd, to two digits of the sd; shares to a tenth of a per cent."""
    spread = _spread(values)
    if spread is None:
        return "-"
    factor, end = (100, " %") if score.unit else (1, "")
    mean, sd = factor * spread["mean"], factor * spread.get("sd", 0.0)
    if abs(mean) >= 1e6:
        return f"{mean:.3g}{f' ± {sd:.2g}' if 'sd' in spread else ''}"
    digits = min(6, max(0, 1 - math.floor(math.log10(sd)))) if sd > 0 else 3
    digits = 1 if score.unit else digits
    return f"{mean:.{digits}f}{f' ± {sd:.{digits}f}' if 'sd' in spread else ''}{end}"
