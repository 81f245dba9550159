"""`mtbayes audit` of a folder of images, by embeddings that a user gives."""

import json
from contextlib import closing

import numpy as np
import pyarrow.csv
import pytest

from mtbayes.errors import InvalidInput
from mtbayes.reviewing import Review
from mtbayes.reviewing.views import Views

Image = pytest.importorskip("PIL.Image")
N = 40
LONGER = ["--t", "0.7", "--epochs", "300", "--m", "3"]


@pytest.fixture
def folder(tmp_path):
    """Images of which the last of class a shows a b, and embeddings that know."""
    rng = np.random.default_rng(0)
    embeddings = []
    for label in "ab":
        (tmp_path / "photos" / label).mkdir(parents=True)
        for i in range(N // 2):
            shade = 40 if (label == "a") != ((label, i) == ("a", 19)) else 200
            Image.new("RGB", (20, 20), (shade, 0, 0)).save(
                tmp_path / "photos" / label / f"{i:02d}.png"
            )
            embeddings.append(shade / 100 - 1.2 + 0.1 * rng.normal(size=3))
    (tmp_path / "photos" / "b" / "zz.png").write_text("broken")
    np.save(tmp_path / "e.npy", [*embeddings, [0, 0, 0]])
    return tmp_path


def test_the_image_in_the_wrong_folder_comes_first(case, folder):
    found = case.run("audit", "photos", "--embed", "e.npy", *LONGER, "--show", 3, folder=folder)
    assert found.exit_code == 0, found.output
    assert "zz.png cannot be read and is left out" in found.stderr
    table = pyarrow.csv.read_csv(folder / "photos-audit.csv")
    assert table.num_rows == N
    assert table.column("path")[0].as_py().endswith("a/19.png")
    page = (folder / "photos-audit.html").read_text()
    assert page.count("data:image/png;base64,") == N
    assert "zz.png" in page


def test_paths_may_stand_in_a_column(case, folder):
    rows = [f"photos/{label}/{i:02d}.png,{label}" for label in "ab" for i in range(20)]
    (folder / "list.csv").write_text("\n".join(["file,label", *rows]) + "\n")
    np.save(folder / "e.npy", np.load(folder / "e.npy")[:N])
    found = case.run(
        "audit", "list.csv", "--images", "file", "--target", "label", "--embed", "e.npy",
        *LONGER, "--json", folder=folder,
    )  # fmt: skip
    assert found.exit_code == 0, found.output
    assert json.loads(found.stdout)["suspects"][0]["path"].endswith("a/19.png")


@pytest.mark.slow
def test_a_small_network_learns_from_pixels(case, folder):
    found = case.run("audit", "photos", "--epochs", 20, "--quiet", folder=folder)
    assert found.exit_code == 0, found.output
    table = pyarrow.csv.read_csv(folder / "photos-audit.csv")
    assert table.column("path")[0].as_py().endswith("a/19.png")


def test_embeddings_must_go_with_the_images(case, folder):
    np.save(folder / "e.npy", np.zeros((3, 2)))
    found = case.run("audit", "photos", "--embed", "e.npy", folder=folder)
    assert found.exit_code == 1
    assert "a row for each of the 41 images" in found.stderr
    (folder / "e.npy").write_text("no array")
    found = case.run("audit", "photos", "--embed", "e.npy", folder=folder)
    assert "must be a .npy file of numbers" in found.stderr


def test_a_table_needs_a_target(case):
    found = case.run("audit", case.data)
    assert found.exit_code == 2
    assert "--target must name the column" in found.stderr


def test_rows_are_those_of_the_table_whatever_is_left_out(case, folder):
    """A label is missing in row 2, an image cannot be read in row 4."""
    rows = [f"photos/{label}/{i:02d}.png,{label}" for label in "ab" for i in range(20)]
    rows = [rows[0], "photos/a/01.png,", rows[2], "photos/b/zz.png,b", *rows[4:]]
    (folder / "list.csv").write_text("\n".join(["file,label", *rows]) + "\n")
    np.save(folder / "e.npy", np.load(folder / "e.npy")[:N, :1])
    given = ("audit", "list.csv", "--images", "file", "--target", "label", "--embed", "e.npy")
    found = case.run(*given, *LONGER, folder=folder)
    assert found.exit_code == 0, found.output
    assert "1 rows without a 'file' or a 'label' are left out" in found.stderr
    table = pyarrow.csv.read_csv(folder / "list-audit.csv")
    assert (table.column("row")[0].as_py(), table.num_rows) == (20, N - 2)
    named = dict(
        zip(table.column("row").to_pylist(), table.column("path").to_pylist(), strict=True)
    )
    assert all(named[i].endswith(rows[i - 1].split(",")[0]) for i in named)


def test_an_audit_of_images_is_reviewed_with_its_images(case, folder):
    found = case.run("audit", "photos", "--embed", "e.npy", *LONGER, folder=folder)
    assert "mtbayes review photos-audit.csv --target given" in found.stdout
    with closing(Review(folder / "photos-audit.csv", "given")) as review:
        _decided(review, folder)


def _decided(review, folder):
    views = Views(review)
    first = int(review.open[0])
    assert views.pictures.cells[first].endswith("a/19.png")
    assert views.pictures.image(first)[1] == "image/png"
    review.decide(first, "correct", "b")
    with pytest.raises(InvalidInput, match="audit that with --images path"):
        review.refit()
    clean = pyarrow.csv.read_csv(review.export(folder / "clean.csv").clean).to_pylist()
    assert [row["given"] for row in clean if row["path"].endswith("a/19.png")] == ["b"]
