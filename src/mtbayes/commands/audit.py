"""`mtbayes audit`: the rows of a file whose target is most likely wrong."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import numpy as np
import typer

from mtbayes.commands import manners
from mtbayes.commands.manners import (
    GOES_ON,
    MERELY_UNUSUAL,
    BadUsage,
    Screen,
    new_file,
    open_share,
    percent,
    stem,
    unfinished,
)
from mtbayes.commands.writing import TABLES, writer
from mtbayes.types import Array, FloatArray

if TYPE_CHECKING:
    from mtbayes.commands.judged import Judged
    from mtbayes.commands.model import Rows, TableModel


_TRUSTED = 0.05  # probability of being wrong, below which a row may judge others


class Findings(NamedTuple):
    """Rows from the most suspicious to the least."""

    order: Array
    """Places among the rows that were judged, from 0."""
    probability: FloatArray
    """That the target is wrong."""
    given: list[Any]
    suggested: list[Any]
    why: list[str]
    strangeness: list[tuple[float, float]]
    """What the rows are ordered by, upwards: minus suspicion, and how likely the target is."""
    influence: FloatArray | None = None
    """By how much the mean log loss of trusted rows would fall without the row; see `Harm`."""


def audit(
    data: manners.Data,
    target: manners.Target,
    out: Annotated[
        Path | None,
        manners.out("All rows, ranked, as CSV, Parquet or Feather; DATA-audit.csv if none."),
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

    Every row is judged by a fit that has not seen it. Parquet or Feather of more than 50,000 rows
    is read as it is needed: a random 50,000 rows are learned from, all are judged, and --out has
    them in the order of the files.

    Example: mtbayes audit houses.csv --target price --expect 0.1
    """
    with Screen(quiet=quiet, as_json=as_json, debug=debug, stopped=GOES_ON) as screen:
        open_share(expect, "expect", "It is the share of rows that you hold for wrong, like 0.1.")
        path = new_file(out or Path(f"{stem(data)}-audit.csv"), force, TABLES)
        from mtbayes.commands.large import is_large, judge_all, learn_sample
        from mtbayes.commands.model import Settings, learn, opened

        settings = Settings(t, m, epochs, seed)
        settings.check()
        source = opened(screen, data)
        large = is_large(source)
        if large and influence:
            raise BadUsage(
                f"--influence must be left out for {data}, whose rows are read as they are needed. "
                "Give a part of them to find the harm that each does."
            )
        with unfinished(path, resume) as done:
            if large:
                learned = learn_sample(screen, source, target, task, settings, done)
                found = judge_all(screen, source, *learned, path, expect, show)
            else:
                model, rows = learn(screen, source, target, task, settings, done)
                found = _audited(model, rows, path, expect, show, influence=influence)
        _show(screen, found, path, expect)


class Audited(NamedTuple):
    """What a person is told of all rows.

    order: that of the file written
    wrong: the estimated share of wrong ones; likely: how many are more likely wrong than right
    suspects: the first of the ranked rows
    trusted: rows that judge the harm of others, if any do
    """

    task: str
    order: str
    rows: int
    wrong: Any
    likely: int
    suspects: list[dict[str, Any]]
    trusted: int | None = None


def _audited(
    model: TableModel, rows: Rows, path: Path, expect: float | None, show: int, *, influence: bool
) -> Audited:
    """Rows in memory, ranked in a file."""
    import pyarrow as pa

    found, trusted = findings(model, rows.y, expect), None
    if influence:
        found, trusted = with_influence(model, rows, found)
    ranked = [{"rank": i} | r for i, r in enumerate(records(found, rows.place), 1)]
    own = rows.table.take(pa.array(found.order))
    with writer(path) as write:
        for batch in beside(ranked, own).to_batches(max_chunksize=2**16):
            write(batch)
    wrong = model.estimator.contamination_
    likely = int((found.probability > 0.5).sum())
    return Audited(model.schema.task, "ranked", len(rows.y), wrong, likely, ranked[:show], trusted)


