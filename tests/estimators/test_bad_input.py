"""Every public method on what a careless user may hand it: a clear error or a sensible answer."""

import inspect

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.linear_model import LogisticRegression

import mtbayes
from mtbayes import InvalidInput, RobustClassifier, RobustDensity, RobustRegressor
from mtbayes.fitting.choice import Candidate, View, compared
from mtbayes.fitting.units import Targets
from mtbayes.laws import WrongLabels
from mtbayes.learners import network

# One shape of rows for all tests, so that compiled programs are shared.
N = 12
PLAIN = {"m": 2, "modes": 1, "beta": 10.0}
QUICK = {"epochs": 2, "t": 0.7, "batch_size": 12, "random_state": 0}
NET = QUICK | PLAIN | {"hidden": (4,)}
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 3))
Y = X[:, 0] + 0.1 * RNG.normal(size=N)
LABELS = np.where(Y > 0, "yes", "no")
TARGETS = {RobustClassifier: LABELS, RobustRegressor: Y, RobustDensity: None}
KINDS = list(TARGETS)


def fresh(kind, **options):
    return kind(**(QUICK if kind is RobustDensity else NET) | options)


@pytest.fixture(scope="module")
def fitted():
    return {kind: fresh(kind).fit(X, y) for kind, y in TARGETS.items()}


def answers(model, x):
    """All that a fitted estimator says about rows x, and about those it was fitted to."""
    yield model.outlier_probability_
    yield model.row_weight_
    yield model.contamination_
    if isinstance(model, RobustClassifier):
        yield from (model.predict_proba(x), model.predict_log_proba(x), model.decision_function(x))
        yield from model.uncertainty(x)
        yield model.find_outliers(x, np.resize(model.classes_, len(x))).probability
    elif isinstance(model, RobustRegressor):
        yield from model.predict(x, return_std=True)
        yield from model.predict_interval(x)
        yield model.predict_quantiles(x, [0.01, 0.5])
        yield model.sample(x, 2, random_state=0)
        yield from model.find_outliers(x, np.resize([0, 1e300], len(x)))
        yield model.log_prob(x, np.resize([0, -1e300], len(x)))
    else:
        yield from (model.score_samples(x), model.sample(2, random_state=0), model.find_outliers(x))


def all_finite(model, x):
    return all(np.isfinite(answer).all() for answer in answers(model, x))


# Rows.


def spoilt(value):
    x = X.copy()
    x[1, 1] = value
    return x


def frame(kind, first):
    return kind({"a": first, "b": [1.0, 2.0], "c": [3.0, 4.0]})


BAD_ROWS = {
    "NaN": (spoilt(np.nan), "NaN"),
    "None": ([[1.0, None, 2.0]], "NaN"),
    "infinity": (spoilt(-np.inf), "infinity"),
    "too large": ([[10**400, 1, 2]], "at most 1.8e308"),
    "text": ([["a", "b", "c"]], "OneHotEncoder"),
    "objects": (X.astype(object) + np.array([[0, 0, 1j]]), "[Cc]omplex|must hold numbers|real"),
    "complex": (X + 1j, "Complex"),
    "few columns": (X[:, :2], "features"),
    "many columns": (np.hstack([X, X]), "features"),
    "one axis": (X[0], "2D array"),
    "three axes": (X[None], "dim 3"),
    "no row": (X[:0], "0 sample"),
    "nothing": (None, "2D array"),
    "sparse": (sparse.csr_matrix(X), "toarray"),
    "sparse array": (sparse.coo_array(X), "toarray"),
    "ragged": ([[1.0], [1.0, 2.0]], "inhomogeneous"),
}
DAYS = pd.DatetimeIndex(["2020-01-01", "2020-02-01"])
BAD_TABLES = {
    "pandas category": (frame(pd.DataFrame, pd.Categorical(["u", "v"])), "OneHotEncoder"),
    "pandas text": (frame(pd.DataFrame, ["u", "v"]), "OneHotEncoder"),
    "pandas missing": (frame(pd.DataFrame, pd.array([1, None], dtype="Int64")), "NaN"),
    "polars text": (frame(pl.DataFrame, ["u", "v"]), "OneHotEncoder"),
    "polars missing": (frame(pl.DataFrame, [1, None]), "NaN"),
    "pyarrow text": (frame(pa.table, ["u", "v"]), "OneHotEncoder"),
    "pyarrow missing": (frame(pa.table, [1, None]), "NaN"),
    "pandas dates": (frame(pd.DataFrame, DAYS), "Count days"),
    "pandas durations": (frame(pd.DataFrame, DAYS - DAYS[0]), "Count days"),
    "polars dates": (frame(pl.DataFrame, DAYS.date.tolist()), "Count days"),
    "pyarrow dates": (frame(pa.table, DAYS.date), "Count days"),
    "dates": (DAYS.to_numpy()[:, None], "Count days"),
}
OF_ROWS = {
    RobustClassifier: ["predict", "predict_proba", "predict_log_proba", "decision_function"],
    RobustRegressor: ["predict", "predict_interval", "sample"],
    RobustDensity: ["score_samples", "score", "find_outliers"],
}
for each in (RobustClassifier, RobustRegressor):
    OF_ROWS[each] += ["uncertainty", "predictive"]
