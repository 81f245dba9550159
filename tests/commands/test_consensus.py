"""`mtbayes consensus`, and `fit` and `audit` of rows that several people labelled."""

import csv
import json

import numpy as np
import pytest
from typer.testing import CliRunner

from mtbayes.cli import app
from mtbayes.commands.annotated import People, _said
from mtbayes.data.reading import open_table
from mtbayes.tables.model import TableModel

pytestmark = pytest.mark.usefixtures("few_trees")

QUICK = ("--learner", "linear", "--t", "1", "--epochs", "20")
QUALITY = (0.95, 0.8, 0.5)


def run(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


def write(path, header, rows):
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(header)
        writer.writerows(rows)
    return path


def read(path):
    with path.open() as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A table with labels of three people in columns, the same in a long file, and the truth."""
    rng = np.random.default_rng(0)
    folder = tmp_path_factory.mktemp("people")
    truth = rng.integers(2, size=150)
    wide, plain, long = [], [], []
    for i, true in enumerate(truth):
        x = [f"r{i}", round(2 * true + rng.normal(), 3), round(rng.normal(), 3)]
        labels = ["no" if (true == 0) == (rng.random() < q) else "yes" for q in QUALITY]
        if i % 3:
            labels[i % 3] = ""
        wide.append([*x, *labels])
        plain.append(x)
        long += [[f"r{i}", f"p{j}", label] for j, label in enumerate(labels) if label]
    head = ["id", "x", "z"]
    return {
        "folder": folder,
        "wide": write(folder / "wide.csv", [*head, "p0", "p1", "p2"], wide),
        "plain": write(folder / "plain.csv", head, plain),
        "long": write(folder / "long.csv", ["id", "annotator", "label"], long),
        "truth": np.where(truth, "yes", "no"),
    }


@pytest.fixture(scope="module")
def found(files):
    out, people = files["folder"] / "rows.csv", files["folder"] / "people.csv"
    result = run(
        "consensus", files["wide"], "--annotators", "p*", "-o", out, "--people", people,
        "--model", files["folder"] / "people.mtb", *QUICK,
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    return result.output, read(out), read(people)


def test_rows_have_a_consensus(files, found):
    _, rows, _ = found
    assert len(rows) == 150
    right = np.mean([row["consensus"] == t for row, t in zip(rows, files["truth"], strict=True)])
    assert right > 0.9
    assert all(0.5 <= float(row["consensus_probability"]) <= 1 for row in rows)
    assert {row["labels"] for row in rows} == {"2", "3"}
    assert rows[3]["id"] == "r3"


def test_annotators_are_told_best_first(found):
    said, _, people = found
    assert [p["annotator"] for p in people] == ["p0", "p1", "p2"]
    assert float(people[0]["low"]) < float(people[0]["quality"]) < float(people[0]["high"])
    assert people[0]["verdict"] == "better than chance"
    assert "labels of 150 rows by 3 annotators" in said
    assert "Wrong in the consensus: about" in said
    assert "Ask next" not in said


def test_model_predicts_and_knows_the_people(files, found):
    model = TableModel.load(files["folder"] / "people.mtb")
    assert model.schema.target == "consensus"
    assert {column.name for column in model.schema.columns} == {"x", "z"}
    assert len(model.estimator.annotators_) == 3
    result = run("predict", files["folder"] / "people.mtb", files["plain"])
    assert result.exit_code == 0, result.output


def test_columns_of_annotators_are_not_learned_from_beside_a_long_file(files):
    source = open_table(files["wide"])
    people = People(None, files["folder"] / "long.csv", "id")
    entries, gone = _said(source, source.table(), people)
    assert gone == ["p0", "p1", "p2"]
    assert {entry.who for entry in entries} == set(gone)


@pytest.mark.slow
def test_long_file_is_the_same(files, found, monkeypatch):
    monkeypatch.chdir(files["folder"])
    result = run(
        "consensus", "plain.csv", "--annotations", "long.csv", "--row", "id", "--ask", "4",
        "--json", *QUICK,
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    told = json.loads(result.output)
    assert len(told["ask"]) == 4
    assert read(files["folder"] / "plain-ask.csv")[0]["id"].startswith("r")
    rows = read(files["folder"] / "plain-consensus.csv")
    assert [r["consensus"] for r in rows] == [r["consensus"] for r in found[1]]


def test_audit_judges_the_consensus(files):
    out = files["folder"] / "audit.csv"
    result = run("audit", files["wide"], "--annotators", "p0,p1,p2", "-o", out, *QUICK)
    assert result.exit_code == 0, result.output
    rows = read(out)
    assert len(rows) == 150
    probability = [float(row["probability"]) for row in rows]
    assert probability == sorted(probability, reverse=True)
    assert {"given", "suggested", "p0", "p1", "p2"} <= set(rows[0])
    said = " ".join(result.output.split())
    assert f"mtbayes review {files['wide']} --annotators p0,p1,p2" in said.replace("- ", "-")
    for row in rows[:50]:  # the consensus may be what nobody said
        told = row["why"].split("; ")[1:]
        for label in ("no", "yes"):
            who = ", ".join(p for p in ("p0", "p1", "p2") if row[p] == label)
            assert (f"{label} by {who}" in told) == bool(who)


@pytest.mark.slow
def test_fit_learns_the_consensus(files):
    path = files["folder"] / "fit.mtb"
    result = run("fit", files["wide"], "--annotators", "p*", "--model", path, *QUICK)
    assert result.exit_code == 0, result.output
    assert "Task: tell 2 classes of 'consensus' apart (no, yes)" in result.output
    assert len(TableModel.load(path).estimator.annotators_) == 3


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ((), "--annotators must name the columns with labels, got none"),
        (("--annotators", "p0,p9"), "--annotators must be a column of the file, got 'p9'. There"),
        (("--annotators", "q*"), "got the pattern 'q*', which matches none. There are 'id', 'x'"),
        (("--annotators", "long.csv"), "Add --annotations long.csv --row ID for a file with"),
        (("--annotators", "*"), "--annotators must leave columns to learn from, got all"),
        (("--annotations", "long.csv"), "--annotations and --row must be given together"),
        (("--annotators", "p*", "--row", "id"), "--annotations and --row must be given together"),
        (
            ("--annotators", "p*", "--annotations", "long.csv", "--row", "id"),
            "must be given, and not both",
        ),
        (("--annotators", "p*", "--target", "x"), "--target must be a new name beside labels"),
    ],
)
def test_bad_options_are_told(files, monkeypatch, words, told):
    monkeypatch.chdir(files["folder"])
    result = run("consensus", "wide.csv", "--force", *words)
    assert result.exit_code == 2
    assert told in " ".join(result.output.split())


@pytest.mark.parametrize("command", ["consensus", "fit"])
def test_wrong_name_is_told_before_a_file_that_exists(files, monkeypatch, tmp_path, command):
    monkeypatch.chdir(tmp_path)
    option = "--out" if command == "consensus" else "--model"
    there = write(tmp_path / "there.csv", ["a"], [])
    for name, told in [("p9", "got 'p9'"), ("p0,p1", "Add --force to write over it")]:
        result = run(command, files["wide"], "--annotators", name, option, there)
        assert result.exit_code == 2
        assert told in " ".join(result.output.split())


@pytest.mark.parametrize(
    ("entries", "told"),
    [
        (
            [["r0", "p0", "no"], ["r999", "p1", "no"]],
            "'id' must name rows of plain.csv, got 'r999'",
        ),
        (
            [["r0", "p0", "no"], ["r0", "p0", "yes"]],
            "'id' 'r0' must have one label by one person, got 'no' and 'yes' by 'p0' in line 3",
        ),
        (
            [["r0", "p0", "no"], ["r1", "p0", "yes"]],
            "every row of plain.csv must have a label, got 148 of 150 without one, the first in",
        ),
        (
            [["r0", "p0", "no"], ["r1", "", "yes"]],
            "'who' must say who gave each label, got none for 'yes' in line 3 of bad.csv. Name",
        ),
        (
            [["r0", "p0", "no"], ["r1", "p1", ""]],
            "every annotator must have given a label, got none by 'p1'. Leave such lines out of",
        ),
    ],
)
def test_bad_long_files_are_told(files, monkeypatch, entries, told):
    monkeypatch.chdir(files["folder"])
    write(files["folder"] / "bad.csv", ["id", "who", "what"], entries)
    result = run("consensus", "plain.csv", "--annotations", "bad.csv", "--row", "id", "--force")
    assert result.exit_code == 1
    assert told in " ".join(result.output.split())


def test_label_of_one_person_and_idle_person_are_told(files, monkeypatch):
    monkeypatch.chdir(files["folder"])
    rows = [[*row.values(), ""] for row in read(files["wide"])]
    rows[0][3] = "nno"
    write(files["folder"] / "odd.csv", ["id", "x", "z", "p0", "p1", "p2", "p3"], rows)
    odd = run("consensus", "odd.csv", "--annotators", "p0,p1,p2", "--force", *QUICK)
    told = "'p0' alone uses, first in line 2. Correct it, or name all labels in --classes a,b,c"
    assert told in " ".join(odd.output.split())
    twice = run("consensus", "odd.csv", "--annotators", "p0,p1,p0", "--force", *QUICK)
    assert "name each column once, got 'p0' twice" in " ".join(twice.output.split())
    idle = run("consensus", "odd.csv", "--annotators", "p*", "--force", *QUICK)
    assert "every annotator must have given a label, got none by 'p3'" in " ".join(
        idle.output.split()
    )


def test_whole_numbers_are_one_label_however_they_were_saved(files, monkeypatch):
    monkeypatch.chdir(files["folder"])
    spelled = {"p0": {"no": "0", "yes": "1"}, "p1": {"no": "0.0", "yes": "1.0"}}
    head, rows = ["id", "x", "z", "p0", "p1"], read(files["wide"])
    kept = [
        [*(row[k] for k in head[:3]), *(spelled[p].get(row[p], "") for p in spelled)]
        for row in rows
        if row["p0"]
    ]
    write(files["folder"] / "codes.csv", head, kept)
    result = run("consensus", "codes.csv", "--annotators", "p0,p1", "--force", *QUICK)
    assert result.exit_code == 0, result.output
    assert "Task: tell 2 classes of 'consensus' apart (0, 1)" in result.output
    assert {row["consensus"] for row in read(files["folder"] / "codes-consensus.csv")} == {"0", "1"}


def test_screen_tells_the_most_frequent_confusion_alone(found):
    said, _, people = found
    first, second = people[-1]["confuses"].split("; ")
    told = " ".join(said.split())
    assert first.split()[0] in told
    assert told.count(" where ") == len(people)
    assert second


def test_nobody_is_left_to_ask_where_everybody_labelled_every_row(files, monkeypatch):
    monkeypatch.chdir(files["folder"])
    full = [list(row.values()) for row in read(files["wide"]) if all(row.values())]
    write(files["folder"] / "full.csv", ["id", "x", "z", "p0", "p1", "p2"], full)
    result = run("consensus", "full.csv", "--annotators", "p*", "--ask", "3", *QUICK)
    assert result.exit_code == 0, result.output
    assert "Ask next: nobody, for everybody has labelled every row." in result.output
    assert not (files["folder"] / "full-ask.csv").exists()


@pytest.mark.slow
def test_ratings_are_numbers(files, monkeypatch):
    monkeypatch.chdir(files["folder"])
    rng = np.random.default_rng(1)
    x = rng.normal(size=60)
    rows = [[f"{v:.3f}", f"{3 * v + rng.normal() / 5:.3f}", f"{3 * v + 2 + rng.normal():.3f}"]
            for v in x]  # fmt: skip
    write(files["folder"] / "numbers.csv", ["x", "near", "far"], rows)
    result = run("consensus", "numbers.csv", "--annotators", "near,far", "--json", *QUICK)
    assert result.exit_code == 0, result.output
    people = {p["annotator"]: p for p in json.loads(result.output)["annotators"]}
    assert people["near"]["spread"] < people["far"]["spread"]
    assert people["near"]["bias"] < people["far"]["bias"]
