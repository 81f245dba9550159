"""Rows of a table, each judged by a fit that has not seen it."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import logit

from mtbayes.commands.learning import opened, rows_of
from mtbayes.commands.screen import Screen
from mtbayes.errors import InvalidInput
from mtbayes.tables.judging import judge
from mtbayes.tables.model import TableModel, TableRows, mark


@pytest.fixture(scope="module")
def rows(case):
    screen = Screen(quiet=True, as_json=False, debug=True)
    return rows_of(screen, opened(screen, case.data), TableModel.load(case.model).schema)


def test_fitted_rows_are_known_again_in_any_order(case, rows):
    model = TableModel.load(case.model)
    which = np.random.default_rng(0).permutation(case.n)[:50]
    judged, seen = judge(model, rows.take(which))
    assert seen.all()
    estimator = model.estimator
    np.testing.assert_array_equal(judged.prediction, estimator.unseen_prediction_[which])
    np.testing.assert_array_equal(judged.suspicion, estimator.suspicion_[which])
    np.testing.assert_array_equal(judged.outlier_probability, estimator.outlier_probability_[which])
    assert len(model.estimator.unseen_prediction_) == case.n  # the model itself is left alone


def test_new_rows_are_judged_by_the_final_fit(case, rows):
    model = TableModel.load(case.model)
    estimator = model.estimator
    x = rows.x.copy()
    x[:10, 0] += 1e-3
    mixed = rows._replace(x=x)
    judged, seen = judge(model, mixed)
    np.testing.assert_array_equal(np.flatnonzero(~seen), np.arange(10))
    np.testing.assert_allclose(judged.prediction[:10], estimator.predict_proba(x[:10]), rtol=1e-6)
    np.testing.assert_array_equal(judged.prediction[10:], estimator.unseen_prediction_[10:])
    # Bayes' rule from the share of the law to one half.
    odds = logit(judged.suspicion[:10]) - logit(judged.outlier_probability[:10])
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
    whole = TableRows(None, None, x, y)
    model = replace(model, seen=mark(whole))
    judged, seen = judge(
        model, TableRows(None, None, np.vstack([x[:3], [[0.123]]]), np.append(y[:3], 99))
    )
    assert seen.tolist() == [True, True, True, False]
    np.testing.assert_array_equal(judged.prediction[:3], model.estimator.unseen_prediction_[:3])
    mean, sd = model.estimator.predict([[0.123]], return_std=True)
    np.testing.assert_allclose(judged.prediction[3], [mean[0], sd[0]], rtol=1e-6)
