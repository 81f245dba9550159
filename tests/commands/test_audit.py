"""`mtbayes audit`: the list, the columns beside it, and how it stops."""

import csv

import numpy as np
import pytest

from mtbayes.estimators import RobustClassifier
from mtbayes.fitting.harm import Harm


@pytest.fixture(scope="module")
def audited(case):
    out = case.folder / "audited.csv"
    result = case.run(
        "audit", case.data, "--target", "label", "-o", out, "--show", "5", *case.quick
    )
    assert result.exit_code == 0, result.output
    with out.open() as file:
        return result.output, list(csv.DictReader(file))


def test_swapped_labels_come_first(case, audited):
    _, rows = audited
    assert len(rows) == case.n
    first = {int(row["row"]) - 1 for row in rows[: case.n // 5]}
    assert len(first & set(case.swapped)) >= 0.8 * len(case.swapped)
    probability = [float(row["probability"]) for row in rows]
    assert probability == sorted(probability, reverse=True)


def test_rows_carry_their_columns(case, audited):
    for row in audited[1][:10]:
        place = int(row["row"]) - 1
        assert row["id"] == str(place)
        assert row["given"] == row["label"] == case.label[place]
        assert row["colour"] == case.colour[place]


def test_suggestions_and_reasons(case, audited):
    said, rows = audited
    top = rows[0]
    assert {top["given"], top["suggested"]} == {"high", "low"}
    assert f"going by the other rows, {top['given']} is" in top["why"]
    assert rows[-1]["given"] == rows[-1]["suggested"]
    assert "Rows more likely wrong than right" in said


def test_ctrl_c_leaves_no_list_and_resume_goes_on(case, audited, checkpoints, monkeypatch):
    out = case.folder / "resumed.csv"
    arguments = ["audit", case.data, "--target", "label", "-o", out, *case.quick]
    with monkeypatch.context() as patch:
        checkpoints(patch, stop="final.unfinished")
        result = case.run(*arguments)
    assert result.exit_code == 130
    assert "--resume" in result.output
    assert not out.exists()
    with monkeypatch.context() as patch:
        after = checkpoints(patch)
        assert case.run(*arguments, "--resume").exit_code == 0
    assert set(after.written) == {"final.unfinished"}
    with out.open() as file:
        assert list(csv.DictReader(file)) == audited[1]
    assert not (case.folder / "resumed.csv.partial").exists()


def test_influence_is_a_column_when_asked_for(case, audited, monkeypatch):
    harm = np.linspace(-1e-3, 1e-3, case.n)
    told = Harm(harm, np.argsort(-harm), "")
    monkeypatch.setattr(RobustClassifier, "influence", lambda *_: told)
    out = case.folder / "influence.csv"
    result = case.run(
        "audit", case.data, "--target", "label", "-o", out, "--influence", *case.quick
    )
    assert result.exit_code == 0, result.output
    assert "trusted rows" in result.output
    with out.open() as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        assert float(row["influence"]) == pytest.approx(harm[int(row["row"]) - 1], rel=1e-3)
    assert "influence" not in audited[1][0]


def test_influence_is_not_told_by_trees(case):
    result = case.run(
        "audit", case.folder / "none.csv", "--target", "a", "--influence", "--learner", "trees"
    )
    assert result.exit_code == 2
    assert "for --influence, got trees. Add --learner network." in result.output


def test_shares_that_are_none(case):
    for share in ("0", "1", "2"):
        result = case.run("audit", case.data, "--target", "label", "--expect", share)
        assert result.exit_code == 2
        assert "expect must lie" in result.output


@pytest.mark.parametrize(
    "command", ["fit", "predict", "audit", "certify", "compare", "reproduce", "demo"]
)
def test_help_has_an_example(case, command):
    result = case.run(command, "--help")
    assert result.exit_code == 0
    assert f"Example: mtbayes {command}" in " ".join(result.output.split())
