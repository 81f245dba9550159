"""One fit over the devices of a mesh, in one process or in many."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

from mtbayes.errors import InvalidInput
from mtbayes.solve.program import Rows


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

    def _check(self, size: int) -> None:
        """A batch can be shared out evenly."""
        assert self.mesh is not None
        count = self.mesh.shape[self.mesh.axis_names[0]]
        if size % count:
            raise InvalidInput(
                f"batch_size must be a multiple of the {count} devices that share its rows, got "
                f"{size}. Try {count * max(1, round(size / count))}."
            )

    def share(self, size: int) -> slice:
        """The rows of a batch that this process holds."""
        if self.mesh is None:
            return slice(0, size)
        self._check(size)
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
            return Rows(*map(jnp.asarray, rows))
        by = NamedSharding(self.mesh, PartitionSpec(None, self.mesh.axis_names[0]))
        return Rows(*(jax.make_array_from_process_local_data(by, np.asarray(v)) for v in rows))

    def everywhere(self, tree: Any) -> Any:
        """Values that every device holds."""
        if self.mesh is None:
            return tree
        by = NamedSharding(self.mesh, PartitionSpec())

        def put(value: Any) -> Any:
            return jax.device_put(value if _is_global(value) else np.asarray(value), by)

        return jax.tree.map(put, tree)


def _is_global(value: Any) -> bool:
    """Whether a value is on all devices of many processes already."""
    return isinstance(value, jax.Array) and not value.is_fully_addressable
