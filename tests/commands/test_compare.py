"""`mtbayes compare`: splits, scores that dirty rows do not turn, verdicts, and how it stops."""

import csv
import json

import joblib
import numpy as np
import pytest
from scipy import stats
from scipy.special import expit
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import roc_auc_score

from mtbayes.commands import methods
from mtbayes.commands.compare import ALL, BELIEVED, Comparison, cells_of, split
from mtbayes.commands.methods import METHODS, OURS, Task, network
from mtbayes.commands.model import Settings
from mtbayes.commands.scores import ACCURACY, MEDIAN, Trial, believed, scores, verdict
from mtbayes.estimators.scaling import Targets

UNITS = Targets(0.0, 1.0)


def forest(task):
    model = RandomForestClassifier(5, random_state=task.settings.seed).fit(task.x, task.y)
    return dict(zip("01", model.predict_proba(task.x_test).T, strict=True))


def prior(task):
    share = np.bincount(task.y, minlength=2) / len(task.y)
    return {str(c): np.full(len(task.x_test), share[c]) for c in (0, 1)}


@pytest.fixture
def cheap(monkeypatch):
    """Two methods that cost nothing."""
    monkeypatch.setattr(methods, "METHODS", {OURS: (forest, 1.0), "prior": (prior, 1.0)})


def read(path):
    with path.open() as file:
        return list(csv.DictReader(file))


# Splits.


def test_a_quarter_of_every_class_is_tested():
    y = np.repeat([0, 1, 2], [40, 37, 2])
    parts = [split(y, 3, 0, r) for r in range(4)]
    for part in parts:
        assert len(part) in (19, 20)
        counts = np.bincount(y[part], minlength=3)
        np.testing.assert_allclose(counts, np.bincount(y) / 4, atol=1)
        assert counts[2] < 2  # one is left to learn from
    assert len({tuple(part) for part in parts}) == 4
    np.testing.assert_array_equal(parts[0], split(y, 3, 0, 0))


# Scores.


def test_scores_of_classes_by_hand():
    told = {"0": np.array([0.9, 0.2, 1.0]), "1": np.array([0.1, 0.8, 0.0])}
    found = scores(told, np.array([0, 0, 1]), np.array([1.0, 1.0, 0.5]), UNITS)
    assert found["accuracy"] == pytest.approx(1 / 2.5)
    logs = np.log([0.99 * 0.9 + 0.005, 0.99 * 0.2 + 0.005, 0.005])
    assert found["log score"] == pytest.approx((logs[0] + logs[1] + 0.5 * logs[2]) / 2.5)


def test_scores_of_numbers_by_hand():
    y, mean = np.array([0.0, 1.0, 7.0]), np.array([0.5, 1.0, 2.0])
    told = {"mean": mean, "log_prob": stats.norm.logpdf(y, mean, 1), "low": mean - 1,
            "high": mean + 1}  # fmt: skip
    found = scores(told, y, np.ones(3), UNITS)
    assert found["median error"] == 0.5
    assert found["RMSE"] == pytest.approx(np.sqrt((0.25 + 25) / 3))
    assert found["90 % interval"] == pytest.approx(2 / 3)
    mixed = 0.99 * stats.norm.pdf(y, mean, 1) + 0.01 * stats.cauchy.pdf(y)
    assert found["log score"] == pytest.approx(np.log(mixed).mean())
    weighted = scores(told, y, np.array([1.0, 1.0, 0.0]), UNITS)
    assert weighted["RMSE"] == pytest.approx(np.sqrt(0.125))
    without = scores({"mean": mean}, y, np.ones(3), UNITS)
    assert np.isnan(without["log score"])
    assert np.isnan(without["90 % interval"])


def of_labels(rng, n):
    """Labels, a tenth of them swapped, and a method that knows the true probabilities."""
    p = expit(6 * rng.normal(size=n))
    true = (rng.random(n) < p).astype(int)
    swapped = rng.random(n) < 0.1
    return np.where(swapped, 1 - true, true), swapped, {"0": 1 - p, "1": p}


def test_the_judge_is_all_methods_with_an_equal_say():
    y, swapped, told = of_labels(np.random.default_rng(0), 500)
    blind = {"0": np.full(500, 0.5), "1": np.full(500, 0.5)}
    (weight,) = believed([Trial(y, {OURS: told, "a": told, "b": blind})])
    assert roc_auc_score(swapped, -weight) > 0.9
    assert np.sum(1 - weight) == pytest.approx(swapped.sum(), rel=0.3)
    (turned,) = believed([Trial(y, {"a": told, OURS: blind, "c": told})])
    np.testing.assert_allclose(turned, weight, rtol=1e-9)
    flipped = {"0": told["1"], "1": told["0"]}  # ours alone against two
    (against,) = believed([Trial(y, {OURS: flipped, "a": told, "b": told})])
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


def test_it_says_so_when_ours_loses():
    rng = np.random.default_rng(3)
    tests = []
    for _ in range(5):
        y, _, told = of_labels(rng, 100)
        tests.append(Trial(y, {OURS: {"0": told["1"], "1": told["0"]}, "a": told, "b": told}))
    found = Comparison.of(tests, 400)
    first, second = found.words()
    assert first.startswith("Best by accuracy: a (")
    assert "ahead of mtbayes by" in first
    assert first.endswith("more than splits scatter.")
    assert "log score" in second
    np.testing.assert_array_less(
        found.values[ALL]["a"]["log score"], found.values[BELIEVED]["a"]["log score"]
    )


# Methods.


