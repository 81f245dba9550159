"""`learner=`: several model classes as one, each alone, and a user's own."""

import re

import jax
import numpy as np
import pytest
from scipy.stats import binom
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.datasets import load_iris, load_wine
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
    VotingClassifier,
)
from sklearn.linear_model import LinearRegression, LogisticRegression, Perceptron
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from mtbayes import InvalidInput, RobustClassifier, RobustRegressor, load
from mtbayes.data.contamination import flip_labels, replace_targets
from mtbayes.estimators import tries

NAMES = {"network", "linear", "extra trees", "boosting"}


def vote(*estimators):
    return VotingClassifier([(str(i), each) for i, each in enumerate(estimators)], voting="soft")


@pytest.fixture(scope="module")
def dirty():
    x, y = load_wine(return_X_y=True)
    return x, y, flip_labels(y, 0.2, seed=0)


@pytest.fixture(scope="module")
def pooled(dirty):
    x, _, given = dirty
    return RobustClassifier(epochs=20, random_state=0).fit(x, given.data)


@pytest.fixture(scope="module")
def numbers():
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, (400, 3))
    y = 3 * x[:, 0] + np.sign(x[:, 1]) + 0.2 * rng.normal(size=400)
    return x, y, replace_targets(y, 0.1, seed=0)


@pytest.fixture(scope="module")
def pooled_numbers(numbers):
    return RobustRegressor(random_state=0).fit(numbers[0], numbers[2].data)


def test_learners_speak_together_by_default(pooled, dirty):
    x, y, given = dirty
    assert set(pooled.shares_) <= NAMES
    assert sum(pooled.shares_.values()) == pytest.approx(1)
    assert min(pooled.shares_.values()) >= 0.05
    assert pooled.learner_ == max(pooled.shares_, key=pooled.shares_.get)
    pairs = [(e["learner"], e["t"]) for e in pooled.score_path_]
    assert len(pairs) == len(set(pairs))
    assert pairs[-1][0] == "pool"
    assert pooled.score(x, y) > 0.95
    assert roc_auc_score(given.touched, pooled.outlier_probability_) > 0.97
    low, high = pooled.contamination_[1:]
    assert low < 0.2 < high
    assert all(name in pooled.status_ for name in pooled.shares_)


def test_a_linear_map_is_left_out_where_it_would_have_to_say_too_much(dirty, monkeypatch):
    x, _, given = dirty
    monkeypatch.setattr(tries, "MANY_ANSWERS", 3 * len(x) - 1)
    model = RobustClassifier(t=1.0, epochs=5, random_state=0).fit(x, given.data)
    names = {entry["learner"] for entry in model.score_path_}
    assert "network" in names
    assert "linear" not in names


def test_networks_see_all_rows_in_the_end_where_rows_are_many():
    few, many = (
        RobustClassifier()._options((rows, 4), np.arange(3))
        for rows in (tries.FEW_ROWS - 1, tries.FEW_ROWS)
    )
    assert [option.learner.name for option in many[:2]] == ["network", "linear"]
    assert [option.learner.last for option in few[:2]] == [0.0, 0.0]
    assert [option.learner.last for option in many[:2]] == [tries.LAST, 0.0]
    assert {other.last for other in many[0].others} == {tries.LAST}


@pytest.mark.parametrize("many", [10**9, 0], ids=["usual", "as few networks as may be"])
def test_classes_of_two_rows_are_not_called_wrong(monkeypatch, many):
    """Where both rows of a class lay in one fold, a fifth of all labels came as a surprise."""
    monkeypatch.setattr(tries, "MANY_ANSWERS", many)
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(60), 2)  # more than trees speak of
    x = 3 * rng.normal(size=(60, 8))[y] + 0.1 * rng.normal(size=(120, 8))
    model = RobustClassifier(t=1.0, epochs=150, random_state=0).fit(x, y)
    assert (model.unseen_prediction_.argmax(axis=1) == y).mean() > 0.98
    assert model.contamination_.value < 0.02
    assert model.contamination_.low == 0
    if not many:
        (part,) = model.fitted_.learner.parts
        assert part.learner.posterior.components == 5