METHODS = [(kind, name) for kind, names in OF_ROWS.items() for name in names]


@pytest.mark.parametrize("rows", BAD_ROWS)
@pytest.mark.parametrize(("kind", "method"), METHODS)
def test_methods_refuse_bad_rows(fitted, kind, method, rows):
    x, said = BAD_ROWS[rows]
    with pytest.raises((ValueError, TypeError), match=said):
        getattr(fitted[kind], method)(x)


@pytest.mark.parametrize("rows", [*BAD_ROWS, *BAD_TABLES])
@pytest.mark.parametrize("kind", KINDS)
def test_fit_refuses_bad_rows(kind, rows):
    x, said = (BAD_ROWS | BAD_TABLES)[rows]
    if "columns" in rows or (kind is not RobustDensity and rows in BAD_TABLES and rows != "dates"):
        return  # tables are coded, see test_frames
    n = x.shape[0] if hasattr(x, "shape") else 1 if x is None else len(x)
    y = None if kind is RobustDensity else np.arange(n) % 2
    if kind is RobustDensity and n == 1:
        said += "|minimum of 2"
    with pytest.raises((ValueError, TypeError), match=said):
        fresh(kind).fit(x, y)


def test_methods_with_targets_refuse_bad_rows(fitted):
    for kind, y in TARGETS.items():
        for method in ("find_outliers", "score", "log_prob"):
            if y is None or not hasattr(kind, method):
                continue
            for x, said in ((X[:, :2], "features"), (spoilt(np.nan), "NaN")):
                with pytest.raises(ValueError, match=said):
                    getattr(fitted[kind], method)(x, y)


def test_every_public_method_says_that_it_is_not_fitted(tmp_path):
    given = {"y": Y, "alpha": 0.5, "path": tmp_path / "file"}
    known = {"fit", "partial_fit", "certify", "get_params", "get_metadata_routing"}
    known |= {"fit_sample", "learned", "checked", "checked_rows", "check_parameters"}
    for kind in KINDS:
        model = kind()
        for name in dir(kind):
            method = getattr(model, name, None)  # what was learned is not there
            if name.startswith(("_", "set_")) or name in known or not callable(method):
                continue
            needed = [
                given.get(p.name, X)
                for p in inspect.signature(method).parameters.values()
                if p.default is p.empty
            ]
            with pytest.raises(NotFittedError):
                method(*needed)
    assert not list(tmp_path.iterdir())


# Rows that are odd and yet rows.


@pytest.mark.parametrize(
    "x",
    [
        X * 1e300,
        X * 1e-310,
        X * [1e-300, 1.0, 1e300],
        spoilt(1.7e308),
        np.column_stack([X[:, :2], np.full((N, 1), 1e300)]),
    ],
    ids=["1e300", "1e-310", "all scales", "one huge", "one constant"],
)
@pytest.mark.parametrize("kind", KINDS)
def test_odd_rows_give_numbers(fitted, kind, x):
    assert all_finite(fresh(kind).fit(x, TARGETS[kind]), x)
    assert all_finite(fitted[kind], x)


