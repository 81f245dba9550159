"""Images in folders: read, made small, and left out by name where they cannot be read."""

import builtins

import numpy as np
import pytest

from mtbayes.data import photos
from mtbayes.errors import InvalidInput

Image = pytest.importorskip("PIL.Image")


@pytest.fixture
def folder(tmp_path):
    for label, shade in (("dark", 20), ("light", 220)):
        (tmp_path / label).mkdir()
        for i in range(3):
            picture = np.full((40 + i, 50, 3), shade, np.uint8)
            Image.fromarray(picture).save(tmp_path / label / f"{i}.png")
    whole = (tmp_path / "dark" / "0.png").read_bytes()
    (tmp_path / "dark" / "cut.png").write_bytes(whole[:40])
    (tmp_path / "light" / "note.jpg").write_text("no image at all")
    (tmp_path / "light" / "readme.txt").write_text("not even called one")
    return tmp_path


def test_subfolders_are_classes_and_what_cannot_be_read_is_listed(folder):
    assert photos.is_folder_of_images(folder)
    found = photos.read_photos(photos.in_folders(folder))
    assert found.labels.tolist() == ["dark"] * 3 + ["light"] * 3
    assert found.pixels.shape == (6, photos.SIDE, photos.SIDE, 3)
    np.testing.assert_allclose(found.pixels[0], 20 / 255, atol=1e-6)
    assert [name.rsplit("/", 1)[1] for name, _ in found.left_out] == ["cut.png", "note.jpg"]
    assert photos.thumbnail(found.given[0].path).startswith(b"\x89PNG")


def test_folders_that_hold_no_classes_of_images(folder, tmp_path):
    assert not photos.is_folder_of_images(tmp_path / "light")
    with pytest.raises(InvalidInput, match="at least 2 classes"):
        photos.in_folders(tmp_path / "light")


def test_an_image_of_too_many_pixels_is_left_out(folder, monkeypatch):
    monkeypatch.setattr(photos, "_LARGEST", 100)
    with pytest.raises(InvalidInput, match="got none of 8"):
        photos.read_photos(photos.in_folders(folder))


def test_without_pillow_a_remedy_is_named(folder, monkeypatch):
    real = builtins.__import__

    def no_pillow(name, *rest):
        if name == "PIL":
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", no_pillow)
    with pytest.raises(InvalidInput, match=r"pip install mtbayes\[images\]"):
        photos.read_photos(photos.in_folders(folder))
