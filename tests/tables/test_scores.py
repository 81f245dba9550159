"""Scores that dirty rows do not turn, the judge of rows, and verdicts."""

import numpy as np
import pytest
from scipy import stats
from sklearn.metrics import roc_auc_score

from mtbayes.fitting.units import Targets
from mtbayes.tables.contenders import OURS
from mtbayes.tables.scores import ACCURACY, MEDIAN, Trial, believed, scores, verdict

from .conftest import of_labels

UNITS = Targets(0.0, 1.0, -1e300, 1e300)


def test_scores_of_classes_by_hand():
    predicted = {"0": np.array([0.9, 0.2, 1.0]), "1": np.array([0.1, 0.8, 0.0])}
    found = scores(predicted, np.array([0, 0, 1]), np.array([1.0, 1.0, 0.5]), UNITS)
    assert found["accuracy"] == pytest.approx(1 / 2.5)
    logs = np.log([0.99 * 0.9 + 0.005, 0.99 * 0.2 + 0.005, 0.005])
    assert found["log score"] == pytest.approx((logs[0] + logs[1] + 0.5 * logs[2]) / 2.5)


def test_scores_of_numbers_by_hand():
    y, mean = np.array([0.0, 1.0, 7.0]), np.array([0.5, 1.0, 2.0])
    predicted = {"mean": mean, "log_prob": stats.norm.logpdf(y, mean, 1), "low": mean - 1,
            "high": mean + 1}  # fmt: skip
    found = scores(predicted, y, np.ones(3), UNITS)
    assert found["median error"] == 0.5
    assert found["RMSE"] == pytest.approx(np.sqrt((0.25 + 25) / 3))
    assert found["90 % interval"] == pytest.approx(2 / 3)
    mixed = 0.99 * stats.norm.pdf(y, mean, 1) + 0.01 * stats.cauchy.pdf(y)
    assert found["log score"] == pytest.approx(np.log(mixed).mean())
    weighted = scores(predicted, y, np.array([1.0, 1.0, 0.0]), UNITS)
    assert weighted["RMSE"] == pytest.approx(np.sqrt(0.125))
    without = scores({"mean": mean}, y, np.ones(3), UNITS)
    assert np.isnan(without["log score"])
    assert np.isnan(without["90 % interval"])


def test_the_judge_is_all_methods_with_an_equal_say():
    y, swapped, predicted = of_labels(np.random.default_rng(0), 500)
    blind = {"0": np.full(500, 0.5), "1": np.full(500, 0.5)}
    (weight,) = believed([Trial(y, {OURS: predicted, "a": predicted, "b": blind})])
    assert roc_auc_score(swapped, -weight) > 0.9
    assert np.sum(1 - weight) == pytest.approx(swapped.sum(), rel=0.3)
    (turned,) = believed([Trial(y, {"a": predicted, OURS: blind, "c": predicted})])
    np.testing.assert_allclose(turned, weight, rtol=1e-9)
    flipped = {"0": predicted["1"], "1": predicted["0"]}  # ours alone against two
    (against,) = believed([Trial(y, {OURS: flipped, "a": predicted, "b": predicted})])
    assert roc_auc_score(swapped, -against) > 0.9


def test_wrong_numbers_are_not_believed():
    rng = np.random.default_rng(1)
    mean = rng.normal(100, 20, 200)
    y = mean + rng.normal(0, 1, 200)
    y[:10] *= 10
    near = mean + rng.normal(0, 0.1, 200)
    parts = slice(0, 80), slice(80, 200)
    tests = [Trial(y[p], {"a": {"mean": near[p]}, "b": {"mean": mean[p]}}) for p in parts]
    first, second = believed(tests)
    assert first[:10].max() < 0.01
    assert np.median(second) > 0.95
    y[:10], near[:10] = 1e30, 5e29  # a method that is as wild has not foreseen it
    (first, _) = believed(
        [Trial(y[p], {"a": {"mean": near[p]}, "b": {"mean": mean[p]}}) for p in parts]
    )
    assert first[:10].max() < 0.01


def test_verdict_is_the_corrected_resampled_t_test():
    rng = np.random.default_rng(2)
    base = rng.normal(0.8, 0.02, 6)
    for shift, seen in ((0.001, False), (0.1, True)):
        better = base + shift + rng.normal(0, 0.01, 6)
        found = verdict({OURS: base, "b": better, "c": base - 1}, ACCURACY, OURS, 1 / 3)
        gap = better - base
        t = gap.mean() / (gap.std(ddof=1) * np.sqrt(1 / 6 + 1 / 3))
        assert (2 * stats.t.sf(t, 5) < 0.05) == seen
        assert (found.best, found.other, found.beyond) == ("b", OURS, seen)
        assert found.ahead == pytest.approx(gap.mean())
    errors = {OURS: base, "b": base + 0.1, "c": np.full(6, np.nan)}
    low = verdict(errors, MEDIAN, OURS, 1 / 3)
    assert (low.best, low.other, low.beyond) == (OURS, "b", True)
    assert verdict({OURS: base[:1], "b": base[:1] - 1}, ACCURACY, OURS, 1 / 3).beyond is None