def test_the_pool_is_the_mixture_of_its_calibrated_parts(pooled, dirty):
    fitted, x = pooled.fitted_, dirty[0][:20]
    units = fitted.units.features.apply(x)
    parts = zip(fitted.learner.parts, fitted.state, strict=True)
    said = sum(
        part.share
        * part.law.calibrated(part.learner.predictive(state, units, fitted.members_key)).probs
        for part, state in parts
    )
    np.testing.assert_allclose(fitted.raw(x).probs, said, atol=1e-6)


@pytest.mark.parametrize("learner", ["linear", "trees"])
def test_one_kind_alone(learner, dirty, tmp_path):
    x, y, given = dirty
    quick = {"epochs": 60} if learner == "linear" else {}
    model = RobustClassifier(learner=learner, **quick, random_state=0).fit(x, given.data)
    assert np.mean(model.unseen_prediction_.argmax(axis=1) == y) > 0.9
    assert (
        model.learner_
        in {"linear": {"linear"}, "trees": {"forest", "extra trees", "boosting"}}[learner]
    )
    model.save(tmp_path / "model.mtb")
    again = load(tmp_path / "model.mtb")
    np.testing.assert_array_equal(again.predict_proba(x), model.predict_proba(x))


def test_a_file_gives_back_a_pool_to_the_last_bit(pooled, dirty, tmp_path):
    pooled.save(tmp_path / "model.mtb")
    again = load(tmp_path / "model.mtb")
    np.testing.assert_array_equal(again.predict_proba(dirty[0]), pooled.predict_proba(dirty[0]))
    assert again.shares_ == pooled.shares_


def test_equal_seeds_give_equal_pools_whatever_the_order_of_rows(pooled, dirty):
    x, _, given = dirty
    turned = RobustClassifier(epochs=20, random_state=0).fit(x[::-1], given.data[::-1])
    np.testing.assert_array_equal(turned.predict_proba(x), pooled.predict_proba(x))
    np.testing.assert_array_equal(turned.outlier_probability_[::-1], pooled.outlier_probability_)


def test_a_t_that_is_given_is_the_t_of_all(dirty):
    model = RobustClassifier(t=0.5, epochs=5, random_state=0).fit(dirty[0], dirty[2].data)
    assert {e["t"] for e in model.score_path_} == {0.5}
    assert model.t_ == 0.5


def test_numbers(pooled_numbers, numbers, tmp_path):
    x, y, given = numbers
    model = pooled_numbers
    new = np.random.default_rng(1).uniform(-1, 1, (500, 3))
    truth = 3 * new[:, 0] + np.sign(new[:, 1])
    forest = RandomForestRegressor(100, random_state=0).fit(x, given.data)
    errors = [np.abs(each.predict(new) - truth).mean() for each in (model, forest)]
    assert errors[0] < 0.7 * errors[1]
    low, high = model.predict_interval(x, coverage=0.9)
    assert 0.85 < np.mean((y >= low) & (y <= high)) < 0.99
    assert roc_auc_score(given.touched, model.outlier_probability_) > 0.9
    model.save(tmp_path / "model.mtb")
    again = load(tmp_path / "model.mtb")
    np.testing.assert_array_equal(again.predict(x), model.predict(x))


@pytest.mark.parametrize(
    "estimator",
    [
        LogisticRegression(max_iter=500),
        make_pipeline(StandardScaler(), LogisticRegression()),
        make_pipeline(
            OneHotEncoder(handle_unknown="ignore", sparse_output=False),
            HistGradientBoostingClassifier(max_iter=20),
        ),
        make_pipeline(StandardScaler(), vote(LogisticRegression(), GaussianNB())),
        make_pipeline(StandardScaler(), GridSearchCV(LogisticRegression(), {"C": [0.1, 1.0]})),
    ],
    ids=["logistic", "scaled", "one-hot", "vote", "search"],
)
def test_a_users_own_estimator(estimator, tmp_path):
    x, y = load_iris(return_X_y=True)
    x = x.round()  # few values, as a category has
    given = flip_labels(y, 0.2, seed=1)
    model = RobustClassifier(learner=estimator, random_state=0).fit(x, given.data)
    assert model.score(x, y) > 0.85
    assert roc_auc_score(given.touched, model.outlier_probability_) > 0.9
    last = estimator[-1] if hasattr(estimator, "steps") else estimator
    assert model.learner_ == type(last).__name__
    with pytest.raises(InvalidInput, match=r"learner must be 'auto', .*to be saved, got a"):
        model.save(tmp_path / "model.mtb")