def test_a_network_of_numbers_is_a_gaussian_in_the_units_of_the_target():
    x = np.linspace(-1, 1, 60)[:, None]
    y = 1000 + 50 * x[:, 0] + np.random.default_rng(0).normal(0, 5, 60)
    told = network(1)(Task(x[::2], y[::2], x[1::2], y[1::2], 0, Settings("auto", 3, 60, 0)))
    std = (told["high"] - told["low"]) / (2 * stats.norm.ppf(0.95))
    np.testing.assert_allclose(
        told["log_prob"], stats.norm.logpdf(y[1::2], told["mean"], std), rtol=1e-3
    )
    assert np.abs(told["mean"] - y[1::2]).mean() < 20


def test_wild_values_and_classes_that_were_not_met():
    x = np.array([[1e300], [-1e300], [0.0], [1.0]] * 10)
    y = np.array([0, 2, 0, 2] * 10)
    for name in ("random forest", "gradient boosting"):
        told = METHODS[name][0](Task(x, y, x[:4], y[:4], 3, Settings("auto", 3, 5, 0)))
        assert list(told) == ["0", "1", "2"]
        assert told["1"].max() == 0
        np.testing.assert_allclose(sum(told.values()), 1)


# The command.


@pytest.mark.slow
def test_all_methods_side_by_side(case):
    out = case.folder / "compared.csv"
    arguments = ["compare", case.data, "--target", "label", "-o", out, "--repeats", "2"]
    result = case.run(*arguments, *case.quick)
    assert result.exit_code == 0, result.output
    said = " ".join(result.stdout.split())
    assert "2 random splits: 90 rows to learn from, 30 to be judged by" in said
    assert "Its judge is the mean of all methods" in said
    assert result.stdout.splitlines()[-1].startswith("Best by accuracy: ")
    rows = read(out)
    assert tuple(rows[0]) == ("rows", "method", "score", "split", "value")
    assert {row["method"] for row in rows} == set(METHODS)
    assert len(rows) == 2 * len(METHODS) * 2 * 2
    right = [float(r["value"]) for r in rows if r["score"] == "accuracy" and r["rows"] == ALL]
    assert min(right) > 0.6
    assert not (case.folder / "compared.csv.partial").exists()


def test_ctrl_c_keeps_what_is_done_and_resume_goes_on(case, cheap, monkeypatch):
    whole, out = case.folder / "whole.csv", case.folder / "stopped.csv"
    arguments = ["compare", case.data, "--target", "label", "--repeats", "3"]
    assert case.run(*arguments, "-o", whole).exit_code == 0
    calls = []

    def stops(task):
        calls.append(task)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return forest(task)

    with monkeypatch.context() as patch:
        patch.setitem(methods.METHODS, OURS, (stops, 1.0))
        result = case.run(*arguments, "-o", out)
    assert result.exit_code == 130
    assert "--resume" in result.output
    assert not out.exists()
    cells = case.folder / "stopped.csv.partial"
    assert len(list(cells.glob("*.json"))) == 2
    with monkeypatch.context() as patch:
        patch.setitem(methods.METHODS, OURS, (lambda t: calls.append(t) or forest(t), 1.0))
        assert case.run(*arguments, "-o", out, "--resume").exit_code == 0
    assert len(calls) == 4  # one of three splits had been learned
    assert out.read_text() == whole.read_text()
    assert not cells.exists()


def test_for_machines(case, cheap):
    out = case.folder / "machines.csv"
    arguments = ["compare", case.data, "--target", "label", "-o", out, "--repeats", "2"]
    found = json.loads(case.run(*arguments, "--json").stdout)
    accuracy = [
        float(r["value"])
        for r in read(out)
        if (r["rows"], r["method"], r["score"]) == (ALL, OURS, "accuracy")
    ]
    told = found["scores"][ALL][OURS]["accuracy"]
    assert told["mean"] == pytest.approx(np.mean(accuracy))
    assert told["sd"] == pytest.approx(np.std(accuracy, ddof=1))
    assert [entry["score"] for entry in found["best"]] == ["accuracy", "log score"]
    assert found["best"][0]["best"] == OURS
    assert case.run(*arguments, "--quiet", "--force").output == ""
    assert case.run(*arguments).exit_code == 2  # it exists


def test_cells_run_wherever_joblib_is_told_to(case, cheap):
    from mtbayes.experiments.runner import compute

    x = np.random.default_rng(0).normal(size=(80, 2))
    y = (x[:, 0] > 0).astype(int)
    cells = cells_of(x, y, 2, 2, Settings("auto", 3, None, 0))
    with joblib.parallel_config(backend="threading", n_jobs=2):
        shared = compute(cells, case.folder / "threads", lambda *_: None)
    alone = compute(cells, case.folder / "alone", lambda *_: None, 1)
    assert [c["tables"] for c in shared] == [c["tables"] for c in alone]
    other = cells_of(x + 1, y, 2, 2, Settings("auto", 3, None, 0))
    compute(other, case.folder / "alone", lambda *_: None, 1)
    assert len(list((case.folder / "alone").glob("*.json"))) == 8  # other rows, other cells


@pytest.mark.parametrize(
    ("labels", "said"),
    [(["a", "b"] * 5, "at least 20 rows"), ([*"ab", *"c" * 30], "at least 2 classes")],
)
def test_files_that_cannot_be_split(case, labels, said):
    path = case.write("small.csv", ["x,y", *(f"{i % 7},{v}" for i, v in enumerate(labels))])
    result = case.run("compare", path, "--target", "y", "-o", case.folder / "never.csv")
    assert result.exit_code == 1
    assert said in result.output
