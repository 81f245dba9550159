"""`mtbayes reproduce` and `demo`: experiments whose numbers and pictures go to a folder."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from mtbayes import _check
from mtbayes.commands import options
from mtbayes.commands.screen import BadUsage, Screen, usage
from mtbayes.errors import InvalidInput

Folder = Annotated[Path, typer.Option("--out", "-o", help="Folder for numbers and figures.")]


def reproduce(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="NAME...", help="Experiments; see --list.")
    ] = None,
    full: Annotated[
        bool,
        typer.Option("--full/--quick", help="The paper's sizes (hours), or minutes' worth."),
    ] = False,
    seeds: Annotated[
        int | None, typer.Option(min=1, help="Seeds 0, 1, ..., where there are any: how many.")
    ] = None,
    out: Folder = Path("results"),
    jobs: Annotated[int, typer.Option(min=1, help="Processes.")] = 1,
    show: Annotated[bool, typer.Option("--list", help="List the experiments.")] = False,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
    debug: options.Debug = False,
) -> None:
    """Reproduce the paper's figures and tables: numbers first, then pictures drawn from them.

    What was computed before is kept: a run that was stopped goes on when it is started again.

    Example: mtbayes reproduce toy housing --out results
    """
    stopped = "The same command goes on from here."
    with Screen(quiet=quiet, as_json=as_json, debug=debug, stopped=stopped) as screen:
        from mtbayes.experiments import EXPERIMENTS, How

        if show:
            for name, experiment in EXPERIMENTS.items():
                screen.line(f"{name:12} {experiment.about}")
            screen.done({"experiments": {name: e.about for name, e in EXPERIMENTS.items()}})
            return
        if not names:
            raise BadUsage("name at least one experiment; `mtbayes reproduce --list` shows them.")
        for name in names:
            usage(_check.known, "NAME", name, ["all", *EXPERIMENTS])
        chosen = list(EXPERIMENTS) if "all" in names else names
        how = How(full, seeds, jobs)
        screen.done({name: _run(screen, name, EXPERIMENTS[name], out, how) for name in chosen})


def demo(
    out: Folder = Path("results"),
    seed: options.Seed = 0,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
    debug: options.Debug = False,
) -> None:
    """Learn digits of which 30 % have a wrong label: four methods side by side, in a minute.

    Example: mtbayes demo --out results
    """
    with Screen(quiet=quiet, as_json=as_json, debug=debug) as screen:
        from mtbayes.experiments import How, Plain
        from mtbayes.experiments.demo import run

        found = _run(screen, "demo", Plain("", partial(run, seed=seed)), out, How())
        screen.line(
            "\nWith a file of your own: mtbayes audit data.csv --target COLUMN names its wrong "
            "rows, mtbayes fit learns from it, mtbayes compare sets it beside other methods. In "
            "Python: mtbayes.RobustClassifier().fit(X, y), then outlier_probability_ and "
            "predict_proba. docs/how-to-choose.md explains its parameters."
        )
        screen.done(found)


def _run(screen: Screen, name: str, experiment: Any, out: Path, how: Any) -> dict[str, Any]:
    """Compute, draw and show; where the files are, or why there are none."""
    from mtbayes.data.datasets import NotFound
    from mtbayes.progress import bar
    from mtbayes.report import REPORTS

    before = screen.seconds
    try:
        with bar(name, shown=screen.bars) as callback:
            experiment.run(out, callback, how)
        pictures = REPORTS[name].draw(out)
    except NotFound as error:
        screen.line(f"{name}: skipped. {error}")
        return {"skipped": str(error)}
    except OSError as error:
        raise InvalidInput(
            f"cannot write to {out}: {error.strerror}. Choose another folder with --out."
        ) from None
    for table in REPORTS[name].tables(out):
        screen.line()
        screen.table(table)
    numbers = [
        path
        for folder in sorted({picture.parent for picture in pictures})
        for path in sorted(folder.glob("*.csv"))
    ]
    screen.line(f"\n{name}: done in {screen.seconds - before:.0f} s. Figures:")
    for path in pictures:
        if path.suffix == ".png":
            screen.line(f"  {path} (and .svg)")
    screen.line("Numbers:")
    for path in numbers:
        screen.line(f"  {path}")
    return {"figures": [str(p) for p in pictures], "numbers": [str(p) for p in numbers]}
