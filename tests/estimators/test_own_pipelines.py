"""An estimator of a user's own sees the user's own table, not numbers that we make of it."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from mtbayes import Annotations, InvalidInput, RobustClassifier, RobustRegressor

N = 200
RNG = np.random.default_rng(0)
SIZE = RNG.normal(size=N)
SHOP = RNG.choice(["north", "south", "east"], N)
LABEL = np.where(SIZE + 2.0 * (SHOP == "north") > 0.5, "a", "b")
WRONG = np.arange(N) % 10 == 0
TEXT = np.column_stack([SHOP, np.where(SIZE > 0, "large", "small")])
GIVEN = np.where(WRONG, np.where(LABEL == "a", "b", "a"), LABEL)


@pytest.fixture(scope="module")
def frame():
    said = {"a": "well made and good", "b": "broke in a week"}
    return pd.DataFrame(
        {
            "size": np.where(np.arange(N) % 7 == 0, np.nan, SIZE),
            "shop": pd.Categorical(SHOP),
            "remark": [f"{said[y]} {i}" for i, y in enumerate(LABEL)],
        }
    )


def by_name():
    return make_pipeline(
        make_column_transformer(
            (TfidfVectorizer(), "remark"),
            (OneHotEncoder(), ["shop"]),
        ),
        LogisticRegression(),
    )


class Witness(ClassifierMixin, BaseEstimator):
    """Keeps what it is given, and says what the rows' shares are."""

    seen = []  # noqa: RUF012

    def fit(self, x, y, sample_weight=None):
        self.seen.append(x)
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, x):
        self.seen.append(x)
        return np.full((len(x), len(self.classes_)), 1 / len(self.classes_))


@pytest.mark.parametrize("make", [lambda f: f, pl.from_pandas], ids=["pandas", "polars"])
def test_rows_reach_it_in_their_own_kind(frame, make):
    table = make(frame)
    Witness.seen.clear()
    RobustClassifier(Witness(), t=1.0, random_state=0).fit(table, GIVEN).predict(table)
    assert {type(x) for x in Witness.seen} == {type(table)}
    for x in Witness.seen:
        assert list(x.columns) == list(table.columns)
        assert list(x.dtypes) == list(table.dtypes)
    assert max(len(x) for x in Witness.seen[:5]) == N * 4 // 5  # a fold left out
    remarks = [set(x["remark"]) for x in Witness.seen[:5]]
    assert set.union(*remarks) == set(frame["remark"])
    assert not set.intersection(*remarks)  # each remark is in one row, which one fit leaves out


@pytest.mark.parametrize("make", [lambda f: f, pl.from_pandas], ids=["pandas", "polars"])
def test_columns_are_found_by_their_names_and_wrong_labels_too(frame, make):
    table = make(frame)
    model = RobustClassifier(by_name(), random_state=0).fit(table, GIVEN)
    assert model.feature_names_in_.tolist() == ["size", "shop", "remark"]
    assert not hasattr(model, "coder_")
    assert model.score(table, LABEL) > 0.95
    worst = np.argsort(-model.outlier_probability_)[: WRONG.sum()]
    assert WRONG[worst].mean() > 0.9
    # Rows of the fit are judged by members that have not seen them, new ones by all.
    again = model.find_outliers(table[:9], GIVEN[:9]).probability
    np.testing.assert_allclose(again, model.outlier_probability_[:9], rtol=1e-12)


def test_gaps_and_categories_are_left_to_boosting(frame):
    two = frame[["size", "shop"]]
    boosting = HistGradientBoostingClassifier(categorical_features="from_dtype", max_iter=20)
    model = RobustClassifier(boosting, t=1.0, random_state=0).fit(two, LABEL)
    assert model.score(two, LABEL) > 0.9
    numbers = HistGradientBoostingRegressor(categorical_features="from_dtype", max_iter=20)
    found = RobustRegressor(numbers, t=1.0, random_state=0).fit(two, SIZE)
    assert found.score(two, SIZE) > 0.5


def test_arrays_of_text_are_given_as_they_are():
    own = make_pipeline(OneHotEncoder(), LogisticRegression())
    for table in (TEXT, TEXT.astype(object)):
        model = RobustClassifier(own, t=1.0, random_state=0).fit(table, LABEL)
        assert model.score(table, LABEL) > 0.8


def test_equal_rows_are_one_row_with_their_weight(frame):
    own = make_pipeline(OneHotEncoder(), LogisticRegression())
    few = frame[["shop"]]
    twice = pd.concat([few, few], ignore_index=True)
    model = RobustClassifier(own, t=1.0, random_state=0)
    said = model.fit(few, LABEL, sample_weight=np.full(N, 2.0)).predict_proba(few)
    again = model.fit(twice, np.concatenate([LABEL, LABEL])).predict_proba(few)
    np.testing.assert_allclose(again, said, rtol=1e-12)


@pytest.mark.usefixtures("few_trees")
def test_what_people_said_and_certificates_take_it_too(frame):
    people = Annotations.wide(np.column_stack([GIVEN, LABEL, LABEL]))
    model = RobustClassifier(by_name(), t=1.0, random_state=0).fit(frame, people)
    assert np.mean(model.consensus_ == LABEL) > 0.98
    bound = RobustClassifier(by_name(), t=1.0, random_state=0).certify(frame, LABEL)
    assert bound.predictor.score(frame, LABEL) > 0.95


