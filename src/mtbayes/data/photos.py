"""Images in files: one folder a class, or paths in a column of a table. Pillow reads them."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from mtbayes.errors import InvalidInput
from mtbayes.types import Array, FloatArray

ENDINGS = {".png", ".jpg", ".jpeg", ".gif", ".bmp", ".webp", ".tif", ".tiff", ".ppm", ".pgm"}
"""Of files that are taken for images."""
SIDE = 32
"""Pixels on a side that an image is learned from."""
_THUMBNAIL = 96
_LARGEST = 2**27  # pixels, beyond which a small file may be meant to fill memory


class Labelled(NamedTuple):
    """An image that is to be read; row: its number, from 1, in the table or among the paths."""

    path: Path
    label: str
    row: int


class Photos(NamedTuple):
    """Images that could be read, and what is said of each.

    left_out: images that could not, each with the reason
    """

    given: list[Labelled]
    pixels: FloatArray
    left_out: list[tuple[str, str]]

    @property
    def labels(self) -> Array:
        """Of all of them."""
        return np.array([one.label for one in self.given])

    @property
    def rows(self) -> Array:
        """Their numbers, from 1."""
        return np.array([one.row for one in self.given])


def is_folder_of_images(path: Path) -> bool:
    """Whether a folder has subfolders with images, one for each class."""
    return path.is_dir() and any(
        file.suffix.lower() in ENDINGS for file in path.glob("*/*") if file.is_file()
    )


def in_folders(path: Path) -> list[Labelled]:
    """All images below a folder, each with its subfolder as a label."""
    files = [
        file
        for file in sorted(path.rglob("*"))
        if file.is_file() and file.suffix.lower() in ENDINGS and file.parent != path
    ]
    found = [Labelled(f, f.relative_to(path).parts[0], i) for i, f in enumerate(files, 1)]
    classes = sorted({one.label for one in found})
    if len(classes) < 2:
        raise InvalidInput(
            f"a folder of images must have a subfolder for each of at least 2 classes, got "
            f"{classes} in {path}. Sort the images into folders."
        )
    return found


def in_columns(table: Any, column: str, target: str, folder: Path) -> list[Labelled]:
    """Paths in a column, from the folder of the table; rows without a path or label are not."""
    both = zip(table.column(column).to_pylist(), table.column(target).to_pylist(), strict=True)
    return [
        Labelled(folder / str(path), str(label), row)
        for row, (path, label) in enumerate(both, 1)
        if path is not None and label is not None
    ]


def read_photos(labelled: list[Labelled]) -> Photos:
    """Images as numbers [n, SIDE, SIDE, 3] from 0 to 1; what cannot be read is listed."""
    given, pixels, left_out = [], [], []
    for one in labelled:
        try:
            pixels.append(np.asarray(_opened(one.path).resize((SIDE, SIDE)), np.float32) / 255)
            given.append(one)
        except _unreadable() as error:
            said = str(error).replace(str(one.path), "it") or type(error).__name__
            left_out.append((str(one.path), said.splitlines()[0][:100]))
    if not given:
        raise InvalidInput(f"images must be readable, got none of {len(labelled)} that is.")
    return Photos(given, np.stack(pixels), left_out)


def thumbnail(path: Path) -> bytes:
    """A small PNG of an image."""
    image = _opened(path)
    image.thumbnail((_THUMBNAIL, _THUMBNAIL))
    data = io.BytesIO()
    image.save(data, "PNG")
    return data.getvalue()


def _opened(path: Path) -> Any:
    """An image in red, green and blue."""
    with _pillow().open(path) as image:
        width, height = image.size
        if width * height > _LARGEST:
            raise ValueError(f"{width} x {height} pixels are too many")
        return image.convert("RGB")


def _unreadable() -> tuple[type[Exception], ...]:
    """What Pillow raises for files that are no images, cut short, or larger than they look."""
    return (OSError, ValueError, SyntaxError, EOFError, _pillow().DecompressionBombError)


def _pillow() -> Any:
    try:
        from PIL import Image
    except ImportError:
        raise InvalidInput(
            "images need Pillow, which is not installed. Run `pip install mtbayes[images]`."
        ) from None
    return Image
