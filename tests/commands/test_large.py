"""A folder of Parquet files, read as it is needed."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mtbayes.estimators import streamed

from .conftest import run

N = 600


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Two years of rows: the class follows x; some cells of x and some targets are missing."""
    random = np.random.default_rng(0)
    path = tmp_path_factory.mktemp("large")
    x = random.normal(size=N)
    label = np.where(x > 0, "up", "down").astype(object)
    label[5] = None
    town = random.choice(["Ulm", "Bonn"], N)
    cells = [None if i % 50 == 0 else v for i, v in enumerate(x)]
    table = pa.table({"x": cells, "town": town, "label": label})
    for year, part in ((2023, table[: N // 2]), (2024, table[N // 2 :])):
        (path / "rows" / f"year={year}").mkdir(parents=True)
        pq.write_table(part, path / "rows" / f"year={year}" / "a.parquet")
    return path


@pytest.fixture(scope="module")
def fitted(folder):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(streamed, "SAMPLE", 200)
        options = ("--t", "0.7", "--epochs", "60", "--model", "m.mtb")
        return run("fit", "rows", "--target", "label", *options, folder=folder)


def test_folder_is_fitted_by_all_its_rows(fitted):
    assert fitted.exit_code == 0, fitted.output
    assert "Rows: 599 of 2 files" in fitted.output
    assert "200 of them" in fitted.output
    assert "1 rows without a 'label' are left out" in fitted.output
    assert "tell 2 classes of 'label' apart (down, up)" in fitted.output


def test_folder_is_predicted_with_its_columns(folder, fitted):
    result = run("predict", "m.mtb", "rows", "-o", "p.csv", folder=folder)
    assert result.exit_code == 0, result.output
    lines = (folder / "p.csv").read_text().splitlines()
    assert len(lines) == N + 1
    table = pq.read_table(folder / "rows")
    place = lines[0].replace('"', "").split(",").index("prediction")
    said = [line.replace('"', "").split(",")[place] for line in lines[1:]]
    sure = [i for i, v in enumerate(table["x"].to_pylist()) if v is not None and abs(v) > 0.5]
    right = np.mean([said[i] == ("up" if table["x"][i].as_py() > 0 else "down") for i in sure])
    assert right > 0.95


def test_bad_folders_and_tasks_are_named(folder, fitted, tmp_path):
    (tmp_path / "notes.txt").write_text("hello")
    result = run("fit", str(tmp_path), "--target", "label", folder=folder)
    assert result.exit_code == 1
    assert "must hold files *.parquet and no others" in result.output
    result = run("fit", "rows", "--target", "labl", "--json", folder=folder)
    assert result.exit_code == 2
    assert "Is 'label' meant?" in result.output
    assert "Traceback" not in result.output
