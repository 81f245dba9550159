"""Estimators on rows that do not fit in memory: a sample first, then all of them."""

import jax
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.metrics import accuracy_score, r2_score

import mtbayes
from mtbayes import InvalidInput, RobustClassifier, RobustRegressor
from mtbayes.data.sources import open_stream
from mtbayes.estimators import blocks
from mtbayes.fitting import Fitted, streamed
from mtbayes.solve.checkpoint import Checkpoint

N, SAMPLE = 600, 200
PLAIN = {"m": 2, "modes": 1, "beta": 10.0}
QUICK = {"t": 0.6, "hidden": (8,), "batch_size": 20, "epochs": 10, "random_state": 0} | PLAIN
AUTO, PATH = QUICK | {"t": "auto"}, (1.0, 0.6)
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 3))
NAMES = ["length", "width", "age"]
FRAME = pd.DataFrame(X, columns=NAMES)
CLEAN = np.where(X[:, 0] + X[:, 1] > 0, "yes", "no").astype(object)
GIVEN = CLEAN.copy()
GIVEN[::5] = np.where(CLEAN[::5] == "yes", "no", "yes")  # every fifth label is wrong
SEED = np.random.RandomState(0).randint(2**31)  # what random_state=0 makes of it
SAMPLED = open_stream(X, np.zeros(N)).sample(SAMPLE, SEED)[0]
GIVEN[np.setdiff1d(np.arange(N), SAMPLED)[:10]] = "rare"
TARGET = 50 + 10 * X[:, 0] - 5 * X[:, 2]
WEIGHT = 1.0 + np.arange(N) % 3


@pytest.fixture(autouse=True)
def small_sample(monkeypatch):
    monkeypatch.setattr(streamed, "SAMPLE", SAMPLE)
    monkeypatch.setattr(blocks, "_ROWS", 256)


def table(**columns):
    return pa.table({**{name: X[:, i] for i, name in enumerate(NAMES)}, **columns})


def written(folder, **columns):
    folder.mkdir(exist_ok=True)
    rows = table(**columns)
    for i in range(3):
        pq.write_table(rows.slice(200 * i, 200), folder / f"{i}.parquet", row_group_size=64)
    return folder


@pytest.fixture(scope="module")
def labels(tmp_path_factory):
    return written(tmp_path_factory.mktemp("rows") / "labels", label=GIVEN)


@pytest.fixture(scope="module")
def prices(tmp_path_factory):
    return written(tmp_path_factory.mktemp("rows") / "prices", price=TARGET)


@pytest.fixture(scope="module")
def classifier(labels):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(streamed, "SAMPLE", SAMPLE)
        patch.setattr(RobustClassifier, "_path", PATH)
        return RobustClassifier(**AUTO).fit(labels, "label")


@pytest.fixture(scope="module")
def regressor(prices):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(streamed, "SAMPLE", SAMPLE)
        return RobustRegressor(**QUICK).fit(ds.dataset(prices), "price")


def test_what_is_learned_is_named_and_counted(classifier):
    assert classifier.feature_names_in_.tolist() == NAMES
    np.testing.assert_array_equal(classifier.sampled_, SAMPLED)
    assert classifier.outlier_probability_.shape == (SAMPLE,)
    wrong = SAMPLED % 5 == 0  # of the sample, these labels are wrong
    found = classifier.outlier_probability_
    assert found[wrong].mean() > found[~wrong].mean() + 0.3
    assert classifier.contamination_.low < 0.2 < classifier.contamination_.high


def test_a_class_that_the_sample_misses_is_learned(classifier, labels):
    assert "rare" not in GIVEN[SAMPLED]
    assert classifier.classes_.tolist() == ["no", "rare", "yes"]
    assert classifier.predict_proba(labels).shape == (N, 3)


def test_t_is_chosen_on_the_sample_and_the_fit_is_to_all_rows(classifier, monkeypatch):
    monkeypatch.setattr(streamed, "all_rows", lambda fitted, *_: fitted)
    monkeypatch.setattr(RobustClassifier, "_path", PATH)
    sample = RobustClassifier(**AUTO).fit(iter(table(label=GIVEN).to_batches()), "label")
    assert classifier.t_ == sample.t_
    assert classifier.score_path_ == sample.score_path_
    assert len(classifier.score_path_) == len(PATH)
    assert not np.allclose(sample.state_.mean, classifier.state_.mean, atol=0.01)


