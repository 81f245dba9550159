"""Data frames as people have them: estimators do with them what the command does with a file."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.model_selection import cross_val_predict

import mtbayes
from mtbayes import RobustClassifier, RobustRegressor
from mtbayes.data.schema import learn_table
from mtbayes.errors import InvalidInput

N = 90
RNG = np.random.default_rng(0)
SIZE = RNG.normal(size=N)
LABEL = np.where(SIZE + 0.3 * RNG.normal(size=N) > 0, "large", "small")
QUICK = {"learner": "linear", "t": 1.0, "m": 2, "modes": 1, "beta": 10.0, "random_state": 0}


@pytest.fixture(scope="module")
def frame():
    said = {"large": "far too wide for our small door", "small": "hardly as long as my own hand"}
    days = pd.date_range("2020-01-01", periods=N)
    return pd.DataFrame(
        {
            "size": np.where(np.arange(N) % 9 == 0, np.nan, SIZE),
            "colour": pd.Categorical(np.resize(["red", "blue", "green"], N)),
            "sold": days,
            "gift": np.arange(N) % 2 == 0,
            "remark": [f"{said[y]}, wrote {chr(97 + i % 26)}{i}" for i, y in enumerate(LABEL)],
            "id": np.arange(N),
        }
    )


@pytest.fixture(scope="module")
def model(frame):
    frame = frame.drop(columns="id")
    return RobustClassifier("linear", t=1.0, epochs=30, random_state=0).fit(frame, LABEL)


def test_columns_are_those_of_the_command(frame, model):
    table = pa.Table.from_pandas(frame, preserve_index=False).append_column("y", [LABEL.tolist()])
    schema, coded = learn_table(table, "y")
    assert model.coder_.features == schema.features
    assert dict(schema.dropped) == {"id": "it only counts the rows"}
    kinds = [type(column).__name__ for column in model.coder_.columns]
    assert kinds == ["Number", "Category", "Date", "Boolean", "Text"]
    by_hand = clone(model).fit(coded.x, coded.y)
    np.testing.assert_array_equal(by_hand.predict_proba(coded.x), model.predict_proba(frame))


@pytest.mark.parametrize("kind", ["pandas", "polars", "arrow"])
def test_frames_of_all_libraries_say_the_same(frame, model, kind):
    table = pa.Table.from_pandas(frame[frame.columns[::-1]], preserve_index=False)
    other = {"pandas": frame, "polars": pl.from_arrow(table), "arrow": table}[kind]
    np.testing.assert_allclose(model.predict_proba(other), model.predict_proba(frame), rtol=1e-12)
    assert model.score(other, LABEL) > 0.9
    assert len(model.find_outliers(other, LABEL).probability) == N


def test_rows_that_lack_columns_or_are_no_frame_are_refused(frame, model):
    with pytest.raises(InvalidInput, match="'remark' is missing"):
        model.predict(frame.drop(columns="remark"))
    with pytest.raises(InvalidInput, match="must be a data frame with the columns of fit"):
        model.predict(np.zeros((2, len(model.coder_.features))))
    with pytest.raises(InvalidInput, match="one kind of value in each column"):
        model.predict(frame.assign(remark=[1, "a"] * (N // 2)))


def test_a_frame_of_numbers_is_left_as_it_is():
    table = pd.DataFrame({"a": SIZE, "b": SIZE**2})
    model = RobustRegressor(**QUICK, epochs=5).fit(table, SIZE)
    assert not hasattr(model, "coder_")
    assert model.feature_names_in_.tolist() == ["a", "b"]


def test_files_keep_how_frames_are_coded(frame, model, tmp_path):
    model.save(tmp_path / "frame.mtb")
    again = mtbayes.load(tmp_path / "frame.mtb")
    np.testing.assert_array_equal(again.predict_proba(frame), model.predict_proba(frame))


@pytest.mark.parametrize("learner", ["network", "linear"])
def test_text_alone_is_learned_from(frame, tmp_path, learner):
    """By gradients too, without trees beside them; a label that the words contradict stands out."""
    given = LABEL.copy()
    given[7] = "small" if LABEL[7] == "large" else "large"
    words = frame[["remark"]]
    hidden = {"hidden": (10,)} if learner == "network" else {}
    model = RobustClassifier(learner, t=0.7, modes=3, epochs=100, random_state=0, **hidden)
    model.fit(words, given)
    assert [column.kind for column in model.coder_.columns] == ["text"]
    assert (model.predict(words) == LABEL).all()
    assert model.suspicion_.argmax() == 7
    new = pd.DataFrame({"remark": ["too wide for the door, alas", "not as long as a hand"]})
    assert model.predict(new).tolist() == ["large", "small"]
    model.save(tmp_path / "words.mtb")
    again = mtbayes.load(tmp_path / "words.mtb")
    np.testing.assert_array_equal(again.predict_proba(new), model.predict_proba(new))


def test_folds_learn_columns_of_their_own_rows(frame):
    model = RobustClassifier(**QUICK, epochs=60)
    found = cross_val_predict(model, frame.drop(columns="id"), LABEL, cv=3)
    assert np.mean(found == LABEL) > 0.8
    assert not hasattr(clone(model), "coder_")


def test_what_cannot_be_told_is_warned_of():
    table = pd.DataFrame({"a": ["1.628", "2.000", "3.125"] * 30, "b": SIZE})
    with pytest.warns(UserWarning, match="may be 1.628 or 1628"):
        RobustClassifier(**QUICK, epochs=5).fit(table, LABEL)


def test_what_new_rows_have_of_their_own_is_warned_of(frame, model):
    new = frame.assign(colour=["pink", *frame["colour"][1:]])
    with pytest.warns(UserWarning, match=r"1 row has a 'colour' that no fitted row had: 'pink'"):
        model.predict(new)


def test_columns_that_are_left_out_are_warned_of(frame):
    with pytest.warns(UserWarning, match=r"columns left out: 'id' \(it only counts the rows\)"):
        RobustClassifier(**QUICK, epochs=5).fit(frame, LABEL)


def test_new_rows_may_lack_all_values_of_a_column(frame, model):
    gaps = frame.assign(remark=None, sold=pd.NaT, size=None, gift=None, colour=None).head(3)
    with pytest.warns(UserWarning, match=r"3 rows have no '\w+', which all fitted rows had"):
        said = model.predict_proba(gaps)
    assert np.isfinite(said).all()
    np.testing.assert_array_equal(said[0], said[1])
    with pytest.raises(InvalidInput, match="a frame without rows"):
        model.predict(frame.head(0))


def test_durations_and_times_of_day_are_numbers():
    hours = pd.DataFrame({"v": pd.to_timedelta(SIZE, unit="h")})
    model = RobustRegressor("trees", t=1.0, random_state=0).fit(hours, SIZE)
    assert [column.kind for column in model.coder_.columns] == ["number"]
    other = hours.astype("timedelta64[s]")  # another unit of the same durations
    np.testing.assert_allclose(model.predict(other), model.predict(hours), atol=0.02)
    assert np.corrcoef(model.predict(other), SIZE)[0, 1] > 0.9
    clock = pa.array((3600 * np.arange(N) % 86400).tolist(), pa.int32()).cast(pa.time32("s"))
    found = RobustRegressor(**QUICK, epochs=5).fit(pa.table({"v": clock}), SIZE)
    assert found.coder_.columns[0].fill == np.median(3600 * np.arange(N) % 86400)
