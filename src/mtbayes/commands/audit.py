"""`mtbayes audit`: the rows of a file whose target is most likely wrong."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mtbayes.commands import options
from mtbayes.commands.outputs import TABLES, new_file, stem, unfinished, writer
from mtbayes.commands.screen import (
    GOES_ON,
    MERELY_UNUSUAL,
    BadUsage,
    Screen,
    open_share,
    percent,
    shown,
    usage,
)

if TYPE_CHECKING:
    from mtbayes.commands.audited import Audited
    from mtbayes.tables.model import TableModel, TableRows


def audit(
    data: options.Data,
    target: options.TargetOrNone = None,
    out: Annotated[
        Path | None,
        options.out("All rows, ranked, as CSV, Parquet or Feather; DATA-audit.csv if none."),
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
    images: Annotated[
        str | None, typer.Option(help="The column of DATA that holds paths of images.")
    ] = None,
    embed: Annotated[
        Path | None,
        typer.Option(help="Embeddings of images, .npy, a row each in the order of their paths."),
    ] = None,
    annotators: options.AnnotatorColumns = None,
    annotations: options.AnnotationsFile = None,
    row: options.RowColumn = None,
    classes: options.Classes = None,
    safe_cells: options.SafeCells = False,
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
    """Rank the rows of a file by how likely their target is wrong, and say why.

    Every row is judged by a fit that has not seen it. Parquet or Feather of more than 50,000 rows
    is read as it is needed: a random 50,000 rows are learned from, all are judged, and --out has
    them in the order of the files.

    A folder with a subfolder of images for each class needs no --target. Where several people
    labelled each row, --annotators or --annotations takes its place, and the consensus is judged.

    Example: mtbayes audit houses.csv --target price --expect 0.1
    """
    with Screen(quiet=quiet, as_json=as_json, debug=debug, stopped=GOES_ON) as screen:
        open_share(expect, "expect", "It is the share of rows that you hold for wrong, like 0.1.")
        path = new_file(out or Path(f"{stem(data)}-audit.csv"), force, TABLES)
        from mtbayes.commands.annotated import People, learn_people
        from mtbayes.commands.large import is_large, judge_all, learn_sample
        from mtbayes.commands.learning import learn, opened
        from mtbayes.data.photos import is_folder_of_images
        from mtbayes.tables.model import Settings

        # The harm that a row does is told by gradients.
        if influence and learner == "trees":
            raise BadUsage(
                "learner must be network or linear for --influence, got trees. Add --learner "
                "network."
            )
        learner = "network" if influence and learner == "auto" else learner
        settings = Settings(t, m, epochs, seed, learner)
        usage(settings.check)
        if images is not None or is_folder_of_images(data):
            new_file(path.with_suffix(".html"), force)
            from mtbayes.commands.photos import asked, audit_photos

            given = asked(screen, data, images, target)
            with unfinished(path, resume, force) as done:
                found = audit_photos(
                    screen, given, embed, settings, done, path, expect, show, safe=safe_cells
                )
            _show(screen, found, path, expect, shlex.join((str(path), "--target", "given")))
            return
        people = People(annotators, annotations, row, classes)
        people.check(target)
        source = opened(screen, data)
        large = is_large(source)
        if large and people.given:
            raise BadUsage(
                f"--annotators and --annotations are for rows in memory, got {data}, whose rows "
                "are read as they are needed. Give a part of them."
            )
        if large and influence:
            raise BadUsage(
                f"--influence must be left out for {data}, whose rows are read as they are needed. "
                "Give a part of them to find the harm that each does."
            )
        with unfinished(path, resume, force) as done:
            if large:
                learned = learn_sample(screen, source, str(target), task, settings, done)
                found = judge_all(screen, source, *learned, path, expect, show, safe=safe_cells)
            else:
                model, rows = (
                    learn_people(screen, source, people, target, task, settings, done)
                    if people.given
                    else learn(screen, source, str(target), task, settings, done)
                )
                if not model.estimator.score_path_:
                    screen.note(
                        f"{len(rows.y)} rows are too few to hold any out, so that no wrong one is "
                        "looked for, and reasons are those of a fit to all of them"
                    )
                found = _audited(
                    model, rows, path, expect, show, influence=influence, safe=safe_cells
                )
        review = None
        if people.given:
            named = () if target is None else ("--target", target)
            review = shlex.join((str(data), *people.words, *named))
        elif not (large or influence):
            words = (str(data), "--target", str(target), "--model", str(path))
            review = shlex.join(words)
        _show(screen, found, path, expect, review)


def _audited(
    model: TableModel,
    rows: TableRows,
    path: Path,
    expect: float | None,
    show: int,
    *,
    influence: bool,
    safe: bool,
) -> Audited:
    """Rows in memory, ranked in a file."""
    import pyarrow as pa

    from mtbayes.commands.audited import Audited, beside
    from mtbayes.tables.findings import findings, records, with_influence
    from mtbayes.tables.reasons import with_reasons

    judged = model.estimator.fitted_.training
    found = with_reasons(model, rows, findings(model, rows.y, judged, expect))
    trusted = None
    if influence:
        found, trusted = with_influence(model, rows, found)
    ranked = [{"rank": i} | r for i, r in enumerate(records(found, rows.place), 1)]
    own = rows.table.take(pa.array(found.order))
    with writer(path, safe=safe) as write:
        for batch in beside(ranked, own).to_batches(max_chunksize=2**16):
            write(batch)
    wrong = model.estimator.contamination_
    likely = int((found.probability > 0.5).sum())
    return Audited(model.schema.task, "ranked", len(rows.y), wrong, likely, ranked[:show], trusted)


def _show(
    screen: Screen, found: Audited, path: Path, expect: float | None, review: str | None
) -> None:
    """On the screen; review: what `mtbayes review` is to be given for these rows, if it can be."""
    from rich.table import Table

    names = ["row", "probability", "given", "suggested", "influence", "why"]
    if found.trusted is None:
        names.remove("influence")
    if found.suspects and "path" in found.suspects[0]:
        names[0] = "path"
    table = Table(*names, box=None, pad_edge=False)
    for record in found.suspects:
        told = record | {"probability": percent(record["probability"])}
        table.add_row(*(_cell(told[name]) for name in names))
    wrong = found.wrong
    screen.line()
    screen.line(
        f"Estimated share of wrong rows: {percent(wrong.value)}, {wrong.words}."
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
    where = f"{path} ({screen.seconds:g} s)"
    screen.line(f"All {found.rows} rows, {found.order}, counted from 1: {where}")
    if review is not None:
        screen.line(f"Next, to decide row by row and get a clean file: mtbayes review {review}")
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

    return escape(shown(f"{value:g}" if isinstance(value, float) else str(value)))
