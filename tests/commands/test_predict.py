"""`mtbayes predict`: the estimator's predictions, whatever the file looks like."""

import json
import subprocess
import sys

import numpy as np
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet
import pytest

from mtbayes.commands.predict import predictions
from mtbayes.data import reading
from mtbayes.tables.model import TableModel


@pytest.fixture(scope="module")
def expected(case):
    model = TableModel.load(case.model)
    table = reading.open_table(case.data).table()
    return model.estimator.predict_proba(model.schema.code(table))


def test_predictions_are_the_estimators(case, expected):
    out = case.folder / "p.csv"
    result = case.run("predict", case.model, case.data, "-o", out)
    assert result.exit_code == 0, result.output
    found = pyarrow.csv.read_csv(out)
    assert found.column_names == ["prediction", "p(high)", "p(low)"]
    np.testing.assert_allclose(found["p(low)"], expected[:, 1], rtol=1e-12)
    assert found["prediction"].to_pylist() == np.array(["high", "low"])[expected.argmax(1)].tolist()
    assert f"{case.n} predictions" in result.output


def test_order_of_columns_encoding_and_batches_do_not_matter(case, expected, monkeypatch):
    monkeypatch.setattr(reading, "_BLOCK", 2**9)
    rows = ["new;colour;x"] + [
        f"é;{c};{'' if i % 20 == 0 else f'{x:.4f}'}"
        for i, (x, c) in enumerate(zip(case.x, case.colour, strict=True))
    ]
    path = case.write("turned.csv", rows, encoding="latin-1")
    result = case.run("predict", case.model, path, "-o", case.folder / "turned.parquet")
    assert result.exit_code == 0, result.output
    assert "ignored: 'new'" in result.output
    assert "Latin-1" in result.output
    found = pyarrow.parquet.read_table(case.folder / "turned.parquet")
    np.testing.assert_allclose(found["p(low)"], expected[:, 1], rtol=1e-5)


def test_to_the_screen_and_for_machines(case, expected):
    plain = case.run("predict", case.model, case.data)
    assert len(plain.stdout.splitlines()) == case.n + 1
    records = [
        json.loads(v)
        for v in case.run("predict", case.model, case.data, "--json").stdout.splitlines()
    ]
    np.testing.assert_allclose([r["p(high)"] for r in records], expected[:, 0], rtol=1e-12)
    out = case.folder / "p.feather"
    summary = json.loads(case.run("predict", case.model, case.data, "-o", out, "--json").stdout)
    assert (summary["rows"], summary["out"]) == (case.n, str(out))
    assert len(pyarrow.feather.read_table(out)) == case.n


def test_numbers_have_mean_sd_and_interval(numbers):
    model, x, _ = numbers
    estimator, found = model.estimator, predictions(model, x, 0.8)
    mean, sd = estimator.predict(x, return_std=True)
    low, high = estimator.predict_interval(x, 0.8)
    for name, values in {"mean": mean, "sd": sd, "low": low, "high": high}.items():
        np.testing.assert_allclose(found[name], values, rtol=1e-6)


def test_missing_columns_are_named(case):
    path = case.write("few.csv", ["color,z", "red,1"])
    result = case.run("predict", case.model, path)
    assert result.exit_code == 1
    assert "'x', 'colour' are missing" in result.output


def test_cells_that_cannot_be_read_are_counted(case):
    path = case.write("strays.csv", ["x,colour", "1,red", "one,red"])
    result = case.run("predict", case.model, path, "-o", case.folder / "s.csv")
    assert "1 cell of 'x' cannot be read" in result.output


