"""What is told of people, where the features leave no doubt about the truth."""

from types import SimpleNamespace

import numpy as np
import pytest

from mtbayes.fitting.people import _confusions, annotators
from mtbayes.laws.annotators import Annotators, Truth, Votes

NAMES = np.array(["good", "blind", "against", "confused"], object)
CLASSES = np.array(["cat", "dog", "fox"])
CONFUSED = 0.5  # of the foxes, which one person takes for dogs


@pytest.fixture(scope="module")
def people():
    rng = np.random.default_rng(0)
    truth = np.repeat(np.arange(3), 100)
    other = (truth + rng.integers(1, 3, 300)) % 3
    hit = rng.random((4, 300))
    said = [
        np.where(hit[0] < 0.9, truth, other),
        rng.integers(3, size=300),
        np.where(hit[2] < 0.1, truth, other),
        np.where((truth == 2) & (hit[3] < CONFUSED), 1, truth),
    ]
    votes = Votes(
        np.tile(np.arange(300), 4), np.repeat(np.arange(4), 300), np.concatenate(said), 300, 4, 3
    )
    log_probs = np.log(0.98 * np.eye(3)[truth] + 0.02 / 3)
    law = Annotators.fit(log_probs, votes)
    found = annotators(law, votes, log_probs, law.truth(log_probs, votes), NAMES, CLASSES)
    return {person.name: person for person in found}


def test_verdicts(people):
    told = {name: person.verdict for name, person in people.items()}
    assert told == {
        "good": "better than chance",
        "blind": "no better than chance",
        "against": "against",
        "confused": "better than chance",
    }


def test_what_is_given_for_what(people):
    first = people["confused"].confuses[0]
    assert (first.true, first.given) == ("fox", "dog")
    assert first.share == pytest.approx(CONFUSED, abs=0.1)  # two standard errors of 100 rows


def test_labels_are_counted(people):
    assert {person.labels for person in people.values()} == {300}


def told(counts, share):
    """Confusions of one person: counts of what is given for what, and shares as a law has them."""
    true, given = (np.repeat(place.ravel(), counts.ravel()) for place in np.indices((3, 3)))
    n = len(true)
    votes = Votes(np.arange(n), np.zeros(n, int), given, n, 1, 3)
    law = SimpleNamespace(skill=SimpleNamespace(mean=np.array([share])))
    truth = Truth(np.eye(3)[true], np.zeros((n, 3)), np.zeros(n))
    return [(c.true, c.given) for c in _confusions(law, votes, truth, CLASSES)[0]]


def test_larger_of_two_shares_of_a_class_is_told_first():
    """Though the plain counts are the other way round."""
    counts = np.array([[2, 6, 5], [0, 9, 0], [0, 0, 9]])
    share = [[0.15, 0.42, 0.43], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8]]
    assert told(counts, share) == [("cat", "fox"), ("cat", "dog")]


def test_what_makes_most_wrong_labels_is_told_first():
    """A tenth of 100 dogs is more than half of 8 cats; what was never given is not told."""
    counts = np.array([[4, 4, 0], [10, 90, 0], [0, 0, 9]])
    share = [[0.4, 0.5, 0.1], [0.1, 0.88, 0.02], [0.1, 0.1, 0.8]]
    assert told(counts, share) == [("dog", "cat"), ("cat", "dog")]
