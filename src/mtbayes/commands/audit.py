"""`mtbayes audit`: the rows of a file whose target is most likely wrong."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import numpy as np
import typer

from mtbayes.commands import manners
from mtbayes.commands.manners import (
    GOES_ON,
    MERELY_UNUSUAL,
    Screen,
    new_file,
    open_share,
    percent,
    stem,
    unfinished,
)
from mtbayes.types import Array, FloatArray

if TYPE_CHECKING:
    from mtbayes.commands.model import Rows, TableModel


_TRUSTED = 0.05  # probability of being wrong, below which a row may judge others


class Findings(NamedTuple):
    """Rows from the most suspicious to the least."""

    order: Array
    """Places among the rows that were fitted, from 0."""
    probability: FloatArray
    """That the target is wrong."""
    given: list[Any]
    suggested: list[Any]
    why: list[str]
    influence: FloatArray | None = None
    """By how much the mean log loss of trusted rows would fall without the row; see `Harm`."""


def audit(
    data: manners.Data,
    target: manners.Target,
    out: Annotated[
        Path | None, manners.out("All rows, ranked; DATA's name with -audit.csv if none.")
    ] = None,
    expect: Annotated[
        float | None, typer.Option(help="Share of wrong rows, where you know it; else estimated.")
    ] = None,
    influence: Annotated[
        bool,
        typer.Option(
            "--influence",
            help="Add the harm that a row does: how much lower the mean log loss of trusted rows "
            "would be without it. Trusted are rows less than 5 % likely wrong, and in any case the "
            "less suspicious half.",
        ),
    ] = False,
    show: Annotated[int, typer.Option(min=0, help="Rows on the screen.")] = 20,
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
    """Rank the rows of a file by how likely their target is wrong, and say why.

    Every row is judged by a fit that has not seen it.

    Example: mtbayes audit houses.csv --target price --expect 0.1
    """
    with Screen(quiet=quiet, as_json=as_json, debug=debug, stopped=GOES_ON) as screen:
        open_share(expect, "expect", "It is the share of rows that you hold for wrong, like 0.1.")
        path = new_file(out or Path(f"{stem(data)}-audit.csv"), force, (".csv",))
        from mtbayes.commands.model import Settings, learn

        settings = Settings(t, m, epochs, seed)
        with unfinished(path, resume) as done:
            model, rows = learn(screen, data, target, task, settings, done)
            found = findings(model, rows.y, expect)
            trusted = None
            if influence:
                found, trusted = with_influence(model, rows, found)
            _write(path, found, rows)
        wrong = model.estimator.contamination_
        _show(screen, found, rows, show, wrong, expect, trusted, model.schema.task)
        screen.line(f"All {len(rows.y)} rows, ranked: {path} ({screen.seconds:g} s)")
        screen.done(
            {
                "out": str(path),
                "rows": len(rows.y),
                "wrong": {"share": wrong.value, "low": wrong.low, "high": wrong.high},
                "expect": expect,
                **({} if trusted is None else {"trusted": trusted}),
                "suspects": _records(found, rows, show),
            }
        )


def findings(model: TableModel, y: Array, expect: float | None = None) -> Findings:
    """What the fits that have not seen a row say about its target.

    expect: the share of wrong rows; Bayes' rule turns the odds at one share into those at another
    """
    estimator = model.estimator
    share = estimator.law_.epsilon if expect is None else expect
    odds = np.clip(estimator.suspicion_, 1e-300, 1 - 1e-16)
    wrong = odds * share
    probability = wrong / (wrong + (1 - odds) * (1 - share))
    words = _about_classes if model.schema.task == "classes" else _about_numbers
    likely, suggested, why = words(estimator, y, share)
    order = np.lexsort((likely, -odds))  # odds of the worst are all 1
    return Findings(
        order,
        probability[order],
        y[order].tolist(),
        [suggested[i] for i in order],
        [why[i] for i in order],
    )


def with_influence(model: TableModel, rows: Rows, found: Findings) -> tuple[Findings, int]:
    """The harm of each row to those that are trusted, and how many these are.

    A trusted row judges itself too, and speaks for itself; what a suspect does is told by others.
    """
    trusted = found.probability <= max(_TRUSTED, float(np.median(found.probability)))
    judges = np.sort(found.order[trusted])
    harm = model.estimator.influence(rows.x[judges], rows.y[judges]).harm
    return found._replace(influence=harm[found.order]), len(judges)


def _about_classes(
    estimator: Any, y: Array, share: float
) -> tuple[FloatArray, list[Any], list[str]]:
    """Probability of what is given, what is suggested, and why."""
    from mtbayes.mixtures import ClassPredictive

    probs, labels = estimator.held_out_, estimator.classes_
    codes: Any = np.searchsorted(labels, y)
    with np.errstate(divide="ignore"):
        told = ClassPredictive(np.log(probs), np.zeros(len(y)))
    law = replace(estimator.law_.at(share), temperature=1.0)  # probs are calibrated
    true = law.suggestion(told, codes)
    why = []
    for p, given, other in zip(probs, codes, true, strict=True):
        text = f"by other rows {labels[given]} has {_likely(p[given])}"
        best = int(p.argmax()) if other == given else int(other)
        why.append(text if best == given else f"{text}, {labels[best]} {_likely(p[best])}")
    return probs[np.arange(len(y)), codes], labels[true].tolist(), why


def _about_numbers(
    estimator: Any, y: Array, share: float
) -> tuple[FloatArray, list[Any], list[str]]:
    """Minus the distance of what is given, what is suggested, and why."""
    mean, std = estimator.held_out_.T
    distance, why = (y - mean) / std, []
    for off, m, s in zip(distance, mean, std, strict=True):
        side = "above" if off > 0 else "below"
        why.append(f"{abs(off):.1f} sd {side} what other rows say, {m:.4g} ± {s:.2g}")
    return -np.abs(distance), [float(f"{v:.6g}") for v in mean], why


def _likely(p: float) -> str:
    if p < 1e-4:
        return "below 0.01 %"
    return "above 99.99 %" if p > 0.9999 else f"{100 * p:.3g} %"


def _records(found: Findings, rows: Rows, count: int) -> list[dict[str, Any]]:
    harm = found.influence
    return [
        {
            "rank": i + 1,
            "row": int(rows.place[found.order[i]]),
            "probability": round(float(found.probability[i]), 6),
            "given": found.given[i],
            "suggested": found.suggested[i],
            **({} if harm is None else {"influence": float(f"{harm[i]:.4g}")}),
            "why": found.why[i],
        }
        for i in range(min(count, len(found.order)))
    ]


def _write(path: Path, found: Findings, rows: Rows) -> None:
    """All rows, ranked, with the columns of the file behind what was found."""
    import pyarrow as pa
    import pyarrow.csv

    from mtbayes._files import atomic
    from mtbayes.data.reading import unique

    said = pa.Table.from_pylist(_records(found, rows, len(found.order)))
    own = rows.table.take(pa.array(found.order))
    names, _ = unique([*said.column_names, *own.column_names])
    columns = [*said.columns, *(_flat(column) for column in own.columns)]
    with atomic(path) as temporary:
        pyarrow.csv.write_csv(pa.table(columns, names=list(names)), temporary)


def _flat(column: Any) -> Any:
    """A column that CSV can hold."""
    import pyarrow as pa

    return pa.array(map(str, column.to_pylist())) if pa.types.is_nested(column.type) else column


def _show(
    screen: Screen,
    found: Findings,
    rows: Rows,
    count: int,
    wrong: Any,
    expect: float | None,
    trusted: int | None,
    task: str,
) -> None:
    from rich.table import Table

    names = ["row", "probability", "given", "suggested", "influence", "why"]
    if trusted is None:
        names.remove("influence")
    table = Table(*names, box=None, pad_edge=False)
    for record in _records(found, rows, count):
        record["probability"] = percent(record["probability"])
        table.add_row(*(_cell(record[name]) for name in names))
    screen.line()
    screen.line(
        f"Estimated share of wrong rows: {percent(wrong.value)}, 95 % interval "
        f"{percent(wrong.low)} to {percent(wrong.high)}."
        + (f" Probabilities below take it as {percent(expect)}." if expect is not None else "")
        + MERELY_UNUSUAL[task]
    )
    likely = int((found.probability > 0.5).sum())
    screen.line(f"Rows more likely wrong than right: {likely} of {len(rows.y)}.")
    if trusted is not None:
        screen.line(
            f"Influence: how much lower the mean log loss of {trusted} trusted rows (the least "
            "suspicious) would be without the row. Above 0 it does harm; for ranking alone."
        )
    screen.line()
    screen.table(table)
    screen.line()


def _cell(value: Any) -> str:
    from rich.markup import escape

    return escape(f"{value:g}" if isinstance(value, float) else str(value))