def test_quality_is_that_of_rows_in_memory(classifier, regressor, tmp_path, monkeypatch):
    memory = RobustClassifier(**QUICK).fit(FRAME, GIVEN)
    assert memory.score(FRAME, CLEAN) > 0.9
    assert classifier.score(FRAME, CLEAN) > memory.score(FRAME, CLEAN) - 0.03
    assert regressor.score(FRAME, TARGET) > 0.95
    # As many rows as a sample has, or fewer, are learned from in memory.
    monkeypatch.setattr(streamed, "SAMPLE", N)
    few = RobustClassifier(**QUICK).fit(written(tmp_path / "rows", label=GIVEN), "label")
    np.testing.assert_array_equal(few.sampled_, np.arange(N))
    np.testing.assert_array_equal(few.state_.mean, memory.state_.mean)


def test_answers_are_those_of_rows_in_memory(classifier, labels):
    np.testing.assert_array_equal(classifier.predict(labels), classifier.predict(FRAME))
    for method in ("predict_proba", "predict_log_proba", "decision_function"):
        asked = getattr(classifier, method)
        np.testing.assert_allclose(asked(labels), asked(FRAME), rtol=1e-4)
    for found, expected in (
        (classifier.find_outliers(labels, "label"), classifier.find_outliers(FRAME, GIVEN)),
        (classifier.uncertainty(labels), classifier.uncertainty(FRAME)),
    ):
        assert type(found) is type(expected)
        np.testing.assert_allclose(found[0], expected[0], atol=1e-5)
        assert found[1].shape == expected[1].shape


def test_numbers_are_those_of_rows_in_memory(regressor, prices):
    np.testing.assert_allclose(regressor.predict(str(prices)), regressor.predict(FRAME), rtol=1e-5)
    np.testing.assert_allclose(
        regressor.log_prob(prices, "price"), regressor.log_prob(FRAME, TARGET), atol=1e-4
    )
    for found, expected in (
        (regressor.predict(prices, return_std=True), regressor.predict(FRAME, return_std=True)),
        (regressor.predict_interval(prices, 0.5), regressor.predict_interval(FRAME, 0.5)),
        (regressor.find_outliers(prices, "price"), regressor.find_outliers(FRAME, TARGET)),
    ):
        for a, b in zip(found, expected, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)


def test_scores_with_weights_are_scikit_learn_s(classifier, regressor, tmp_path):
    # Targets far from 0, whose squares have few digits left for their differences.
    rows = written(tmp_path / "rows", label=GIVEN, price=TARGET, w=WEIGHT)
    said = classifier.predict(FRAME)
    assert classifier.score(rows, "label") == accuracy_score(GIVEN, said)
    assert classifier.score(rows, "label", "w") == pytest.approx(
        accuracy_score(GIVEN, said, sample_weight=WEIGHT)
    )
    said = regressor.predict(FRAME)
    assert regressor.score(rows, "price", "w") == pytest.approx(
        r2_score(TARGET, said, sample_weight=WEIGHT), abs=1e-9
    )


def test_columns_are_found_by_name_whatever_else_there_is(classifier, tmp_path):
    table = pa.table({"note": ["x"] * N, **{name: FRAME[name] for name in reversed(NAMES)}})
    pq.write_table(table, tmp_path / "x.parquet")
    found = classifier.predict_proba(tmp_path / "x.parquet")
    np.testing.assert_allclose(found, classifier.predict_proba(FRAME), rtol=1e-4)
    pq.write_table(table.drop(["age"]), tmp_path / "y.parquet")
    with pytest.raises(InvalidInput, match=r"column must be one of .* got 'age'"):
        classifier.predict(tmp_path / "y.parquet")


def test_few_rows_at_a_time_are_answered(classifier, labels, monkeypatch):
    sizes, raw = [], Fitted.raw
    monkeypatch.setattr(Fitted, "raw", lambda self, x: sizes.append(len(x)) or raw(self, x))
    classifier.predict(labels)
    assert sizes == [256, 256, 88]


def test_iterators_and_arrays_on_disk(regressor, tmp_path):
    batches = table(price=TARGET).to_batches(max_chunksize=50)
    again = RobustRegressor(**QUICK).fit(iter(batches), "price")
    np.testing.assert_array_equal(again.sampled_, SAMPLED)
    # The order of rows in an epoch is another.
    np.testing.assert_allclose(again.predict(iter(batches)), regressor.predict(FRAME), atol=4)
    held = np.memmap(tmp_path / "x.bin", float, "w+", shape=X.shape)
    held[:] = X
    third = RobustRegressor(**QUICK).fit(held, TARGET, sample_weight=np.ones(N))
    assert not hasattr(third, "feature_names_in_")
    np.testing.assert_allclose(third.predict(held), third.predict(X), rtol=1e-5)
    assert third.score(held, TARGET) == pytest.approx(r2_score(TARGET, third.predict(X)))


