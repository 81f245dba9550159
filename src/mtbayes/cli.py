"""The command `mtbayes`: parse, call a public function, print."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from mtbayes import __version__, _check
from mtbayes.errors import InvalidInput

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Learn from dirty data with models that are too simple.",
)
console = Console()


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
    out: Annotated[Path, typer.Option(help="Folder for numbers and figures.")] = Path("results"),
    show: Annotated[bool, typer.Option("--list", help="List the experiments.")] = False,
) -> None:
    """Reproduce the paper's figures and tables: numbers first, then pictures drawn from them.

    Example: mtbayes reproduce toy --out results
    """
    from mtbayes.experiments import EXPERIMENTS

    if show:
        for name, module in EXPERIMENTS.items():
            console.print(f"[bold]{name:8}[/] {(module.__doc__ or '').splitlines()[0]}")
        return
    if not names:
        _fail("name at least one experiment; `mtbayes reproduce --list` shows them.", code=2)
    for name in names or []:
        try:
            _check.known("NAME", name, list(EXPERIMENTS))
        except InvalidInput as error:
            _fail(str(error), code=2)
    for name in names or []:
        _run(name, EXPERIMENTS[name], out)


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Folder for numbers and the figure.")] = Path("results"),
) -> None:
    """Learn digits of which 30 % have a wrong label: four methods side by side, in a minute.

    Example: mtbayes demo --out results
    """
    from mtbayes.experiments import demo

    _run("demo", demo, out)
    console.print(
        "\nOn your own rows: mtbayes.RobustClassifier().fit(X, y), then outlier_probability_ and "
        "predict_proba; docs/how-to-choose.md says what its parameters do.",
        highlight=False,
    )


def _run(name: str, experiment: Any, out: Path) -> None:
    from mtbayes.report import REPORTS

    started = time.monotonic()
    try:
        with _progress() as bar:
            task = bar.add_task(name, total=1.0, what="")
            experiment.run(out, lambda share, what: bar.update(task, completed=share, what=what))
        pictures = REPORTS[name].draw(out)
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
