"""`mtbayes certify`."""

import json

import pytest


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


def test_what_is_certified_in_place_of_several_learners_is_told(case):
    model = case.folder / "pool.mtb"
    result = case.run("fit", case.data, "--target", "label", "--epochs", "5", "--model", model)
    assert result.exit_code == 0, result.output
    told = " ".join(case.run("certify", model, case.data).output.split())
    assert "the sentence is about 10 networks, learned for it; MODEL is" in told
    told = " ".join(case.run("certify", case.model, case.data).output.split())
    assert "learned for it" not in told
