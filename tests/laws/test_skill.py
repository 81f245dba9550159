import numpy as np

from mtbayes.laws.skill import learned, shared


def counts_of(matrix, labels):
    """Counts of a person with a matrix, by equally many labels of each class."""
    return np.asarray(matrix) * labels


def coin(share, classes=3):
    even = (1 - share) / (classes - 1)
    return np.where(np.eye(classes) > 0, share, even)


def test_people_of_many_labels_are_judged_by_themselves():
    found = learned(np.stack([counts_of(coin(a), 200) for a in (0.9, 0.6, 0.3)])).skill.mean
    assert np.allclose(
        np.diagonal(found, axis1=1, axis2=2).mean(axis=1), [0.9, 0.6, 0.3], atol=0.02
    )


def test_person_of_few_labels_is_judged_by_all():
    many = [counts_of(coin(0.8), 100) for _ in range(5)]
    one_wrong = np.zeros((3, 3))
    one_wrong[0, 1] = 1.0
    found = learned(np.stack([*many, one_wrong])).skill
    share = found.right[-1, 0] / found.right[-1].sum()
    assert 0.6 < share < 0.8


def test_mistakes_that_all_make_are_expected_of_everybody():
    skewed = np.array([[0.6, 0.4, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    some = [counts_of(skewed, 100) for _ in range(4)]
    found = learned(np.stack([*some, np.zeros((3, 3))])).skill.mean[-1]
    assert found[0, 1] > 0.25
    assert found[1, 1] > 0.9


def test_own_confusion_is_found_among_people_who_have_none():
    skewed = np.array([[0.3, 0.7, 0.0], [0.05, 0.9, 0.05], [0.05, 0.05, 0.9]])
    people = [counts_of(coin(0.9), 60) for _ in range(5)] + [counts_of(skewed, 60)]
    assert learned(np.stack(people)).skill.mean[-1, 0, 1] > 0.5


def test_what_is_shared_has_no_zero():
    assert (shared(np.diag([10.0, 5.0, 0.0])) > 0).all()
