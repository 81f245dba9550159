"""Rows as images: pixels that are columns, or files that a column names."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mtbayes.data import pixels
from mtbayes.data.schema import Schema
from mtbayes.errors import InvalidInput
from mtbayes.reviewing.contents import texts
from mtbayes.types import FloatArray

_KINDS = {
    b"\x89PNG": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF8": "image/gif",
    b"RIFF": "image/webp",
    b"BM": "image/bmp",
}
_LOOKED = 50  # rows that tell which column names files


class Outside(InvalidInput):
    """A path leads out of the folder of images, or to what is none."""


class Pixels:
    """Columns that are pixels."""

    def __init__(self, images: FloatArray) -> None:
        self.images = images
        low, high = float(images.min()), float(images.max())
        self.low, self.span = low, (high - low) or 1.0

    def image(self, row: int) -> tuple[bytes, str]:
        """The image of a row and its type."""
        grey = np.rint(255 * (self.images[row] - self.low) / self.span).astype(np.uint8)
        return png(grey), "image/png"


class Files:
    """Files in a folder, which the cells of a column name."""

    def __init__(self, folder: Path, column: str, cells: list[str]) -> None:
        self.folder, self.column, self.cells = folder.resolve(), column, cells

    def image(self, row: int) -> tuple[bytes, str]:
        """The image of a row and its type; a path that leads out of the folder is refused."""
        path = self.path(self.cells[row])
        data = path.read_bytes()
        for magic, kind in _KINDS.items():
            if data.startswith(magic):
                return data, kind
        raise Outside(f"{path.name!r} must be an image (PNG, JPEG, GIF, WebP or BMP).")

    def path(self, cell: str) -> Path:
        """The file that a cell names."""
        try:
            path = (self.folder / cell).resolve(strict=True)
        except (OSError, ValueError, RuntimeError):
            raise Outside(f"image must exist in {self.folder}, got {cell!r}.") from None
        if not path.is_relative_to(self.folder) or not path.is_file():
            raise Outside(f"image must be a file inside {self.folder}, got {cell!r}.")
        return path


def pictures(table: Any, schema: Schema, data: Path, asked: str | None) -> Pixels | Files | None:
    """How the rows of a table are drawn; None if they are no images.

    asked: a column of paths, which begin at the table's folder, or the folder where they begin
    """
    if asked is None:
        found = pixels.images(table, schema)
        return None if found is None else Pixels(found)
    check_images(table.column_names, asked)
    if asked in table.column_names:
        return Files(data.resolve().parent, asked, texts(table.column(asked)))
    every = [Files(Path(asked), name, texts(table.column(name))) for name in table.column_names]
    best = max(every, key=_there)
    if not _there(best):
        raise InvalidInput(
            f"images must be a folder that a column names files of, got {asked!r}, in which no "
            "cell's file is. Name the column, or the folder where its paths begin."
        )
    return best


def check_images(names: Sequence[str], asked: str | None) -> None:
    """What is said of images is a column or a folder; nothing need be said."""
    if asked is not None and asked not in names and not Path(asked).is_dir():
        raise InvalidInput(
            f"images must be a column of paths or a folder, got {asked!r}. Columns are "
            f"{', '.join(map(repr, names[:8]))}."
        )


def _there(files: Files) -> int:
    """How many of the first rows name a file of the folder."""
    found = 0
    for cell in files.cells[:_LOOKED]:
        try:
            files.path(cell)
            found += 1
        except Outside:
            continue
    return found


def png(grey: Any) -> bytes:
    """An image [height, width] of bytes as PNG."""

    def part(name: bytes, data: bytes) -> bytes:
        checked = name + data
        return struct.pack(">I", len(data)) + checked + struct.pack(">I", zlib.crc32(checked))

    height, width = grey.shape
    lines = np.concatenate([np.zeros((height, 1), np.uint8), grey], axis=1).tobytes()
    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    body = part(b"IHDR", head) + part(b"IDAT", zlib.compress(lines)) + part(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + body
