"""A folder of Parquet files, read as it is needed."""

import json
import os
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from pyarrow import feather

from mtbayes.commands import large
from mtbayes.data import sources
from mtbayes.fitting import streamed

from ..conftest import run

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
        options = ("--t", "0.7", "--epochs", "20", "--model", "m.mtb")
        return run("fit", "rows", "--target", "label", *options, folder=folder)


def test_folder_is_fitted_by_all_its_rows(fitted):
    assert fitted.exit_code == 0, fitted.output
    assert "Rows: 599 of 2 files" in fitted.output
    assert "200 of them" in fitted.output
    assert "1 rows without a 'label' are left out" in fitted.output
    assert "tell 2 classes of 'label' apart (down, up)" in fitted.output


def test_report_leaves_out_rows_that_were_fitted_and_are_not_of_the_sample(folder, fitted):
    result = run("report", "m.mtb", "rows", "-o", "r.html", "--json", folder=folder)
    assert result.exit_code == 0, result.output
    told = json.loads(result.output)
    assert told["rows"] == told["fitted"]
    assert 200 <= told["rows"] < 210  # rows without x are alike, and known again by it
    left = N - 1 - told["rows"]
    assert any(note.startswith(f"{left} rows are left out") for note in told["notes"])


def test_report_of_new_rows_looks_at_all_of_them(folder, fitted):
    shifted = pq.read_table(folder / "rows")
    x = [None if v is None else v + 1e-3 for v in shifted["x"].to_pylist()]
    pq.write_table(shifted.set_column(0, "x", pa.array(x)).slice(100, 50), folder / "new.parquet")
    result = run("report", "m.mtb", "new.parquet", "-o", "n.html", "--json", folder=folder)
    assert result.exit_code == 0, result.output
    told = json.loads(result.output)
    assert told["rows"] == 50
    assert told["fitted"] <= 1  # a row whose x is missing may be one that was fitted


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


@pytest.fixture(scope="module")
def audited(folder):
    """The same rows with six labels turned and one that is a class of its own."""
    turned = pq.read_table(folder / "rows").drop_columns("year")
    label, x = turned["label"].to_pylist(), turned["x"].to_pylist()
    sure = [i for i, v in enumerate(x) if v is not None and abs(v) > 1 and i > 5][::20][:6]
    for i in sure:
        label[i] = "down" if x[i] > 0 else "up"
    label[next(i for i in range(6, N) if i not in sure)] = "sideways"
    turned = turned.set_column(2, "label", [label])
    pq.write_table(turned, folder / "turned.parquet", row_group_size=150)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(streamed, "SAMPLE", 200)
        options = ("--target", "label", "--t", "0.7", "--epochs", "30", "-o", "a.csv")
        result = run("audit", "turned.parquet", *options, "--json", folder=folder)
    return result, sure, label


def test_audit_of_many_rows_judges_each_of_them(folder, audited):
    result, turned, label = audited
    assert result.exit_code == 0, result.output
    told = json.loads(result.output)
    table = pyarrow.csv.read_csv(folder / "a.csv")
    has_label = [i for i in range(N) if label[i] is not None]
    assert table["row"].to_pylist() == [i + 1 for i in has_label]
    assert table["given"].to_pylist() == [label[i] for i in has_label]
    assert told["rows"] == N - 1
    assert "rows without a readable 'label', left out: 1" in told["notes"]
    probability = table["probability"].to_numpy()
    ranked = table["row"].to_numpy()[np.argsort(-probability, kind="stable")]
    assert {i + 1 for i in turned} <= set(ranked[:12].tolist())
    suspects = told["suspects"]
    assert [s["rank"] for s in suspects] == list(range(1, 21))
    assert [s["probability"] for s in suspects] == sorted(probability, reverse=True)[:20]
    first = suspects[0]
    assert table.filter(pc.field("row") == first["row"])["why"].to_pylist() == [first["why"]]


def test_rows_of_the_sample_are_judged_by_fits_that_have_not_seen_them(folder, monkeypatch):
    """A network that can learn 60 random labels by heart knows nothing of those it has not seen."""
    random = np.random.default_rng(0)
    x = random.normal(size=(120, 20))
    rows = {f"x{i}": column for i, column in enumerate(x.T)} | {"y": random.choice(["a", "b"], 120)}
    pq.write_table(pa.table(rows), folder / "heart.parquet")
    monkeypatch.setattr(streamed, "SAMPLE", 60)
    options = ("--target", "y", "--t", "1", "--epochs", "300", "-o", "heart.csv")
    result = run("audit", "heart.parquet", *options, "--expect", "0.5", folder=folder)
    assert result.exit_code == 0, result.output
    found = pyarrow.csv.read_csv(folder / "heart.csv").to_pandas()
    chosen = np.sort(np.random.default_rng(0).choice(120, 60, replace=False)) + 1
    agrees = found["suggested"] == found["given"]
    inside = agrees[found["row"].isin(chosen)].mean()
    outside = agrees[~found["row"].isin(chosen)].mean()
    assert abs(inside - outside) < 0.3, (inside, outside)


def test_a_number_that_cannot_be_is_named_also_where_the_sample_is_clean(folder, monkeypatch):
    random = np.random.default_rng(1)
    x = random.normal(size=400)
    price = 3 * x + 0.1 * random.normal(size=400)
    sample = np.random.default_rng(0).choice(400, 200, replace=False)
    absurd = next(i for i in range(400) if i not in sample)
    price[absurd] = 1e30
    pq.write_table(pa.table({"x": x, "price": price}), folder / "absurd.parquet")
    monkeypatch.setattr(streamed, "SAMPLE", 200)
    options = ("--target", "price", "--t", "0.9", "--epochs", "40", "-o", "absurd.csv", "--json")
    result = run("audit", "absurd.parquet", *options, folder=folder)
    assert result.exit_code == 0, result.output
    first = json.loads(result.output)["suspects"][0]
    assert first["row"] == absurd + 1
    assert first["probability"] > 0.99


