"""How rows reach the device: held there whole, or batch by batch.

A fit goes in chunks. Small data make several epochs a chunk, large data several chunks an epoch.
All feeds cut an epoch alike and take the same random numbers. So a stream whose rows are not
shuffled, or rows that are split over devices, end in the same parameters as rows held whole.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from mtbayes import _check
from mtbayes.data.sources import is_streamed, open_stream
from mtbayes.data.stream import Order, Stream, rechunked
from mtbayes.errors import InvalidInput
from mtbayes.maths import draws
from mtbayes.models import Model
from mtbayes.solve.checkpoint import describe
from mtbayes.solve.checks import checked_rows
from mtbayes.solve.devices import Devices
from mtbayes.solve.problem import Held, Problem
from mtbayes.solve.program import Hyper, Settings, State, few_steps, program, streamed
from mtbayes.types import Array, FloatArray, Rows

STEPS = 500
"""Steps a chunk, about: long enough to pay for the call, short enough to watch."""
_FEW = 8


class Schedule(NamedTuple):
    """How the steps of a fit are cut.

    epochs: of the fit; batches: steps an epoch
    together: epochs a chunk, or 0 where an epoch has several chunks
    """

    epochs: int
    batches: int
    together: int

    @classmethod
    def of(cls, epochs: int, batches: int, together: int | None) -> Schedule:
        """At least twenty chunks to watch where epochs allow."""
        if together is None:
            together = 0
            if batches <= STEPS:
                most = max(1, min(STEPS // batches, epochs // 20))
                together = max(d for d in range(1, most + 1) if epochs % d == 0)
        return cls(epochs, batches, together)

    @property
    def parts(self) -> int:
        """Chunks an epoch, or 1."""
        return 1 if self.together else -(-self.batches // STEPS)

    @property
    def chunks(self) -> int:
        """Of the whole fit."""
        return self.epochs * self.parts // max(1, self.together)

    def begin(self, chunk: int) -> tuple[int, int]:
        """The epoch of a chunk, and which part of it."""
        if self.together:
            return chunk * self.together, 0
        return divmod(chunk, self.parts)

    def epochs_after(self, chunk: int) -> int:
        """Epochs that are complete after so many chunks."""
        return self.begin(chunk)[0]

    def key(self, key: Array, chunk: int) -> Array:
        """The key of a chunk."""
        epoch, part = self.begin(chunk)
        key = draws.child(key, epoch)
        return draws.child(key, part) if self.parts > 1 else key


class Resident:
    """All rows on the device; a chunk is a table of row numbers."""

    def __init__(
        self, held: Held, weights: FloatArray, size: int, problem: Problem, seed: list[int] | None
    ) -> None:
        total = weights.sum(axis=0)
        self.counted = np.flatnonzero(weights if weights.ndim == 1 else weights.any(axis=1))
        self.held, self.size, self.seed, self.total = held, size, seed, float(np.mean(total))
        batches = -(-len(self.counted) // size)
        self.schedule = Schedule.of(problem.epochs, batches, problem.chunk)
        self.mesh: Any = None
        share = (weights / total).astype(jnp.result_type(float))
        trusted = problem.rows.trusted
        certain = None if trusted is None else jax.device_put(_widened(trusted, len(held.x)))
        self.rows = Rows(held.x, held.y, jax.device_put(_widened(share, len(held.x))), certain)

    def chunks(self, first: int) -> Iterator[Any]:
        """What `advance` takes, for each chunk from `first` on."""
        for chunk in range(first, self.schedule.chunks):
            yield self.ordered(chunk)

    def advance(
        self, settings: Settings, state: State, given: Any, key: Array, hyper: Hyper
    ) -> tuple[State, Any, Array]:
        """The steps of a chunk."""
        return program(settings)(state, self.rows, *given, key, hyper)

    def ordered(self, chunk: int) -> tuple[Array, int]:
        """`order`, in one of a few shapes, and how many steps it has."""
        order = self.order(chunk)
        return _widened(order, few_steps(len(order)), -1), len(order)

    def order(self, chunk: int) -> Array:
        """Row numbers of a chunk, [steps, batch]; -1 pads the last batch of each epoch."""
        epoch, part = self.schedule.begin(chunk)
        order = np.concatenate(
            [self._epoch(epoch + i) for i in range(max(1, self.schedule.together))]
        )
        return order if self.schedule.parts == 1 else order[part * STEPS :][:STEPS]

    def _epoch(self, epoch: int) -> Array:
        order = np.full(self.schedule.batches * self.size, -1, np.int32)
        rows = self.counted  # rows of weight 0 are never picked
        if self.seed is not None:
            rows = np.random.default_rng([*self.seed, epoch]).permutation(rows)
        order[: len(rows)] = rows
        return order.reshape(-1, self.size)

    def few(self) -> tuple[Any, Any]:
        """The first rows."""
        return self.rows.x[:_FEW], self.rows.y[:_FEW]

    def fingerprint(self) -> str:
        """A digest of all rows."""
        return f"{self.held.digest}{describe(self.rows[2:])}"


class Split(Resident):
    """Rows in memory, whose batches are split over the devices of a mesh."""

    def __init__(
        self,
        held: Held,
        weights: FloatArray,
        size: int,
        problem: Problem,
        seed: list[int] | None,
        devices: Devices,
    ) -> None:
        check_size(size, 1, devices)
        super().__init__(held, weights, size, problem, seed)
        self.rows = jax.tree.map(np.asarray, self.rows)  # batches are put together on the host
        self.devices, self.mesh = devices, devices.mesh

    def chunks(self, first: int) -> Iterator[Rows]:
        """Batches of each chunk from `first` on."""
        mine = self.devices.share(self.size)
        for chunk in range(first, self.schedule.chunks):
            picked = np.asarray(self.order(chunk))[:, mine]
            weight = self.rows.weight[picked]
            weight[picked < 0] = 0
            yield self.devices.batches(Rows(self.rows.x[picked], self.rows.y[picked], weight))

    def advance(
        self, settings: Settings, state: State, given: Any, key: Array, hyper: Hyper
    ) -> tuple[State, Any, Array]:
        """The steps of a chunk."""
        return _streamed(self.devices, settings, state, given, key, hyper)


class Streamed:
    """Rows from a stream; a chunk is its batches, read while the device computes."""

    def __init__(
        self,
        stream: Stream,
        size: int,
        problem: Problem,
        seed: list[int] | None,
        devices: Devices,
    ) -> None:
        check_size(size, stream.lanes, devices)
        self.stream, self.model, self.size, self.devices = stream, problem.model, size, devices
        self.mesh = devices.mesh
        self.each = size // stream.lanes
        self.lanes = devices.lanes(size, stream.lanes)
        self.total = stream.total
        longest = max(map(stream.lane_rows, range(stream.lanes)))
        self.schedule = Schedule.of(problem.epochs, -(-longest // self.each), problem.chunk)
        first = stream.first()
        self.none = first.take(slice(0))
        width = sum(column.nbytes for column in first[:3]) // len(first.y)
        self.order = Order.of(stream, None if seed is None else tuple(seed), width)

    def chunks(self, first: int) -> Iterator[Rows]:
        """Batches of each chunk from `first` on, read one chunk ahead of what is asked for."""
        with ThreadPoolExecutor(1, "mtbayes-rows") as reader:
            chunks = self._read(first)
            ahead = reader.submit(next, chunks, None)
            while (found := ahead.result()) is not None:
                ahead = reader.submit(next, chunks, None)
                yield self.devices.batches(found)

    def advance(
        self, settings: Settings, state: State, given: Any, key: Array, hyper: Hyper
    ) -> tuple[State, Any, Array]:
        """The steps of a chunk."""
        return _streamed(self.devices, settings, state, given, key, hyper)

    def _read(self, first: int) -> Iterator[Rows]:
        """The rows of each chunk."""
        parts = self._parts(*self.schedule.begin(first))
        while some := list(islice(parts, max(1, self.schedule.together))):
            yield some[0] if len(some) == 1 else _joined(some, 0)

    def _parts(self, begin: int, part: int) -> Iterator[Rows]:
        """Epochs, or the parts of each where it is long."""
        for epoch in range(begin, self.schedule.epochs):
            skip = part * STEPS * self.each if epoch == begin else 0
            lanes = [
                rechunked(self.stream.rows_of(i, self.order, epoch, skip), STEPS * self.each)
                for i in self.lanes
            ]
            for step in range(skip // self.each, self.schedule.batches, STEPS):
                steps = min(STEPS, self.schedule.batches - step)
                parts = [self._batched(next(lane, self.none), steps) for lane in lanes]
                yield parts[0] if len(parts) == 1 else _joined(parts, 1)

    def _batched(self, block: Rows, steps: int) -> Rows:
        """Rows of a lane as [steps, rows, ...]; missing ones weigh 0."""
        size = steps * self.each
        x, y = self._checked(block) if len(block.y) else block[:2]
        weight = (block.weight / self.total).astype(jnp.result_type(float))
        x, y, weight = (_widened(values, size) for values in (x, y, weight))
        return Rows(*(v.reshape(steps, self.each, *v.shape[1:]) for v in (x, y, weight)))

    def _checked(self, block: Rows) -> tuple[Any, Any]:
        narrow = isinstance(self.model, Model)  # whose check looks at shapes alone
        return checked_rows(self.model, block.x, block.y, narrow=narrow)

    def few(self) -> tuple[Any, Any]:
        """The first rows."""
        block = self.stream.first().take(slice(_FEW))
        return checked_rows(self.model, block.x, block.y)

    def fingerprint(self) -> str:
        """A digest of the pieces' lengths and of the first rows; not of all that is on disk."""
        lengths = np.array([piece.rows for piece in self.stream.pieces])
        return describe((lengths, np.array(self.stream.lanes), *self.few()))