def findings(
    model: TableModel, y: Array, expect: float | None = None, judged: Judged | None = None
) -> Findings:
    """What the fits that have not seen a row say about its target.

    expect: the share of wrong rows; Bayes' rule turns the odds at one share into those at another
    judged: what is said of the rows; if None, they are those that the model was fitted to
    """
    estimator = model.estimator
    suspicion = estimator.suspicion_ if judged is None else judged.suspicion
    held_out = estimator.held_out_ if judged is None else judged.held_out
    share = estimator.law_.epsilon if expect is None else expect
    odds = np.clip(suspicion, 1e-300, 1 - 1e-16)
    wrong = odds * share
    probability = wrong / (wrong + (1 - odds) * (1 - share))
    words = _about_classes if model.schema.task == "classes" else _about_numbers
    likely, suggested, why = words(estimator, held_out, y, share)
    order = np.lexsort((likely, -odds))  # odds of the worst are all 1
    return Findings(
        order,
        probability[order],
        y[order].tolist(),
        [suggested[i] for i in order],
        [why[i] for i in order],
        list(zip((-odds[order]).tolist(), likely[order].tolist(), strict=True)),
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
    estimator: Any, probs: FloatArray, y: Array, share: float
) -> tuple[FloatArray, list[Any], list[str]]:
    """Probability of what is given, what is suggested, and why."""
    from scipy.special import log_softmax

    from mtbayes.mixtures import ClassPredictive

    labels = estimator.classes_
    codes: Any = np.searchsorted(labels, y)
    law = estimator.law_.at(share)
    with np.errstate(divide="ignore"):  # the law calibrates anew
        raw = log_softmax(law.temperature * np.log(probs), axis=1)
    true = law.suggestion(ClassPredictive(raw, np.zeros(len(y))), codes)
    why = []
    for p, given, other in zip(probs, codes, true, strict=True):
        text = f"by other rows {labels[given]} has {_likely(p[given])}"
        best = int(p.argmax()) if other == given else int(other)
        why.append(text if best == given else f"{text}, {labels[best]} {_likely(p[best])}")
    return probs[np.arange(len(y)), codes], labels[true].tolist(), why


def _about_numbers(
    estimator: Any, held_out: FloatArray, y: Array, share: float
) -> tuple[FloatArray, list[Any], list[str]]:
    """Minus the distance of what is given, what is suggested, and why."""
    mean, std = held_out.T
    distance, why = (y - mean) / std, []
    for off, m, s in zip(distance, mean, std, strict=True):
        side = "above" if off > 0 else "below"
        why.append(f"{abs(off):.1f} sd {side} what other rows say, {m:.4g} ± {s:.2g}")
    return -np.abs(distance), [float(f"{v:.6g}") for v in mean], why


def _likely(p: float) -> str:
    if p < 1e-4:
        return "below 0.01 %"
    return "above 99.99 %" if p > 0.9999 else f"{100 * p:.3g} %"


def records(found: Findings, place: Array) -> list[dict[str, Any]]:
    """Rows from the most suspicious to the least, as a person reads them.

    place: where each was among the rows of the file, from 1
    """
    harm = found.influence
    return [
        {
            "row": int(place[found.order[i]]),
            "probability": round(float(found.probability[i]), 6),
            "given": found.given[i],
            "suggested": found.suggested[i],
            **({} if harm is None else {"influence": float(f"{harm[i]:.4g}")}),
            "why": found.why[i],
        }
        for i in range(len(found.order))
    ]


def beside(said: list[dict[str, Any]], own: Any) -> Any:
    """What is said of rows, and behind it their own columns, as one table."""
    import pyarrow as pa

    from mtbayes.data.reading import unique

    told = pa.Table.from_pylist(said)
    names, _ = unique([*told.column_names, *own.column_names])
    columns = [*told.columns, *(_flat(column) for column in own.columns)]
    return pa.table(columns, names=list(names))


def _flat(column: Any) -> Any:
    """A column that CSV can hold."""
    import pyarrow as pa

    return pa.array(map(str, column.to_pylist())) if pa.types.is_nested(column.type) else column


def _show(screen: Screen, found: Audited, path: Path, expect: float | None) -> None:
    from rich.table import Table

    names = ["row", "probability", "given", "suggested", "influence", "why"]
    if found.trusted is None:
        names.remove("influence")
    table = Table(*names, box=None, pad_edge=False)
    for record in found.suspects:
        shown = record | {"probability": percent(record["probability"])}
        table.add_row(*(_cell(shown[name]) for name in names))
    wrong = found.wrong
    screen.line()
    screen.line(
        f"Estimated share of wrong rows: {percent(wrong.value)}, 95 % interval "
        f"{percent(wrong.low)} to {percent(wrong.high)}."
        + (f" Probabilities below take it as {percent(expect)}." if expect is not None else "")
        + MERELY_UNUSUAL[found.task]
    )
    screen.line(f"Rows more likely wrong than right: {found.likely} of {found.rows}.")
    if found.trusted is not None:
        screen.line(
            f"Influence: how much lower the mean log loss of {found.trusted} trusted rows (the "
            "least suspicious) would be without the row. Above 0 it does harm; for ranking alone."
        )
    screen.line()
    screen.table(table)
    screen.line()
    screen.line(f"All {found.rows} rows, {found.order}: {path} ({screen.seconds:g} s)")
    screen.done(
        {
            "out": str(path),
            "rows": found.rows,
            "wrong": {"share": wrong.value, "low": wrong.low, "high": wrong.high},
            "expect": expect,
            **({} if found.trusted is None else {"trusted": found.trusted}),
            "suspects": found.suspects,
        }
    )


def _cell(value: Any) -> str:
    from rich.markup import escape

    return escape(f"{value:g}" if isinstance(value, float) else str(value))
