"""Whom to ask, by entropies; and whose predictive is taken."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import entropy

from mtbayes.fitting import crowd as crowds
from mtbayes.fitting.crowd import LabelCrowd
from mtbayes.laws.annotators import Annotators, Votes

QUALITY = (0.95, 0.7, 0.55, 0.4)


@pytest.fixture(scope="module")
def data():
    """Rows of two columns, their truth of three classes, and labels: of two people a row."""
    rng = np.random.default_rng(0)
    truth = rng.integers(3, size=200)
    x = np.eye(3)[truth][:, :2] * 2 + rng.normal(size=(200, 2))
    said = [
        (i, j, truth[i] if rng.random() < QUALITY[j] else (truth[i] + rng.integers(1, 3)) % 3)
        for i in range(200)
        for j in rng.permutation(4)[:2]
    ]
    row, who, value = np.array(said).T
    names = np.array(["ann", "bob", "cem", "dee"], object)
    given = SimpleNamespace(row=row, who=who, value=value, rows=200, names=names, classes=None)
    return x, truth, given


@pytest.fixture(scope="module")
def found(data):
    x, _, given = data
    return LabelCrowd.first(x, given, 0)


def test_information_is_what_an_answer_takes_from_the_doubt(found):
    """I(z; l) = H(z) - E_l H(z | l), by Bayes' rule for each answer."""
    for question in found.questions(5):
        probs = found.probs[question.row]
        who = list(found.names).index(question.annotator)
        told = 0.95 * found.law.skill.mean[who] + 0.05 / 3  # a label in 20 may be a slip
        joint = probs[:, None] * told
        after = sum(joint[:, a].sum() * entropy(joint[:, a]) for a in range(3))
        assert question.information == pytest.approx(entropy(probs) - after, abs=1e-9)


def test_nobody_is_asked_twice_and_the_best_are_asked_first(found):
    asked = found.questions(200)
    have = set(zip(found.votes.row.tolist(), found.names[found.votes.who], strict=True))
    assert not have & {(q.row, q.annotator) for q in asked}
    best = {q.row for q in asked if q.annotator == "ann"}
    others = {q.row for q in asked if q.annotator != "ann"}
    assert all((row, "ann") in have for row in others)
    assert len(best) > 50


def test_answers_to_questions_help_more_than_answers_at_random(data, found):
    _, truth, _ = data
    rng = np.random.default_rng(1)

    def answered(pairs):
        row, who = np.array(pairs).T
        right = rng.random(len(row)) < np.array(QUALITY)[who]
        label = np.where(right, truth[row], (truth[row] + rng.integers(1, 3, len(row))) % 3)
        old = found.votes
        votes = old._replace(
            row=np.append(old.row, row),
            who=np.append(old.who, who),
            label=np.append(old.label, label),
        )
        law = Annotators.fit(found.log_probs, votes)
        return (law.truth(found.log_probs, votes).probs.argmax(axis=1) == truth).mean()

    place = {name: j for j, name in enumerate(found.names)}
    asked = [(q.row, place[q.annotator]) for q in found.questions(60)]
    have = set(zip(found.votes.row.tolist(), found.votes.who.tolist(), strict=True))
    free = [(i, j) for i in range(200) for j in range(4) if (i, j) not in have]
    random = [answered([free[k] for k in rng.permutation(len(free))[:60]]) for _ in range(10)]
    ours = [answered(asked) for _ in range(10)]
    assert np.mean(ours) > np.mean(random) + 0.02


def test_first_look_is_the_one_that_explains_the_labels(data, found, monkeypatch):
    x, truth, _ = data
    votes = found.votes
    counts = votes.counts
    shares = crowds._by_trees(x, counts / counts.sum(axis=1, keepdims=True), 0)
    told = np.eye(3)[truth]
    for known, taken in ((told, True), (np.roll(told, 1, axis=0), False)):  # the truth, or none
        alone = (found.law, crowds.Truth(known, 0 * known, np.zeros(200)))
        monkeypatch.setattr(Annotators, "alone", lambda _, alone=alone: alone)
        look = crowds._first_look(x, votes, 0)
        assert np.allclose(look.log_probs, shares) != taken


def test_features_are_found_where_people_are_hardly_better_than_chance():
    """Two classes, 50 people right in 56 %: labels alone say next to nothing of a row."""
    rng = np.random.default_rng(2)
    truth = rng.integers(2, size=500)
    x = np.column_stack([2 * truth + rng.normal(size=500), rng.normal(size=(500, 6))])
    who = np.array([rng.permutation(50)[:2] for _ in range(500)])
    label = np.where(rng.random((500, 2)) < 0.56, truth[:, None], 1 - truth[:, None])
    given = SimpleNamespace(
        row=np.repeat(np.arange(500), 2),
        who=who.ravel(),
        value=label.ravel(),
        rows=500,
        names=np.arange(50).astype(object),
        classes=None,
    )
    found = LabelCrowd.first(x, given, 0)
    agreed = np.where(label[:, 0] == label[:, 1], label[:, 0] == truth, 0.5).mean()
    assert (found.consensus == truth).mean() > agreed + 0.15


def test_some_rows_of_votes_are_counted_anew():
    votes = Votes(np.array([0, 0, 1, 3]), np.array([0, 1, 1, 0]), np.array([2, 1, 0, 2]), 4, 2, 3)
    some = votes.of_rows(np.array([3, 0]))
    assert (some.row.tolist(), some.who.tolist()) == ([1, 1, 0], [0, 1, 0])
    assert (some.label.tolist(), some.rows) == ([2, 1, 2], 2)


def test_predictive_that_explains_the_labels_is_taken(data, found, monkeypatch):
    _, truth, _ = data
    knows = np.log(0.9 * np.eye(3)[truth] + 0.1 / 3)
    blind = np.full((200, 3), -np.log(3))
    for many in (5000, 100):  # told by all rows, or by some of them
        monkeypatch.setattr(crowds, "_MANY", many)
        assert np.allclose(found._by_best(knows).log_probs, knows)
        assert not np.allclose(found._by_best(blind).log_probs, blind)
