"""One file is all that a new learner needs: this one, which knows the shares of the classes."""

from dataclasses import dataclass

import jax
import numpy as np
import pytest

from mtbayes import InvalidInput, RobustClassifier, load
from mtbayes._values import must_be_array, storable
from mtbayes.fitting import Option, Units, learn
from mtbayes.fitting.units import Features, Labels
from mtbayes.laws import WrongLabels
from mtbayes.learners import MEMBERS, Place, Trained
from mtbayes.predictives import ClassPredictive
from mtbayes.types import Rows

KEY = jax.random.key(0)
PATH = (1.0, 0.5)


@storable
@dataclass(frozen=True)
class SharesLearner:
    """Every row has the classes' shares; at t < 1 those of the escort of order 1/t."""

    classes: int
    name = "shares"

    def prepared(self, rows):
        return rows

    def looks(self, rows, folds):
        return folds

    def fit(self, prepared, t, key, *, place=Place(), start=None):
        counts = 1 + np.bincount(prepared.y, prepared.weight, self.classes)
        shares = (counts / counts.sum()) ** (1 / t)
        return Trained(shares / shares.sum(), True, "Counted.", [])

    def unseen(self, prepared, fold, which, path, key, *, place=Place()):
        found = []
        for t in path:
            states = {
                k: self.fit(prepared._replace(weight=prepared.weight * (fold != k)), t, key).state
                for k in which
            }
            logs = np.log([states[k] for k in fold[np.isin(fold, which)]])
            found.append(ClassPredictive(logs, np.zeros(len(logs))))
        return found

    def predictive(self, state, x, key, members=MEMBERS):
        logs = np.tile(np.log(state), (len(x), 1))
        return ClassPredictive(logs, np.zeros(len(x)))

    def check(self, state, shape, classes):
        must_be_array(state, (classes,), "shares")


def rows_of(n=300, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 2))
    y = np.array(["a", "b", "c"])[rng.choice(3, n, p=[0.6, 0.3, 0.1])]
    return Rows(x, y, np.ones(n))


def learned(rows):
    units = Units(Features.of(rows.x), Labels(np.unique(rows.y)))
    return learn([Option(SharesLearner(3), PATH)], rows, units, WrongLabels, KEY)


def test_it_is_chosen_fitted_and_asked_like_any_other():
    rows = rows_of()
    fitted = learned(rows)
    assert fitted.t == 1.0  # the shares as they are explain rows best
    assert [(entry["learner"], entry["t"]) for entry in fitted.score_path] == [
        ("shares", 1.0),
        ("shares", 0.5),
    ]
    counts = np.unique(rows.y, return_counts=True)[1]
    np.testing.assert_allclose(fitted.raw(rows.x).probs[0], (counts + 1) / (counts + 1).sum())
    assert fitted.calibrated(rows.x).probs.shape == (300, 3)
    judged = fitted.judge(rows.x, rows.y)
    assert set(judged.alternative[rows.y != "a"]) == {"a"}  # the most common class
    assert fitted.training.outlier_probability.shape == (300,)


def test_it_is_compared_with_others_by_rows_that_neither_has_seen():
    """A network that can tell the classes apart beats one that cannot."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=(200, 2))
    y = (x[:, 0] > 0).astype(int)
    model = RobustClassifier(learner="network", hidden=(5,), epochs=20, random_state=0)
    network = model.fit(x, y).fitted_.learner
    units = Units(Features.of(x), Labels(np.array([0, 1])))
    options = [Option(SharesLearner(2), PATH), Option(network, (1.0, 0.7))]
    fitted = learn(options, Rows(x, y, np.ones(200)), units, WrongLabels, KEY)
    assert fitted.learner.name == "network"
    scores = {(e["learner"], e["t"]): e["score"] for e in fitted.score_path}
    assert scores["network", 1.0] > scores["shares", 1.0] + 0.2


def test_its_model_is_a_file_of_arrays(tmp_path):
    rows = rows_of()
    model = RobustClassifier(epochs=1)
    model.n_features_in_ = 2
    model.fitted_ = learned(rows)
    model.save(tmp_path / "shares.mtb")
    again = load(tmp_path / "shares.mtb")
    assert again.fitted_.learner == SharesLearner(3)
    np.testing.assert_array_equal(again.predict_proba(rows.x), model.predict_proba(rows.x))
    np.testing.assert_array_equal(again.outlier_probability_, model.outlier_probability_)


def test_what_it_cannot_do_is_said():
    rows = rows_of()
    model = RobustClassifier(epochs=1)
    model.n_features_in_ = 2
    model.fitted_ = learned(rows)
    with pytest.raises(InvalidInput, match=r"partial_fit needs a learner .* got '?shares"):
        model.partial_fit(rows.x, rows.y)
    with pytest.raises(InvalidInput, match=r"influence needs a learner .* got '?shares"):
        model.influence(rows.x, rows.y, rows.x, rows.y)
