"""`mtbayes audit` and `certify`."""

import csv
import json

import numpy as np
import pytest
from scipy.special import expit, logit

from mtbayes.commands.audit import findings, with_influence
from mtbayes.commands.model import Rows, TableModel
from mtbayes.estimators import RobustClassifier
from mtbayes.estimators.harm import Harm


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
    assert f"by other rows {top['given']} has" in top["why"]
    assert rows[-1]["given"] == rows[-1]["suggested"]
    assert "Rows more likely wrong than right" in said


def test_a_known_share_moves_the_odds_by_bayes_rule(case):
    model = TableModel.load(case.model)
    estimated, expected = (findings(model, case.label, e) for e in (None, 0.3))
    np.testing.assert_array_equal(estimated.order, expected.order)
    shift = logit(0.3) - logit(model.estimator.law_.epsilon)
    np.testing.assert_allclose(
        expected.probability, expit(logit(estimated.probability) + shift), rtol=1e-6, atol=1e-12
    )
    np.testing.assert_allclose(
        estimated.probability, model.estimator.outlier_probability_[estimated.order], atol=1e-9
    )


def test_numbers_are_judged_by_their_distance(numbers):
    model, _, y = numbers
    found = findings(model, y, 0.01)
    assert found.order[0] == 7
    assert "sd above what other rows say" in found.why[0]
    assert found.suggested[0] == pytest.approx(model.estimator.held_out_[7, 0], rel=1e-4)
    assert found.given[0] == 130


def test_ctrl_c_leaves_no_list_and_resume_goes_on(case, audited, checkpoints, monkeypatch):
    out = case.folder / "resumed.csv"
    arguments = ["audit", case.data, "--target", "label", "-o", out, *case.quick]
    with monkeypatch.context() as patch:
        checkpoints(patch, stop="final")
        result = case.run(*arguments)
    assert result.exit_code == 130
    assert "--resume" in result.output
    assert not out.exists()
    with monkeypatch.context() as patch:
        after = checkpoints(patch)
        assert case.run(*arguments, "--resume").exit_code == 0
    assert set(after.written) == {"final"}
    with out.open() as file:
        assert list(csv.DictReader(file)) == audited[1]
    assert not (case.folder / "resumed.csv.partial").exists()


def test_influence_is_the_harm_to_the_least_suspicious_rows(numbers):
    model, x, y = numbers
    found, trusted = with_influence(model, Rows(None, None, x, y), findings(model, y))
    p = model.estimator.outlier_probability_
    judges = p <= max(0.05, np.median(p))
    assert trusted == judges.sum()
    assert len(y) / 2 <= trusted < len(y)
    expected = model.estimator.influence(x[judges], y[judges]).harm
    np.testing.assert_array_equal(found.influence, expected[found.order])


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


def test_shares_that_are_none(case):
    for share in ("0", "1", "2"):
        result = case.run("audit", case.data, "--target", "label", "--expect", share)
        assert result.exit_code == 2
        assert "expect must lie" in result.output


def test_certificate_in_a_sentence_and_its_terms(case):
    out = case.folder / "certified.mtb"
    result = case.run("certify", case.model, case.data, "--out", out, "--json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert found["statement"].count("\n") == 0
    assert "the error rate of this classifier" in found["statement"]
    terms = found["terms"]
    parts = [
        v
        for k, v in terms.items()
        if k in ("empirical risk", "Monte Carlo error") or k.startswith("for ")
    ]
    assert sum(parts) == pytest.approx(found["value"])
    assert terms["empirical risk"] < found["value"] <= 1
    predicted = case.run("predict", out, case.data, "-o", case.folder / "c.csv")
    assert predicted.exit_code == 0, predicted.output


def test_one_row_cannot_be_certified(case):
    path = case.write("one.csv", ["x,colour,label", "1,red,low"])
    result = case.run("certify", case.model, path)
    assert result.exit_code == 1
    assert "at least 2 rows" in result.output


@pytest.mark.parametrize(
    "command", ["fit", "predict", "audit", "certify", "compare", "reproduce", "demo"]
)
def test_help_has_an_example(case, command):
    result = case.run(command, "--help")
    assert result.exit_code == 0
    assert f"Example: mtbayes {command}" in " ".join(result.output.split())
