"""Estimators of several modes: which are chosen, and that all that holds for one holds for them."""

import jax
import numpy as np
import pytest
from sklearn.datasets import load_wine

import mtbayes
from mtbayes import Criterion, InvalidInput, Mixture, Particles, RobustClassifier, RobustRegressor
from mtbayes.data.contamination import flip_labels
from mtbayes.fitting import choice
from mtbayes.learners.network import NetworkLearner

QUICK = {"hidden": (8,), "epochs": 10, "t": 0.7, "random_state": 0}


@pytest.fixture(scope="module")
def wine():
    x, y = load_wine(return_X_y=True)
    return x, y, flip_labels(y, 0.2, seed=1).data


@pytest.fixture(scope="module")
def fitted(wine):
    return RobustClassifier(**QUICK, m=1, modes=4).fit(wine[0], wine[2])


def learners(model, width=3):
    return model._learners((width,), np.array([0, 1]), spread=False)


def test_settings_that_are_left_to_us():
    def found(model):
        return {(e.m, e.posterior, e.joint, e.width) for e in learners(model)}

    points = Particles(10)
    assert found(RobustClassifier()) == {
        (1, points, False, 1.0), (1, points, False, 0.5), (1, points, False, 0.3),
        (10, points, True, 1.0),
    }  # fmt: skip
    assert found(RobustRegressor()) == {(10, Mixture(1), True, 2.0), (10, Mixture(1), True, 0.3)}
    assert found(RobustClassifier(beta=7.0, m=1)) == {(1, points, False, 1.0)}
    assert {e.beta for e in learners(RobustClassifier(beta=7.0))} == {7.0}
    assert {e.beta for e in learners(RobustRegressor())} == {500.0}


def test_networks_of_images_have_one_prior():
    def widths(**given):
        model = RobustClassifier(network="cnn", **given)
        [option] = model._options((100, 8, 8, 1), np.arange(3))
        return [each.width for each in (option.learner, *option.others)]

    assert widths() == [0.3]
    assert widths(beta=7.0) == [1.0]  # what beta is relative to


@pytest.mark.parametrize(
    ("m", "modes", "k"), [(1, 10, 10), (3, 10, 9), (4, 10, 8), (7, 10, 7), (20, 10, 10), (5, 1, 1)]
)
def test_m_that_is_given_has_as_many_modes_as_it_can_be_shared_out_over(m, modes, k):
    posterior = learners(RobustClassifier(m=m, modes=modes))[0].posterior
    assert posterior.components == k
    # More members than points: copies would say nothing new, Gaussians do.
    assert isinstance(posterior, Mixture if m > k else Particles)


@pytest.mark.parametrize(("bad", "other"), [((1.0, 0.5), 0.3), ((0.3, 0.5), 1.0)])
def test_the_setting_that_explains_a_fold_is_taken(wine, monkeypatch, bad, other):
    """A learner that was spoiled is not: unseen rows decide, not the order of the settings."""
    x, _, y = wine
    real, spoiled = NetworkLearner.unseen, []

    def unseen(self, *arguments, **named):
        found = real(self, *arguments, **named)
        if self.width in bad and self.effort < 1:
            spoiled.append(self)
            found = [p._replace(log_probs=np.full_like(p.log_probs, -np.log(3))) for p in found]
        return found

    monkeypatch.setattr(NetworkLearner, "unseen", unseen)
    model = RobustClassifier(**QUICK | {"epochs": 40}, m=1, modes=2).fit(x, y)
    assert model.fitted_.learner.width == other
    assert model.fitted_.learner.effort == 1  # in full afterwards
    assert len(spoiled) == 2


def test_the_look_costs_less_than_half_of_a_fit():
    model = RobustClassifier(m="auto", t=0.7)
    every = learners(model, 20)
    for rows in (200, 2000, 20_000):
        brief = sum(e.brief().passes(rows) for e in every)
        # Of four folds in five, and with a second t for a fifth of the epochs.
        assert 0.8 * 1.2 * brief <= 0.5 * every[0].passes(rows)


