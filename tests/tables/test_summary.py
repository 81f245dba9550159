"""What was learned from a table, in numbers."""

import numpy as np
import pytest

from mtbayes.tables.model import TableModel, TableRows
from mtbayes.tables.summary import unseen_scores


def test_scores_of_rows_that_were_held_out(case):
    model = TableModel.load(case.model)
    rows = TableRows(None, None, None, case.label)
    scores = unseen_scores(model, rows, model.estimator.fitted_.training)
    hit = model.estimator.classes_[model.estimator.unseen_prediction_.argmax(axis=1)] == case.label
    assert scores["accuracy of all rows"] == pytest.approx(np.mean(hit))
    good = 1 - model.estimator.outlier_probability_
    assert scores["accuracy"] == pytest.approx(np.sum(hit * good) / np.sum(good))
    assert scores["accuracy of all rows"] < scores["accuracy"]  # a tenth is swapped
