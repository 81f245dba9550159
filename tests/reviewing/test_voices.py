"""Rows that several people labelled: all labels are shown, and how good their givers are."""

import csv

import numpy as np
import pytest
from typer.testing import CliRunner

from mtbayes.cli import app
from mtbayes.errors import InvalidInput
from mtbayes.reviewing import Review
from mtbayes.reviewing.server import Server
from mtbayes.reviewing.views import Views

from .conftest import Running, write_rows

pytestmark = pytest.mark.usefixtures("few_trees")

QUALITY = {"ann": 0.95, "bob": 0.8, "cem": 0.3}
QUICK = ("--learner", "linear", "--t", "1", "--epochs", "20", "--seed", "0")


def run(*words):
    result = CliRunner().invoke(app, [str(word) for word in words])
    assert result.exit_code == 0, result.output
    return result.output


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Labels of three people in a wide and in a long file; the same rows twice among them."""
    rng = np.random.default_rng(0)
    folder = tmp_path_factory.mktemp("voices")
    truth = rng.integers(2, size=120)
    plain = [[f"r{i}", f"{2.0 * t + rng.normal():.3f}"] for i, t in enumerate(truth)]
    plain[7][1], plain[8][1] = plain[5][1], plain[5][1]  # alike, but labelled otherwise

    def label(true, quality):
        return "" if rng.random() < 0.2 else "ny"[true if rng.random() < quality else 1 - true]

    said = [[label(t, q) for q in QUALITY.values()] for t in truth]
    for labels in said:
        if not any(labels):
            labels[0] = "n"
    write_rows(folder / "plain.csv", ["id", "x"], plain)
    wide = [[*row, *labels] for row, labels in zip(plain, said, strict=True)]
    write_rows(folder / "wide.csv", ["id", "x", *QUALITY], wide)
    long = [
        [row[0], who, label]
        for row, labels in zip(plain, said, strict=True)
        for who, label in zip(QUALITY, labels, strict=True)
        if label
    ]
    write_rows(folder / "long.csv", ["id", "annotator", "label"], long)
    run("consensus", folder / "wide.csv", "--annotators", "ann,bob,cem", "-o", folder / "rows.csv",
        "--people", folder / "people.csv", "--model", folder / "people.mtb", *QUICK)  # fmt: skip
    return folder


@pytest.fixture
def review(folder, tmp_path):
    found = Review(folder / "rows.csv", "consensus", model=folder / "people.mtb",
                   log=tmp_path / "log.jsonl")  # fmt: skip
    yield found
    found.close()


def labels_of(folder):
    with (folder / "wide.csv").open() as file:
        return [{who: row[who] for who in QUALITY if row[who]} for row in csv.DictReader(file)]


def test_every_row_shows_all_its_labels_and_nothing_else(folder, review):
    views = Views(review)
    for row, expected in enumerate(labels_of(folder)):
        assert {v["who"]: v["label"] for v in views.row(row)["voices"]} == expected


def test_quality_stands_beside_each_label_the_best_first(folder, review):
    with (folder / "people.csv").open() as file:
        people = {row["annotator"]: row for row in csv.DictReader(file)}
    full = next(i for i, said in enumerate(labels_of(folder)) if len(said) == 3)
    voices = Views(review).row(full)["voices"]
    assert [v["who"] for v in voices] == ["ann", "bob", "cem"]
    for voice in voices:
        own = people[voice["who"]]
        for name in ("quality", "low", "high"):
            assert voice[name] == pytest.approx(float(own[name]), abs=1e-4)
        assert voice["about"] == own["verdict"]
    assert voices[-1]["about"] == "against"


def test_labels_are_no_columns_to_judge_by(review):
    assert [column.name for column in review.schema.columns] == ["x"]
    shown = [column["name"] for column in Views(review).row(0)["columns"]]
    assert {"id", "x"} <= set(shown)
    assert not set(shown) & set(QUALITY)


def test_rows_are_ranked_by_all_labels_and_stay_so(review):
    with (review.data).open() as file:
        sure = [float(row["consensus_probability"]) for row in csv.DictReader(file)]
    assert (np.diff(np.array(sure)[review.order]) >= -1e-6).all()
    assert review.every == 0
    with pytest.raises(InvalidInput, match="one target each to be learned anew, got labels of"):
        review.refit()


def test_rows_with_one_target_have_no_voices(tmp_path):
    from .conftest import table

    found = Review(tmp_path / "data.csv", "label", model=table(tmp_path / "data.csv", 20), every=0)
    assert found.voices is None
    assert Views(found).row(0)["voices"] == []
    found.close()


@pytest.mark.parametrize(
    "words",
    [
        ("wide.csv", "--annotators", "ann,bob,cem"),
        pytest.param(("plain.csv", "--annotations", "long.csv", "--row", "id"),
                     marks=pytest.mark.slow),
    ],
)  # fmt: skip
def test_command_writes_a_consensus_and_a_clean_file(folder, monkeypatch, words):
    seen, made = [], []
    real = Views.__init__

    def keep(self, review, *options):
        real(self, review, *options)
        made.append(self)

    def decide(server):
        server.socket.close()
        review = made[-1].review
        row = int(review.open[0])
        seen.append((row, made[-1].row(row)["voices"]))
        review.decide(row, "correct", "n" if review.rows.y[row] == "y" else "y")
        raise KeyboardInterrupt

    monkeypatch.chdir(folder)
    monkeypatch.setattr(Server, "run", decide)
    monkeypatch.setattr(Views, "__init__", keep)
    stem = words[0].removesuffix(".csv")
    said = run("review", *words, "--no-browser", *QUICK)
    assert f"Written: {stem}-consensus-clean.csv" in said
    row, voices = seen[0]
    assert {v["who"]: v["label"] for v in voices} == labels_of(folder)[row]
    with open(f"{stem}-consensus.csv") as old, open(f"{stem}-consensus-clean.csv") as new:
        changed = [
            i
            for i, (a, b) in enumerate(zip(csv.DictReader(old), csv.DictReader(new), strict=True))
            if a["consensus"] != b["consensus"]
        ]
    assert changed == [row]
    assert "Going on after 1 decisions" in run("review", *words, "--no-browser", *QUICK)
    assert seen[1][0] != row


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ((), "--target must name the column to learn, got none"),
        (("--annotators", "ann,bob", "--model", "people.mtb"), "--model must be left out beside"),
        (("--annotators", "ann,bob", "--target", "x"), "--target must be a new name beside labels"),
        (("--annotations", "long.csv"), "--annotations and --row must be given together"),
    ],
)
def test_bad_options_are_told(folder, monkeypatch, words, told):
    monkeypatch.chdir(folder)
    result = CliRunner().invoke(app, ["review", "wide.csv", "-o", "other.csv", "--force", *words])
    assert result.exit_code == 2
    assert told in " ".join(result.output.split())


def test_ratings_come_with_a_bias(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(1)
    x = rng.normal(size=60)
    rows = [
        [f"{v:.3f}", f"{3 * v + rng.normal() / 5:.3f}", f"{3 * v + 2 + rng.normal():.3f}"]
        for v in x
    ]
    write_rows(tmp_path / "wide.csv", ["x", "near", "far"], rows)
    run("consensus", "wide.csv", "--annotators", "near,far", "--model", "people.mtb", *QUICK)
    found = Review("wide-consensus.csv", "consensus", model="people.mtb")
    voices = Views(found).row(3)["voices"]
    assert [v["who"] for v in voices] == ["near", "far"]
    assert [float(v["label"]) for v in voices] == pytest.approx([float(v) for v in rows[3][1:]])
    assert voices[1]["about"].startswith("bias +")
    found.close()


def test_page_shows_them(browser, folder, review, tmp_path):
    running = Running(review, tmp_path / "clean.csv")
    try:
        browser.open(running.address)
        row = browser.row() - 1
        lines = (
            "return [...document.querySelectorAll('#voices tbody tr')].map(one => one.innerText)"
        )
        shown = [line.split("\t") for line in browser.run(lines)]
        assert {line[0]: line[1] for line in shown} == labels_of(folder)[row]
        assert all(line[2].endswith("%") and " and " in line[3] for line in shown)
        assert browser.errors() == []
        browser.press("r")
        assert "one target each" in browser.text("#live") or review.error
    finally:
        running.stop()