@pytest.mark.parametrize(
    "estimator",
    [RandomForestClassifier(5), make_pipeline(StandardScaler(), RandomForestClassifier(5))],
    ids=["alone", "in a pipeline"],
)
def test_equal_seeds_give_equal_fits_of_a_users_own(estimator, dirty):
    x, _, given = dirty

    def said(seed):
        return RobustClassifier(estimator, random_state=seed).fit(x, given.data).predict_proba(x)

    first = said(0)
    np.testing.assert_array_equal(said(0), first)
    assert np.abs(said(1) - first).max() > 0.01


def test_folds_draw_by_seeds_of_their_own_and_a_users_seed_stays(numbers):
    forest, given = RandomForestRegressor(3), RandomForestRegressor(3, random_state=7)
    for learner, count in ((forest, 5), (given, 1)):
        model = RobustRegressor(learner, t=1.0, random_state=0).fit(*numbers[:2])
        fits, *_ = model.fitted_.state[0]
        seeds = {fit.random_state for fit in fits}
        assert len(seeds) == count
    assert seeds == {7}
    assert forest.random_state is None


def test_a_users_own_regressor(numbers):
    x, y, given = numbers
    forest = RandomForestRegressor(10, min_samples_leaf=3, random_state=0)
    x, y, given = x[:200], y[:200], given.data[:200]
    plain = np.abs(forest.fit(x, given).predict(x) - y).mean()
    model = RobustRegressor(learner=forest, random_state=0).fit(x, given)
    assert np.abs(model.predict(x) - y).mean() < 0.8 * plain


@pytest.mark.parametrize(
    ("learner", "message"),
    [
        ("tree", "learner must be one of .* or an estimator of scikit-learn, got .tree."),
        (3, "learner must be 'auto'"),
        (LinearRegression(), "must be a classifier"),
        (KNeighborsClassifier(), r"sample_weight.*; use RandomForestClassifier\(\) or another"),
        (Perceptron(), "predict_proba"),
        (make_pipeline(StandardScaler(), KNeighborsClassifier()), "sample_weight"),
        (GridSearchCV(KNeighborsClassifier(), {}), "hand it on to estimators that all do"),
        (
            GridSearchCV(make_pipeline(LogisticRegression()), {}),
            "put GridSearchCV into the pipeline",
        ),
        (vote(LogisticRegression(), KNeighborsClassifier()), "sample_weight"),
    ],
)
def test_learners_that_cannot_be(learner, message):
    x, y = load_iris(return_X_y=True)
    with pytest.raises(InvalidInput, match=message):
        RobustClassifier(learner=learner).fit(x, y)


def test_a_classifier_is_no_regressor(numbers):
    with pytest.raises(InvalidInput, match="must be a regressor"):
        RobustRegressor(learner=LogisticRegression()).fit(*numbers[:2])


class Says(ClassifierMixin, BaseEstimator):
    """Says one thing of every row."""

    def __init__(self, row):
        self.row = row

    def fit(self, x, y, sample_weight=None):
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, x):
        return np.array([self.row] * len(x))


class SaysNumber(RegressorMixin, Says):
    def predict(self, x):
        return self.predict_proba(x)


@pytest.mark.parametrize(
    ("row", "got"),
    [
        ([np.nan] * 3, r"\[nan nan nan\]"),
        ([5.0] * 3, r"\[5. 5. 5.\]"),
        ([-1.0, 1.0, 1.0], r"\[-1.  1.  1.\]"),
        ([0.5] * 2, r"shape \(30, 2\)"),
    ],
)
def test_what_a_users_own_says_must_be_probabilities(row, got):
    x, y = load_iris(return_X_y=True)
    rule = r"learner must return probabilities .* of shape \(30, 3\) from predict_proba, got "
    with pytest.raises(InvalidInput, match=f"{rule}{got} from Says. Mend"):
        RobustClassifier(learner=Says(row)).fit(x, y)


