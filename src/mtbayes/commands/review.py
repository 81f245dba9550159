"""`mtbayes review`: a page on this machine on which a person decides row by row."""

from __future__ import annotations

from contextlib import ExitStack, closing
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mtbayes.commands import options
from mtbayes.commands.outputs import new_file, stem, unfinished
from mtbayes.commands.screen import STOPPED, BadUsage, Screen, usage

if TYPE_CHECKING:
    from mtbayes.commands.annotated import People
    from mtbayes.data.reading import Source
    from mtbayes.reviewing import Review
    from mtbayes.reviewing.server import Server
    from mtbayes.tables.model import Settings, TableModel


def review(
    data: Annotated[
        Path, typer.Argument(metavar="DATA", help="One file: CSV, TSV, Parquet or Feather.")
    ],
    target: options.TargetOrNone = None,
    model: Annotated[
        Path | None,
        typer.Option(help="A model of these rows, or the CSV of `audit`; audited now if none."),
    ] = None,
    images: Annotated[
        str | None,
        typer.Option(help="A column of image files, or the folder that they are in."),
    ] = None,
    top: Annotated[int | None, typer.Option(min=1, help="Rows to look at, at most.")] = None,
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes a free one.")] = 0,
    no_browser: Annotated[
        bool, typer.Option("--no-browser", help="Print the address and open nothing.")
    ] = False,
    out: Annotated[
        Path | None, options.out("The clean file; DATA's name with -clean if none.")
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
    seed: options.Seed = 0,
    force: options.Force = False,
    quiet: options.Quiet = False,
    debug: options.Debug = False,
) -> None:
    """Look at suspicious rows one by one, decide, and get a clean file.

    The page is served to this machine alone. Every decision is kept at once in
    DATA.review.jsonl: stop with Ctrl-C, and the same command goes on. It learns from the
    decisions every 20 rows.

    Where several people labelled each row, --annotators or --annotations takes the place of
    --target. The consensus is written to DATA-consensus.csv and reviewed there, all labels of a row
    beside it, and how good each annotator is.

    Example: mtbayes review houses.csv --target price
    """
    with Screen(quiet=quiet, as_json=False, debug=debug) as screen:
        _check_server()
        from mtbayes.commands.annotated import CONSENSUS, People
        from mtbayes.commands.learning import aloud, check_task, opened
        from mtbayes.data.schema import check_target
        from mtbayes.reviewing import Review
        from mtbayes.reviewing.applying import check_out, missing
        from mtbayes.reviewing.decisions import exported
        from mtbayes.reviewing.pictures import check_images
        from mtbayes.reviewing.server import Server, bind
        from mtbayes.reviewing.session import Exported, log_of
        from mtbayes.reviewing.views import Views
        from mtbayes.tables.model import Settings

        check_task(task)
        settings = Settings(t, m, epochs, seed, learner)
        usage(settings.check)
        people = People(annotators, annotations, row, classes)
        known: Path | TableModel | None = model
        people.check(target)
        if people.given and model is not None:
            raise BadUsage(
                "--model must be left out beside --annotators and --annotations, got "
                f"{str(model)!r}. Review the file that `mtbayes consensus` wrote beside it."
            )
        source = opened(screen, data)
        data = Path(f"{stem(data)}-consensus.csv") if people.given else data
        clean = out or _beside(data)
        own = exported(log_of(data))
        if not people.given:
            usage(check_target, source.names, target)
            usage(check_images, source.names, images)
            usage(check_out, data, clean)
        for path in Exported.beside(clean):
            if str(path.absolute()) not in own:
                new_file(path, force)
        with usage(bind, port) as bound, ExitStack() as stack:
            if people.given:
                known = _consensus(screen, source, people, target, task, settings, data, force)
                target = target or CONSENSUS
                usage(check_images, opened(screen, data).names, images)
            found = stack.enter_context(
                closing(
                    Review(
                        data,
                        str(target),
                        model=known,
                        task=task,
                        learner=learner,
                        t=t,
                        m=m,
                        epochs=epochs,
                        random_state=seed,
                        top=top,
                        verbose=screen.bars,
                    )
                )
            )
            if found.missing:
                screen.note(missing(data, found.missing, len(found.log.stack.holding())))
            if len(found) < found.file_rows:
                gone = found.file_rows - len(found)
                screen.note(
                    f"rows without a readable {target!r}, which stay and are not shown: {gone}"
                )
            if not people.given:  # else it has been said
                screen.line(aloud(found.schema, found.rows.y, guessed=task is None))
            server = Server(Views(found, images), clean, bound)
            _serve(screen, found, server, clean, browser=not no_browser)


def _consensus(
    screen: Screen,
    source: Source,
    people: People,
    target: str | None,
    task: str | None,
    settings: Settings,
    path: Path,
    force: bool,
) -> TableModel:
    """Find the consensus of people and write it to a file; one that is under review stays."""
    from mtbayes.commands.annotated import learn_people, write_consensus
    from mtbayes.reviewing.session import log_of

    stays = path.exists() and log_of(path).exists() and not force
    if not stays:
        new_file(path, force)
    with unfinished(path, resume=False, force=True) as done:
        model, rows = learn_people(screen, source, people, target, task, settings, done)
        if not stays:
            write_consensus(model, rows, path)
    screen.line(f"Consensus: {path}")
    return model


def _check_server() -> None:
    """The server's packages, which are an extra, are there."""
    for name in ("starlette", "uvicorn"):
        if find_spec(name) is None:
            raise BadUsage(
                f"review needs the packages starlette and uvicorn, but {name} is not installed. "
                "Run: pip install 'mtbayes[review]'"
            )


def _beside(data: Path) -> Path:
    """The name of a clean file: data.csv.gz becomes data-clean.csv.gz.

    >>> _beside(Path("some/data.csv.gz"))
    PosixPath('data-clean.csv.gz')
    """
    name, packed = data.name.removesuffix(".gz"), data.name.endswith(".gz")
    stem, dot, ending = name.rpartition(".")
    whole = f"{stem}-clean.{ending}" if dot else f"{name}-clean"
    return Path(whole + (".gz" if packed else ""))


def _serve(screen: Screen, found: Review, server: Server, clean: Path, *, browser: bool) -> None:
    """Until Ctrl-C; then the clean file is written, if anything was decided."""
    screen.line(f"{found.outlook.sentence} Decisions are kept in {found.log.path}.")
    if found.decided:
        screen.line(f"Going on after {len(found.decided)} decisions.")
    screen.line("Stop with Ctrl-C; the same command goes on.")
    typer.echo(server.address)
    if browser:
        typer.launch(server.address)
    try:
        server.run()
    except KeyboardInterrupt:
        screen.line()
    if found.decided:
        for path in found.export(clean):
            screen.line(f"Written: {path}")
        screen.line(found.outlook.sentence)
    if found.fitting:  # which must not be waited for, nor tidied up beside
        raise typer.Exit(STOPPED)
