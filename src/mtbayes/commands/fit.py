"""`mtbayes fit`: a file in, a model out, and what was learned on the screen."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from mtbayes.commands import manners
from mtbayes.commands.manners import (
    GOES_ON,
    MERELY_UNUSUAL,
    Screen,
    new_file,
    percent,
    stem,
    unfinished,
)

if TYPE_CHECKING:
    from mtbayes.commands.model import Rows, TableModel


def fit(
    data: manners.Data,
    target: manners.Target,
    model: Annotated[
        Path | None, typer.Option(help="The model's file; DATA's name with .mtb if none.")
    ] = None,
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
    """Learn a column of a file from the others, also if some of its values are wrong.

    Example: mtbayes fit houses.csv --target price --model houses.mtb
    """
    with Screen(quiet=quiet, as_json=as_json, debug=debug, stopped=GOES_ON) as screen:
        from mtbayes.commands.large import is_large, learn_large
        from mtbayes.commands.model import Settings, learn, opened

        path = new_file(model or Path(f"{stem(data)}.mtb"), force)
        settings = Settings(t, m, epochs, seed)
        settings.check()
        source = opened(screen, data)
        with unfinished(path, resume) as done:
            how = learn_large if is_large(source) else learn
            learned, rows = how(screen, source, target, task, settings, done)
            learned.save(path)
        found = summary(learned, rows)
        _show(screen, found, learned, data, path)
        screen.done({"model": str(path), **found})


def summary(model: TableModel, rows: Rows) -> dict[str, Any]:
    """What was learned, in numbers."""
    estimator, schema = model.estimator, model.schema
    share = estimator.contamination_
    return {
        "task": schema.task,
        "target": schema.target,
        "rows": len(rows.y),
        "columns": {column.name: type(column).__name__.lower() for column in schema.columns},
        "dropped": dict(schema.dropped),
        "gaps": gaps(rows, [column.name for column in schema.columns]),
        "t": estimator.t_,
        "wrong": {"share": share.value, "low": share.low, "high": share.high},
        "held_out": held_out(model, rows),
    }


def gaps(rows: Rows, names: list[str]) -> dict[str, int]:
    """Cells without a value, by column."""
    counts = {name: rows.table.column(name).null_count for name in names}
    return {name: count for name, count in counts.items() if count}


def held_out(model: TableModel, rows: Rows) -> dict[str, float]:
    """Scores of rows by fits that have not seen them; empty where rows are too few for that.

    Wrong rows are among them. So each score is given twice: for all rows, which is too bad, and for
    rows weighted by the probability that they are right, which is as good as that probability.
    """
    estimator = model.estimator
    path = {entry["t"]: entry["score"] for entry in estimator.score_path_}
    if not path:
        return {}
    good = 1 - estimator.outlier_probability_
    told = estimator.held_out_
    scores: dict[str, float] = {}
    if model.schema.task == "classes":
        hit = estimator.classes_[told.argmax(axis=1)] == rows.y
        scores["accuracy"] = _mean(hit, good)
        scores["accuracy of all rows"] = float(hit.mean())
        scores["log probability"] = path[estimator.t_]
    else:
        off = np.abs(rows.y - told[:, 0])
        scores["absolute error"] = _mean(off, good)
        scores["absolute error of all rows"] = float(off.mean())
        scores["within 1.64 sd"] = _mean(off <= 1.6449 * told[:, 1], good)
        scores["log density"] = path[estimator.t_] - float(np.log(estimator.targets_.scale))
    return scores


def _mean(values: Any, weight: Any) -> float:
    return float(np.average(values, weights=weight if weight.sum() > 0 else None))


def _show(screen: Screen, found: dict[str, Any], model: TableModel, data: Path, path: Path) -> None:
    used, dropped, wrong = found["columns"], found["dropped"], found["wrong"]
    screen.line()
    screen.line(f"Rows: {found['rows']}. Columns used: {len(used)} ({_kinds(used)}).")
    if dropped:
        screen.line(f"Columns left out: {_reasons(dropped)}.")
    if found["gaps"]:
        few = [f"{count} in {name!r}" for name, count in list(found["gaps"].items())[:10]]
        more = len(found["gaps"]) - len(few)
        screen.line(
            f"Gaps that were filled in: {', '.join(few)}{f' and {more} more' * (more > 0)}."
        )
    screen.line(f"t: {found['t']:g} (1 believes all rows alike, less is more robust).")
    screen.line(
        f"Wrong values of {found['target']!r}: about {percent(wrong['share'])} of rows, 95 % "
        f"interval {percent(wrong['low'])} to {percent(wrong['high'])}."
        + MERELY_UNUSUAL[found["task"]]
    )
    screen.line(_scores(found["held_out"], found["rows"]))
    screen.line(f"Time: {screen.seconds:g} s. Model: {path}")
    screen.line()
    screen.line("Next:")
    screen.line(f"  mtbayes predict {path} NEW.csv -o predictions.csv")
    screen.line(f"  mtbayes audit {data} --target {_quoted(found['target'])}")
    screen.line(f"  mtbayes report {path} {data} -o report.html")
    screen.line(f"  mtbayes certify {path} {data}")


def _scores(held: dict[str, float], rows: int) -> str:
    if not held:
        return f"Scores: {rows} rows are too few to hold any out, and to look for wrong ones."
    if "accuracy" in held:
        return (
            f"Rows not seen in training: {percent(held['accuracy'])} right where the label is "
            f"believed, {percent(held['accuracy of all rows'])} counting every label; "
            f"mean log probability {held['log probability']:.3f}."
        )
    return (
        f"Rows not seen in training: off by {held['absolute error']:.4g} on average where the "
        f"value is believed, by {held['absolute error of all rows']:.4g} counting every value; "
        f"{percent(held['within 1.64 sd'])} within 1.64 sd (90 % would be right); mean log density "
        f"{held['log density']:.3f}."
    )


def _kinds(used: dict[str, str]) -> str:
    counts: dict[str, int] = {}
    for kind in used.values():
        counts[kind] = counts.get(kind, 0) + 1
    return ", ".join(f"{count} {kind}" for kind, count in counts.items())


def _reasons(dropped: dict[str, str]) -> str:
    shown = [f"{name!r} ({reason})" for name, reason in list(dropped.items())[:10]]
    return ", ".join(shown) + (f" and {len(dropped) - 10} more" if len(dropped) > 10 else "")


def _quoted(name: str) -> str:
    return f'"{name}"' if " " in name else name