def test_what_an_estimator_cannot_take_is_told_with_a_remedy(frame):
    plain = RobustClassifier(LogisticRegression(), t=1.0)
    with pytest.raises(InvalidInput, match=r"got LogisticRegression, which says: could not conv"):
        plain.fit(frame, LABEL)
    wild = pd.DataFrame({"v": [10**400, *range(N - 1)]}, dtype=object)
    with pytest.raises(InvalidInput, match=r"got LogisticRegression, which says: int too large"):
        plain.fit(wild, LABEL)
    strict = RobustClassifier(make_pipeline(OneHotEncoder(), LogisticRegression()), t=1.0)
    with pytest.raises(InvalidInput, match=r"unknown categories.*handle_unknown='ignore'"):
        strict.fit(frame[["remark"]], LABEL)
    with pytest.raises(InvalidInput, match="without rows"):
        plain.fit(frame.head(0), LABEL[:0])
    with pytest.raises(InvalidInput, match="names of their own"):
        plain.fit(pd.DataFrame(np.zeros((N, 2)), columns=["a", "a"]), LABEL)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        plain.fit(frame, LABEL[:-1])
    model = RobustClassifier(by_name(), t=1.0, random_state=0).fit(frame, LABEL)
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(frame.rename(columns={"shop": "store"}))


def test_the_remedy_is_the_one_that_helps(frame):
    scaled = make_pipeline(StandardScaler(), LogisticRegression())
    with pytest.raises(InvalidInput, match=r"contains NaN.*\. Put SimpleImputer\(\) before it"):
        RobustClassifier(scaled, t=1.0).fit(frame[["size"]], LABEL)
    plain = HistGradientBoostingClassifier(categorical_features=None)
    helps = r"Put OneHotEncoder\(handle_unknown='ignore', sparse_output=False\) before it"
    with pytest.raises(InvalidInput, match=f"got HistGradientBoostingClassifier.*{helps}"):
        RobustClassifier(plain, t=1.0).fit(TEXT, LABEL)
    late = make_pipeline(StandardScaler(), OneHotEncoder(), LogisticRegression())
    for table in (TEXT, frame[["shop"]]):
        with pytest.raises(InvalidInput, match=r"got StandardScaler, which .*make_column_transf"):
            RobustClassifier(late, t=1.0).fit(table, LABEL)


@pytest.mark.parametrize("inside", [False, True], ids=["a step", "inside a step"])
def test_the_step_that_fails_is_blamed(frame, inside):
    coder = OneHotEncoder(sparse_output=False)
    step = make_column_transformer((coder, ["remark"])) if inside else coder
    own = make_pipeline(step, HistGradientBoostingClassifier())
    helps = r"got OneHotEncoder, which says: Found unknown .* Set handle_unknown='ignore' in OneHot"
    with pytest.raises(InvalidInput, match=helps):
        RobustClassifier(own, t=1.0).fit(frame[["remark"]], LABEL)


@pytest.mark.parametrize("table", ["text", "frame", "numbers"])
def test_sparse_steps_before_one_that_wants_dense_columns(frame, table):
    """What scikit-learn refuses, and what is written first."""
    x = {"text": TEXT, "frame": frame[["shop", "remark"]], "numbers": SIZE.round()[:, None]}[table]
    coder = OneHotEncoder(handle_unknown="ignore")
    own = make_pipeline(coder, HistGradientBoostingClassifier(max_iter=20, min_samples_leaf=5))
    model = RobustClassifier(own, t=1.0, random_state=0).fit(x, LABEL)
    assert model.score(x, LABEL) > 0.7
    assert len(own.steps) == 2
    assert coder.sparse_output


def test_gaps_of_arrays_are_left_to_an_estimator_that_takes_them():
    x = np.where(np.arange(2 * N).reshape(N, 2) % 7 == 0, np.nan, np.stack([SIZE, SIZE], axis=1))
    for own in (
        HistGradientBoostingClassifier(max_iter=20),
        make_pipeline(SimpleImputer(), LogisticRegression()),
    ):
        model = RobustClassifier(own, t=1.0, random_state=0).fit(x, SIZE > 0)
        assert model.score(x, SIZE > 0) > 0.8
        people = Annotations.wide(np.stack([SIZE > 0] * 3, axis=1).astype(int))
        crowd = RobustClassifier(own, t=1.0, random_state=0).fit(x, people)
        assert np.mean(crowd.consensus_ == (SIZE > 0)) == 1
        with pytest.raises(ValueError, match="infinity"):
            RobustClassifier(own).fit(np.full((N, 1), np.inf), SIZE > 0)
    for learner, remedy in (
        (LogisticRegression(), r"SimpleImputer\(\) before it in make_pipeline"),
        ("trees", "a data frame"),
        ("auto", "a data frame"),
    ):
        with pytest.raises(InvalidInput, match=f"X must hold numbers.*NaN.*{remedy}"):
            RobustClassifier(learner).fit(x, SIZE > 0)
