"""Model classes that learn from weighted rows at a t: what the choice among them needs, no more.

A learner is a frozen value with its settings. It does not know of wrong rows' laws, of units or of
scikit-learn. A new one is one file: a class with the methods of `Learner`, made `storable` where
its models are to be saved.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from mtbayes._files import Unfinished
from mtbayes.errors import InvalidInput
from mtbayes.progress import Callback, part, silent
from mtbayes.types import Array, FloatArray, Rows

__all__ = [
    "MEMBERS",
    "Brief",
    "Crossed",
    "Crossing",
    "Further",
    "Learner",
    "Place",
    "Speaker",
    "Trained",
]

MEMBERS = 100
"""Members of a predictive."""


class Place(NamedTuple):
    """Where fits run, are kept and are heard of.

    folder: of checkpoints, or None; mesh: of devices that share the rows of a step, or None
    prefix: what the names of checkpoints begin with
    """

    folder: Unfinished | None = None
    mesh: Any = None
    callback: Callback = silent
    prefix: str = ""

    @classmethod
    def of(cls, checkpoint: Any, mesh: Any) -> Place:
        """What a user gives."""
        folder = None if checkpoint is None else Path(checkpoint)
        if folder is not None and folder.exists() and not folder.is_dir():
            raise InvalidInput(f"checkpoint must be a folder, got the file {folder}.")
        return cls(None if folder is None else Unfinished(folder), mesh)

    def file(self, name: str) -> Path | None:
        """The checkpoint of one fit."""
        return None if self.folder is None else self.folder.file(self.prefix + name)

    def part(self, begin: float, share: float) -> Place:
        """The same for a part of the work, which begins where `begin` of all is done."""
        return self._replace(callback=part(self.callback, begin, share))


class Trained(NamedTuple):
    """What a fit ends in.

    state: a tree of NumPy arrays; sound: whether it ended well; sentence: how, in words
    history: what was measured on the way, a dict of numbers for each look
    """

    state: Any
    sound: bool
    sentence: str
    history: list[dict[str, float]]


class Speaker(Protocol):
    """What a fitted model needs of a learner."""

    @property
    def name(self) -> str:
        """For people, such as "network"."""

    def predictive(self, state: Any, x: Array, key: Array, members: int = MEMBERS) -> Any:
        """What a state says of new rows."""

    def check(self, state: Any, shape: tuple[int, ...], classes: int) -> None:
        """Refuse a state, as a file holds it, in which no fit can have ended.

        shape: of a row; classes: how many, 0 for numbers. `_values.must` refuses.
        """


class Learner(Speaker, Protocol):
    """How rows become a state at a t, and what a state says of rows.

    x, y are in the learner's own units: features scaled, classes as 0..C-1, targets scaled.
    """

    def prepared(self, rows: Rows) -> Any:
        """Rows in the form that the methods below take; done once for many fits."""

    def looks(self, rows: int, folds: int) -> int:
        """Folds on which its candidates are compared; the others are fitted at one t alone."""

    def fit(
        self, prepared: Any, t: float, key: Array, *, place: Place = ..., start: Any = None
    ) -> Trained:
        """All rows, each with its weight, at t; start: a state to begin at."""

    def unseen(
        self,
        prepared: Any,
        fold: Array,
        which: Sequence[int],
        path: Sequence[float],
        key: Array,
        *,
        place: Place = ...,
    ) -> Sequence[Any]:
        """For each t of `path`, the predictive of rows by fits that have not seen them.

        fold: [n], the fold of each row; which: folds whose rows are asked for, in the rows' order
        """


class Crossing(NamedTuple):
    """Members of which each has left a fold of the rows out, at a t.

    So one fit gives a model, the mixture of all members, and says what it says of rows that it has
    not seen: the mixture of the members that left them out.
    """

    t: float
    unseen: Any
    """The predictive of every row by members that have not seen it."""
    state: Callable[[Place], Any]
    """Makes the learner's state, a tree of NumPy arrays; members may see all rows for that."""
    more: Callable[[float, FloatArray | None, Place], Crossing]
    """The same members at another t, from the `inner` of this learner or of several."""
    inner: FloatArray | None = None
    """Log probability of each row by fits that have seen neither it nor fold k, [folds, n]."""
    sentence: str = ""
    history: Sequence[dict[str, float]] = ()
    halves: Callable[[], Sequence[Any]] = tuple
    """Makes the predictives of every row by each half of those members; none if there are none."""
    late: Callable[[Place], tuple[Any, Array]] | None = None
    """What the same members say of rows that they left out still, when they were trained as long as
    the state is; and the numbers of these rows."""
    otherwise: Callable[[], tuple[Any, Crossing]] | None = None
    """Makes the learner whose members are the same and speak in another way, with its crossing."""


class Crossed(Speaker, Protocol):
    """A learner whose members can each leave a fold out; several such can be pooled."""

    @property
    def threaded(self) -> bool:
        """Whether it can be fitted in a thread beside others.

        It then asks nothing of JAX, whose settings a thread does not share, and lets go of the
        interpreter while it works.
        """

    def crossed(
        self, rows: Rows, fold: Array, t: float, key: Array, *, place: Place = ...
    ) -> Crossing:
        """All rows, each with its weight, at t, by members of which each leaves a fold out."""


class Brief(Protocol):
    """A learner that can be had in several settings, which are compared at little cost."""

    def brief(self) -> Learner:
        """The same with less training."""


class Further(Protocol):
    """A learner that can go on to more rows."""

    def further(self, state: Any, prepared: Any, t: float, key: Array) -> Trained:
        """More rows: what the state says so far is what is known before them."""
