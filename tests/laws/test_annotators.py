import numpy as np
import pytest

from mtbayes.laws.annotators import Annotators, Votes


def crowd(shares, per_row, n=600, classes=4, known=0.6, hard=0.0, seed=0):
    """Labels by people of some shares of right labels, the truth, and what features say of it.

    hard: share of rows in which each label is, more often than not, the second most likely class
    """
    rng = np.random.default_rng(seed)
    truth = rng.integers(classes, size=n)
    scores = rng.normal(size=(n, classes))
    scores[np.arange(n), truth] += 4 * known
    log_probs = scores - np.logaddexp.reduce(scores, axis=1, keepdims=True)
    rivals = np.where(np.arange(classes) == truth[:, None], -np.inf, scores).argmax(axis=1)
    is_hard = rng.random(n) < hard
    row, who, label = [], [], []
    for i in range(n):
        for j in rng.permutation(len(shares))[:per_row]:
            wrong = (truth[i] + rng.integers(1, classes)) % classes
            own = truth[i] if rng.random() < shares[j] else wrong
            row.append(i)
            who.append(j)
            label.append(rivals[i] if is_hard[i] and rng.random() < 0.7 else own)
    votes = Votes(*map(np.array, (row, who, label)), n, len(shares), classes)
    return votes, truth, log_probs


def right(probs, truth):
    return float((probs.argmax(axis=1) == truth).mean())


def test_consensus_beats_the_majority_and_the_features():
    votes, truth, log_probs = crowd([0.95, 0.9, 0.4, 0.35, 0.3], 3)
    found = Annotators.fit(log_probs, votes).truth(log_probs, votes)
    assert right(found.probs, truth) > right(votes.counts, truth) + 0.1
    assert right(found.probs, truth) > right(log_probs, truth) + 0.03


def test_labels_alone_tell_good_people_from_bad_ones():
    votes, truth, _ = crowd([0.95, 0.9, 0.4, 0.35, 0.3], 4)
    law, found = Annotators.alone(votes)
    assert right(found.probs, truth) > right(votes.counts, truth) + 0.02
    assert law.skill.right[0, 0] / law.skill.right[0].sum() > 0.8


def test_shares_of_right_labels_are_found():
    shares = [0.9, 0.8, 0.6, 0.45, 0.3]
    votes, _, log_probs = crowd(shares, 3, n=1000)
    law = Annotators.fit(log_probs, votes)
    found = law.quality(log_probs, votes).mean
    assert np.abs(found - shares).max() < 0.06


def test_person_who_answers_the_opposite_is_understood():
    votes, truth, log_probs = crowd([0.9, 0.85, 0.05], 3, classes=2, known=0.3)
    law = Annotators.fit(log_probs, votes)
    assert law.quality(log_probs, votes).mean[2] < 0.15
    assert right(law.truth(log_probs, votes).probs, truth) > 0.9


def test_probabilities_are_as_sure_as_they_are_right():
    votes, truth, log_probs = crowd([0.8, 0.7, 0.6, 0.5], 2, n=1500)
    probs = Annotators.fit(log_probs, votes).truth(log_probs, votes).probs
    assert probs.max(axis=1).mean() == pytest.approx(right(probs, truth), abs=0.03)


def test_hard_rows_are_found_where_there_are_some_and_not_elsewhere():
    people = [0.9, 0.85, 0.8, 0.75]
    votes, _, log_probs = crowd(people, 4, n=800, hard=0.3)
    assert Annotators.fit(log_probs, votes).lured > 0.3
    votes, _, log_probs = crowd(people, 4, n=800)
    assert Annotators.fit(log_probs, votes).lured == 0


@pytest.mark.parametrize("seed", range(3))
def test_people_who_err_together_do_not_outvote_the_features(seed):
    votes, truth, log_probs = hard_rows_of_two(np.random.default_rng(seed))
    law = Annotators.fit(log_probs, votes)
    assert 0.4 < law.lured <= 0.5  # .55 in truth
    found = right(law.truth(log_probs, votes).probs, truth)
    assert found > right(log_probs, truth) - 0.01 > right(votes.counts, truth)


def hard_rows_of_two(rng, n=400):
    """Three people are right in 60 to 95 %; in a quarter of the rows more than half of the labels
    are wrong, whoever gives them."""
    truth = rng.integers(2, size=n)
    score = 1.7 * rng.normal(1.7 * (2 * truth - 1), 1)
    log_probs = -np.logaddexp(0, np.stack([score, -score], axis=1))
    doubt = -log_probs[np.arange(n), truth]
    share = np.where((doubt > np.quantile(doubt, 0.75))[:, None], 0.45, 1.0)
    good = rng.random((n, 3)) < share * rng.uniform(0.6, 0.95, 3)
    row, who = np.divmod(np.arange(3 * n), 3)
    label = np.where(good, truth[:, None], 1 - truth[:, None]).ravel()
    return Votes(row, who, label, n, 3, 2), truth, log_probs


def test_hard_rows_make_less_sure():
    votes, _, log_probs = crowd([0.9, 0.85, 0.8, 0.75], 4, n=800, hard=0.3)
    law = Annotators.fit(log_probs, votes)
    plain = Annotators(law.skill, law.temperature)
    assert (
        law.truth(log_probs, votes).probs.max(axis=1).mean()
        < plain.truth(log_probs, votes).probs.max(axis=1).mean()
    )


def test_order_of_labels_does_not_matter():
    votes, _, log_probs = crowd([0.9, 0.7, 0.5], 2, n=100)
    mixed = np.random.default_rng(1).permutation(len(votes.row))
    other = votes._replace(row=votes.row[mixed], who=votes.who[mixed], label=votes.label[mixed])
    first, second = (Annotators.fit(log_probs, v).truth(log_probs, v).probs for v in (votes, other))
    assert np.allclose(first, second, atol=1e-9)


def test_answers_are_distributions():
    votes, _, log_probs = crowd([0.9, 0.7, 0.6], 3, n=300, hard=0.4)
    law = Annotators.fit(log_probs, votes)
    given = law.answers(log_probs, law.truth(log_probs, votes), 1)
    assert given.shape == (300, 4, 4)
    assert np.allclose(given.sum(axis=2), 1)