def feed_of(problem: Problem, seed: list[int] | None) -> Resident | Streamed:
    """The feed for a problem's rows; seed: of their order, or None for that of the rows."""
    devices, (x, y, weight, _) = Devices.of(problem.mesh), problem.rows
    if is_streamed(x):
        stream = open_stream(x, y, weight)
        shares = math.lcm(stream.lanes, devices.sharing)
        size = _size(problem.batch_size, len(stream), shares)
        return Streamed(stream, size, problem, seed, devices)
    held = x if isinstance(x, Held) else Held.of(problem.model, x, y)
    modes = None if problem.criterion.joint else problem.posterior.components
    weights = _check.row_weights(weight, len(held), modes)
    size = _size(problem.batch_size, len(held), devices.sharing)
    if problem.mesh is None:
        return Resident(held, weights, size, problem, seed)
    return Split(held, weights, size, problem, seed, devices)


def check_size(size: int, lanes: int, devices: Devices) -> None:
    """Refuse a batch that cannot be shared out evenly over lanes and devices."""
    for shares, of in ((lanes, "lanes"), (devices.sharing, "devices that share its rows")):
        if size % shares:
            raise InvalidInput(
                f"batch_size must be a multiple of the {shares} {of}, got {size}. Try "
                f"{shares * max(1, round(size / shares))}."
            )


def _size(batch_size: int, rows: int, shares: int) -> int:
    """Rows a step: hardly more than there are, as many for each share; one of a few sizes."""
    unit = math.lcm(shares, 16)
    return min(batch_size, unit * -(-rows // unit))


def _streamed(
    devices: Devices, settings: Settings, state: State, given: Any, key: Array, hyper: Hyper
) -> tuple[State, Any, Array]:
    count = np.int32(len(given.weight))
    common = devices.everywhere((state, count, jax.random.key_data(key), hyper))
    state, count, raw, hyper = common
    return streamed(settings)(state, given, count, raw, hyper)


def _joined(parts: list[Rows], axis: int) -> Rows:
    """Batches that follow each other, or those of several lanes side by side, as one."""
    return jax.tree.map(lambda *each: np.concatenate(each, axis), *parts)


def _widened(values: Array, size: int, by: int = 0) -> Array:
    """With more rows of one value, up to a size."""
    if len(values) == size:
        return values
    more = np.full((size - len(values), *np.shape(values)[1:]), by, values.dtype)
    return np.concatenate([values, more])