@pytest.mark.parametrize("value", [1.0, 1e300])
def test_density_of_one_point_is_a_number(value):
    x = np.full((N, 3), value)
    assert all_finite(fresh(RobustDensity).fit(x), x)


@pytest.mark.parametrize("kind", [RobustClassifier, RobustRegressor])
def test_numbers_among_objects_are_numbers(fitted, kind):
    expected = fitted[kind].predict(X)
    np.testing.assert_array_equal(fitted[kind].predict(X.astype(object)), expected)
    np.testing.assert_array_equal(fitted[kind].predict(X.tolist()), expected)


def test_one_row_is_enough_for_a_regressor():
    model = fresh(RobustRegressor).fit(X[:1], [5.0])
    assert all_finite(model, X)
    assert abs(model.predict(X[:1]) - 5) < 3


def test_two_rows_of_one_class_are_none_to_tell_apart():
    with pytest.raises(InvalidInput, match="2 classes, got 1 class: 'a'"):
        fresh(RobustClassifier).fit(X[:2], ["a", "a"])


ANY = st.one_of(st.floats(-1e300, 1e300), st.sampled_from([0.0, 1.0, 1e-320, 1e300, -1e300]))


@settings(max_examples=5, deadline=None)
@given(x=arrays(float, (N, 3), elements=ANY), y=arrays(float, N, elements=ANY))
def test_whatever_the_numbers_answers_are_numbers(x, y):
    assume(not 0 < np.abs(y).max() < 1e-300)
    labels = (y > np.median(y)).astype(int)
    labels[:2] = 0, 1
    x[:, 0] = np.arange(N)  # no two rows alike, so that no new program is compiled
    assert all_finite(fresh(RobustClassifier).fit(x, labels), x)
    assert all_finite(fresh(RobustRegressor).fit(x, y), x)
    assert all_finite(fresh(RobustDensity).fit(x), x)


@settings(max_examples=12, deadline=None)
@example(np.where(np.arange(3 * N).reshape(N, 3) == 0, -np.inf, 1.2e307))  # whose sum is no number
@given(arrays(float, (N, 3), elements=st.floats(allow_nan=True, allow_infinity=True)))
def test_new_rows_are_answered_or_refused(x):
    models = {kind: _once(kind) for kind in KINDS}
    for model in models.values():
        if np.isfinite(x).all():
            assert all_finite(model, x)
        else:
            with pytest.raises(ValueError, match=r"NaN|infinity"):
                list(answers(model, x))


_MODELS = {}


def _once(kind):
    """A fitted model, as a fixture that hypothesis may use."""
    if kind not in _MODELS:
        _MODELS[kind] = fresh(kind).fit(X, TARGETS[kind])
    return _MODELS[kind]


# Targets.


@pytest.mark.parametrize(
    ("y", "said"),
    [
        (np.where(Y > 1, np.nan, Y), "y contains NaN"),
        (np.where(Y > 1, np.inf, Y), "y contains infinity"),
        (np.array([None, *Y[1:]], object), "y must be finite, got nan at"),
        (LABELS, "y must hold numbers, .*'(yes|no)'. Use RobustClassifier"),
        (np.full(N, DAYS[0].to_numpy()), "y must hold numbers, got dates"),
        (LABELS.astype(object), "y must hold numbers, .*Use RobustClassifier"),
        ([10**400] * N, "y must be an array of numbers"),
        (Y + 1j, "[Cc]omplex"),
        (np.column_stack([Y, Y]), "1d array"),
        (Y[:3], "inconsistent"),
        (3.0, "1d array"),
        (None, "requires y"),
    ],
)
def test_regressor_names_bad_targets(fitted, y, said):
    for method in (fresh(RobustRegressor).fit, fitted[RobustRegressor].find_outliers):
        with pytest.raises(ValueError, match=said):
            method(X, y)


