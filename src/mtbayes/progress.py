"""How far work has come: one shape for everyone who listens, and a bar on the screen."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any, NamedTuple, TypeAlias


class Progress(NamedTuple):
    """What a callback hears.

    share: of the whole work that is done, in [0, 1]; words: what is being done, or how it goes
    epoch: epochs of a fit that are complete, of `epochs`; terms: its J and the parts of it, by the
        last chunk of steps; held_out_loss: of rows that were held out, if any were
    """

    share: float
    words: str = ""
    epoch: int = 0
    epochs: int = 0
    terms: Any = None
    held_out_loss: float | None = None


Callback: TypeAlias = Callable[[Progress], None]
"""Hears of progress."""


def silent(_: Progress) -> None:
    """A callback that nobody listens to."""


def part(callback: Callback, begin: float, share: float, words: str | None = None) -> Callback:
    """A callback for a part of the work, which begins where `begin` of all is done.

    words: said in place of the part's own

    >>> part(print, 0.5, 0.2)(Progress(0.5, "half of it"))
    Progress(share=0.6, words='half of it', epoch=0, epochs=0, terms=None, held_out_loss=None)
    """

    def hear(p: Progress) -> None:
        callback(
            p._replace(share=begin + share * p.share, words=p.words if words is None else words)
        )

    return hear


def beside(callback: Callback, count: int) -> list[Callback]:
    """Callbacks for equal parts of work that go on at the same time, in threads too.

    >>> first, second = beside(lambda p: print(p.share), 2)
    >>> first(Progress(0.5)); second(Progress(1.0))
    0.25
    0.75
    """
    shares, lock = [0.0] * count, Lock()

    def own(i: int) -> Callback:
        def hear(p: Progress) -> None:
            with lock:
                shares[i] = p.share
                callback(p._replace(share=sum(shares) / count))

        return hear

    return [own(i) for i in range(count)]


@contextmanager
def bar(name: str, *, shown: bool) -> Iterator[Callback]:
    """A progress bar with the time left; what it yields is the callback that moves it."""
    if not shown:
        yield silent
        return
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[words]}"),
    )
    with Bar(*columns, console=Console(stderr=True)) as shown_bar:
        task = shown_bar.add_task(name, total=1.0, words="")
        yield lambda p: shown_bar.update(task, completed=p.share, words=p.words)
        shown_bar.update(task, completed=1.0)
