"""Modes that each leave a fold out."""

from dataclasses import replace
from functools import cache

import jax
import numpy as np
import pytest
from scipy.special import log_softmax, logsumexp, softmax

from mtbayes.fitting import Option
from mtbayes.fitting.pooling import pool
from mtbayes.laws import WrongLabels
from mtbayes.learners import Place, network
from mtbayes.learners.folds import FOLDS, dealt, seed_of
from mtbayes.learners.network import NetworkLearner
from mtbayes.learners.pool import geometric_mean
from mtbayes.likelihoods import Categorical
from mtbayes.maths import draws
from mtbayes.models import Model
from mtbayes.networks import mlp
from mtbayes.posteriors import Particles
from mtbayes.posteriors.particles import ParticlesState
from mtbayes.predictives import ClassPredictive
from mtbayes.types import Rows

KEY = jax.random.key(3)
RNG = np.random.default_rng(0)
X = RNG.normal(size=(150, 3))
Y = (X[:, 0] * X[:, 1] > 0.0).astype(int)  # two modes hardly agree after so little training
ROWS = Rows(X, Y, np.ones(150))
FOLD = dealt(np.random.default_rng(seed_of(KEY)).permutation(150), Y)  # as a pool deals rows
MODEL = Model(mlp((3, 8, 2)), Categorical(2))


def learner(modes):
    return NetworkLearner(MODEL, Particles(modes), 1, 1.0, 50.0, 20, 50, 0.03, joint=False)


@cache
def crossing(modes):
    return learner(modes).crossed(ROWS, FOLD, 1.0, draws.child(KEY, 1))


def test_halves_of_the_modes_that_left_a_row_out():
    found = crossing(2 * FOLDS)
    halves, theta = found.halves(), found.state(Place()).mean
    assert len(halves) == 2
    for number, half in enumerate(halves):
        for k in range(FOLDS):
            own = ParticlesState(theta[[k + number * FOLDS]])  # modes come fold after fold
            said = learner(1).predictive(own, X[k == FOLD], KEY)
            np.testing.assert_allclose(half.log_probs[k == FOLD], said.log_probs, rtol=1e-5)
    mean = np.mean([half.probs for half in halves], axis=0)
    np.testing.assert_allclose(found.unseen.probs, mean, rtol=1e-5)


def test_modes_that_see_all_rows_in_the_end_were_judged_before():
    """Each mode then knows the fold better that it had left out; what was said of it stays."""
    before = crossing(FOLDS)
    after = replace(learner(FOLDS), last=0.5).crossed(ROWS, FOLD, 1.0, draws.child(KEY, 1))
    np.testing.assert_array_equal(after.unseen.log_probs, before.unseen.log_probs)
    gains = []
    for k in range(FOLDS):
        own, (x, y) = k == FOLD, (X[k == FOLD], Y[k == FOLD])
        said = [
            learner(1).predictive(ParticlesState(found.state(Place()).mean[[k]]), x, KEY)
            for found in (before, after)
        ]
        np.testing.assert_allclose(said[0].log_probs, before.unseen.log_probs[own], rtol=1e-5)
        gains.append(np.subtract(*(p.log_prob(y).mean() for p in said[::-1])))
    assert np.mean(gains) > 0.05


def test_one_mode_of_a_fold_has_no_halves():
    assert list(crossing(FOLDS).halves()) == []


def test_new_rows_of_which_all_modes_speak_have_a_law_of_their_own():
    found = crossing(2 * FOLDS)
    law = WrongLabels.fit(found.unseen, Y, ROWS.weight)
    (part,) = pool([Option(learner(2 * FOLDS), (1.0,))], ROWS, WrongLabels, KEY).learner.parts
    expected = law.of_more(found.halves(), Y, ROWS.weight)
    assert part.law.temperature == expected.temperature < law.temperature


def test_members_may_speak_by_their_geometric_mean():
    """Of rows that they left out, and of new ones; it is the same members."""
    found = crossing(2 * FOLDS)
    other, also = found.otherwise()
    assert other == replace(learner(2 * FOLDS), geometric=True)
    logs = np.mean([half.log_probs for half in found.halves()], axis=0)
    np.testing.assert_allclose(also.unseen.probs, softmax(logs, axis=1), rtol=1e-5)
    state = found.state(Place())
    np.testing.assert_array_equal(also.state(Place()).mean, state.mean)
    each = [learner(1).predictive(ParticlesState(one[None]), X, KEY) for one in state.mean]
    logs = np.mean([one.log_probs for one in each], axis=0)
    np.testing.assert_allclose(other.predictive(state, X, KEY).probs, softmax(logs, axis=1), 1e-5)


