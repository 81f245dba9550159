"""The estimators as a person with dirty data meets them."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_digits, load_wine
from sklearn.exceptions import NotFittedError
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GridSearchCV, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import mtbayes
from mtbayes import InvalidInput, RobustClassifier, RobustRegressor
from mtbayes.data.contamination import flip_labels, replace_targets
from mtbayes.learners import network

PLAIN = {"m": 2, "modes": 1, "beta": 10.0}  # one setting, so that none is chosen
QUICK = {"epochs": 4, "hidden": (8,), "t": 0.7, "random_state": 0} | PLAIN


@pytest.fixture(scope="module")
def wine():
    return load_wine(return_X_y=True)


@pytest.fixture(scope="module")
def fitted(wine):
    x, y = wine
    return RobustClassifier(**QUICK).fit(x, np.array(["red", "rosé", "white"])[y])


@pytest.fixture(scope="module")
def line():
    rng = np.random.default_rng(0)
    x = rng.uniform(-2, 2, (400, 2))
    return x, x[:, 0] - 0.5 * x[:, 1] + 0.1 * rng.standard_normal(400)


def test_wrong_labels_are_counted_and_found():
    x, y = (rows[:600] for rows in load_digits(return_X_y=True))
    dirty = flip_labels(y, 0.3, seed=0)
    model = RobustClassifier(epochs=60, hidden=(30,), random_state=0).fit(x, dirty.data)
    assert model.contamination_.low <= 0.3 <= model.contamination_.high
    assert abs(model.contamination_.value - 0.3) < 0.03
    assert roc_auc_score(dirty.touched, model.outlier_probability_) > 0.97
    assert model.score(x, y) > 0.93
    found = model.find_outliers(x, dirty.data)
    assert np.mean(found.suggestion == y) > 0.93
    assert min(part.t for part in model.fitted_.learner.parts) < 1
    assert model.row_weight_.max() == pytest.approx(1)
    # Learners that are fitted at t = 1 are pulled alike by all rows.
    pulled = 1 - sum(part.share for part in model.fitted_.learner.parts if part.t == 1)
    less = model.row_weight_[~dirty.touched].mean() - model.row_weight_[dirty.touched].mean()
    assert less > 0.8 * pulled > 0.1


def test_wrong_targets_are_counted_and_intervals_cover_clean_ones(line):
    x, y = (rows[:250] for rows in line)
    dirty = replace_targets(y, 0.2, seed=0)
    model = RobustRegressor(epochs=60, hidden=(20,), random_state=0).fit(x, dirty.data)
    assert abs(model.contamination_.value - 0.2) < 0.06
    assert roc_auc_score(dirty.touched, model.outlier_probability_) > 0.9
    low, high = model.predict_interval(x, 0.9)
    assert 0.85 < np.mean((low <= y) & (y <= high)) < 0.97
    assert np.abs(model.predict(x) - (x[:, 0] - 0.5 * x[:, 1])).mean() < 0.1


def test_units_of_targets_change_nothing_but_units(line):
    x, y = line
    plain = RobustRegressor(**QUICK).fit(x, y)
    scaled = RobustRegressor(**QUICK).fit(x, 1e6 * y + 1e6)
    np.testing.assert_allclose((scaled.predict(x) - 1e6) / 1e6, plain.predict(x), atol=1e-6)
    np.testing.assert_allclose(
        scaled.log_prob(x, 1e6 * y + 1e6), plain.log_prob(x, y) - np.log(1e6), atol=1e-4
    )


def test_order_of_rows_does_not_matter(wine):
    x, y = wine
    order = np.random.default_rng(0).permutation(len(y))
    one, other = (RobustClassifier(**QUICK).fit(a, b) for a, b in ((x, y), (x[order], y[order])))
    np.testing.assert_array_equal(one.predict_proba(x), other.predict_proba(x))
    np.testing.assert_array_equal(one.outlier_probability_[order], other.outlier_probability_)


def test_quantiles_are_of_the_distribution_that_is_sampled(line):
    x, y = line
    model = RobustRegressor(**QUICK).fit(x, y)
    drawn = model.sample(x[:5], size=20_000, random_state=0)
    np.testing.assert_allclose(
        model.predict_quantiles(x[:5], [0.1, 0.5, 0.9]),
        np.quantile(drawn, [0.1, 0.5, 0.9], axis=0).T,
        atol=0.08 * drawn.std(),
    )
    mean, std = model.predict(x[:5], return_std=True)
    np.testing.assert_allclose(mean, drawn.mean(axis=0), atol=0.05 * drawn.std())
    np.testing.assert_allclose(std, drawn.std(axis=0), rtol=0.05)
    doubt = model.uncertainty(x[:5])
    np.testing.assert_allclose(doubt.aleatoric + doubt.epistemic, std**2, rtol=1e-9)


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame, lambda d: pa.table(d)])
def test_tables_of_every_kind_give_the_same(fitted, wine, kind):
    x, y = wine
    table = kind({f"c{i}": x[:, i] for i in range(x.shape[1])})
    labels = np.array(["red", "rosé", "white"])[y]
    model = RobustClassifier(**QUICK).fit(table, labels)
    np.testing.assert_array_equal(model.predict_proba(table), fitted.predict_proba(x))


def test_scikit_learns_tools_work(wine):
    x, y = wine
    pipeline = make_pipeline(StandardScaler(), RobustClassifier(**QUICK))
    search = GridSearchCV(pipeline, {"robustclassifier__t": [1.0, 0.5]}, cv=2).fit(x, y)
    assert set(search.best_params_) == {"robustclassifier__t"}
    assert cross_val_predict(RobustClassifier(**QUICK), x, y, cv=2).shape == y.shape
    assert clone(search.best_estimator_).get_params()["robustclassifier__hidden"] == (8,)
    assert "RobustClassifier" in pipeline._repr_html_()


def test_images_go_into_the_convolutional_network(tmp_path):
    x, y = load_digits(return_X_y=True)
    images, y = x.reshape(-1, 8, 8)[:100], y[:100]
    quick = {"network": "cnn", "modes": 5, "epochs": 3, "t": 1.0, "random_state": 0}
    model = RobustClassifier(**quick).fit(images, y)
    assert model.predict_proba(images).shape == (100, 10)
    assert model.shares_ == {"network": 1.0}
    model.save(tmp_path / "images.mtb")
    again = mtbayes.load(tmp_path / "images.mtb")
    np.testing.assert_array_equal(again.predict_proba(images), model.predict_proba(images))
    # Judged by networks that had left them out, though all have seen them in the end.
    judged = model.judge(images, y)
    np.testing.assert_allclose(judged.outlier_probability, model.outlier_probability_, rtol=1e-6)
    with pytest.raises(InvalidInput, match="got a pool of network"):
        model.partial_fit(images[:20], y[:20])
    alone = RobustClassifier(**quick | PLAIN, learner="network")
    alone.fit(images, y).partial_fit(images[:20], y[:20])
    with pytest.raises(InvalidInput, match="images"):
        RobustClassifier(network="cnn").fit(x[:100, :9], y)


def test_files_give_the_same_predictions_and_refuse_what_is_not_theirs(fitted, wine, tmp_path):
    x, _ = wine
    path = tmp_path / "wine.mtbayes"
    fitted.save(path)
    back = mtbayes.load(path)
    np.testing.assert_array_equal(back.predict_proba(x), fitted.predict_proba(x))
    assert back.classes_.tolist() == ["red", "rosé", "white"]
    assert back.contamination_ == fitted.contamination_
    assert back.get_params() == fitted.get_params()
    whole = path.read_bytes()
    path.write_bytes(whole[:-100])
    with pytest.raises(InvalidInput, match="damaged"):
        mtbayes.load(path)
    path.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    with pytest.raises(InvalidInput, match="checksum"):
        mtbayes.load(path)
    path.write_bytes(pickle.dumps(fitted))
    with pytest.raises(InvalidInput, match="not written by mtbayes"):
        mtbayes.load(path)
    path.write_bytes(whole.replace(b'"version":"3"', b'"version":"9"'))
    with pytest.raises(InvalidInput, match="version 9"):
        mtbayes.load(path)
    with pytest.raises(InvalidInput, match="saved estimator"):
        mtbayes.load(tmp_path / "nothing")


def test_a_users_own_function_cannot_be_saved_as_data(wine, tmp_path):
    from mtbayes.networks import from_function

    x, y = wine
    own = from_function(lambda p, x: x @ p, np.zeros((13, 3)))
    model = RobustClassifier(**QUICK | {"network": own}).fit(x, y)
    with pytest.raises(InvalidInput, match="network"):
        model.save(tmp_path / "m")
    assert not list(tmp_path.iterdir())


def test_more_rows_sharpen_the_posterior(line):
    x, y = line
    model = RobustRegressor(**QUICK).fit(x[:200], y[:200])
    before = model.state_.log_std.mean()
    t = model.t_
    for _ in range(3):
        model.partial_fit(x[200:], y[200:])
    assert model.t_ == t
    assert model.state_.log_std.mean() < before
    assert len(model.outlier_probability_) == 200


def test_labels_that_were_never_named_are_refused(fitted, wine):
    x, y = wine
    with pytest.raises(InvalidInput, match="'green'"):
        fitted.find_outliers(x[:2], ["green", "red"])
    model = RobustClassifier(**QUICK).partial_fit(x[:40], y[:40], classes=[0, 1, 2])
    assert model.predict_proba(x).shape == (len(x), 3)


def test_a_killed_fit_goes_on_from_its_checkpoint(wine, tmp_path):
    x, y = wine
    whole = RobustClassifier(**QUICK | {"t": "auto"}).fit(x, y)
    RobustClassifier(**QUICK | {"t": "auto"}).fit(x, y, checkpoint=tmp_path / "c")
    for name in ("final", "fold-4-0.3"):
        (tmp_path / "c" / f"{name}.unfinished").unlink()
    again = RobustClassifier(**QUICK | {"t": "auto"}).fit(x, y, checkpoint=tmp_path / "c")
    np.testing.assert_array_equal(again.predict_proba(x), whole.predict_proba(x))


@pytest.mark.parametrize("seed", [None, np.random.RandomState(0)])
def test_a_checkpoint_needs_a_seed_that_stays(wine, tmp_path, seed):
    words = "random_state must be a whole number where checkpoint is given, got .* Set it, such as"
    with pytest.raises(InvalidInput, match=words):
        RobustClassifier(**QUICK | {"random_state": seed}).fit(*wine, checkpoint=tmp_path / "c")
    assert not (tmp_path / "c").exists()


@pytest.mark.parametrize(
    ("parameters", "named"),
    [
        ({"t": "banana"}, "t must"),
        ({"t": 2.0}, "t must"),
        ({"m": 0}, "m must"),
        ({"beta": -1.0}, "beta must"),
        ({"epochs": "many"}, "epochs must"),
        ({"modes": 0}, "modes must"),
        ({"m": "many"}, "m must"),
        ({"network": "rnn"}, "network must"),
        ({"hidden": (0,)}, "hidden must"),
        ({"hidden": 5}, "hidden must"),
        ({"batch_size": 0}, "batch_size must"),
        ({"t": True}, "t must"),
        ({"learning_rate": 0}, "learning_rate must lie between 1e-12 and 1"),
        ({"learning_rate": 1e6}, "learning_rate must lie between 1e-12 and 1"),
    ],
)
def test_parameters_that_make_no_sense_are_named(wine, parameters, named):
    with pytest.raises(InvalidInput, match=named):
        RobustClassifier(**parameters).fit(*wine)


@pytest.mark.parametrize("estimator", [RobustClassifier, RobustRegressor])
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda x, y: (np.where(x > 14, np.nan, x), y), "NaN"),
        (lambda x, y: (np.where(x > 14, np.inf, x), y), "infinity"),
        (lambda x, y: (sparse.csr_matrix(x), y), "sparse_output=False"),
        (lambda x, y: (x, y[:-1]), "inconsistent"),
        (lambda x, y: (np.full(x.shape, "a"), y), "numbers"),
        (lambda x, y: (x[:0], y[:0]), "0 sample"),
        (lambda x, y: (x[:, None], y), "network='cnn' takes images"),
    ],
)
def test_rows_that_cannot_be_used_are_refused_in_plain_words(wine, estimator, change, message):
    with pytest.raises((ValueError, TypeError), match=message):
        estimator(**QUICK).fit(*change(*wine))


def test_weights_that_count_no_row_are_refused(wine):
    x, y = wine
    with pytest.raises(ValueError, match=r"[Ss]ample.weight"):
        RobustClassifier(**QUICK).fit(x, y, sample_weight=np.zeros(len(y)))
    with pytest.raises(ValueError, match="egative"):
        RobustClassifier(**QUICK).fit(x, y, sample_weight=-np.ones(len(y)))


def test_a_warm_start_needs_the_same_columns_and_classes(wine):
    x, y = wine
    model = RobustClassifier(**QUICK | {"warm_start": True}).fit(x, y)
    model.fit(x, y)
    for rows, labels in ((x[:, :5], y), (x, y % 2)):
        with pytest.raises(InvalidInput, match="warm_start"):
            clone(model).fit(x, y).fit(rows, labels)


def test_folders_and_files_are_not_confused(fitted, wine, tmp_path):
    with pytest.raises(InvalidInput, match="must be a file"):
        fitted.save(tmp_path)
    with pytest.raises(InvalidInput, match="must be a saved estimator, got None"):
        mtbayes.load(None)
    (tmp_path / "file").touch()
    with pytest.raises(InvalidInput, match="must be a folder"):
        RobustClassifier(**QUICK).fit(*wine, checkpoint=tmp_path / "file")


def test_one_class_is_nothing_to_tell_apart(wine):
    with pytest.raises(InvalidInput, match="2 classes"):
        RobustClassifier(**QUICK).fit(wine[0], np.zeros(178, int))


@pytest.mark.filterwarnings("ignore:y holds two numbers alone")
@pytest.mark.parametrize(
    "x",
    [
        np.ones(30),
        np.repeat(np.arange(3.0), 10),
        1e300 * np.sign(np.arange(30) - 15),
        np.arange(2.0),
    ],
    ids=["constant", "duplicated", "huge", "two rows"],
)
def test_odd_rows_give_finite_answers(x):
    x = np.tile(x[:, None], (1, 2))
    y = np.arange(len(x)) % 2
    classifier = RobustClassifier(**QUICK | {"t": "auto"}).fit(x, y)
    assert np.isfinite(classifier.predict_proba(x)).all()
    regressor = RobustRegressor(**QUICK | {"t": "auto"}).fit(x, y)
    assert np.isfinite(regressor.predict(x)).all()
    assert np.isfinite(regressor.outlier_probability_).all()


@pytest.mark.parametrize("kind", [RobustClassifier, RobustRegressor])
def test_where_no_row_can_be_held_out_any_share_may_be_wrong(kind):
    """But for the rows that are known to be right."""
    x = np.random.default_rng(0).normal(size=(15, 3))
    y = (x[:, 0] > 0).astype(int)
    assert kind(**QUICK).fit(x, y).contamination_ == (0.0, 0.0, 1.0)
    trusted = np.arange(15) < 6
    assert kind(**QUICK).fit(x, y, trusted=trusted).contamination_ == (0.0, 0.0, 0.6)


@pytest.mark.filterwarnings("ignore:The number of unique classes:UserWarning")
def test_numbers_that_are_taken_for_classes_are_refused():
    x = np.random.default_rng(0).normal(size=(200, 3))
    with pytest.raises(InvalidInput, match=r"200 classes in 200 rows\. Use RobustRegressor"):
        RobustClassifier(**QUICK).fit(x, np.arange(200))
    RobustClassifier(**QUICK).fit(x[:20], np.arange(20))  # few rows may have few of each class


def test_a_small_t_begins_in_the_middle(line, monkeypatch):
    """As the folds' fits do; a larger t, and a warm start, go straight to it."""
    made, solved = [], network.solved

    def spy(problem, *rest):
        made.append((problem.criterion.t, problem.epochs))
        return solved(problem, *rest)

    monkeypatch.setattr(network, "solved", spy)
    x, y = line[0][:15], line[1][:15]  # too few for folds
    model = RobustRegressor(**QUICK | {"t": 0.5, "epochs": 20, "warm_start": True}).fit(x, y)
    assert made == [(0.7, 16), (0.5, 4)]
    assert [row["epoch"] for row in model.history_] == list(range(2, 21, 2))
    model.fit(x, y)
    RobustRegressor(**QUICK | {"t": 0.8, "epochs": 20}).fit(x, y)
    assert made[2:] == [(0.5, 20), (0.8, 20)]


def test_ten_thousand_classes_are_possible():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(40, 3)), np.arange(40) % 20
    model = RobustClassifier(**QUICK | {"modes": 2, "epochs": 1, "hidden": (4,), "t": 1.0})
    model.partial_fit(x, y, classes=np.arange(10_000))
    assert model.predict_proba(x[:3]).shape == (3, 10_000)


@pytest.mark.parametrize("method", ["predict", "predict_proba", "uncertainty", "predictive"])
def test_use_before_fit_and_wrong_columns_are_refused(fitted, wine, method):
    with pytest.raises(NotFittedError):
        getattr(RobustClassifier(), method)(wine[0])
    with pytest.raises(ValueError, match="features"):
        getattr(fitted, method)(wine[0][:, :5])
