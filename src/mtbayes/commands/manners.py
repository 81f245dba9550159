"""What all commands share: options, errors in a line, what goes to the screen."""

from __future__ import annotations

import json
import os
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
from rich.console import Console

from mtbayes.errors import InvalidInput

STOPPED = 130  # what a shell makes of Ctrl-C
CLOSED = 141  # and of a pipe that nobody reads any more
GOES_ON = "The same command with --resume goes on from what is done, if anything is."

MERELY_UNUSUAL = {"classes": "", "number": " Values that are merely unusual count among them."}
"""What to say beside a share of wrong rows, by task."""


def out(about: str) -> Any:
    """The option for a file to write."""
    return typer.Option("--out", "-o", help=about)


def _columns(ctx: typer.Context, incomplete: str) -> list[str]:
    """Names of columns for the shell to complete; none where the file cannot be read."""
    from mtbayes.data.reading import open_table

    # A line that ends in --target is not parsed: the file is among what is left over.
    for path in (ctx.params.get("data"), *ctx.args):
        try:
            return [name for name in open_table(path).names if name.startswith(incomplete)]
        except (TypeError, ValueError, OSError):
            continue
    return []


Json = Annotated[bool, typer.Option("--json", help="Print JSON, for machines.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="Print errors alone.")]
Force = Annotated[bool, typer.Option("--force", help="Write over files that exist.")]
Seed = Annotated[int, typer.Option(min=0, max=2**31, help="Equal seeds give equal results.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show where an error comes from.")]
Data = Annotated[
    Path,
    typer.Argument(metavar="DATA", help="CSV, TSV, Parquet or Feather, or a folder of Parquet."),
]
ModelFile = Annotated[Path, typer.Argument(metavar="MODEL", help="A file that `fit` wrote.")]
Target = Annotated[str, typer.Option(help="The column to learn.", autocompletion=_columns)]
Task = Annotated[
    str | None, typer.Option(help="classes or number; guessed from the target if left out.")
]
T = Annotated[str, typer.Option("--t", help="auto, or 0 to 1: smaller is more robust.")]
M = Annotated[int, typer.Option("--m", help="Size of the ensemble.")]
Resume = Annotated[bool, typer.Option("--resume", help="Go on where Ctrl-C stopped.")]
Epochs = Annotated[int | None, typer.Option(help="Passes over the rows; by their number if none.")]


class BadUsage(InvalidInput):
    """An option breaks a rule."""


class Screen:
    """What is said, and where: a summary on stdout, notes on stderr; and how a command ends.

    As a context it turns errors into a line with its exit code, and warnings into notes.

    quiet: errors alone; as_json: one object on stdout, and notes inside it
    debug: errors with their traceback
    stopped: what to do after Ctrl-C
    """

    def __init__(self, *, quiet: bool, as_json: bool, debug: bool, stopped: str = "") -> None:
        self.quiet, self.as_json, self.debug, self.stopped = quiet, as_json, debug, stopped
        self.out, self.err = Console(highlight=False), Console(stderr=True, highlight=False)
        self.notes: list[str] = []
        self.started = time.monotonic()
        self._warnings = warnings.catch_warnings()

    def __enter__(self) -> Screen:
        self._warnings.__enter__()
        warnings.simplefilter("ignore")
        warnings.simplefilter("default", UserWarning)
        warnings.showwarning = lambda message, *_, **__: self.note(str(message).rstrip("."))
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        self._warnings.__exit__(kind, error, trace)
        if self.debug:
            return
        if isinstance(error, BrokenPipeError):  # `| head` has seen enough
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            raise typer.Exit(CLOSED) from None
        if isinstance(error, KeyboardInterrupt):
            self._fail(f"stopped; nothing half-written is left behind. {self.stopped}", STOPPED)
        elif isinstance(error, BadUsage):
            self._fail(str(error), 2)
        elif isinstance(error, (ValueError, OSError)):
            self._fail(_in_a_line(error), 1)

    def _fail(self, message: str, code: int) -> NoReturn:
        self.err.print(f"mtbayes: {message.strip()}", soft_wrap=True, markup=False)
        raise typer.Exit(code) from None

    @property
    def bars(self) -> bool:
        """Whether progress is shown."""
        return not (self.quiet or self.as_json)

    @property
    def seconds(self) -> float:
        """Since the start."""
        return round(time.monotonic() - self.started, 1)

    def note(self, text: str) -> None:
        """Something that a person should know, and that stops nothing."""
        self.notes.append(text)
        if self.bars:
            self.err.print(f"Note: {text}.", soft_wrap=True, markup=False)

    def line(self, text: str = "") -> None:
        """A line of the summary."""
        if self.bars:
            self.out.print(text, soft_wrap=True, markup=False)

    def table(self, table: Any) -> None:
        """A table of the summary, or what else rich can show."""
        if self.bars:
            self.out.print(table)

    def done(self, found: dict[str, Any]) -> None:
        """The same for machines."""
        if self.as_json:
            whole = found | {"seconds": self.seconds, "notes": self.notes}
            self.out.file.write(json.dumps(whole, ensure_ascii=False, default=_plain) + "\n")


def _plain(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else str(value)


def _in_a_line(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return f"cannot use {error.filename}: {error.strerror}. Choose another file or folder."
    return " ".join(str(error).split())


def usage(check: Callable[..., Any], *arguments: Any) -> Any:
    """A check of an option: what it refuses is bad usage."""
    try:
        return check(*arguments)
    except InvalidInput as error:
        raise BadUsage(str(error)) from None


def new_file(path: Path, force: bool, endings: tuple[str, ...] = ()) -> Path:
    """A path to write to, with one of the endings if there are any.

    It is no folder, no file that exists unless by force, and can be written: seen before hours go
    into what is to be written.
    """
    if path.is_dir():
        raise BadUsage(f"output must be a file, got the folder {str(path)!r}. Add a file's name.")
    if endings and path.suffix.lower() not in endings:
        raise BadUsage(f"output must end in {' or '.join(endings)}, got {path}. Rename it.")
    if path.exists() and not force:
        raise BadUsage(
            f"output must be a new file, but {path} exists. Add --force to write over it, or name "
            "another."
        )
    parent = next(folder for folder in path.absolute().parents if folder.exists())
    if not parent.is_dir() or not os.access(parent, os.W_OK):
        raise BadUsage(
            f"output must be in a folder that can be written, got {path}. Choose another folder."
        )
    return path


@contextmanager
def unfinished(path: Path, resume: bool) -> Iterator[Path]:
    """The folder beside an output that keeps what is done; removed when the block ends well."""
    folder = path.with_name(f"{path.name}.partial")
    if not resume:
        _clear(folder)
    yield folder
    _clear(folder)


def _clear(folder: Path) -> None:
    """Remove what an earlier command left, and nothing else."""
    if folder.is_dir():
        for pattern in ("fold-*", "final", "all", "*.json"):
            for file in folder.glob(pattern):
                file.unlink(missing_ok=True)
        if not any(folder.iterdir()):
            folder.rmdir()


def open_share(value: float | None, name: str, remedy: str) -> None:
    """A number strictly between 0 and 1, or none."""
    if value is not None and not 0 < value < 1:
        raise BadUsage(f"{name} must lie between 0 and 1, got {value:g}. {remedy}")


def stem(path: Path) -> str:
    """A file's name without its endings.

    >>> stem(Path("some/houses.csv.gz"))
    'houses'
    """
    return path.name.removesuffix(".gz").rsplit(".", 1)[0]


def percent(share: float) -> str:
    """A share for the eye.

    >>> percent(0.094)
    '9.4 %'
    """
    return f"{100 * share:.1f} %"