def test_density_of_bad_targets_is_refused(fitted):
    for y in (np.where(Y > 1, np.nan, Y), LABELS, [10**400] * N, Y + 1j, Y[:3]):
        with pytest.raises(InvalidInput, match="y must"):
            fitted[RobustRegressor].log_prob(X, y)


@pytest.mark.parametrize(
    ("y", "said"),
    [
        (Y, "continuous"),
        (np.array([1, "a"] * 6, object), "labels of one kind"),
        (np.array([None, "a"] * 6, object), "a label for each row"),
        (np.array(["a", None] * 6, object), "a label for each row"),
        (np.array([np.nan, "a"] * 6, object), "a label for each row"),
        (np.column_stack([LABELS, LABELS]), "1d array.*Annotations.wide"),
        (np.array([b"a", b"b"] * 6), "bytes"),
        (LABELS[:3], "inconsistent"),
        (None, "requires y"),
    ],
)
def test_classifier_names_bad_labels(y, said):
    with pytest.raises((ValueError, TypeError), match=said):
        fresh(RobustClassifier).fit(X, y)


@pytest.mark.parametrize(
    "y", [np.arange(N), np.array([1, "yes"] * 6, object), np.array([b"no", "yes"] * 6, object)]
)
def test_labels_of_another_kind_are_unknown(fitted, y):
    with pytest.raises(InvalidInput, match=r"labels seen before, got (0|1|b'no')"):
        fitted[RobustClassifier].find_outliers(X, y)


def test_classes_that_are_refused_leave_the_fit_as_it_was():
    model = fresh(RobustClassifier, warm_start=True).fit(X, LABELS)
    before = model.predict(X)
    with pytest.raises(InvalidInput, match="2 classes"):
        model.fit(X, ["yes"] * N)
    with pytest.raises(InvalidInput, match=r"'no', 'yes', got 'maybe', 'yes'.*warm_start=False"):
        model.fit(X, np.where(LABELS == "no", "maybe", LABELS))
    with pytest.raises(InvalidInput, match=r"classes must hold.*'no', 'yes', got 'maybe', 'no'"):
        model.partial_fit(X, LABELS, classes=["no", "maybe"])
    np.testing.assert_array_equal(model.predict(X), before)


@pytest.mark.parametrize("top", [1e-310, 1.7e308])
def test_targets_that_no_arithmetic_can_carry_are_refused(top):
    with pytest.raises(InvalidInput, match=r"y must hold numbers of at (most|least) 1e[+-]300"):
        fresh(RobustRegressor).fit(X, np.resize([0.7, 0.5, 1.0, 0.6], N) * top)


@pytest.mark.parametrize("what", ["X", "y", "sample_weight"])
def test_masked_values_are_refused(what):
    given = {"X": X, "y": TARGETS[RobustRegressor], "sample_weight": np.ones(N)}
    given[what] = np.ma.masked_equal(given[what], given[what].flat[3])
    with pytest.raises(InvalidInput, match=f"{what} must have a value everywhere"):
        fresh(RobustRegressor).fit(**given)


@pytest.mark.parametrize("top", [1e-290, 1e300])
def test_targets_of_any_size_have_finite_predictions(top):
    y = np.resize([0.3, 0.5, 1.0, 0.1], N) * top  # of one sign: scikit-learn adds them up
    model = fresh(RobustRegressor).fit(X, y)
    mean, std = model.predict(X, return_std=True)
    assert np.isfinite(mean).all()
    assert (std > 0).all()
    assert np.isfinite(std).all()
    np.testing.assert_allclose(model.predictive(X).std, std, rtol=1e-6)
    assert np.isfinite(model.log_prob(X, y)).all()
    assert not np.isnan(model.uncertainty(X)).any()


def test_wild_targets_are_as_good_as_1e300():
    found = Targets.of(np.array([-1.7e308, 1.7e308, 0.0]))
    assert np.isfinite(found).all()
    assert Targets(0.0, 1e300, -1e300, 1e300).apply(1.7e308) == 1


# Weights.


