"""The command `mtbayes`: parse, call a public function, print."""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from mtbayes import __version__, _check, commands
from mtbayes.errors import InvalidInput

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Learn from dirty data with models that are too simple.",
)
console = Console()
commands.register(app)


@app.callback(invoke_without_command=True)
def main(
    version: Annotated[bool, typer.Option("--version", help="Show the version.")] = False,
) -> None:
    """Learn from dirty data with models that are too simple."""
    if version:
        console.print(f"mtbayes {__version__}", highlight=False)
        raise typer.Exit


@app.command()
def reproduce(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="NAME...", help="Experiments; see --list.")
    ] = None,
    full: Annotated[
        bool,
        typer.Option("--full/--quick", help="The paper's sizes (hours), or minutes' worth."),
    ] = False,
    seeds: Annotated[int | None, typer.Option(min=1, help="Seeds, where there are any.")] = None,
    out: Annotated[Path, typer.Option(help="Folder for numbers and figures.")] = Path("results"),
    jobs: Annotated[int, typer.Option(min=1, help="Processes.")] = 1,
    show: Annotated[bool, typer.Option("--list", help="List the experiments.")] = False,
) -> None:
    """Reproduce the paper's figures and tables: numbers first, then pictures drawn from them.

    What was computed before is kept: a run that was stopped goes on when it is started again.

    Example: mtbayes reproduce toy housing --out results
    """
    from mtbayes.experiments import EXPERIMENTS, How

    if show:
        for name, experiment in EXPERIMENTS.items():
            console.print(f"[bold]{name:12}[/] {experiment.about}", highlight=False)
        return
    if not names:
        _fail("name at least one experiment; `mtbayes reproduce --list` shows them.", code=2)
    for name in names or []:
        try:
            _check.known("NAME", name, ["all", *EXPERIMENTS])
        except InvalidInput as error:
            _fail(str(error), code=2)
    chosen = list(EXPERIMENTS) if "all" in (names or []) else names or []
    for name in chosen:
        _run(name, EXPERIMENTS[name], out, How(full, seeds, jobs))


@app.command()
def report(
    folder: Annotated[Path, typer.Argument(help="The --out of `mtbayes reproduce`.")],
    markdown: Annotated[
        Path | None, typer.Option(help="Write the verdicts and tables as Markdown here, too.")
    ] = None,
) -> None:
    """Draw all figures again, and write one HTML page with verdicts, figures and tables.

    Example: mtbayes report results
    """
    from mtbayes import _files
    from mtbayes.report import REPORTS, page

    names = page.there(folder)
    if not names:
        _fail(f"no numbers in {folder}. Run `mtbayes reproduce all --out {folder}` first.", code=1)
    for name in names:
        REPORTS[name].draw(folder)
    texts = {folder / "report.html": page.page(folder)}
    if markdown is not None:
        texts[markdown] = page.markdown(folder, f"mtbayes report {folder} --markdown {markdown}")
    for path, text in texts.items():
        with _files.atomic(path) as temporary:
            temporary.write_text(text, encoding="utf-8")
        console.print(f"{path}", highlight=False, soft_wrap=True)


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Folder for numbers and the figure.")] = Path("results"),
) -> None:
    """Learn digits of which 30 % have a wrong label: four methods side by side, in a minute.

    Example: mtbayes demo --out results
    """
    from mtbayes.experiments import How, Plain, demo

    _run("demo", Plain("", demo.run), out, How())
    console.print(
        "\nWith a file of your own: mtbayes audit data.csv --target COLUMN names its wrong rows, "
        "mtbayes fit learns from it. In Python: mtbayes.RobustClassifier().fit(X, y), then "
        "outlier_probability_ and predict_proba. docs/how-to-choose.md explains its parameters.",
        highlight=False,
    )


def _run(name: str, experiment: Any, out: Path, how: Any) -> None:
    from mtbayes.data.datasets import NotFound
    from mtbayes.report import REPORTS

    started = time.monotonic()
    try:
        with _progress() as bar:
            task = bar.add_task(name, total=1.0, what="")
            told = partial(bar.update, task)
            experiment.run(out, lambda share, what: told(completed=share, what=what), how)
        pictures = REPORTS[name].draw(out)
    except NotFound as error:
        console.print(f"{name}: skipped. {error}", highlight=False, soft_wrap=True)
        return
    except KeyboardInterrupt:
        _fail("stopped; nothing half-written is left behind.", code=130)
    except OSError as error:
        _fail(f"cannot write to {out}: {error.strerror}. Choose another folder with --out.", code=1)
    for table in REPORTS[name].tables(out):
        console.print()
        console.print(table)
    console.print(f"\n{name}: done in {time.monotonic() - started:.0f} s. Figures:")
    for path in pictures:
        if path.suffix == ".png":
            console.print(f"  {path} (and .svg)", highlight=False, soft_wrap=True)
    console.print("Numbers:")
    for folder in sorted({path.parent for path in pictures}):
        for path in sorted(folder.glob("*.csv")):
            console.print(f"  {path}", highlight=False, soft_wrap=True)


def _progress() -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %"),
        TimeRemainingColumn(),
        TextColumn("{task.fields[what]}"),
        console=console,
    )


def _fail(message: str, *, code: int) -> None:
    Console(stderr=True).print(f"mtbayes: {message}", highlight=False, soft_wrap=True)
    raise typer.Exit(code)
