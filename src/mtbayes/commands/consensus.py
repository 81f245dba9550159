"""`mtbayes consensus`: what is true of rows that several people labelled, and how good they are."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mtbayes.commands import options
from mtbayes.commands.outputs import TABLES, new_file, stem, unfinished, writer
from mtbayes.commands.screen import GOES_ON, BadUsage, Screen, percent, shown, usage

if TYPE_CHECKING:
    from mtbayes.tables.model import TableModel, TableRows


def consensus(
    data: options.Data,
    annotators: options.AnnotatorColumns = None,
    annotations: options.AnnotationsFile = None,
    row: options.RowColumn = None,
    classes: options.Classes = None,
    target: Annotated[
        str | None,
        typer.Option("--target", help="A name for what was labelled; consensus if none."),
    ] = None,
    out: Annotated[
        Path | None, options.out("All rows with their consensus; DATA-consensus.csv if none.")
    ] = None,
    people: Annotated[
        Path | None, typer.Option(help="A table of the annotators; DATA-annotators.csv if none.")
    ] = None,
    ask: Annotated[
        int, typer.Option(min=0, help="Labels to ask for: whom, about which rows; DATA-ask.csv.")
    ] = 0,
    model: Annotated[Path | None, typer.Option(help="Write the model too, as `fit` does.")] = None,
    show: Annotated[int, typer.Option(min=0, help="Annotators on the screen.")] = 20,
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
    """Find what is true of rows that several people labelled, and how good each of them is.

    Labels are in columns of DATA, one for each person, or in a file with a line for each label.

    Example: mtbayes consensus photos.csv --annotators "rater_*" --ask 50
    """
    with Screen(quiet=quiet, as_json=as_json, debug=debug, stopped=GOES_ON) as screen:
        from mtbayes.commands.annotated import People, learn_people, write_consensus
        from mtbayes.commands.large import is_large
        from mtbayes.commands.learning import opened
        from mtbayes.tables.model import Settings
        from mtbayes.tables.people import people as people_of

        said = People(annotators, annotations, row, classes)
        if not said.given:
            raise BadUsage(
                "--annotators must name the columns with labels, got none. Add --annotators "
                "a1,a2,a3 or a pattern, or --annotations labels.csv --row ID."
            )
        said.check(target)
        source = opened(screen, data)
        said.check_columns(source.names)
        path = new_file(out or Path(f"{stem(data)}-consensus.csv"), force, TABLES)
        about = new_file(people or Path(f"{stem(data)}-annotators.csv"), force, TABLES)
        asked = new_file(Path(f"{stem(data)}-ask.csv"), force) if ask else None
        kept = None if model is None else new_file(model, force)
        settings = Settings(t, m, epochs, seed, learner)
        usage(settings.check)
        if is_large(source):
            raise BadUsage(
                f"DATA must fit in memory for a consensus, got {data}, whose rows are read as they "
                "are needed. Give a part of them."
            )
        with unfinished(path, resume, force) as done:
            learned, rows = learn_people(screen, source, said, target, task, settings, done)
            if kept is not None:
                learned.save(kept)
            write_consensus(learned, rows, path, safe=safe_cells)
        told = people_of(learned.estimator)
        _write(told, about, safe_cells)
        questions = [] if asked is None else _questions(learned, rows, ask, said.row)
        if asked is not None and questions:
            _write(questions, asked, safe_cells)
        _show(screen, learned, told, questions, show, path, about, asked)


def _questions(
    model: TableModel, rows: TableRows, budget: int, name: str | None
) -> list[dict[str, Any]]:
    """Whom to ask about which rows of the file."""
    ids = None if name is None else rows.table.column(name).to_pylist()
    return [
        {
            "row": int(rows.place[q.row]),
            **({} if ids is None else {str(name): ids[q.row]}),
            "annotator": str(q.annotator),
            "information": round(q.information, 6),
        }
        for q in model.estimator.next_labels(budget)
    ]


def _ask_next(questions: list[dict[str, Any]], path: Path) -> str:
    if not questions:
        return "Ask next: nobody, for everybody has labelled every row."
    first = questions[0]
    return (
        f"Ask next: {len(questions)} labels in {path}, first {first['annotator']!r} about row "
        f"{first['row']}."
    )


def _write(records: list[dict[str, Any]], path: Path, safe: bool) -> None:
    import pyarrow as pa

    with writer(path, safe=safe) as write:
        for batch in pa.Table.from_pylist(records).to_batches():
            write(batch)


def _show(
    screen: Screen,
    model: TableModel,
    told: list[dict[str, Any]],
    questions: list[dict[str, Any]],
    show: int,
    path: Path,
    about: Path,
    asked: Path | None,
) -> None:
    from rich.markup import escape
    from rich.table import Table

    from mtbayes.tables.people import CONFUSIONS, SHOWN

    estimator = model.estimator
    wrong, sure = estimator.contamination_, estimator.consensus_probability_
    rows, labels = len(sure), sum(person["labels"] for person in told)
    screen.line()
    screen.line(f"{labels} labels of {rows} rows by {len(told)} annotators.")
    if model.schema.task == "classes":
        screen.line(f"Wrong in the consensus: about {percent(wrong.value)} of rows, {wrong.words}.")
        screen.line(f"Rows whose consensus is less than 90 % sure: {int((sure < 0.9).sum())}.")
    names = [n for n in SHOWN[model.schema.task] if n in told[0]]
    table = Table(*names, box=None, pad_edge=False)
    for person in told[:show]:
        if "confuses" in names:
            person = person | {"confuses": person["confuses"].partition(CONFUSIONS)[0]}
        table.add_row(*(escape(shown(str(person[n]))) for n in names))
    screen.line()
    screen.table(table)
    if asked is not None:
        screen.line()
        screen.line(_ask_next(questions, asked))
    screen.line()
    screen.line(f"Rows: {path}. Annotators: {about}. ({screen.seconds:g} s)")
    screen.done(
        {
            "out": str(path),
            "rows": rows,
            "labels": labels,
            "wrong": {"share": wrong.value, "low": wrong.low, "high": wrong.high},
            "annotators": told,
            "ask": questions,
        }
    )