def test_a_file_knows_all_that_predictions_need(classifier, labels, tmp_path):
    classifier.save(tmp_path / "model")
    again = mtbayes.load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict_proba(labels), classifier.predict_proba(labels))
    np.testing.assert_array_equal(again.sampled_, classifier.sampled_)


def test_rows_of_little_weight_teach_little(tmp_path):
    """Two thirds of the targets are turned around; their weight is next to nothing."""
    good = np.arange(N) % 3 == 0
    turned = np.where(good, TARGET, 100 - TARGET)
    rows = written(tmp_path / "rows", price=turned, w=np.where(good, 1.0, 1e-6))
    found = RobustRegressor(**(QUICK | {"t": 1.0})).fit(rows, "price", "w")
    assert found.feature_names_in_.tolist() == NAMES
    assert found.score(FRAME, TARGET) > 0.9


def test_a_killed_fit_goes_on_where_it_was(regressor, prices, tmp_path, monkeypatch):
    write, kept = Checkpoint.write, []

    def killed(self, state, chunk, *rest):
        if self.path.name == "all.unfinished" and chunk == 4:
            raise KeyboardInterrupt
        kept.append(self.path.name)
        write(self, state, chunk, *rest)

    monkeypatch.setattr(Checkpoint, "write", killed)
    with pytest.raises(KeyboardInterrupt):
        RobustRegressor(**QUICK).fit(prices, "price", checkpoint=tmp_path / "fit")
    assert kept[-3:] == ["all.unfinished"] * 3
    monkeypatch.setattr(Checkpoint, "write", write)
    again = RobustRegressor(**QUICK).fit(prices, "price", checkpoint=tmp_path / "fit")
    np.testing.assert_array_equal(again.state_.mean, regressor.state_.mean)


def test_a_mesh_is_checked_by_all_fits(labels):
    for model, x, y in (
        (RobustClassifier, X, CLEAN),
        (RobustRegressor, X, TARGET),
        (RobustClassifier, labels, "label"),
    ):
        with pytest.raises(InvalidInput, match=r"mesh must be a jax\.sharding\.Mesh"):
            model(**QUICK).fit(x, y, mesh=2)


@pytest.mark.slow
def test_devices_share_the_rows(regressor, prices):
    mesh = jax.make_mesh((1,), ("rows",))
    found = RobustRegressor(**QUICK).fit(prices, "price", mesh=mesh)
    np.testing.assert_allclose(found.state_.mean, regressor.state_.mean, atol=1e-3)


def test_batches_that_cannot_be_shared_are_refused_before_anything_is_fitted(labels, monkeypatch):
    monkeypatch.setattr(RobustClassifier, "learned", lambda *_: pytest.fail("too late"))
    with pytest.raises(InvalidInput, match="batch_size must be a multiple of the 3 lanes"):
        RobustClassifier(**QUICK).fit(open_stream(labels, "label", lanes=3), None)


def test_a_name_is_no_target_of_rows_in_memory():
    table = pa.table({"x": X[:, 0], "label": GIVEN})
    with pytest.raises(InvalidInput, match="y must hold the targets themselves"):
        RobustClassifier().fit(table, "label")


def test_what_cannot_be_learned_from_is_named(tmp_path, regressor):
    x = X.copy()
    outside = np.setdiff1d(np.arange(400, N), SAMPLED)[0]
    x[outside, 1] = np.nan
    columns = {name: x[:, i] for i, name in enumerate(NAMES)}
    rows = written(tmp_path / "rows", **columns, label=GIVEN, price=TARGET)
    with pytest.raises(InvalidInput, match=r"2\.parquet: column 'width' must be finite, got nan"):
        RobustClassifier(**QUICK).fit(rows, "label")
    with pytest.raises(InvalidInput, match=r"2\.parquet: column 'width' must be finite, got nan"):
        regressor.predict(rows)
    held = np.memmap(tmp_path / "x.bin", float, "w+", shape=X.shape)
    held[:] = x
    with pytest.raises(InvalidInput, match=r"x\.bin: X must be finite, got nan"):
        RobustClassifier(**QUICK).fit(held, GIVEN)
    with pytest.raises(InvalidInput, match="y must be the name of a column"):
        RobustClassifier(**QUICK).fit(rows, GIVEN)
    with pytest.raises(NotFittedError):
        RobustClassifier(**QUICK).predict(rows)
