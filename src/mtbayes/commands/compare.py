"""`mtbayes compare`: ours beside a network, a deep ensemble and trees, on splits of a file."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
import typer

from mtbayes.commands import options
from mtbayes.commands.outputs import new_file, stem, unfinished
from mtbayes.commands.screen import GOES_ON, Screen, percent, usage
from mtbayes.types import FloatArray

if TYPE_CHECKING:
    from mtbayes.tables.comparison import Comparison
    from mtbayes.tables.scores import Score


def compare(
    data: options.Data,
    target: options.Target,
    out: Annotated[
        Path | None, options.out("Every score, as CSV; DATA's name with -compare.csv if none.")
    ] = None,
    repeats: Annotated[int, typer.Option(min=1, help="Random splits of the rows.")] = 5,
    jobs: Annotated[int, typer.Option(min=1, help="Processes.")] = 1,
    task: options.Task = None,
    learner: options.Learner = "auto",
    t: options.T = "auto",
    m: options.M = "auto",
    epochs: options.Epochs = None,
    resume: options.Resume = False,
    seed: options.Seed = 0,
    force: options.Force = False,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
    debug: options.Debug = False,
) -> None:
    """Learn a column by five methods, ours among them, and score rows that none has seen.

    Test rows are as dirty as the others. So all scores come twice: for all rows as given, and for
    rows weighted by the probability that they are right, as all methods together judge it.

    Example: mtbayes compare houses.csv --target price --repeats 5 --jobs 2
    """
    with Screen(quiet=quiet, as_json=as_json, debug=debug, stopped=GOES_ON) as screen:
        path = new_file(out or Path(f"{stem(data)}-compare.csv"), force, (".csv",))
        from mtbayes.commands.learning import opened, read_file
        from mtbayes.experiments.runner import compute
        from mtbayes.progress import bar
        from mtbayes.tables.comparison import Comparison, cells_of, coded_targets, test_rows
        from mtbayes.tables.model import Settings
        from mtbayes.tables.scores import Trial

        settings = Settings(t, m, epochs, seed, learner)
        usage(settings.check)
        schema, rows = read_file(screen, opened(screen, data), target, task)
        y, classes = coded_targets(rows.y, schema.task)
        cells = cells_of(rows.x, y, classes, repeats, settings)
        with (
            unfinished(path, resume, force) as done,
            bar("comparing", shown=screen.bars) as callback,
        ):
            contents = compute(cells, done.file, callback, jobs)
            tests = [Trial(y[test_rows(y, classes, seed, r)], {}) for r in range(repeats)]
            for cell, content in zip(cells, contents, strict=True):
                found = content["tables"]["predicted"].items()
                tests[cell.repeat].predicted[cell.method] = {k: np.array(v) for k, v in found}
            compared = Comparison.of(tests, len(y))
            compared.write(path)
        times = [
            (cell.method, content["seconds"]) for cell, content in zip(cells, contents, strict=True)
        ]
        _show(screen, compared, len(y), _mean_by(times))
        screen.line(f"Every score: {path} ({screen.seconds:g} s)")
        screen.line(" ".join(compared.words()))
        screen.done({"out": str(path), "task": schema.task, **compared.as_json()})


def _mean_by(pairs: list[tuple[str, float]]) -> dict[str, float]:
    return {
        name: float(np.mean([value for other, value in pairs if other == name]))
        for name, _ in pairs
    }


def _show(screen: Screen, found: Comparison, rows: int, seconds: dict[str, float]) -> None:
    from rich.table import Table

    from mtbayes.tables.comparison import ALL

    methods = next(iter(found.values.values()))
    splits = len(next(iter(next(iter(methods.values())).values())))
    tests = round(rows * found.tested / (1 + found.tested))
    screen.line()
    screen.line(
        f"{splits} random split{'s' * (splits > 1)}: {rows - tests} rows to learn from, {tests} to "
        "be judged by; mean ± standard deviation over splits."
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
        "guess in every prediction, so that no single row decides."
    )


def _cell(values: FloatArray, score: Score) -> str:
    """Mean ± sd, to two digits of the sd; shares to a tenth of a per cent."""
    from mtbayes.tables.comparison import spread

    found = spread(values)
    if found is None:
        return "-"
    factor, end = (100, " %") if score.unit else (1, "")
    mean, sd = factor * found["mean"], factor * found.get("sd", 0.0)
    if abs(mean) >= 1e6:
        return f"{mean:.3g}{f' ± {sd:.2g}' if 'sd' in found else ''}"
    digits = min(6, max(0, 1 - math.floor(math.log10(sd)))) if sd > 0 else 3
    digits = 1 if score.unit else digits
    return f"{mean:.{digits}f}{f' ± {sd:.{digits}f}' if 'sd' in found else ''}{end}"
