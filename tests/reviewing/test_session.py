"""A review in Python: what is shown next, what is learned, what is found and what remains."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.datasets import load_breast_cancer

import mtbayes
from mtbayes.data.contamination import flip_labels
from mtbayes.data.safe import safe_text
from mtbayes.errors import InvalidInput
from mtbayes.reviewing import Review
from mtbayes.reviewing.decisions import read_decisions
from mtbayes.reviewing.opinion import Opinion, learn
from mtbayes.reviewing.outlook import outlook

from .conftest import table, until, write_rows

TREES = {"learner": "trees", "t": 1.0}


def opinion(suspicion, share=0.1):
    suspicion = np.asarray(suspicion, float)
    return Opinion(
        np.argsort(-suspicion), suspicion, np.zeros(len(suspicion)), None, None, [], None, share
    )


def test_what_remains_is_the_fixed_point_of_bayes_rule():
    rng = np.random.default_rng(0)
    n, share = 4000, 0.15
    wrong = rng.random(n) < share
    z = rng.normal(size=n) + 3 * wrong  # log odds at one half: 3 z - 4.5
    seen = opinion(1 / (1 + np.exp(4.5 - 3 * z)), share=0.4)
    none, probability = outlook(seen, [], seen.order)
    assert none.share == pytest.approx(wrong.mean(), abs=0.02)  # 0.006 is a standard error
    assert none.remaining == pytest.approx(probability.sum())
    assert none.found + none.remaining == pytest.approx(n * none.share, rel=1e-4)
    # After the 500 worst rows it is still so many of all, though hardly any is left.
    looked, left = seen.order[:500], seen.order[500:]
    after, _ = outlook(seen, wrong[looked].tolist(), left)
    assert after.share == pytest.approx(wrong.mean(), abs=0.02)
    assert after.remaining == pytest.approx(wrong[left].sum(), abs=25)
    assert after.curve[-1] == after.found == wrong[looked].sum()
    # As it was foretold: 95 % are found after so many more rows.
    found = wrong[seen.order[: none.more]].mean() * none.more / wrong.sum()
    assert found == pytest.approx(0.95, abs=0.03)
    assert f"After {none.more} more rows" in none.sentence


def test_nothing_left_and_nothing_wrong():
    seen = opinion([0.9, 0.1, 0.1])
    done, _ = outlook(seen, [True, False, False], np.array([], int))
    assert (done.more, done.remaining, done.ahead) == (0, 0, [])
    assert done.sentence == "You have found about 100 % of the wrong rows; none is left."
    clean, _ = outlook(opinion(np.full(50, 1e-9), 0.02), [], np.arange(50))
    assert clean.sentence == "Probably no row is wrong."


def test_decisions_and_what_comes_next(review):
    assert review.order.tolist() == list(range(20))
    assert review.decide(0, "correct").value == "high"  # the suggestion
    assert review.decide(1, "correct", " high ").action == "keep"  # what was given
    assert review.following(1) == 2
    assert review.following(5) == 2
    assert review.following(5, ahead=True) == 6
    review.decide(19, "drop")
    assert review.following(19) == 2
    review.decide(2, "skip")
    assert review.order.tolist() == [0, 1, 19, *range(3, 19), 2]
    assert review.counts() == {"correct": 1, "keep": 1, "drop": 1, "skip": 1}
    assert review.outlook.looked == 3
    assert review.outlook.remaining == pytest.approx(review.probability[2:19].sum())
    assert review.undo() == 2
    assert review.state(2) == "open"
    y, trusted = review.targets()
    assert (y[0], trusted[0], trusted[19]) == ("high", True, False)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((99, "keep"), "row must be one of 0 to 19"),
        ((0, "burn"), "action must be one of"),
        ((0, "keep", "x"), "value must be left out"),
        ((0, "correct", " "), "must have a value"),
    ],
)
def test_what_cannot_be_decided(review, arguments, message):
    with pytest.raises(InvalidInput, match=message):
        review.decide(*arguments)
    assert len(review.log.path.read_text().splitlines()) == 1


def test_sorted_rows_are_known_and_changed_ones_are_told(review, tmp_path):
    for row in (0, 3, 7):
        review.decide(row, "keep")
    review.close()
    header, *lines = review.data.read_text().splitlines()
    lines[3] = lines[3].replace("says", "said")
    review.data.write_text("\n".join([header, *sorted(lines)]) + "\n")
    model = tmp_path / "audit.csv"
    write_rows(
        model,
        ["rank", "row", "probability", "given", "suggested", "why"],
        [[i, i, 0.1, "low", "low", ""] for i in range(1, 21)],
    )
    again = Review(review.data, "label", model=model, every=0)
    places = sorted(lines)
    wanted = [places.index(lines[0]), places.index(lines[7])]
    assert list(again.decided) == wanted
    assert [decision.row for decision in again.missing] == [4]
    again.close()


def test_a_model_that_knows_the_rows_is_a_start(case, tmp_path):
    review = Review(case.data, "label", model=case.model, log=tmp_path / "log.jsonl", every=0)
    first = set(review.open[: case.n // 5].tolist())
    assert len(first & set(case.swapped)) >= 0.8 * len(case.swapped)
    assert {review.suggested(row) for row in first} <= {"high", "low"}
    review.close()
    with pytest.raises(InvalidInput, match="one of the classes of 'colour'"):
        Review(case.data, "colour", model=case.model, log=tmp_path / "other.jsonl")


def test_parquet_comes_out_as_it_went_in(tmp_path):
    path, audit = tmp_path / "data.parquet", tmp_path / "audit.csv"
    before = pa.table({"x": np.arange(30.0), "y": pa.array(np.arange(30) % 2, pa.int16())})
    pq.write_table(before, path)
    lines = [[i, i, 0.9 if i < 3 else 0.01, 0, i % 2, "so"] for i in range(1, 31)]
    write_rows(audit, ["rank", "row", "probability", "given", "suggested", "why"], lines)
    review = Review(path, "y", model=audit, every=0)
    review.decide(0, "correct", "1")
    review.decide(1, "drop")
    found = pq.read_table(review.export(tmp_path / "clean.parquet").clean)
    assert found.schema == before.schema
    assert found.column("y").to_pylist() == [1, *before.column("y").to_pylist()[2:]]
    review.close()


def test_top_is_all_that_is_asked(tmp_path):
    path = tmp_path / "data.csv"
    review = Review(path, "label", model=table(path, 20), top=3, every=0)
    for _ in range(3):
        review.decide(int(review.open[0]), "keep")
    assert review.following(2) is None
    assert len(review.order) == 3
    review.close()


@pytest.fixture(scope="module")
def dirty(tmp_path_factory):
    data = load_breast_cancer()
    x, y = data.data[:250], data.target[:250]
    given = flip_labels(y, 0.1, seed=0)
    path = tmp_path_factory.mktemp("dirty") / "data.csv"
    names = np.array(["bad", "good"])
    rows = [[*row, label] for row, label in zip(x.tolist(), names[given.data], strict=True)]
    write_rows(path, [*(f"x{i}" for i in range(30)), "label"], rows)
    return path, names[y], set(np.flatnonzero(given.touched).tolist())


def test_a_person_who_answers_truthfully_finds_the_wrong_rows(dirty, tmp_path):
    """The quick form of benchmarks/review.py."""
    path, true, swapped = dirty
    review = Review(path, "label", log=tmp_path / "log.jsonl", every=0, **TREES)
    found = looked = 0
    while found < 0.9 * len(swapped):
        row = int(review.open[0])
        looked += 1
        found += row in swapped
        review.decide(row, "correct", true[row])
        if looked == 20:
            review.refit()
    assert looked <= 1.5 * len(swapped)
    assert review.outlook.found == found
    assert abs(review.outlook.found + review.outlook.remaining - len(swapped)) < 10
    # What was decided is judged as it came, so that it can be looked at again and taken back.
    probability = review.opinion.probability(0.5)
    done = [row for row in review.decided if review.state(row) == "correct"][:15]
    assert probability[done].min() > 0.9
    assert all(review.suggested(row) == true[row] for row in done)
    assert review.undo() == row  # and is what it was before
    review.decide(row, "correct", true[row])
    made = review.export(tmp_path / "clean.csv")
    assert "corrected to" in made.summary.read_text()
    review.close()
    # The decisions without the page, and as certainty of a fit.
    from .. import conftest

    out = tmp_path / "again.csv"
    result = conftest.run("apply", made.decisions, path, "-o", out, "--json")
    assert result.exit_code == 0, result.output
    assert out.read_bytes() == made.clean.read_bytes()
    assert json.loads(result.stdout)["correct"] == found
    model = tmp_path / "model.mtb"
    result = conftest.run("fit", path, "--target", "label", "--model", model, "--learner", "trees",
                          "--t", "1", "--review", tmp_path / "log.jsonl")  # fmt: skip
    assert result.exit_code == 0, result.output
    assert f"From the review: {looked} rows are certain" in result.output
    judged = mtbayes.load(model).fitted_.training
    assert (judged.outlier_probability[list(review.decided)] == 0).all()


def test_refits_come_by_themselves_and_failures_are_told(review, monkeypatch):
    seen = []

    def learn(settings, schema, rows, y, certain, kept, **_):
        seen.append((y.tolist()[:3], certain.sum(), (~kept).sum()))
        if len(seen) == 2:
            raise ValueError("it went wrong")
        return review.opinion

    monkeypatch.setattr("mtbayes.reviewing.session.learn", learn)
    review.every = 3
    review.decide(0, "correct", "new")
    review.decide(1, "drop")
    review.decide(2, "skip")
    assert seen == []
    review.decide(3, "keep")
    until(lambda: not review.fitting)
    assert seen == [(["new", *review.rows.y.tolist()[1:3]], 2, 1)]
    before = review.version
    with pytest.raises(InvalidInput, match="it went wrong"):
        review.refit()
    assert review.error == "it went wrong"
    assert review.version > before
    assert review.state(0) == "correct"


def test_numbers_are_written_as_the_column_has_them(tmp_path):
    path = tmp_path / "flats.csv"
    path.write_text("x;price\n" + "".join(f"{i},5;{100 + i},25\n" for i in range(30)))
    model = tmp_path / "audit.csv"
    write_rows(
        model,
        ["rank", "row", "probability", "given", "suggested", "why"],
        [[i, i, 0.9 if i == 1 else 0.01, 1, 120.126, "so"] for i in range(1, 31)],
    )
    review = Review(path, "price", model=model, every=0)
    assert review.schema.task == "number"
    assert review.decide(0, "correct").value == "120,13"
    assert review.decide(1, "correct").action == "keep"
    with pytest.raises(InvalidInput, match="must be a number"):
        review.decide(2, "correct", "dear")
    review.decide(2, "correct", "99,5")
    made = review.export(tmp_path / "clean.csv")
    lines = made.clean.read_text().splitlines()
    assert lines[1:4] == ["0,5;120,13", "1,5;101,25", "2,5;99,5"]
    review.close()


def ranked(path, n, suggested):
    """An audit of n rows, of which the first is worst."""
    lines = [[i, i, 0.9 if i == 1 else 0.01, "", suggested, "so"] for i in range(1, n + 1)]
    header = ["rank", "row", "probability", "given", "suggested", "why"]
    return write_rows(path, header, lines)


@pytest.mark.parametrize(
    ("cells", "suggested", "written"),
    [
        (["{}.0"] * 30, "120", "120.0"),
        (["{}"] * 30, "120.4", "120"),
        (["{},500"] * 30, "2500", "2500"),
        (["{}.25"] * 30, "120.126", "120.13"),
        (["01", "02"] * 15, "02", "02"),
        (["True", "false"] * 15, "false", "false"),
    ],
)
def test_suggestions_are_spelled_as_the_column_is(tmp_path, cells, suggested, written):
    path = tmp_path / "data.csv"
    given = [cell.format(i + 101) for i, cell in enumerate(cells)]
    write_rows(path, ["x", "y"], [[i, cell] for i, cell in enumerate(given)])
    review = Review(path, "y", model=ranked(tmp_path / "audit.csv", 30, suggested), every=0)
    assert review.decide(0, "correct").value == written
    assert review.decide(2, "keep").value == given[2]
    y, _ = review.targets()
    assert y[2] == review.rows.y[2]
    assert review.values.text(y.tolist()[0]) == written
    review.close()


def test_a_decimal_comma_asks_for_one(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("x;y\n" + "".join(f"{i};{100 + i},25\n" for i in range(30)))
    review = Review(path, "y", model=ranked(tmp_path / "audit.csv", 30, 120), every=0)
    with pytest.raises(InvalidInput, match=r"with a decimal comma as in the other rows"):
        review.decide(0, "correct", "12.25")
    review.close()


def test_a_refit_is_told_what_is_certain(dirty, tmp_path, monkeypatch):
    found = []
    monkeypatch.setattr(
        "mtbayes.reviewing.session.learn",
        lambda *given, **how: found.append(learn(*given, **how)) or found[-1],
    )
    review = Review(dirty[0], "label", log=tmp_path / "log.jsonl", every=0, **TREES)
    kept, skipped = review.open[:2].tolist()  # the most suspicious of all
    review.decide(kept, "keep")
    review.decide(skipped, "skip")
    review.refit()
    assert found[-1].suspicion[kept] == 0
    assert found[-1].suspicion[skipped] > 0.9
    review.close()


def test_after_a_refit_decided_rows_are_judged_as_they_came(dirty, tmp_path):
    path, _, swapped = dirty
    review = Review(path, "label", log=tmp_path / "log.jsonl", every=0, **TREES)
    wrong = [row for row in review.open.tolist() if row in swapped][:2]
    right = next(row for row in review.open.tolist() if row not in swapped)
    before, suspicion = [review.suggested(row) for row in wrong], review.opinion.suspicion[right]
    review.decide(wrong[0], "correct")
    review.decide(wrong[1], "drop")
    review.decide(right, "keep")
    review.refit()
    assert [review.suggested(row) for row in wrong] == before
    given = review.values.given[wrong[0]]
    assert f"going by the other rows, {given} is" in review.opinion.why[wrong[0]]
    assert review.opinion.suspicion[right] == suspicion  # of which a fit that was told says nothing
    for _ in range(3):
        review.undo()
    assert set(wrong) <= set(review.open[:40].tolist())
    review.close()


@pytest.mark.parametrize("safe", [False, True])
def test_labels_of_an_audit_are_what_it_says(tmp_path, safe):
    labels = ["01", "1", "=1+1"]
    path, audit = tmp_path / "data.csv", tmp_path / "audit.csv"
    write_rows(path, ["x", "y"], [[i * i % 7, labels[i % 3]] for i in range(30)])
    told = [safe_text(label) if safe else label for label in labels]
    lines = [[i, i, 0.9, told[(i - 1) % 3], told[i % 3], "so"] for i in range(1, 31)]
    write_rows(audit, ["rank", "row", "probability", "given", "suggested", "why"], lines)
    review = Review(path, "y", model=audit, every=0)
    assert [review.suggested(row) for row in range(3)] == ["1", "=1+1", "01"]
    decided = review.decide(1, "correct")
    table = review.export(tmp_path / "clean.csv").decisions
    review.close()
    assert "'=1+1" in table.read_text()
    target, found = read_decisions(table)
    assert (target, found[decided.key].value) == ("y", "=1+1")
