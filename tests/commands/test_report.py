"""`mtbayes report`: the page says what was found, whole or not at all."""

import json
from dataclasses import replace

import pytest

from mtbayes.tables import facts
from mtbayes.tables.findings import findings
from mtbayes.tables.model import TableModel


@pytest.fixture(scope="module")
def written(case):
    out = case.folder / "report.html"
    result = case.run("report", case.model, case.data, "-o", out)
    assert result.exit_code == 0, result.output
    return result.output, out


def test_models_that_know_no_rows_are_refused(case):
    path = case.folder / "forgetful.mtb"
    replace(TableModel.load(case.model), seen=None).save(path)
    result = case.run("report", path, case.data, "-o", case.folder / "never.html")
    assert result.exit_code == 1
    assert "must know the rows" in result.output
    assert not (case.folder / "never.html").exists()


def test_page_says_what_audit_finds(case, written):
    text = written[1].read_text()
    model = TableModel.load(case.model)
    found = findings(model, case.label, model.estimator.fitted_.training)
    places = [f"<td>{place + 1}</td>" for place in found.order[:30]]
    at = [text.index(place, text.index(places[0])) for place in places]
    assert at == sorted(at)
    assert f"All {case.n} rows of the data were fitted" in text
    assert "The model predicts the 2 classes of label (high, low) from 2 columns" in text
    assert "Left out, empty: nothing." in text
    assert f"Rows: {case.n}, of which {case.n} were fitted and 0 are new." in written[0]


def test_for_machines_and_again(case, written):
    out = case.folder / "again.html"
    result = case.run("report", case.model, case.data, "-o", out, "--json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert (found["out"], found["rows"], found["fitted"]) == (str(out), case.n, case.n)
    assert next(iter(found["columns"])) == "x"  # what the classes were made from
    assert found["columns"]["x"] > 5 * abs(found["columns"]["colour"]) > 0
    assert result.stderr == ""
    assert out.read_bytes() == written[1].read_bytes()


def test_nothing_is_written_over_or_half_written(case, written, monkeypatch):
    before = written[1].read_bytes()
    assert case.run("report", case.model, case.data, "-o", written[1]).exit_code == 2

    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(facts, "gather", stop)
    result = case.run("report", case.model, case.data, "-o", written[1], "--force")
    assert result.exit_code == 130
    assert written[1].read_bytes() == before


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["data.mtb"], 2, "DATA must be given beside the model data.mtb"),
        (["data.mtb", "data.csv", "--markdown", "a.md"], 2, "markdown must be left out"),
        ([".", "data.csv"], 2, "DATA must be left out for a folder"),
        (["."], 1, "mtbayes reproduce all --out ."),
        (["data.mtb", "data.csv", "-o", "."], 2, "must be a file"),
        (["none.mtb", "data.csv"], 1, "none.mtb"),
        (["data.csv", "data.csv"], 1, "The model is named first"),
    ],
)
def test_what_cannot_be_told_is_said_in_a_line(case, arguments, code, said):
    result = case.run("report", *arguments, folder=case.folder)
    assert result.exit_code == code, result.output
    assert said in result.output
    assert len(result.output.strip().splitlines()) == 1


def test_help_has_an_example(case):
    said = " ".join(case.run("report", "--help").output.split())
    assert "Example: mtbayes report houses.mtb houses.csv -o report.html" in said
    assert "mtbayes report data.mtb data.csv" in case.fitted.output.replace("\n", " ")
