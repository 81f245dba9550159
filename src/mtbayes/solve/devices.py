"""One fit over the devices of a mesh, in one process or in many."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from os import _exit
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import multihost_utils
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

from mtbayes.errors import InvalidInput
from mtbayes.types import Rows

LOST = 75
"""The exit code of a process that has lost another: try again."""
_LOST = re.compile("gloo|nccl|unavailable|connection|heartbeat|peer", re.IGNORECASE)


class Devices(NamedTuple):
    """Where batches go.

    mesh: its first axis splits the rows of a batch; without one there is one device
    """

    mesh: Mesh | None

    @classmethod
    def of(cls, mesh: Any) -> Devices:
        """Those of a user's mesh; how values are split inside is the compiler's to say."""
        if mesh is None:
            return cls(None)
        if not isinstance(mesh, Mesh):
            raise InvalidInput(
                f"mesh must be a jax.sharding.Mesh, got {mesh!r}. Try "
                'jax.make_mesh((jax.device_count(),), ("rows",)).'
            )
        kinds = (AxisType.Auto,) * len(mesh.axis_names)
        return cls(Mesh(mesh.devices, mesh.axis_names, axis_types=kinds))

    @property
    def sharing(self) -> int:
        """Devices that share the rows of a batch."""
        return 1 if self.mesh is None else int(self.mesh.shape[self.mesh.axis_names[0]])

    def share(self, size: int) -> slice:
        """The rows of a batch that this process holds."""
        if self.mesh is None:
            return slice(0, size)
        by = NamedSharding(self.mesh, PartitionSpec(self.mesh.axis_names[0]))
        indices = by.addressable_devices_indices_map((size,)).values()
        held = [index[0].indices(size) for index in indices if index is not None]
        return slice(min(h[0] for h in held), max(h[1] for h in held))

    def lanes(self, size: int, count: int) -> range:
        """Of `count` lanes of a stream those that this process reads."""
        mine, each = self.share(size), size // count
        if mine.start % each or mine.stop % each:
            raise InvalidInput(
                f"lanes must be a multiple of the {jax.process_count()} processes, got {count}. "
                "Open the stream with lanes=16, or with as many as there are processes."
            )
        return range(mine.start // each, mine.stop // each)

    def batches(self, rows: Rows) -> Rows:
        """Batches [steps, rows, ...] of this process as a part of all processes' batches."""
        if self.mesh is None:
            return jax.tree.map(jnp.asarray, rows)
        by = NamedSharding(self.mesh, PartitionSpec(None, self.mesh.axis_names[0]))
        return jax.tree.map(
            lambda v: jax.make_array_from_process_local_data(by, np.asarray(v)), rows
        )

    def everywhere(self, tree: Any) -> Any:
        """Values that every device holds."""
        if self.mesh is None:
            return tree
        by = NamedSharding(self.mesh, PartitionSpec())

        def put(value: Any) -> Any:
            if isinstance(value, jax.Array) and value.sharding == by:
                return value
            own = np.asarray(value)
            return jax.make_array_from_callback(own.shape, by, lambda index: own[index])

        return jax.tree.map(put, tree)


def check_split(members: int, mesh: Any) -> None:
    """The second axis of a mesh, if it has one, shares the members of a step out evenly."""
    if mesh is None or len(mesh.axis_names) < 2:
        return
    count = int(mesh.shape[mesh.axis_names[1]])
    if members % count:
        raise InvalidInput(
            f"mesh must have a second axis that divides the {members} members of a step, got "
            f"{count} devices along it. Choose as many modes, or m, as a multiple of {count}."
        )


def agreed(chunk: int, checkpoint: Any) -> None:
    """All processes go on from one checkpoint; none of them writes before all have read it."""
    if jax.process_count() == 1:
        return
    found = multihost_utils.process_allgather(np.array(chunk)).tolist()
    if len(set(found)) > 1:
        raise InvalidInput(
            f"checkpoint must be on a file system that all processes share, got {checkpoint} after "
            f"{found} chunks in processes 0, 1, .... Name a shared folder."
        )


@contextmanager
def together(checkpoint: Any) -> Iterator[None]:
    """Where many processes share a fit: the end of one of them ends the others, with one line.

    The runtime of JAX cannot go on without a process; left alone it would wait for a time-out and
    then abort. A launcher that starts all of them again continues from the checkpoint.
    """
    try:
        yield
    except (jax.errors.JaxRuntimeError, ValueError) as error:
        if jax.process_count() == 1 or not _LOST.search(str(error)):
            raise
        remedy = "Start all processes again" + (
            f"; they go on from {checkpoint}." if checkpoint else ", with a checkpoint this time."
        )
        line = f"mtbayes: process {jax.process_index()} lost another one that shares the fit. "
        sys.stderr.write(line + remedy + "\n")
        sys.stderr.flush()
        _exit(LOST)
