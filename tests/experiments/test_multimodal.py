"""The multimodal task: its data, its start, its score, and that ensembles follow both branches."""

from dataclasses import replace

import jax
import numpy as np
import pytest
from scipy.stats import norm

from mtbayes.experiments import multimodal
from mtbayes.experiments.multimodal import LED, STUDY, MultimodalCell, chosen, explained, method
from mtbayes.experiments.results import Row, read_rows
from mtbayes.experiments.runner import How
from mtbayes.posteriors import mean_field
from mtbayes.posteriors.mixture import MixtureState
from mtbayes.predicting import predictive
from mtbayes.report import multimodal as report


def test_data_lie_on_two_branches_and_around_zero():
    rows, wrong = multimodal.draw(20_000, 0.1, 0)
    assert wrong.sum() == 2000
    a, b = rows[~wrong].T
    mean = 7 * np.sin(3 * a / 4) + a / 2
    # E b² = μ² + 1 whatever the sign; 5 standard errors of the mean of b² - μ² are below .5.
    assert np.mean(b**2 - mean**2) == pytest.approx(1, abs=0.5)
    assert np.mean(np.sign(b * mean)[abs(mean) > 4]) == pytest.approx(0, abs=0.05)
    assert np.var(rows[wrong, 1]) == pytest.approx(0.1, abs=0.016)
    assert abs(rows[:, 0]).max() < 10.5


def test_true_density_is_one_for_each_input():
    b = np.linspace(-30, 30, 601)
    density = multimodal.true_density(np.array([-3.0, 0.0, 8.0]), b)
    np.testing.assert_allclose(np.trapezoid(density, b, axis=1), 1, atol=1e-9)
    np.testing.assert_allclose(density, density[:, ::-1])  # both branches alike
    assert density[1].max() == pytest.approx(norm.pdf(0))  # they cross at a = 0


def test_draws_of_one_gaussian_fall_into_two_groups_from_the_start():
    state = multimodal.start(1, jax.random.key(0), switch=True)
    a = np.linspace(-10, 10, 41)[:, None]
    model, key = multimodal.model(), jax.random.key(1)
    means = predictive(model, mean_field(), state, a, key=key, members=200).means
    _, sizes, directions = np.linalg.svd(means - means.mean(axis=0))
    first, *rest = sizes**2
    assert first > 5 * sum(rest)  # one direction, from one group to the other
    on = (means - means.mean(axis=0)) @ directions[0] > 0
    assert 60 <= on.sum() <= 140  # as likely as not: six standard deviations
    within = max(means[on].std(axis=0).mean(), means[~on].std(axis=0).mean())
    between = abs(means[on].mean(axis=0) - means[~on].mean(axis=0)).mean()
    assert between > 2 * within  # some draws lie on the way
    # Without its uncertain bias there is one group.
    bias = multimodal.UNITS
    log_std = state.log_std.copy()
    log_std[0, bias] = -5.0
    still = MixtureState(state.mean, log_std)
    means = predictive(model, mean_field(), still, a, key=key, members=200).means
    assert means.std(axis=0).mean() < 0.2 * between


def test_kinks_are_spread_over_the_inputs():
    mean = np.asarray(multimodal.start(4, jax.random.key(0), switch=False).mean)
    weight, bias = mean[:, :50], mean[:, 50:100]
    kinks = -bias / weight
    np.testing.assert_allclose(np.quantile(kinks, [0, 0.5, 1]), [-10.5, 0, 10.5], atol=2)


def laws(n=1000, epsilon=0.1):
    """Targets beside three laws: the true one, one that has a share for outliers, a wide one."""
    rows, _ = multimodal.draw(n, epsilon, 3)
    a, b = rows.T
    mean = multimodal.branch(a)
    true = np.logaddexp(norm.logpdf(b, mean), norm.logpdf(b, -mean)) - np.log(2)
    adopting = np.logaddexp(true + np.log(0.75), norm.logpdf(b) + np.log(0.25))
    wide = np.logaddexp(norm.logpdf(b, mean, 3), norm.logpdf(b, -mean, 3)) - np.log(2)
    return b, true, adopting, wide