def test_audit_of_many_rows_refuses_influence(folder, monkeypatch):
    monkeypatch.setattr(streamed, "SAMPLE", 200)
    result = run("audit", "rows", "--target", "label", "--influence", folder=folder)
    assert result.exit_code == 2
    assert "--influence must be left out" in result.output


def test_feather_is_read_as_it_is_needed(folder, monkeypatch):
    feather.write_feather(pq.read_table(folder / "rows").drop_columns("year"), folder / "f.feather")
    monkeypatch.setattr(streamed, "SAMPLE", 200)
    options = ("--target", "label", "--t", "0.7", "--epochs", "5", "-o", "a.parquet")
    options = (*options, "--learner", "linear", "--m", "2")
    result = run("audit", "f.feather", *options, folder=folder)
    assert result.exit_code == 0, result.output
    assert "Learning from 200 of 600 rows" in result.output
    assert "All 599 rows, in the order of the files, counted from 1: a.parquet" in result.output
    assert pq.read_table(folder / "a.parquet").num_rows == N - 1


def test_bad_folders_and_tasks_are_named(folder, fitted, tmp_path):
    (tmp_path / "notes.txt").write_text("hello")
    result = run("fit", str(tmp_path), "--target", "label", folder=folder)
    assert result.exit_code == 1
    assert "must hold files *.parquet and no others, got notes.txt" in result.output
    (tmp_path / "notes.txt").unlink()
    result = run("fit", str(tmp_path), "--target", "label", folder=folder)
    assert "got none" in result.output
    result = run("fit", "rows", "--target", "labl", "--json", folder=folder)
    assert result.exit_code == 2
    assert "Is 'label' meant?" in result.output
    assert "Traceback" not in result.output


def test_a_cell_that_contradicts_the_sample_is_named_by_its_row(tmp_path, monkeypatch):
    """Which no sample of 200 rows tells: all others are whole numbers and points."""
    monkeypatch.setattr(streamed, "SAMPLE", 200)
    cells = np.array([f"{i % 97}.5" for i in range(N)], object)
    lost = next(i for i in range(N) if i not in some_rows(N, 200))
    cells[lost] = "3,25"
    (tmp_path / "rows").mkdir()
    table = pa.table({"x": cells, "label": np.where(np.arange(N) % 97 > 48, "up", "down")})
    pq.write_table(table, tmp_path / "rows" / "a.parquet", row_group_size=100)
    options = ("--t", "0.7", "--epochs", "2", "--learner", "linear")
    found = run("fit", "rows", "--target", "label", *options, folder=tmp_path)
    assert found.exit_code == 1
    assert f"'3,25' in row {lost + 1}." in found.stderr


def some_rows(count, size):
    """Rows from which the schema is learned, at seed 0."""
    return np.sort(np.random.default_rng(0).choice(count, size, replace=False))


def test_files_are_read_in_blocks_and_never_held(tmp_path, monkeypatch):
    """What Arrow holds while rows are learned from is a small part of what is in the files."""
    monkeypatch.setattr(streamed, "SAMPLE", 200)
    for module in (large, sources):
        monkeypatch.setattr(module, "BLOCK", 500)
    n, columns = 20_000, 20
    x = np.random.default_rng(0).normal(size=(n, columns))
    table = pa.table({f"x{i}": column for i, column in enumerate(x.T)})
    table = table.append_column("label", [np.where(x[:, 0] > 0, "up", "down")])
    (tmp_path / "rows").mkdir()
    pq.write_table(table, tmp_path / "rows" / "a.parquet", row_group_size=1000)
    whole = table.nbytes
    del table
    read, held, before, real = [], [], pa.total_allocated_bytes(), large.coded

    def coded(schema, batch):
        read.append(batch.num_rows)
        held.append(pa.total_allocated_bytes() - before)
        return real(schema, batch)

    monkeypatch.setattr(large, "coded", coded)
    options = ("--t", "0.7", "--epochs", "1", "--learner", "linear", "--m", "1")
    found = run("fit", "rows", "--target", "label", *options, folder=tmp_path)
    assert found.exit_code == 0, found.output
    assert max(read) <= 500
    assert sum(read) >= 2 * n  # to draw a sample, and to learn
    assert max(held) < 0.3 * whole


def peak(folder, rows):
    """Bytes that a fit of so many rows, in files of 100,000, takes at most."""
    rng, path = np.random.default_rng(0), folder / f"rows{rows}"
    path.mkdir()
    for part in range(rows // 100_000):
        x = rng.normal(size=(100_000, 10)).astype(np.float32)
        columns = {f"x{i}": column for i, column in enumerate(x.T)}
        table = pa.table({**columns, "y": np.where(x[:, 0] > 0, "a", "b")})
        pq.write_table(table, path / f"{part}.parquet")
    given = ["fit", str(path), "--target", "y", "--learner", "linear", "--t", "0.7", "--m", "1"]
    given += ["--epochs", "1", "--quiet", "--model", str(folder / f"{rows}.mtb")]
    script = "import sys; from mtbayes.cli import run; sys.argv[0] = 'mtbayes'; run()"
    process = subprocess.Popen([sys.executable, "-c", script, *given])
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    return used.ru_maxrss


@pytest.mark.slow
def test_memory_does_not_grow_with_the_rows(tmp_path):
    """Ten million rows beside one million; minutes, and half a gigabyte of files."""
    few, many = (peak(tmp_path, rows) for rows in (1_000_000, 10_000_000))
    print("peak", few, "and", many, "kB")
    assert many <= 1.15 * few
