"""`mtbayes report`: rows judged by fits that have not seen them, and the command's manners."""

import importlib
import json
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from scipy.special import logit

from mtbayes.commands.audit import findings
from mtbayes.commands.effects import Sample, columns, effect, importances, patches
from mtbayes.commands.judged import judge
from mtbayes.commands.manners import Screen
from mtbayes.commands.model import Rows, TableModel, mark, opened, rows_of
from mtbayes.data.schema import learn_schema
from mtbayes.errors import InvalidInput

command = importlib.import_module("mtbayes.commands.report")


@pytest.fixture(scope="module")
def rows(case):
    screen = Screen(quiet=True, as_json=False, debug=True)
    return rows_of(screen, opened(screen, case.data), TableModel.load(case.model).schema)


@pytest.fixture(scope="module")
def written(case):
    out = case.folder / "report.html"
    result = case.run("report", case.model, case.data, "-o", out)
    assert result.exit_code == 0, result.output
    return result.output, out


def part(rows, which):
    return Rows(rows.table.take(which), rows.place[which], rows.x[which], rows.y[which])


def test_fitted_rows_are_known_again_in_any_order(case, rows):
    model = TableModel.load(case.model)
    which = np.random.default_rng(0).permutation(case.n)[:50]
    told, seen = judge(model, part(rows, which))
    assert seen.all()
    for name in ("held_out_", "suspicion_", "outlier_probability_"):
        np.testing.assert_array_equal(
            getattr(told.estimator, name), getattr(model.estimator, name)[which]
        )
    assert len(model.estimator.held_out_) == case.n  # the model itself is left alone


def test_new_rows_are_judged_by_the_final_fit(case, rows):
    model = TableModel.load(case.model)
    estimator = model.estimator
    x = rows.x.copy()
    x[:10, 0] += 1e-3
    mixed = rows._replace(x=x)
    told, seen = judge(model, mixed)
    np.testing.assert_array_equal(np.flatnonzero(~seen), np.arange(10))
    np.testing.assert_allclose(
        told.estimator.held_out_[:10], estimator.predict_proba(x[:10]), rtol=1e-6
    )
    np.testing.assert_array_equal(told.estimator.held_out_[10:], estimator.held_out_[10:])
    # Bayes' rule from the share of the law to one half.
    odds = logit(told.estimator.suspicion_[:10]) - logit(told.estimator.outlier_probability_[:10])
    np.testing.assert_allclose(odds, -logit(estimator.law_.epsilon), rtol=1e-5)


def test_a_target_that_was_changed_makes_a_row_new(case, rows):
    y = rows.y.copy()
    y[3] = "low" if y[3] == "high" else "high"
    _, seen = judge(TableModel.load(case.model), rows._replace(y=y))
    assert np.flatnonzero(~seen).tolist() == [3]


def test_classes_that_the_model_does_not_know_are_named(case, rows):
    y = np.where(np.arange(case.n) == 5, "middle", rows.y)
    with pytest.raises(InvalidInput, match="'label' must hold classes that were fitted, got 'mid"):
        judge(TableModel.load(case.model), rows._replace(y=y))


def test_numbers_are_judged_alike(numbers):
    model, x, y = numbers
    whole = Rows(None, None, x, y)
    model = replace(model, seen=mark(whole))
    told, seen = judge(model, Rows(None, None, np.vstack([x[:3], [[0.123]]]), np.append(y[:3], 99)))
    assert seen.tolist() == [True, True, True, False]
    np.testing.assert_array_equal(told.estimator.held_out_[:3], model.estimator.held_out_[:3])
    mean, sd = model.estimator.predict([[0.123]], return_std=True)
    np.testing.assert_allclose(told.estimator.held_out_[3], [mean[0], sd[0]], rtol=1e-6)


def test_models_that_know_no_rows_are_refused(case, rows):
    path = case.folder / "forgetful.mtb"
    replace(TableModel.load(case.model), seen=None).save(path)
    result = case.run("report", path, case.data, "-o", case.folder / "never.html")
    assert result.exit_code == 1
    assert "must know the rows" in result.output
    assert not (case.folder / "never.html").exists()


def test_page_says_what_audit_finds(case, rows, written):
    text = written[1].read_text()
    found = findings(TableModel.load(case.model), rows.y)
    places = [f"<td>{place + 1}</td>" for place in found.order[:30]]
    at = [text.index(place) for place in places]
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

    monkeypatch.setattr(command, "gather", stop)
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
        (["data.csv", "data.csv"], 1, "not written by mtbayes"),
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


# Effects, with an estimator made by hand: nothing is trained.


class Linear:
    """3 times `a`, and 10 more where the colour is red."""

    def fit(self, *_):
        raise AssertionError

    def predict(self, x):
        return 3 * x[:, 0] + 10 * x[:, 2]