@pytest.mark.parametrize(
    ("weight", "said"),
    [
        (np.zeros(N), "0 for all rows|non-zero|sample_weight"),
        (-np.ones(N), "[Nn]egative"),
        (np.append(-1.0, np.ones(N - 1)), "[Nn]egative"),
        (np.append(np.nan, np.ones(N - 1)), "NaN"),
        (np.append(np.inf, np.ones(N - 1)), "infinity"),
        (np.full(N, 1e300), "sum must lie between"),
        (np.full(N, 1.7e308), "sum must lie between|infinity"),
        (np.full(N, 1e-300), "sum must lie between"),
        ([10**400] * N, "sample_weight must hold numbers"),
        (np.ones(3), "shape"),
        (np.ones((N, 1)), "1D"),
        (["a"] * N, "could not convert"),
    ],
)
@pytest.mark.parametrize("kind", KINDS)
def test_bad_weights_are_refused(kind, weight, said):
    with pytest.raises(ValueError, match=said):
        fresh(kind).fit(X, TARGETS[kind], sample_weight=weight)


@pytest.mark.parametrize("kind", KINDS)
def test_weights_that_leave_little_still_give_numbers(kind):
    weight = np.full(N, 1e-9)
    weight[:2] = 1e6, 1e6
    assert all_finite(fresh(kind).fit(X, TARGETS[kind], sample_weight=weight), X)


# A law that holds every row for wrong.


@pytest.mark.parametrize("wrong", [1.0, 1 + 1e-15, 1 - 1e-15])
def test_t_is_chosen_where_no_row_looks_good(wrong):
    law = WrongLabels()
    views = [View(law, np.zeros(3), np.full(3, good), np.full(3, wrong)) for good in (-2.0, -1.0)]
    learner = fresh(RobustClassifier).fit(X, LABELS).fitted_.learner
    candidates = [Candidate(learner, t) for t in (1.0, 0.5)]
    taken, table = compared(candidates, views, np.ones(3), lambda _: True)
    assert taken == 1
    assert [row["score"] for row in table] == [-2, -1]


# Parameters and arguments.

NO_NUMBER = ["banana", None, [1], (), np.array([0.5, 0.6]), 1j, b"x", np.nan, np.inf, -1]
NO_COUNT = [*NO_NUMBER, 0, 2.5, 10**400, True, 1e300]
BAD_PARAMETERS = {
    "t": [*NO_NUMBER, 1.5, 10**400],
    "t_p": [*NO_NUMBER, 0, 10**400, 1e300],
    "beta": [*NO_NUMBER, 0, 10**400, 1e-300],
    "learning_rate": [*NO_NUMBER, 0, 10**400, 1.5],
    "m": NO_COUNT,
    "epochs": NO_COUNT,
    "batch_size": NO_COUNT,
    "components": NO_COUNT,
    "hidden": ["banana", None, 5, (0,), (2.5,), (None,)],
    "posterior": ["banana", None, 3, []],
    "noise": ["banana", None, 3],
    "network": ["banana", None, 3, (), [1], 1j],
}


@pytest.mark.parametrize("name", BAD_PARAMETERS)
@pytest.mark.parametrize("kind", KINDS)
def test_bad_parameters_are_named(kind, name):
    if name not in kind().get_params():
        return
    for value in BAD_PARAMETERS[name]:
        with pytest.raises(InvalidInput, match=f"^{name} must"):
            fresh(kind, **{name: value}).fit(X, TARGETS[kind])


@pytest.mark.parametrize("kind", [RobustClassifier, RobustDensity])
def test_a_fit_that_failed_says_so(monkeypatch, kind):
    solve = network.run

    def failing(*args, **options):
        found = solve(*args, **options)
        return found._replace(status=found.status._replace(converged=False, sentence="It broke."))

    monkeypatch.setattr(network, "run", failing)
    with pytest.warns(ConvergenceWarning, match="It broke"):
        fresh(kind).fit(X, TARGETS[kind])


