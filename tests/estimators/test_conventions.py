"""The estimators among scikit-learn's tools."""

import pickle
import subprocess
import sys
import textwrap

import joblib
import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.impute import SimpleImputer
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_predict, cross_validate
from sklearn.multioutput import MultiOutputRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from mtbayes import InvalidInput, RobustClassifier, RobustDensity, RobustRegressor

# One shape of rows for all fits, and halves of it, so that compiled programs are shared.
N = 12
PLAIN = {"m": 2, "modes": 1, "beta": 10.0}
QUICK = {"epochs": 2, "t": 0.7, "hidden": (4,), "batch_size": 12, "random_state": 0} | PLAIN
RNG = np.random.default_rng(0)
X = pd.DataFrame(RNG.normal(size=(N, 3)), columns=["length", "width", "age"])
Y = np.resize([0, 1], N)
TARGET = X["length"].to_numpy() - X["age"].to_numpy()


@pytest.fixture(scope="module")
def fitted():
    return (
        RobustClassifier(**QUICK).fit(X, np.where(Y == 1, "yes", "no")),
        RobustRegressor(**QUICK).fit(X, TARGET),
        RobustDensity(epochs=2, t=0.7, random_state=0).fit(X),
    )


def said_by(model, x):
    if isinstance(model, RobustClassifier):
        return model.predict_proba(x)
    return model.predict(x) if isinstance(model, RobustRegressor) else model.score_samples(x)


def test_a_pipeline_codes_categories_and_fills_gaps():
    table = X[["length"]].assign(shop=np.resize(["a", "b", "b"], N))
    table.loc[3, "length"] = np.nan
    with pytest.raises(InvalidInput, match="OneHotEncoder"):
        RobustClassifier(**QUICK).fit(table.to_numpy(), Y)
    with pytest.raises(ValueError, match=r"Give a data frame.*SimpleImputer\(\)"):
        RobustClassifier(**QUICK).fit(table[["length"]].to_numpy(), Y)
    columns = ColumnTransformer(
        [
            ("numbers", SimpleImputer(), ["length"]),
            ("shop", OneHotEncoder(sparse_output=False, handle_unknown="ignore"), ["shop"]),
        ]
    ).set_output(transform="pandas")
    model = make_pipeline(columns, RobustClassifier(**QUICK)).fit(table, Y)
    assert model[-1].feature_names_in_.tolist() == [
        "numbers__length",
        "shop__shop_a",
        "shop__shop_b",
    ]
    new = table.assign(shop="never seen")
    assert model.predict_proba(new).shape == (N, 2)
    # Coded by hand, the same.
    by_hand = RobustClassifier(**QUICK).fit(columns.fit_transform(table), Y)
    np.testing.assert_array_equal(by_hand.predict_proba(columns.transform(new)),
                                  model.predict_proba(new))  # fmt: skip


def test_names_of_columns_are_kept_and_checked(fitted):
    for model in fitted:
        assert model.feature_names_in_.tolist() == ["length", "width", "age"]
        assert model.n_features_in_ == 3
        for wrong in (X[["age", "width", "length"]], X.rename(columns={"age": "height"})):
            with pytest.raises(ValueError, match="feature names should match"):
                said_by(model, wrong)
        with pytest.warns(UserWarning, match="does not have valid feature names"):
            said_by(model, X.to_numpy())


@pytest.mark.parametrize(
    "backend",
    ["threading", pytest.param("loky", marks=pytest.mark.slow)],  # processes compile anew
)
def test_grid_search_by_two_workers_finds_what_one_finds(backend):
    pipeline = make_pipeline(StandardScaler(), RobustClassifier(**QUICK))
    search = GridSearchCV(
        pipeline, {"robustclassifier__t": [1.0, 0.5]}, cv=2, n_jobs=2, scoring="neg_log_loss"
    )
    alone = sklearn.clone(search).set_params(n_jobs=1).fit(X, Y)
    with joblib.parallel_config(backend=backend):
        search.fit(X, Y)
    score = search.cv_results_["mean_test_score"]
    np.testing.assert_array_equal(score, alone.cv_results_["mean_test_score"])
    assert np.ptp(score) > 0
    np.testing.assert_array_equal(search.predict_proba(X), alone.predict_proba(X))


def test_cross_validated_predictions_are_of_fits_to_the_other_rows():
    folds = [(np.arange(6, 12), np.arange(6)), (np.arange(6), np.arange(6, 12))]
    found = cross_val_predict(RobustClassifier(**QUICK), X, Y, cv=folds, method="predict_proba")
    for train, test in folds:
        model = RobustClassifier(**QUICK).fit(X.iloc[train], Y[train])
        np.testing.assert_array_equal(found[test], model.predict_proba(X.iloc[test]))


