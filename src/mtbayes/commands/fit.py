"""`mtbayes fit`: a file in, a model out, and what was learned on the screen."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mtbayes.commands import options
from mtbayes.commands.outputs import new_file, stem, unfinished
from mtbayes.commands.screen import (
    GOES_ON,
    MERELY_UNUSUAL,
    BadUsage,
    Screen,
    percent,
    usage,
)

if TYPE_CHECKING:
    from mtbayes.tables.model import TableModel


def fit(
    data: options.Data,
    target: options.TargetOrNone = None,
    model: Annotated[
        Path | None, typer.Option(help="The model's file; DATA's name with .mtb if none.")
    ] = None,
    review: Annotated[
        Path | None,
        typer.Option(help="DATA.review.jsonl: what was decided in a review is certain."),
    ] = None,
    annotators: options.AnnotatorColumns = None,
    annotations: options.AnnotationsFile = None,
    row: options.RowColumn = None,
    classes: options.Classes = None,
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
    """Learn a column of a file from the others, also if some of its values are wrong.

    Where several people labelled each row, --annotators or --annotations takes the place of
    --target.

    Example: mtbayes fit houses.csv --target price --model houses.mtb
    """
    with Screen(quiet=quiet, as_json=as_json, debug=debug, stopped=GOES_ON) as screen:
        from mtbayes.commands.annotated import People, learn_people
        from mtbayes.commands.large import is_large, learn_large
        from mtbayes.commands.learning import learn, opened
        from mtbayes.tables.model import Settings
        from mtbayes.tables.summary import summary

        people = People(annotators, annotations, row, classes)
        people.check(target)
        source = opened(screen, data)
        people.check_columns(source.names)
        path = new_file(model or Path(f"{stem(data)}.mtb"), force)
        settings = Settings(t, m, epochs, seed, learner)
        usage(settings.check)
        large = is_large(source)
        if people.given and (large or review is not None):
            raise BadUsage(
                f"--annotators and --annotations are for rows in memory without a review, got "
                f"{data}. Write the consensus with `mtbayes consensus`, and fit that."
            )
        if large and review is not None:
            raise BadUsage(
                f"review must be left out for {data}, whose rows are read as they are needed. "
                "Write the clean file with `mtbayes apply`, and fit that."
            )
        with unfinished(path, resume, force) as done:
            rest = (task, settings, done)
            if people.given:
                learned, rows = learn_people(screen, source, people, target, *rest)
            elif large:
                learned, rows = learn_large(screen, source, str(target), *rest)
            else:
                learned, rows = learn(screen, source, str(target), *rest, review)
            learned.save(path)
        found = summary(learned, rows)
        _show(screen, found, learned, data, path)
        screen.done({"model": str(path), **found})


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
    estimator = model.estimator
    chosen = estimator.learner == "auto" and estimator.score_path_
    screen.line(
        f"Learned by {estimator.fitted_.learner.words}"
        f"{', which explains unseen rows best' if chosen else ''}; t of {estimator.learner_}: "
        f"{found['t']:g} (1 believes all rows alike, less is more robust)."
    )
    if found["scores"]:
        screen.line(
            f"Wrong values of {found['target']!r}: about {percent(wrong['share'])} of rows, "
            f"{model.estimator.contamination_.words}." + MERELY_UNUSUAL[found["task"]]
        )
    screen.line(_scores(found["scores"], found["rows"]))
    screen.line(f"Time: {screen.seconds:g} s. Model: {path}")
    screen.line()
    screen.line("Next:")
    screen.line(f"  mtbayes predict {path} NEW.csv -o predictions.csv")
    learner = model.estimator.learner
    how = "" if learner == "auto" else f" --learner {learner}"
    if hasattr(model.estimator, "crowd_"):
        return
    screen.line(f"  mtbayes audit {data} --target {_quoted(found['target'])}{how}")
    screen.line(f"  mtbayes report {path} {data} -o report.html")
    screen.line(f"  mtbayes certify {path} {data}")


def _scores(scores: dict[str, float], rows: int) -> str:
    if not scores:
        return f"Scores: {rows} rows are too few to hold any out, and to look for wrong ones."
    if "accuracy" in scores:
        return (
            f"Rows not seen in training: {percent(scores['accuracy'])} right where the label is "
            f"believed, {percent(scores['accuracy of all rows'])} counting every label; "
            f"mean log probability {scores['log probability']:.3f}."
        )
    return (
        f"Rows not seen in training: off by {scores['absolute error']:.4g} on average where the "
        f"value is believed, by {scores['absolute error of all rows']:.4g} counting every value; "
        f"{percent(scores['within 1.64 sd'])} within 1.64 sd (90 % would be right); mean log "
        f"density {scores['log density']:.3f}."
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
