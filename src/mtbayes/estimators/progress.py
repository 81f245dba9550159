"""How far a fit has come, on the screen."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def bar(name: str, *, shown: bool) -> Iterator[Callable[..., None]]:
    """A progress bar with the time left; what it yields hears the share that is done, and words."""
    if not shown:
        yield lambda *_: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[words]}"),
    )
    with Progress(*columns, console=Console(stderr=True)) as progress:
        task = progress.add_task(name, total=1.0, words="")
        yield lambda share, words="": progress.update(task, completed=share, words=words)
        progress.update(task, completed=1.0)


def in_words(terms: Any) -> str:
    """The terms of J in a few words."""
    prior = float(terms.loss - terms.data)
    return f"loss {float(terms.loss):.3f} = data {float(terms.data):.3f} + prior {prior:.3f}"