def test_files_partial_fit_and_judgement(fitted, wine, tmp_path):
    x, y, _ = wine
    assert fitted.state_.mean.shape[0] == 4
    assert fitted.score(x, y) > 0.8
    fitted.save(tmp_path / "modes.mtb")
    back = mtbayes.load(tmp_path / "modes.mtb")
    np.testing.assert_array_equal(back.predict_proba(x), fitted.predict_proba(x))
    assert back.fitted_.learner == fitted.fitted_.learner
    before = back.state_.mean
    back.partial_fit(x[:60], y[:60])
    moved = np.abs(back.state_.mean - before)
    assert 0 < moved.max() < 1
    # Modes stay apart: each is held near itself, not near the mean of all.
    assert np.linalg.norm(back.state_.mean[0] - back.state_.mean[1]) > 0.7 * np.linalg.norm(
        before[0] - before[1]
    )


def test_a_stopped_look_at_settings_goes_on_to_the_same_bits(wine, tmp_path, monkeypatch):
    x, _, y = wine
    model = {**QUICK, "epochs": 4, "m": 1, "modes": 2}
    whole = RobustClassifier(**model).fit(x, y)
    seen = []

    def stopped(*arguments, **named):
        seen.append(sorted(file.name for file in (tmp_path / "c").iterdir()))
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(choice, "best_of", stopped)
        with pytest.raises(KeyboardInterrupt):
            RobustClassifier(**model).fit(x, y, checkpoint=tmp_path / "c")
    assert {name.split("-fold")[0] for name in seen[0]} == {"brief-0", "brief-1", "brief-2"}
    again = RobustClassifier(**model).fit(x, y, checkpoint=tmp_path / "c")
    np.testing.assert_array_equal(again.state_.mean, whole.state_.mean)


def test_more_members_than_random_numbers_can_be_counted_for(wine):
    x, y, _ = wine
    told = r"m must make at most \d+ members, .* a step draws \d+ random numbers, got 100000000\."
    with pytest.raises(InvalidInput, match=told):
        RobustClassifier(**QUICK, m=10**8).fit(x, y)


def test_warm_start_needs_the_same_modes(wine):
    x, y, _ = wine
    model = RobustClassifier(**QUICK, m=1, modes=2, warm_start=True).fit(x, y)
    model.fit(x, y)
    with pytest.raises(InvalidInput, match=r"warm_start=True\. Set warm_start=False"):
        model.set_params(modes=3).fit(x, y)


def test_influence_of_rows_on_modes(fitted, wine):
    """Its loss is the mean of the modes' own, and wrong labels do more harm than right ones."""
    x, y, given = wine
    harm = fitted.influence(x, y).harm
    wrong = given != y
    assert harm[wrong].mean() > harm[~wrong].mean()


def test_a_certificate_puts_a_gaussian_around_each_mode():
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=700)
    x = np.array([[0, 0], [3, 0], [0, 3]])[y] + rng.normal(size=(700, 2))
    recipe = RobustClassifier(**QUICK | {"t": 0.5, "epochs": 20}, m=1, modes=3, beta=50.0)
    found = {risk: recipe.certify(x, y, risk=risk) for risk in ("error", "log_t")}
    for bound in found.values():
        learner = bound.predictor.fitted_.learner
        assert learner.posterior == Mixture(3)
        assert learner.criterion(0.5) == Criterion(1, 0.5, 50.0, joint=False)
        assert 0 < bound.terms["KL of a member (nats)"] < 5
    fresh = rng.integers(3, size=5000)
    rows = np.array([[0, 0], [3, 0], [0, 3]])[fresh] + rng.normal(size=(5000, 2))
    error = found["error"]
    assert np.mean(error.predictor.predict(rows) != fresh) <= error.value < 0.3


def test_a_mesh_learns_modes(wine):
    x, y, _ = wine
    mesh = jax.make_mesh((1, 1), ("rows", "members"))
    options = QUICK | {"epochs": 2, "batch_size": 16}
    one = RobustClassifier(**options, m=1, modes=2, beta=50.0).fit(x, y)
    split = RobustClassifier(**options, m=1, modes=2, beta=50.0).fit(x, y, mesh=mesh)
    np.testing.assert_allclose(split.state_.mean, one.state_.mean, atol=1e-4)
