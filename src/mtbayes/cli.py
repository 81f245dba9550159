"""The command `mtbayes`: all commands under one name."""

from __future__ import annotations

import sys
from os import _exit
from typing import Annotated

import typer

from mtbayes import __version__, commands
from mtbayes.commands.cache import keep_programs
from mtbayes.commands.screen import STOPPED
from mtbayes.commands.startup import end_sooner, start_sooner

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Learn from dirty data with models that are too simple.",
)
commands.register(app)


def run() -> None:
    """The command. After Ctrl-C it ends at once: to tidy up beside a compiler at work may crash."""
    start_sooner()
    keep_programs()
    try:
        app()
    except SystemExit as ended:
        if ended.code == STOPPED:
            sys.stdout.flush()
            sys.stderr.flush()
            _exit(STOPPED)
        raise
    finally:
        end_sooner()


@app.callback(invoke_without_command=True)
def main(
    version: Annotated[bool, typer.Option("--version", help="Show the version.")] = False,
) -> None:
    """Learn from dirty data with models that are too simple."""
    if version:
        typer.echo(f"mtbayes {__version__}")
        raise typer.Exit