def test_score_prefers_the_truth_to_a_law_that_adopts_the_outliers():
    b, true, adopting, wide = laws()
    # Of the rows as they are the adopting law is the better one, which is the trap.
    assert adopting.mean() > true.mean() + 0.1
    best, shares = explained(true[None], b)
    assert best > max(explained(other[None], b)[0] for other in (adopting, wide)) + 0.05
    assert 1 - shares.sum() == pytest.approx(0.1, abs=0.035)  # three standard errors and more


def test_shares_leave_out_a_component_that_explains_outliers_alone():
    rows, _ = multimodal.draw(1000, 0.1, 3)
    a, b = rows.T
    mean = multimodal.branch(a)
    parts = np.stack([norm.logpdf(b, mean), norm.logpdf(b, -mean), norm.logpdf(b, 0 * a)])
    _, shares = explained(parts, b)
    assert shares[2] < 0.03
    np.testing.assert_allclose(shares[:2], 0.45, atol=0.06)


def test_clean_rows_are_not_called_wrong():
    b, true, *_ = laws(epsilon=0.0)
    assert 1 - explained(true[None], b)[1].sum() < 0.04


def test_the_highest_score_is_taken_whatever_the_distance():
    def fit(name, t, tv, score):
        values = {"tv": tv, "score": score, "epsilon_found": 0.1}
        settings = ("multimodal", name, "multimodal", 20, t, 1.0, 1.0, 0.1, 0)
        return [Row(*settings, metric, value) for metric, value in values.items()]

    rows = fit("K=1", 1.0, 0.3, -2.5) + fit("K=2", 0.5, 0.2, -2.1) + fit("K=4", 0.5, 0.1, -2.2)
    taken = chosen(rows, multimodal.CHOICES[0])
    assert (taken.method, taken.t, taken.tv) == ("K=2", 0.5, 0.2)


@pytest.fixture(scope="module")
def short(tmp_path_factory):
    """A run of a few steps, without the stages under wide likelihoods."""
    out = tmp_path_factory.mktemp("results")
    spec = replace(STUDY.quick, rows=250, steps=4, components=(1, 2), t_grid=(1.0, 0.9, 0.8))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(multimodal, "_WIDE", ())  # each is one more program to compile
        patch.setattr(multimodal, "_MEMBERS", 20)
        replace(STUDY, quick=spec).run(out, lambda _: None, How())
    return out


@pytest.mark.slow
def test_every_fit_has_its_rows(short):
    rows = read_rows(short / "multimodal" / "results.csv")
    fits = {(r.method, r.epsilon, r.t) for r in rows}
    led = {(method(k), e, t) for k in (1, 2) for e, t in multimodal.TABLE_2}
    assert fits == led | {("K=1, plain start", e, 1.0) for e in (0.0, 0.1)}
    assert {r.metric for r in rows} == {name for choice in multimodal.CHOICES for name in choice}
    assert all(0 <= r.value <= 1 for r in rows if not r.metric.startswith("score"))
    # Equal weights and one component: no weight to find.
    values = {(r.method, r.epsilon, r.t, r.metric): r.value for r in rows}
    assert values["K=1", 0.1, 0.9, "tv"] == values["K=1", 0.1, 0.9, "tv_weighted"]


@pytest.mark.slow
def test_figures_and_tables_are_drawn_from_the_files(short):
    paths = report.draw(short)
    assert {p.stem for p in paths} == {"fig4-multimodal", "components"}
    first, *_ = grids = report.grids(short)
    assert first.lines[1][1:] == ("1.00", "1.56", "1.36", "1.30")  # 2.15 / 1.38, …
    assert [len(g.lines) for g in grids] == [8, 2, 4, 4, 4]


@pytest.mark.slow
def test_two_components_follow_both_branches():
    cell = MultimodalCell(2, LED, (1.0, 0.8, 0.5), 0.1, 2000, 800, 1000.0, seed=0)
    found = {(r.t, r.metric): r.value for r in cell.run().rows}
    assert found[0.5, "tv"] < found[0.8, "tv"] < found[1.0, "tv"]
    assert found[0.5, "tv"] < 0.15  # one branch alone is at 0.5 and more
    assert found[0.5, "score"] > found[1.0, "score"]
    assert found[0.5, "epsilon_found"] == pytest.approx(0.1, abs=0.05)
