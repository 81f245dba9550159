"""Files that nobody ever finds half of, and arrays in them: safetensors with JSON, never code."""

from __future__ import annotations

import glob
import hashlib
import json
import os
import struct
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load, save

from mtbayes.errors import InvalidInput

_FORMAT = "mtbayes"
_VERSION = 3
_TYPES = {"f4", "f8", "i4", "i8", "u4", "u8", "u1", "b1"}


@contextmanager
def atomic(path: Path) -> Iterator[Path]:
    """A temporary path beside `path` that takes its place when the block ends without error.

    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with atomic(Path(folder) / "sub" / "a.txt") as temporary:
    ...         _ = temporary.write_text("whole")
    ...     (Path(folder) / "sub" / "a.txt").read_text()
    'whole'
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=path.suffix)
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        with temporary.open("rb") as written:
            os.fsync(written.fileno())
        temporary.chmod(0o666 & ~_umask())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def sweep(path: Path) -> None:
    """Remove what `atomic` left beside `path` where it was killed in the middle of a write.

    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for name in (".a.mtb.half_one.mtb", "a.mtb", ".a.mtb.rc.mtb"):
    ...         _ = (Path(folder) / name).write_text("")
    ...     sweep(Path(folder) / "a.mtb")
    ...     sorted(file.name for file in Path(folder).iterdir())
    ['.a.mtb.rc.mtb', 'a.mtb']
    """
    for half in path.parent.glob(f".{glob.escape(path.name)}.????????{glob.escape(path.suffix)}"):
        half.unlink(missing_ok=True)


def write_arrays(path: Path, arrays: Mapping[str, Any], settings: Mapping[str, Any]) -> None:
    """Write named arrays and JSON settings as one file, atomically."""
    text = json.dumps(dict(settings))
    plain = {k: np.array(v, order="C") for k, v in arrays.items()}
    header = {"format": _FORMAT, "version": str(_VERSION), "settings": text}
    data = save(plain, metadata=header | {"checksum": _checksum(plain, text)})
    with atomic(Path(path)) as temporary:
        temporary.write_bytes(data)


def read_arrays(path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """What `write_arrays` wrote; a damaged or foreign file is an InvalidInput."""
    data = Path(path).read_bytes()
    try:
        arrays = load(data)
        size = struct.unpack("<Q", data[:8])[0]
        header = json.loads(data[8 : 8 + size])["__metadata__"]
        settings = json.loads(header["settings"])
        version = int(header["version"])
        if not isinstance(settings, dict):
            raise ValueError
    except (SafetensorError, KeyError, ValueError, TypeError, struct.error, RecursionError):
        raise InvalidInput(
            f"{path} is damaged or was not written by mtbayes. Name the right file, or write a "
            "damaged one anew."
        ) from None
    if header.get("format") == _FORMAT and version < _VERSION:
        raise InvalidInput(f"{path} was written by an older mtbayes. Fit the model again.")
    if header.get("format") != _FORMAT or version > _VERSION:
        raise InvalidInput(
            f"{path} has format {header.get('format')!r} version {version}, and this "
            f"mtbayes reads {_FORMAT!r} up to version {_VERSION}. Update mtbayes."
        )
    if header.get("checksum") != _checksum(arrays, header["settings"]):
        raise InvalidInput(
            f"{path} was changed after it was written: its checksum does not match. Get a fresh "
            "copy."
        )
    for name, array in arrays.items():
        if array.dtype.str[1:] not in _TYPES or not np.isfinite(array).all():
            raise InvalidInput(
                f"{path} must hold finite numbers, got {name!r} with others. It is damaged; get a "
                "fresh copy, or write it anew."
            )
    return arrays, settings


def _checksum(arrays: Mapping[str, Any], settings: str) -> str:
    digest = hashlib.sha256(settings.encode())
    for name, array in sorted(arrays.items()):
        digest.update(f"{name} {array.dtype.str} {array.shape}".encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


class Unfinished:
    """A folder of unfinished work. Its files are known by their ending, and so can be cleared.

    >>> with tempfile.TemporaryDirectory() as folder:
    ...     work = Unfinished(Path(folder) / "model.partial")
    ...     write_arrays(work.file("final"), {}, {})
    ...     work.clear()
    ...     work.folder.exists()
    False
    """

    ENDING = ".unfinished"

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def file(self, name: str) -> Path:
        """The file of a piece of work."""
        return self.folder / f"{name}{self.ENDING}"

    def clear(self) -> None:
        """Remove its files, those that a write left half-done among them, and nothing else."""
        if not self.folder.is_dir():
            return
        for file in self.folder.glob(f"*{self.ENDING}"):
            file.unlink(missing_ok=True)
        if not any(self.folder.iterdir()):
            self.folder.rmdir()
