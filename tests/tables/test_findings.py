"""Rows from the most suspicious to the least, and the harm that each does."""

import numpy as np
import pytest
from scipy.special import expit, logit

from mtbayes.tables.findings import findings, with_influence
from mtbayes.tables.model import TableModel, TableRows


def test_a_known_share_moves_the_odds_by_bayes_rule(case):
    model = TableModel.load(case.model)
    judged = model.estimator.fitted_.training
    estimated, expected = (findings(model, case.label, judged, e) for e in (None, 0.3))
    np.testing.assert_array_equal(estimated.order, expected.order)
    shift = logit(0.3) - logit(model.estimator.law_.epsilon)
    np.testing.assert_allclose(
        expected.probability, expit(logit(estimated.probability) + shift), rtol=1e-6, atol=1e-12
    )
    np.testing.assert_allclose(
        estimated.probability, model.estimator.outlier_probability_[estimated.order], atol=1e-9
    )


def test_a_given_label_that_stands_against_a_likelier_one_says_why(case):
    model = TableModel.load(case.model)
    judged = model.estimator.fitted_.training
    found = findings(model, case.label, judged, 1e-6)
    likelier = [text for text in found.why if text.count("%") > 1]
    assert likelier
    assert all(text.endswith("stands") for text in likelier)
    assert found.suggested == found.given
    moved = findings(model, case.label, judged, 0.5)
    assert moved.suggested[0] != moved.given[0]
    assert not moved.why[0].endswith("stands")


def test_numbers_are_judged_by_their_distance(numbers):
    model, _, y = numbers
    found = findings(model, y, model.estimator.fitted_.training, 0.01)
    assert found.order[0] == 7
    assert "sd above what the other rows suggest" in found.why[0]
    assert found.suggested[0] == pytest.approx(model.estimator.unseen_prediction_[7, 0], rel=1e-4)
    assert found.given[0] == 130


def test_influence_is_the_harm_to_the_least_suspicious_rows(numbers):
    model, x, y = numbers
    ranked = findings(model, y, model.estimator.fitted_.training)
    found, trusted = with_influence(model, TableRows(None, None, x, y), ranked)
    p = model.estimator.outlier_probability_
    judges = p <= max(0.05, np.median(p))
    assert trusted == judges.sum()
    assert len(y) / 2 <= trusted < len(y)
    expected = model.estimator.influence(x[judges], y[judges]).harm
    np.testing.assert_array_equal(found.influence, expected[found.order])
