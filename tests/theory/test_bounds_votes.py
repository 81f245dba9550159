from typing import NamedTuple

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from mtbayes.likelihoods import Categorical
from mtbayes.maths import log_t
from mtbayes.members import Points
from mtbayes.models import Model
from mtbayes.networks import mlp
from mtbayes.theory.bounds import log_t_span, pac_bayes
from mtbayes.theory.sampling import divergence, log_ratio, log_t_loss, mean_losses, wrong
from mtbayes.theory.votes import joint_doubt, log_t_factor, margin_for, order_factor, times


class State(NamedTuple):
    mean: np.ndarray
    log_std: np.ndarray


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 10_000), st.floats(0.05, 5), st.floats(0, 0.95))
def test_relations_bound_the_error_of_the_whole_ensemble(seed, concentration, t):
    random = np.random.default_rng(seed)
    probs = random.dirichlet([concentration] * 3, size=(4, 50))  # members, rows, classes
    q, y = random.dirichlet(np.ones(4)), random.integers(3, size=50)
    whole = np.tensordot(q, probs, 1)
    error = np.mean(whole.argmax(axis=1) != y)
    own = np.maximum(probs[:, np.arange(50), y], 1e-30)
    first = order_factor(1) * q @ (1 - own).mean(axis=1)
    pairs = np.array([[joint_doubt(np.log([a, b])).mean() for b in own] for a in own])
    second = order_factor(2) * q @ pairs @ q
    by_log_t = log_t_factor(t) * np.mean(-log_t(q @ own, t))
    for bound in (first, second, by_log_t):
        assert error <= bound + 1e-5
    assert second == pytest.approx(np.mean((2 * (1 - q @ own)) ** 2), rel=1e-4)


def test_sure_members_of_an_ensemble_that_errs_are_as_rare_as_the_margin_says():
    random, members, share, delta = np.random.default_rng(0), 40, 0.2, 0.1
    margin = margin_for(members, share, delta)
    assert np.exp(-members * margin**2 / 2) / delta == pytest.approx(share)
    # The whole ensemble is just undecided; members are all for or all against the label.
    sure = [np.mean(random.random(members) < 0.5) * 2 - 1 > margin for _ in range(20_000)]
    assert 0 < np.mean(sure) <= share * delta


def test_a_factor_multiplies_what_adds_up_and_nothing_else():
    bound = pac_bayes(np.linspace(0.1, 0.2, 50), 2.0, 300)
    twice = times(bound, 2.0, "the error rate of all")
    assert twice.value == 2 * bound.value
    assert twice.terms["for complexity"] == 2 * bound.terms["for complexity"]
    assert twice.terms["rows"] == 300
    assert "the error rate of all" in twice.statement


def test_an_error_rate_by_another_loss_is_one_from_0_to_1():
    """The factor may make a bound vacuous, and clean rows have errors of 0 to 1, not log_t's."""
    loss = pac_bayes(1.2, 2.0, 300, span=log_t_span(0.5), of="the log_t loss")
    error = times(loss, log_t_factor(0.5), "the error rate of all")
    assert "says nothing" in error.statement
    assert (error.terms["least loss"], error.terms["largest loss"]) == (0, 1)


@pytest.fixture(scope="module")
def two():
    random = np.random.default_rng(1)
    q = State(random.normal(size=(2, 15)), random.normal(-1, 0.1, size=(2, 15)))
    p = State(q.mean + 0.1 * random.normal(size=(2, 15)), q.log_std + 0.2)
    return q, p


def test_density_ratio_of_stratified_members_and_its_mean_the_divergence(two):
    q, p = two
    random, ratios = np.random.default_rng(2), []
    for _ in range(3000):
        theta = q.mean[[0, 1, 0, 1]] + np.exp(q.log_std[[0, 1, 0, 1]]) * random.normal(size=(4, 15))
        ratios.append(log_ratio(theta, q, p))
    by_hand = sum(
        norm.logpdf(theta[j], s.mean[j % 2], np.exp(s.log_std[j % 2])).sum() * sign
        for j in range(4)
        for s, sign in ((q, 1), (p, -1))
    )
    assert ratios[-1] == pytest.approx(by_hand)
    error = np.std(ratios) / np.sqrt(len(ratios))
    assert np.mean(ratios) == pytest.approx(4 * divergence(q, p), abs=4 * error)
    assert divergence(q, q) == pytest.approx(0, abs=1e-12)


def test_monte_carlo_values_have_the_empirical_risk_as_their_mean(two):
    """Members without spread, one of each component, on few rows: every value is the risk."""
    model = Model(mlp((2, 3, 2)), Categorical(2))
    random = np.random.default_rng(3)
    x = random.normal(size=(20, 2)).astype(np.float32)
    y = np.append(random.integers(2, size=19), -1).astype(np.int32)  # -1: no class has it
    state = State(random.normal(size=(2, model.size)).astype(np.float32), np.full((2, 17), -30.0))
    outputs, _ = model.outputs(Points(state.mean), x)
    probs = np.asarray(jax.nn.softmax(outputs)).mean(axis=0)
    own = np.where(y < 0, 0, probs[np.arange(20), y])
    expected = {wrong: np.mean(probs.argmax(axis=1) != y), log_t_loss(0.5): 2 - 2 * np.sqrt(own)}
    for loss, value in expected.items():
        found = mean_losses(model, loss, state, x, y, members=2, key=jax.random.key(0))
        np.testing.assert_allclose(found, np.mean(value), rtol=1e-5)
