"""`mtbayes compare`: what it says, what it writes, and how it stops."""

import csv
import json

import numpy as np
import pytest

from mtbayes.tables import comparison
from mtbayes.tables.comparison import ALL
from mtbayes.tables.contenders import CONTENDERS, OURS

from ..conftest import forest


def read(path):
    with path.open() as file:
        return list(csv.DictReader(file))


@pytest.mark.slow
def test_all_methods_side_by_side(case):
    out = case.folder / "compared.csv"
    arguments = ["compare", case.data, "--target", "label", "-o", out, "--repeats", "2"]
    result = case.run(*arguments, *case.quick)
    assert result.exit_code == 0, result.output
    said = " ".join(result.stdout.split())
    assert "2 random splits: 90 rows to learn from, 30 to be judged by" in said
    assert "Its judge is the mean of all methods" in said
    assert result.stdout.splitlines()[-1].startswith("Best by accuracy: ")
    rows = read(out)
    assert tuple(rows[0]) == ("rows", "method", "score", "split", "value")
    assert {row["method"] for row in rows} == set(CONTENDERS)
    assert len(rows) == 2 * len(CONTENDERS) * 2 * 2
    right = [float(r["value"]) for r in rows if r["score"] == "accuracy" and r["rows"] == ALL]
    assert min(right) > 0.6
    assert not (case.folder / "compared.csv.partial").exists()


def test_ctrl_c_keeps_what_is_done_and_resume_goes_on(case, cheap, monkeypatch):
    whole, out = case.folder / "whole.csv", case.folder / "stopped.csv"
    arguments = ["compare", case.data, "--target", "label", "--repeats", "3"]
    assert case.run(*arguments, "-o", whole).exit_code == 0
    calls = []

    def stops(split):
        calls.append(split)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return forest(split)

    with monkeypatch.context() as patch:
        patch.setitem(comparison.CONTENDERS, OURS, (stops, 1.0))
        result = case.run(*arguments, "-o", out)
    assert result.exit_code == 130
    assert "--resume" in result.output
    assert not out.exists()
    cells = case.folder / "stopped.csv.partial"
    assert len(list(cells.glob("*.unfinished"))) == 2
    with monkeypatch.context() as patch:
        patch.setitem(comparison.CONTENDERS, OURS, (lambda t: calls.append(t) or forest(t), 1.0))
        assert case.run(*arguments, "-o", out, "--resume").exit_code == 0
    assert len(calls) == 4  # one of three splits had been learned
    assert out.read_text() == whole.read_text()
    assert not cells.exists()


def test_for_machines(case, cheap):
    out = case.folder / "machines.csv"
    arguments = ["compare", case.data, "--target", "label", "-o", out, "--repeats", "2"]
    found = json.loads(case.run(*arguments, "--json").stdout)
    accuracy = [
        float(r["value"])
        for r in read(out)
        if (r["rows"], r["method"], r["score"]) == (ALL, OURS, "accuracy")
    ]
    told = found["scores"][ALL][OURS]["accuracy"]
    assert told["mean"] == pytest.approx(np.mean(accuracy))
    assert told["sd"] == pytest.approx(np.std(accuracy, ddof=1))
    assert [entry["score"] for entry in found["best"]] == ["accuracy", "log score"]
    assert found["best"][0]["best"] == OURS
    assert case.run(*arguments, "--quiet", "--force").output == ""
    assert case.run(*arguments).exit_code == 2  # it exists


@pytest.mark.parametrize(
    ("labels", "said"),
    [(["a", "b"] * 5, "at least 20 rows"), ([*"ab", *"c" * 30], "at least 2 classes")],
)
def test_files_that_cannot_be_split(case, labels, said):
    path = case.write("small.csv", ["x,y", *(f"{i % 7},{v}" for i, v in enumerate(labels))])
    result = case.run("compare", path, "--target", "y", "-o", case.folder / "never.csv")
    assert result.exit_code == 1
    assert said in result.output
