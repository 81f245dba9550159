"""A fit on disk: written after each chunk, whole or not at all, and only ever of the same fit."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from mtbayes import _files
from mtbayes.errors import InvalidInput

_SHOWN, _BEFORE = 60, 30  # letters of what differs, and of those the ones before that


class Checkpoint:
    """The file behind `fit(checkpoint=...)`; when its block ends, the last one is in place.

    A disk may take as long to say that it has a file as a small chunk takes to train. So a file is
    written in a thread, while the fit goes on.
    """

    def __init__(self, path: str | Path, fingerprint: Mapping[str, Any]) -> None:
        self.path, self.fingerprint = Path(path), dict(fingerprint)
        self._aside = ThreadPoolExecutor(1, "mtbayes-checkpoint")
        self._written: Future[None] | None = None

    def __enter__(self) -> Checkpoint:
        return self

    def __exit__(self, *_: Any) -> None:
        self._aside.shutdown()
        self._settle()

    def _settle(self) -> None:
        """Wait for the last file; what has kept it from being written is raised here."""
        written, self._written = self._written, None
        if written is not None:
            written.result()

    def write(self, state: Any, chunk: int, trace: list[Any], scores: list[float]) -> None:
        """Have the file put in place of the one before."""
        if jax.process_index():  # of many processes, all of which hold this, one writes
            return
        self._settle()
        leaves = {f"{i:04d}": np.asarray(v) for i, v in enumerate(jax.tree.leaves(state))}
        arrays = {**leaves, "trace": np.array(trace), "scores": np.array(scores)}
        settings = {"fit": self.fingerprint, "chunk": chunk}
        self._written = self._aside.submit(_files.write_arrays, self.path, arrays, settings)

    def restore(self, like: Any) -> tuple[Any, int, list[Any], list[float]]:
        """State, chunks done, trace and held-out scores; those of the start if there is no file.

        What a killed fit left half-written is removed.
        """
        if not jax.process_index():
            _files.sweep(self.path)
        if not self.path.exists():
            return like, 0, [], []
        arrays, settings = _files.read_arrays(self.path)
        theirs = settings.get("fit", {})
        for name, value in self.fingerprint.items():
            if theirs.get(name) != value:
                before, now = _apart(str(theirs.get(name)), str(value))
                raise InvalidInput(
                    f"checkpoint must belong to this fit, but {self.path} differs in {name} "
                    f"({before}, now {now}). Put back what was there before, such as --learner, "
                    "hidden, modes, a seed or random_state, or delete it to start anew."
                )
        leaves, tree = jax.tree.flatten(like)
        found = [jnp.asarray(arrays[f"{i:04d}"]) for i in range(len(leaves))]
        state = jax.tree.unflatten(tree, found)
        return state, int(settings["chunk"]), arrays["trace"].tolist(), arrays["scores"].tolist()


def _apart(one: str, other: str) -> tuple[str, str]:
    """Two texts from shortly before they differ, cut where they are long.

    >>> _apart("Model(network=Stack(row_shape=(4,), layers=(Dense(50), Dense(2))))" * 2, "Model(1)")
    ('Model(network=Stack(row_shape=(4,), layers=(Dense(50), Dense...', 'Model(1)')
    """
    same = zip(one, other, strict=False)
    differs = next((i for i, (a, b) in enumerate(same) if a != b), min(len(one), len(other)))
    begin = max(0, differs - _BEFORE)

    def cut(text: str) -> str:
        end = begin + _SHOWN
        return f"{'...' if begin else ''}{text[begin:end]}{'...' if text[end:] else ''}"

    return cut(one), cut(other)


def describe(value: Any) -> str:
    """A digest of arrays, or the repr of settings that have one without addresses."""
    leaves = jax.tree.leaves(value)
    if leaves and all(hasattr(leaf, "dtype") for leaf in leaves):
        digest = hashlib.blake2b(digest_size=12)
        for leaf in leaves:
            raw = (
                jax.random.key_data(leaf)
                if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)
                else leaf
            )
            digest.update(np.ascontiguousarray(raw).tobytes())
        return digest.hexdigest()
    text = repr(value)
    return text if " at 0x" not in text else f"{type(value).__name__} of size {value.size}"