@pytest.fixture(scope="module")
def linear():
    rng = np.random.default_rng(0)
    table = pa.table(
        {
            "a": rng.normal(size=200),
            "b": rng.normal(size=200),
            "colour": rng.choice(["red", "red", "blue"], 200),
            "day": np.datetime64("2024-01-01") + rng.integers(0, 300, 200).astype("timedelta64[D]"),
            "flag": rng.random(200) < 0.02,
        }
    )
    x = np.column_stack(
        [table["a"], table["b"], *(np.array(table["colour"]) == c for c in ("red", "blue"))]
    )
    y = Linear().predict(x.astype(float))
    schema = learn_schema(table.append_column("y", pa.array(y)), "y")
    model = TableModel(Linear(), schema)
    return model, Rows(table, np.arange(200) + 1, schema.code(table), y)


def test_columns_move_as_wholes(linear):
    model, rows = linear
    sample = Sample.of(rows, np.ones(200), columns(model.schema), 0)
    places = np.repeat(np.arange(200)[:, None], len(sample.groups), axis=1)
    np.testing.assert_array_equal(sample.assembled(places), sample.x)
    places[:, 2] = 0
    moved = sample.assembled(places)
    np.testing.assert_array_equal(moved[:, 2:4], np.tile(sample.x[0, 2:4], (200, 1)))
    np.testing.assert_array_equal(
        np.delete(moved, [2, 3], axis=1), np.delete(sample.x, [2, 3], axis=1)
    )


def test_importance_is_what_shuffling_costs(linear):
    model, rows = linear
    weight = np.where(np.arange(200) < 100, 1.0, 0.0)
    heard = []
    wrong = rows._replace(y=np.where(weight > 0, rows.y, 1e6))  # rows of no weight do not count
    found = importances(model, Sample.of(wrong, weight, columns(model.schema), 0), 0, heard.append)
    named = {one.column: one for one in found}
    assert [one.column for one in found[:2]] == ["colour", "a"]
    # Two normals differ by 2/√π on average; a shuffled colour differs in 2·(2/3)·(1/3) of rows.
    assert named["a"].loss == pytest.approx(3 * 2 / np.sqrt(np.pi), rel=0.25)
    assert named["colour"].loss == pytest.approx(10 * 4 / 9, rel=0.25)
    assert named["b"].loss == named["day"].loss == 0
    assert named["a"].accuracy is None
    assert heard[-1] == 1.0
    assert heard == sorted(heard)


def test_effects_set_a_column_in_all_rows(linear):
    model, rows = linear
    sample = Sample.of(rows, np.ones(200), columns(model.schema), 0)
    of_a = effect(model, sample, "a")
    np.testing.assert_allclose(np.diff(of_a.means[:, 0]), 3 * np.diff(of_a.at))
    colour = effect(model, sample, "colour")
    assert colour.at == ["red", "blue"]
    assert colour.means[0, 0] - colour.means[1, 0] == pytest.approx(10)
    assert effect(model, sample, "flag").at == ["no", "yes"]
    days = effect(model, sample, "day").at
    assert days == sorted(days)
    assert np.datetime64("2024-01-01") <= days[0] <= days[-1] < np.datetime64("2024-11-01")


def test_importance_of_classes_is_a_loss_of_probability():
    class Sure:
        classes_ = np.array(["no", "yes"])

        def fit(self, *_):
            raise AssertionError

        def predict_proba(self, x):
            yes = np.where(x[:, 0] > 0, 0.9, 0.1)
            return np.column_stack([1 - yes, yes])

    x = np.linspace(-1, 1, 100)
    table = pa.table({"x": x, "y": np.where(x > 0, "yes", "no")})
    model = TableModel(Sure(), learn_schema(table, "y"))
    rows = Rows(table, np.arange(100), x[:, None], np.array(table["y"]))
    (found,) = importances(
        model, Sample.of(rows, np.ones(100), columns(model.schema), 0), 0, lambda _: None
    )
    # Half of the rows get the other's answer: log 0.9 becomes log 0.1 there.
    assert found.loss == pytest.approx(0.5 * np.log(9), rel=0.15)
    assert found.accuracy == pytest.approx(0.5, abs=0.1)


def test_patches_of_an_image_are_its_neighbours():
    """24 x 24 pixels in squares of 3; the first pixel is the same in every row."""
    rng = np.random.default_rng(0)
    pixels = {f"p{i}": rng.uniform(size=30) for i in range(576)} | {"p0": np.zeros(30)}
    table = pa.table(pixels | {"y": rng.normal(size=30)})
    schema = learn_schema(table, "y")
    found = patches(schema)
    assert len(found) == 64
    named = {name: [schema.features[i] for i in own] for name, own in found.items()}
    assert named["lines 1–3, columns 4–6"] == [
        f"p{24 * line + column}" for line in range(3) for column in (3, 4, 5)
    ]
    assert len(named["lines 1–3, columns 1–3"]) == 8
    assert sorted(i for own in found.values() for i in own) == list(range(575))
    assert patches(learn_schema(table.select(["p1", "y"]), "y")) == {}


def test_cells_are_in_one_style():
    values = pa.chunked_array([["1.234,5", "0,123456789", "12o", None, "20231231"]])
    assert command._cells(values, ",") == ["1234.5", "0.123457", "12o", "", "20231231"]
    assert command._cells(pa.chunked_array([[True, None]]), ".") == ["True", ""]