@pytest.mark.parametrize("value", ["banana", None, -1, 0, 1, 2, np.nan, [], 1j, 10**400])
def test_bad_arguments_are_named(fitted, value):
    model = fitted[RobustRegressor]
    with pytest.raises(InvalidInput, match=r"^alpha must"):
        model.predict_quantiles(X, value)
    if value != 0:  # an interval that holds nothing
        with pytest.raises(InvalidInput, match=r"^coverage must"):
            model.predict_interval(X, value)
    if value not in (1, 2):
        with pytest.raises(InvalidInput, match=r"^size must"):
            model.sample(X, value)
        with pytest.raises(InvalidInput, match=r"^n_samples must"):
            fitted[RobustDensity].sample(value)


# Images.


@pytest.fixture(scope="module")
def seen():
    images = RNG.normal(size=(N, 8, 8))
    options = NET | {"network": "cnn"}
    return images, RobustClassifier(**options).fit(images, LABELS), RobustClassifier(**options)


def test_images_of_other_shapes_are_refused(seen):
    images, model, unfitted = seen
    np.testing.assert_array_equal(model.predict(images[..., None]), model.predict(images))
    for x in (
        np.zeros((3, 9, 8)),
        np.zeros((3, 8, 9)),
        np.zeros((3, 8, 8, 3)),
        np.zeros((3, 8, 8, 1, 1)),
        images.reshape(N, -1),
        np.zeros((3, 8, 0)),
        np.full((3, 8, 8), np.nan),
        sparse.csr_matrix(images.reshape(N, -1)),
    ):
        with pytest.raises((ValueError, TypeError)):
            model.predict_proba(x)
    for shape in ((N, 64), (N, 4, 4), (N, 0, 8, 1), (N, 8, 8, 0)):
        with pytest.raises(ValueError, match=r"images|X must not be empty|0 feature"):
            unfitted.fit(np.zeros(shape), LABELS)


# Files.


def test_what_is_no_model_file_is_refused(tmp_path, fitted):
    path = tmp_path / "model"
    for content in (b"", b"\0" * 8, b"\xff" * 64, b"{}", np.arange(9.0).tobytes()):
        path.write_bytes(content)
        with pytest.raises(InvalidInput, match="not written by mtbayes"):
            mtbayes.load(path)
    fitted[RobustRegressor].save(path)
    whole = path.read_bytes()
    for old, new in (
        (b'"version"', b'"vorsion"'),
        (b'"version":"', b'"version":"x'),
        (b'"settings"', b'"sottings"'),
    ):
        path.write_bytes(whole.replace(old, new)[: len(whole)])
        with pytest.raises(InvalidInput):
            mtbayes.load(path)
    for place in range(8, len(whole), len(whole) // 40):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 4]) + whole[place + 1 :])
        with pytest.raises(InvalidInput):
            mtbayes.load(path)
        path.write_bytes(whole[:place])
        with pytest.raises(InvalidInput):
            mtbayes.load(path)


def test_masks_are_not_ignored_in_what_is_beside_the_rows():
    x, y = np.arange(20.0)[:, None], np.resize(["a", "b"], 20)
    model = RobustClassifier(LogisticRegression(), t=1.0).fit(x, y)
    masked = np.ma.masked_array(np.ones(20, bool), np.arange(20) == 3)
    with pytest.raises(InvalidInput, match="trusted must have a value everywhere"):
        model.fit(x, y, trusted=masked)
    with pytest.raises(InvalidInput, match="y must have a value everywhere"):
        model.score(x, np.ma.masked_array(y, masked.mask))


def test_labels_beyond_64_bits_are_told_how_to_be_written():
    x = np.arange(20.0)[:, None]
    with pytest.raises(InvalidInput, match="Write them as text"):
        RobustClassifier(LogisticRegression(), t=1.0).fit(x, [10**20, 10**20 + 1] * 10)
    found = RobustClassifier(LogisticRegression(), t=1.0).fit(
        x, [str(10**20), str(10**20 + 1)] * 10
    )
    assert found.classes_.tolist() == [str(10**20), str(10**20 + 1)]


def test_two_numbers_alone_are_told_to_a_regressor():
    x = np.random.default_rng(0).normal(size=(60, 2))
    model = RobustRegressor(learner="linear", random_state=0)
    with pytest.warns(UserWarning, match="y holds two numbers alone, 0 and 1"):
        model.fit(x, (x[:, 0] > 0) * 1.0)