def test_numbers_far_from_all_fitted_ones_are_told(case, monkeypatch):
    """Whatever batch they come in; one that is a little beyond the fitted ones is no news."""
    monkeypatch.setattr(reading, "_BLOCK", 2**9)
    low, high = f"{case.x.min():.4f}", f"{case.x.max():.4f}"
    near = case.x.max() + 0.9 * np.ptp(case.x)
    lines = [f"{near:.4f},red", "1e30,red", *["0,red"] * 200, "-400,red", "250,blue"]
    path = case.write("far.csv", ["x,colour", *lines])
    said = " ".join(
        case.run("predict", case.model, path, "-o", case.folder / "far-p.csv").output.split()
    )
    fitted = f"which are {float(low):g} to {float(high):g}"
    assert f"3 rows have a 'x' far from all fitted ones, {fitted}: -400 to 1e+30. No data" in said
    assert "infinite" not in said
    own = case.run("predict", case.model, case.data, "-o", case.folder / "own.csv").output
    assert "far from" not in own


@pytest.mark.parametrize("cells", [["-inf"], ["1e400", "12o"], ["1e400"]])
def test_infinite_cells_are_told(case, cells):
    """Whatever stands beside them."""
    path = case.write("infinite.csv", ["x,colour", *(f"{cell},red" for cell in cells), "0,red"])
    result = case.run("predict", case.model, path, "-o", case.folder / "i.csv", "--force")
    assert result.exit_code == 0, result.output
    assert "1 infinite cell of 'x', taken for missing" in result.output
    assert "far from" not in result.output


def test_gaps_that_no_fitted_row_had_are_told(case):
    path = case.write("gaps.csv", ["x,colour", ",red", "0,", "0,blue"])
    said = case.run("predict", case.model, path, "-o", case.folder / "g.csv").output
    assert "1 row has no 'colour', which all fitted rows had" in " ".join(said.split())
    assert "no 'x'" not in said  # of which some fitted rows had none


def test_nothing_is_written_over_or_half_written(case):
    out = case.folder / "kept.csv"
    out.write_text("mine")
    assert case.run("predict", case.model, case.data, "-o", out).exit_code == 2
    assert out.read_text() == "mine"
    ragged = case.write("ragged.csv", ["x,colour", *["1,red"] * 50, "1,red,3"])
    result = case.run("predict", case.model, ragged, "-o", out, "--force")
    assert result.exit_code == 1
    assert out.read_text() == "mine"
    header = case.write("header.csv", ["x,colour"])
    assert case.run("predict", case.model, header, "-o", case.folder / "h.csv").exit_code == 1
    assert not (case.folder / "h.csv").exists()


def test_foreign_and_damaged_models_are_refused(case):
    damaged = case.folder / "damaged.mtb"
    data = bytearray(case.model.read_bytes())
    data[-10] ^= 1
    damaged.write_bytes(data)
    foreign = case.folder / "foreign.mtb"
    foreign.write_bytes(case.data.read_bytes())
    plain = case.folder / "plain.mtb"
    TableModel.load(case.model).estimator.save(plain)
    for path, said in (
        (damaged, "checksum"),
        (foreign, "not written by mtbayes"),
        (case.data, "The model is named first"),
        (plain, "knows no columns"),
        (case.folder / "none.mtb", "does not exist"),
        (case.folder, "got the folder"),
    ):
        result = case.run("predict", path, case.data)
        assert result.exit_code == 1
        assert said in result.output
        assert len(result.output.splitlines()) == 1


def test_an_ending_that_is_none_of_ours_is_bad_usage(case):
    for command, out in (("predict", "p.csv.gz"), ("audit", "a.json"), ("compare", "c.txt")):
        first = [case.model] if command == "predict" else []
        target = [] if command == "predict" else ["--target", "label"]
        result = case.run(command, *first, case.data, *target, "-o", case.folder / out)
        assert result.exit_code == 2
        assert "must end in .csv" in result.output
        assert not (case.folder / out).exists()


def test_an_impossible_coverage_is_bad_usage(case):
    assert case.run("predict", case.model, case.data, "--coverage", "1.5").exit_code == 2


def test_a_reader_that_has_seen_enough_is_no_error(case):
    code = "from mtbayes.cli import run; run()"
    for how in ((), ("--json",)):
        command = [sys.executable, "-c", code, "predict", case.model, case.data, *how]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as pipe:
            pipe.stdout.close()
            assert pipe.stderr.read() == b""
        assert pipe.returncode == 141
