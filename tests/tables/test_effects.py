"""What columns do, with an estimator made by hand: nothing is trained."""

import numpy as np
import pyarrow as pa
import pytest

from mtbayes.data.schema import learn_table
from mtbayes.tables.effects import Sample, columns, effect, importances, patches
from mtbayes.tables.model import TableModel, TableRows


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
    schema, _ = learn_table(table.append_column("y", pa.array(y)), "y")
    model = TableModel(Linear(), schema)
    return model, TableRows(table, np.arange(200) + 1, schema.code(table), y)


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

    def callback(progress):
        heard.append(progress.share)

    wrong = rows._replace(y=np.where(weight > 0, rows.y, 1e6))  # rows of no weight do not count
    found = importances(model, Sample.of(wrong, weight, columns(model.schema), 0), 0, callback)
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
    model = TableModel(Sure(), learn_table(table, "y")[0])
    rows = TableRows(table, np.arange(100), x[:, None], np.array(table["y"]))
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
    schema, _ = learn_table(table, "y")
    found = patches(schema)
    assert len(found) == 64
    named = {name: [schema.features[i] for i in own] for name, own in found.items()}
    assert named["lines 1–3, columns 4–6"] == [
        f"p{24 * line + column}" for line in range(3) for column in (3, 4, 5)
    ]
    assert len(named["lines 1–3, columns 1–3"]) == 8
    assert sorted(i for own in found.values() for i in own) == list(range(575))
    assert patches(learn_table(table.select(["p1", "y"]), "y")[0]) == {}