@pytest.mark.parametrize(("row", "got"), [(np.nan, "nan"), ([1.0, 2.0], r"shape \(80, 2\)")])
def test_what_a_users_own_says_must_be_numbers(row, got, numbers):
    rule = r"learner must return finite numbers of shape \(80,\) from predict, got "
    with pytest.raises(InvalidInput, match=f"{rule}{got} from SaysNumber. Mend"):
        RobustRegressor(learner=SaysNumber(row)).fit(*numbers[:2])


def test_one_class_in_all_folds_but_one():
    x, y = load_iris(return_X_y=True)
    y = np.zeros(150, int)
    y[0] = 1
    with pytest.raises(InvalidInput, match="two classes in every"):
        RobustClassifier(learner=LogisticRegression()).fit(x, y)


def test_what_needs_a_network_says_so(pooled, dirty):
    x, _, given = dirty
    with pytest.raises(InvalidInput, match="network"):
        pooled.influence(x[:5], given.data[:5])
    with pytest.raises(InvalidInput, match="learner='network'"):
        pooled.partial_fit(x[100:], given.data[100:])


def test_rows_that_come_in_parts_are_learned_by_a_network(dirty):
    x, _, given = dirty
    model = RobustClassifier(hidden=(8,), epochs=5, random_state=0)
    model.partial_fit(x[:100], given.data[:100], classes=[0, 1, 2])
    assert model.shares_ == {"network": 1.0}
    model.partial_fit(x[100:], given.data[100:])


def test_a_certificate_without_a_posterior_is_a_test_set_bound(dirty):
    x, _, given = dirty
    model = RobustClassifier(learner="trees", random_state=0)
    bound = model.certify(x, given.data, confidence=0.9)
    assert "test set" in bound.terms["kind"]
    rows, errors = int(bound.terms["rows"]), bound.terms["empirical risk"] * bound.terms["rows"]
    assert rows == 89
    # The largest error rate at which so few errors are not yet 10 % likely.
    assert binom.cdf(round(errors), rows, bound.value) == pytest.approx(0.1)
    assert set(bound.predictor.shares_) <= {"forest", "extra trees", "boosting"}
    robust = RobustClassifier(learner="trees", t=0.5, random_state=0)
    loss = robust.certify(x, given.data, risk="log_t")
    assert loss.terms["empirical risk"] < loss.value < 2
    with pytest.raises(InvalidInput, match="of must be 'predictor'"):
        model.certify(x, given.data, of="member")


@pytest.mark.parametrize("learner", ["trees", RandomForestRegressor()])
def test_a_certificate_of_numbers_needs_a_posterior_which_is_told_before_a_fit(
    learner, numbers, monkeypatch
):
    monkeypatch.setattr(RobustRegressor, "learned", None)
    name = "'trees'" if learner == "trees" else "RandomForest"
    with pytest.raises(InvalidInput, match=f"certificate of numbers, got {name}"):
        RobustRegressor(learner).certify(*numbers[:2])


def test_trees_need_all_rows_at_once(dirty):
    for learner in ("trees", LogisticRegression()):
        model = RobustClassifier(learner)
        assert not hasattr(model, "partial_fit")
        with pytest.raises(AttributeError) as told:
            model.partial_fit(dirty[0], dirty[2].data)
        assert "come in parts" in str(told.value.__cause__)
    assert hasattr(RobustClassifier(), "partial_fit")


@pytest.mark.parametrize("learner", ["trees", LogisticRegression()])
def test_no_warm_start_without_a_posterior(learner, dirty):
    with pytest.raises(InvalidInput, match=r"warm_start must be False .* got True with learner="):
        RobustClassifier(learner=learner, warm_start=True).fit(dirty[0], dirty[2].data)