@pytest.mark.slow
def test_cross_validation_on_a_cluster_sends_rows_once(tmp_path):
    """A process of its own, since a cluster leaves threads behind."""
    script = """
        import joblib, numpy as np
        from distributed import Client
        from sklearn.model_selection import cross_val_predict
        from mtbayes import RobustClassifier

        if __name__ == "__main__":
            x = np.random.default_rng(0).normal(size=(60, 3))
            y = (x[:, 0] > 0).astype(int)
            model = RobustClassifier(t="auto", epochs=2, hidden=(4,), batch_size=45, random_state=0)
            alone = cross_val_predict(model, x, y, cv=4, method="predict_proba")
            with Client(n_workers=2, threads_per_worker=1, dashboard_address=None) as client:
                sent, scatter = [], client.scatter

                def counted(data, **options):
                    sent.append(np.shape(data))
                    return scatter(data, **options)

                client.scatter = counted
                with joblib.parallel_config(backend="dask"):
                    found = cross_val_predict(model, x, y, cv=4, method="predict_proba")
            np.testing.assert_allclose(found, alone, rtol=1e-6)
            print(sent.count(x.shape))
    """
    path = tmp_path / "on_dask.py"
    path.write_text(textwrap.dedent(script))
    done = subprocess.run([sys.executable, path], check=True, capture_output=True, text=True)
    assert done.stdout.split()[-1] == "1"


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


@pytest.mark.usefixtures("routing")
def test_weights_are_routed_to_fits_and_scores():
    weight = np.resize([1.0, 3.0, 2.0, 1.0], N)
    model = RobustRegressor(**QUICK)
    asking = RobustRegressor(**QUICK).set_fit_request(sample_weight=True)
    asking.set_score_request(sample_weight=True)
    folds = GroupKFold(2)
    params = {"sample_weight": weight, "groups": np.repeat([0, 1], N // 2)}
    with pytest.raises(sklearn.exceptions.UnsetMetadataPassedError):
        cross_validate(model, X, TARGET, cv=folds, params=params)
    found = cross_validate(make_pipeline(asking), X, TARGET, cv=folds, params=params)
    for score, (train, test) in zip(
        found["test_score"], folds.split(X, groups=params["groups"]), strict=True
    ):
        model.fit(X.iloc[train], TARGET[train], sample_weight=weight[train])
        assert score == model.score(X.iloc[test], TARGET[test], sample_weight=weight[test])
        assert score != model.score(X.iloc[test], TARGET[test])


@pytest.mark.parametrize("tool", [pickle, joblib])
def test_pickled_estimators_say_the_same(fitted, tool, tmp_path):
    for model in fitted:
        with (tmp_path / "model").open("wb") as file:
            tool.dump(model, file)
        with (tmp_path / "model").open("rb") as file:
            again = tool.load(file)
        np.testing.assert_array_equal(said_by(again, X), said_by(model, X))
        np.testing.assert_array_equal(again.outlier_probability_, model.outlier_probability_)


def test_copies_are_not_fitted_and_the_repr_shows_what_was_set(fitted):
    for model in fitted:
        again = sklearn.clone(model)
        assert again.get_params() == model.get_params()
        assert not [name for name in vars(again) if name.endswith("_")]
        assert repr(again) == repr(model)
        assert "epochs=2" in repr(model)
        shown = model._repr_html_()
        assert type(model).__name__ in shown
        assert "Fitted" in shown
        assert "Not fitted" in again._repr_html_()


def test_a_fit_leaves_parameters_and_rows_alone():
    x, y, options = X.to_numpy(), TARGET.copy(), dict(QUICK, hidden=[4])
    x.flags.writeable = y.flags.writeable = False
    model = RobustRegressor(**options).fit(x, y)
    model.predict(x)
    assert model.get_params()["hidden"] is options["hidden"] == [4]


def test_targets_may_be_transformed_and_many():
    model = TransformedTargetRegressor(
        RobustRegressor(**QUICK), func=np.sinh, inverse_func=np.arcsinh
    )
    assert np.isfinite(model.fit(X, TARGET).predict(X)).all()
    both = MultiOutputRegressor(RobustRegressor(**QUICK)).fit(X, np.stack([TARGET, -TARGET], 1))
    alone = RobustRegressor(**QUICK).fit(X, TARGET)
    np.testing.assert_array_equal(both.predict(X)[:, 0], alone.predict(X))


@pytest.mark.parametrize("labels", [["a", "b"], [True, False], [-1, 5], [0.0, 1.0]])
def test_labels_come_back_as_they_went_in(labels):
    y = np.resize(np.array(labels), N)
    model = RobustClassifier(**QUICK).fit(X, y)
    assert model.classes_.tolist() == sorted(labels)
    assert model.predict(X).dtype == y.dtype
    assert set(model.predict(X).tolist()) <= set(labels)


def test_labels_may_be_a_column_of_categories(fitted):
    y = pd.Series(np.where(Y == 1, "yes", "no"), dtype="category")
    again = RobustClassifier(**QUICK).fit(X, y)
    np.testing.assert_array_equal(again.predict(X), fitted[0].predict(X))
