"""`mtbayes report`: a model and data, or a folder of reproductions, as one page to show around."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mtbayes.commands import options
from mtbayes.commands.outputs import new_file, stem
from mtbayes.commands.screen import BadUsage, Screen
from mtbayes.errors import InvalidInput


def report(
    source: Annotated[
        Path,
        typer.Argument(
            metavar="MODEL|FOLDER", help="A file that `fit` wrote, or the --out of `reproduce`."
        ),
    ],
    data: Annotated[
        Path | None,
        typer.Argument(metavar="[DATA]", help="For a MODEL: the rows to tell of, fitted or new."),
    ] = None,
    out: Annotated[
        Path | None,
        options.out("The page; DATA's name with -report.html, or FOLDER/report.html, if none."),
    ] = None,
    markdown: Annotated[
        Path | None,
        typer.Option(
            help="For a FOLDER: a page of verdicts and tables as Markdown, too; in a file that "
            "has marks like <!-- begin: verdicts --> and <!-- end -->, what they ask for.",
        ),
    ] = None,
    seed: options.Seed = 0,
    force: options.Force = False,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
    debug: options.Debug = False,
) -> None:
    """Write one HTML page that needs no network.

    Of a MODEL: what it learned, whether its probabilities are right, which rows look wrong, how
    sure it is, what each column does. Of a FOLDER of `mtbayes reproduce`: verdicts, figures (drawn
    again) and tables.

    Example: mtbayes report houses.mtb houses.csv -o report.html
    """
    with Screen(quiet=quiet, as_json=as_json, debug=debug) as screen:
        if out is not None:
            new_file(out, force)
        if source.is_dir():
            if data is not None:
                raise BadUsage(f"DATA must be left out for a folder, got {data}. Name a model.")
            _folder(screen, source, out or source / "report.html", markdown)
            return
        if markdown is not None:
            raise BadUsage("markdown must be left out for a model: it is of a folder of results.")
        if data is None:
            raise BadUsage(
                f"DATA must be given beside the model {source}: the rows to tell of, such as the "
                f"file that was fitted. Try `mtbayes report {source} data.csv`."
            )
        _model(
            screen, source, data, out or new_file(Path(f"{stem(data)}-report.html"), force), seed
        )


def _folder(screen: Screen, folder: Path, out: Path, markdown: Path | None) -> None:
    """Draw all figures of a folder of results again, and write its page."""
    from mtbayes.report import REPORTS, page

    names = page.there(folder)
    if not names:
        raise InvalidInput(
            f"FOLDER must hold the numbers of `mtbayes reproduce` or `mtbayes demo`, got none in "
            f"{folder}. Run "
            f"`mtbayes reproduce all --out {folder}` first."
        )
    for name in names:
        REPORTS[name].draw(folder)
    texts = {out: page.page(folder)}
    if markdown is not None:
        before = markdown.read_text("utf-8") if markdown.exists() else ""
        held = page.within(before, folder)
        if held is None and before and not before.startswith(page.TITLE):
            raise BadUsage(
                f"markdown must be a new file, one that this command wrote, or one with marks such "
                f"as <!-- begin: verdicts --><!-- end -->, got {markdown}. Choose another name."
            )
        command = f"mtbayes report {folder} --markdown {markdown}"
        texts[markdown] = page.markdown(folder, command, markdown.parent) if held is None else held
    for path, text in texts.items():
        _write(path, text)
        screen.line(f"{path}")
    screen.done({"out": str(out), "experiments": names})


def _model(screen: Screen, path: Path, data: Path, out: Path, seed: int) -> None:
    """Look at a model with data, and write its page."""
    from mtbayes.commands.learning import opened, rows_of
    from mtbayes.progress import Progress, bar
    from mtbayes.report.model import page
    from mtbayes.tables.facts import gather
    from mtbayes.tables.judging import judge, judgeable
    from mtbayes.tables.model import TableModel

    model = TableModel.load(path)
    source = opened(screen, data)
    every = rows_of(screen, source, model.schema)
    rows = judgeable(model, every)
    if len(rows.y) < len(every.y):
        screen.note(
            f"{len(every.y) - len(rows.y):,} rows are left out: they were fitted with the others, "
            "and no fit that has not seen them can judge them"
        )
    with bar("Looking at the model", shown=screen.bars) as callback:
        judged, seen = judge(model, rows)
        callback(Progress(0.1))
        files = path, data
        facts = gather(model, rows, judged, seen, files, seed, callback)
        _write(out, page(facts))
    fitted = int(seen.sum())
    screen.line(
        f"Rows: {len(seen)}, of which {fitted} were fitted and {len(seen) - fitted} are new."
    )
    screen.line(f"Page: {out} ({screen.seconds:g} s)")
    share, low, high = facts.contamination
    screen.done(
        {
            "out": str(out),
            "rows": len(seen),
            "fitted": fitted,
            "wrong": {"share": share, "low": low, "high": high},
            "words": list(facts.words),
            "columns": {one.column: one.loss for one in facts.importance},
        }
    )


def _write(path: Path, text: str) -> None:
    from mtbayes._files import atomic

    with atomic(path) as temporary:
        temporary.write_text(text, encoding="utf-8")