def test_means_of_members_lose_no_more_than_members_do():
    """So modes that are trained each on its own bound the log loss of either mean. The geometric
    mean's is theirs less log(1/Z), with Z the sum of geometric means over classes.
    """
    logs = log_softmax(3 * np.random.default_rng(2).normal(size=(4, 50, 6)), axis=-1)
    parts = [ClassPredictive(one, np.full(50, k)) for k, one in enumerate(logs)]
    losses, found = -logs.mean(axis=0), geometric_mean(parts)
    assert np.all(-ClassPredictive.of_members(logs).log_probs <= losses)
    gain = -logsumexp(logs.mean(axis=0), axis=-1, keepdims=True)
    assert np.all(gain > 0)
    np.testing.assert_allclose(-found.log_probs, losses - gain)
    np.testing.assert_allclose(found.aleatoric, 1.5)


def test_one_mode_a_fold_speaks_in_one_way():
    assert crossing(FOLDS).otherwise is None


@pytest.mark.parametrize("good", [False, True])
def test_a_pool_lets_members_speak_as_unseen_rows_ask_for(good, monkeypatch):
    """Of two ways, the one that explains labels better that were not learned from."""
    own = learner(2 * FOLDS)
    at = NetworkLearner._left_out

    def left_out(self, *ask):
        said = at(self, *ask)
        sure = 6.0 * (np.eye(2)[Y] - 0.5) if self.geometric and good else np.zeros((150, 2))
        return (
            said._replace(log_probs=log_softmax(said.log_probs / 9 + sure, axis=1))
            if (self.geometric)
            else said
        )

    monkeypatch.setattr(NetworkLearner, "_left_out", left_out)
    found = pool([Option(own, (1.0, 0.5))], ROWS, WrongLabels, KEY)
    assert found.learner.parts[0].learner.geometric == good


def test_modes_that_are_trained_on_without_their_fold_never_see_it():
    """Labels of a fold have no say in what is told of it, however long modes are trained."""
    own = replace(learner(2 * FOLDS), last=0.5)
    other = ROWS._replace(y=np.where(FOLD == 0, 1 - Y, Y))
    late, again = (
        own.crossed(rows, FOLD, 1.0, draws.child(KEY, 1)).late(Place())[0].log_probs
        for rows in (ROWS, other)
    )
    np.testing.assert_array_equal(late[FOLD == 0], again[FOLD == 0])
    assert not np.allclose(late[FOLD == 1], again[FOLD == 1])
    assert not np.allclose(late, crossing(2 * FOLDS).unseen.log_probs)  # they did learn on
    assert crossing(2 * FOLDS).late is None


def test_modes_that_are_trained_on_leave_few_rows_out(monkeypatch):
    """So that they have learned from nearly as many as those of the end, who see all."""
    monkeypatch.setattr(network, "_JUDGES", 60)
    own, few = replace(learner(2 * FOLDS), last=0.5), np.zeros(150, bool)

    def late(rows):
        return own.crossed(rows, FOLD, 1.0, draws.child(KEY, 1)).late(Place())

    found, judges = late(ROWS)
    few[judges] = True
    assert few.sum() == len(found.log_probs) == 60
    first = FOLD[judges] == 0
    of_judges, of_others = (
        late(ROWS._replace(y=np.where((FOLD == 0) & some, 1 - Y, Y)))[0].log_probs
        for some in (few, ~few)
    )
    # Modes that leave the fold out hear its other rows in their last epochs, and never its judges.
    np.testing.assert_array_equal(of_judges[first], found.log_probs[first])
    assert not np.allclose(of_others[first], found.log_probs[first])


def test_how_sure_new_rows_are_told_is_learned_from_modes_trained_as_long():
    own = replace(learner(2 * FOLDS), last=2.0)
    part = pool([Option(own, (1.0,))], ROWS, WrongLabels, KEY).learner.parts[0]
    found = own.crossed(ROWS, FOLD, 1.0, draws.child(KEY, 1))
    spoken = found.otherwise()[1] if part.learner.geometric else found
    late, judges = spoken.late(Place())
    assert len(judges) == len(Y)  # so few that all of them judge
    short, longer = (WrongLabels.fit(p, Y, ROWS.weight) for p in (spoken.unseen, late))
    assert longer.temperature != pytest.approx(short.temperature, rel=0.01)
    many = short.of_more(spoken.halves(), Y, ROWS.weight)
    risen = longer.temperature / short.temperature
    assert part.law.temperature == pytest.approx(many.temperature * risen, rel=1e-6)
