"""`mtbayes audit`: the rows of a file whose target is most likely wrong."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import numpy as np
import typer

from mtbayes.commands import manners
from mtbayes.commands.manners import Screen, new_file, open_share, percent, stem
from mtbayes.types import Array, FloatArray

if TYPE_CHECKING:
    from mtbayes.commands.model import Rows, TableModel


class Findings(NamedTuple):
    """Rows from the most suspicious to the least."""

    order: Array
    """Places among the rows that were fitted, from 0."""
    probability: FloatArray
    """That the target is wrong."""
    given: list[Any]
    suggested: list[Any]
    why: list[str]


def audit(
    data: manners.Data,
    target: manners.Target,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="All rows, ranked; DATA's name with -audit.csv if none."),
    ] = None,
    expect: Annotated[
        float | None, typer.Option(help="Share of wrong rows, where you know it; else estimated.")
    ] = None,
    show: Annotated[int, typer.Option(min=0, help="Rows on the screen.")] = 20,
    task: manners.Task = None,
    t: manners.T = "auto",
    m: manners.M = 10,
    epochs: manners.Epochs = None,
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
    with Screen(quiet=quiet, as_json=as_json, debug=debug) as screen:
        open_share(expect, "expect", "It is the share of rows that you hold for wrong, like 0.1.")
        path = new_file(out or Path(f"{stem(data)}-audit.csv"), force)
        from mtbayes.commands.model import Settings, learn

        model, rows = learn(screen, data, target, task, Settings(t, m, epochs, seed), None)
        found = findings(model, rows.y, expect)
        _write(path, found, rows)
        wrong = model.estimator.contamination_
        _show(screen, found, rows, show, path, wrong, expect)
        screen.done(
            {
                "out": str(path),
                "rows": len(rows.y),
                "wrong": {"share": wrong.value, "low": wrong.low, "high": wrong.high},
                "expect": expect,
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
    return [
        {
            "rank": i + 1,
            "row": int(rows.place[found.order[i]]),
            "probability": round(float(found.probability[i]), 6),
            "given": found.given[i],
            "suggested": found.suggested[i],
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
    path: Path,
    wrong: Any,
    expect: float | None,
) -> None:
    from rich.table import Table

    table = Table("row", "probability", "given", "suggested", "why", box=None, pad_edge=False)
    for record in _records(found, rows, count):
        probability = percent(record["probability"])
        cells = (record["row"], probability, record["given"], record["suggested"], record["why"])
        table.add_row(*map(_cell, cells))
    screen.line()
    screen.line(
        f"Estimated share of wrong rows: {percent(wrong.value)}, 95 % interval "
        f"{percent(wrong.low)} to {percent(wrong.high)}."
        + (f" Probabilities below take it as {percent(expect)}." if expect is not None else "")
    )
    likely = int((found.probability > 0.5).sum())
    screen.line(f"Rows more likely wrong than right: {likely} of {len(rows.y)}.")
    screen.line()
    screen.table(table)
    screen.line()
    screen.line(f"All {len(rows.y)} rows, ranked: {path} ({screen.seconds:g} s)")


def _cell(value: Any) -> str:
    from rich.markup import escape

    return escape(f"{value:g}" if isinstance(value, float) else str(value))
