"""What a command says: a summary, notes, errors in a line; and how it ends."""

from __future__ import annotations

import errno
import json
import math
import os
import time
import warnings
from collections.abc import Callable
from typing import Any, NoReturn

import typer
from rich.console import Console

from mtbayes.errors import InvalidInput

STOPPED = 130  # what a shell makes of Ctrl-C
CLOSED = 141  # and of a pipe that nobody reads any more
GOES_ON = "The same command with --resume goes on from what is done, if anything is."

MERELY_UNUSUAL = {"classes": "", "number": " Values that are merely unusual count among them."}
"""What to say beside a share of wrong rows, by task."""


_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


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
            self._fail(f"stopped; no output is half-written. {self.stopped}", STOPPED)
        elif isinstance(error, BadUsage):
            self._fail(str(error), 2)
        elif isinstance(error, (ValueError, OSError)):
            self._fail(_in_a_line(error), 1)

    def _fail(self, message: str, code: int) -> NoReturn:
        self.err.print(shown(f"mtbayes: {message.strip()}"), soft_wrap=True, markup=False)
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
            self.err.print(shown(f"Note: {text}."), soft_wrap=True, markup=False)

    def line(self, text: str = "") -> None:
        """A line of the summary."""
        if self.bars:
            self.out.print(shown(text), soft_wrap=True, markup=False)

    def table(self, table: Any) -> None:
        """A table of the summary, or what else rich can show."""
        if self.bars:
            self.out.print(table)

    def done(self, found: dict[str, Any]) -> None:
        """The same for machines."""
        if self.as_json:
            whole = found | {"seconds": self.seconds, "notes": self.notes}
            self.out.file.write(as_json(whole) + "\n")


def shown(text: str) -> str:
    r"""Text that does nothing to a terminal: signs that are no letters are spelled out.

    >>> shown("red\x1b[2J")
    'red\\x1b[2J'
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c == "\n" else repr(c)[1:-1] for c in text)


def as_json(value: Any) -> str:
    """One line of JSON; what is no number, such as an infinite one, is null.

    >>> as_json({"a": [1, float("inf")]})
    '{"a": [1, null]}'
    """
    return json.dumps(_plain(value), ensure_ascii=False, allow_nan=False)


def _plain(value: Any) -> Any:
    """Numbers, text, lists and dicts alone."""
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, dict):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(v) for v in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if value is None or isinstance(value, (bool, int, float, str)) else str(value)


def _in_a_line(error: Exception) -> str:
    if isinstance(error, OSError) and error.errno in _FULL:
        return (
            "the disk is full, or a limit to it is reached, and what was being written is not "
            "there. Make room, or choose another folder."
        )
    if isinstance(error, OSError) and error.strerror and error.filename is not None:
        return f"cannot use {error.filename}: {error.strerror}. Choose another file or folder."
    return " ".join(str(error).split())


def usage(check: Callable[..., Any], *arguments: Any) -> Any:
    """A check of an option: what it refuses is bad usage."""
    try:
        return check(*arguments)
    except InvalidInput as error:
        raise BadUsage(str(error)) from None


def open_share(value: float | None, name: str, remedy: str) -> None:
    """A number strictly between 0 and 1, or none."""
    if value is not None and not 0 < value < 1:
        raise BadUsage(f"{name} must lie between 0 and 1, got {value:g}. {remedy}")


def percent(share: float) -> str:
    """A share for the eye.

    >>> percent(0.094)
    '9.4 %'
    """
    return f"{100 * share:.1f} %"