@pytest.mark.parametrize("learner", ["trees", LogisticRegression(max_iter=500)])
def test_parameters_of_networks_that_do_nothing_are_told(learner, dirty):
    x, y, _ = dirty
    idle = {"epochs": 1, "hidden": (9,), "m": 10, "modes": 3, "network": "cnn"}
    if learner == "trees":
        del idle["network"]  # which is refused
    told = ", ".join(f"{name}={value!r}" for name, value in idle.items())
    model = RobustClassifier(learner=learner, t=1.0, random_state=0, **idle)
    with pytest.warns(UserWarning, match=re.escape(f"which is no network: {told}. Leave")) as found:
        model.fit(x[:, :2], y)
    assert len(found) == 1


@pytest.mark.parametrize("learner", ["trees", LogisticRegression(max_iter=500)])
def test_a_checkpoint_that_nobody_writes_is_told(learner, dirty, tmp_path):
    x, y, _ = dirty
    model = RobustClassifier(learner, t=1.0, random_state=0)
    told = re.escape(f"checkpoint={str(tmp_path / 'kept')!r}. Leave") + ".*Networks keep"
    with pytest.warns(UserWarning, match=told) as found:
        model.fit(x[:, :2], y, checkpoint=tmp_path / "kept")
    assert len(found) == 1
    assert not (tmp_path / "kept").exists()


def test_hidden_units_do_nothing_to_linear_maps(dirty):
    x, y, _ = dirty
    model = RobustClassifier(learner="linear", hidden=(9,), epochs=1, t=1.0, random_state=0)
    told = re.escape("has no hidden units: hidden=(9,). Leave")
    with pytest.warns(UserWarning, match=told) as found:
        model.fit(x[:, :2], y)
    assert len(found) == 1


def test_rows_of_the_fit_and_new_ones_are_judged_together(pooled, dirty, tmp_path):
    x, y, given = dirty
    pooled.save(tmp_path / "model.mtb")
    for model in (pooled, load(tmp_path / "model.mtb")):
        every = model.find_outliers(x, given.data).probability
        np.testing.assert_array_equal(every, pooled.outlier_probability_)
        some = model.find_outliers(x[:40], y[:40]).probability  # some labels corrected
        same = given.data[:40] == y[:40]
        np.testing.assert_array_equal(some[same], every[:40][same])
        assert some[~same].max() < 0.5 < every[:40][~same].mean()


def test_a_tables_rows_compare_and_the_pool_is_among_the_best(pooled):
    scores = {(e["learner"], e["t"]): e["score"] for e in pooled.score_path_}
    best = max(scores.values())
    assert next(s for (name, _), s in scores.items() if name == "pool") > best - 0.05


@pytest.mark.parametrize("learner", [LogisticRegression, RobustClassifier()])
def test_no_class_and_none_of_ours(learner):
    with pytest.raises(InvalidInput, match="such as LogisticRegression"):
        RobustClassifier(learner=learner).fit(*load_iris(return_X_y=True))


@pytest.mark.parametrize("learner", ["trees", LogisticRegression()])
def test_too_few_rows_to_leave_some_out(learner):
    x, y = load_iris(return_X_y=True)
    with pytest.raises(InvalidInput, match=r"at least 20 rows .* got 19"):
        RobustClassifier(learner=learner).fit(x[41:60], y[41:60])


@pytest.mark.parametrize("kind", [RobustClassifier, RobustRegressor])
def test_a_fit_compiles_one_program_and_predicting_none(caplog, kind):
    """Starts, keys, linear maps and predictions are NumPy's: compiling may outlast a small fit."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(83, 6))
    y = (x[:, 0] > 0).astype(int) if kind is RobustClassifier else x[:, 0]
    with jax.log_compiles(True):
        kind(hidden=(7,), epochs=100, random_state=0).fit(x, y).predict(x)
    told = [record.getMessage() for record in caplog.records]
    assert len([words for words in told if "Finished XLA compilation" in words]) == 1, told


def test_trees_print_nothing_of_their_own(capfd):
    """A column of two values, as few as LightGBM warns of, beside one that is constant."""
    y = np.arange(40) % 2
    RobustClassifier(learner="trees", random_state=0).fit(np.stack([y, 0 * y], axis=1), y)
    assert capfd.readouterr().out == ""
