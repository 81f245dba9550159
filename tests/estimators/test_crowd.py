from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import make_classification
from sklearn.ensemble import ExtraTreesClassifier, ExtraTreesRegressor

from mtbayes import Annotations, InvalidInput, RobustClassifier, RobustRegressor, load

pytestmark = pytest.mark.usefixtures("few_trees")

QUALITY = (0.95, 0.85, 0.6, 0.5, 0.1)


def simulated(n=240, per_row=3, seed=0):
    """Rows of three classes, their truth, and a table of labels by five people."""
    rng = np.random.default_rng(seed)
    x, y = make_classification(
        n, 6, n_informative=4, n_classes=3, n_clusters_per_class=1, class_sep=1.2, random_state=seed
    )
    table = np.full((n, len(QUALITY)), None, object)
    for i in range(n):
        for j in rng.permutation(len(QUALITY))[:per_row]:
            wrong = (y[i] + rng.integers(1, 3)) % 3
            table[i, j] = f"c{y[i] if rng.random() < QUALITY[j] else wrong}"
    return x, np.array([f"c{v}" for v in y]), table


def quick(**settings):
    trees = ExtraTreesClassifier(12, min_samples_leaf=3, random_state=0)
    return RobustClassifier(learner=trees, t=1.0, random_state=0, **settings)


def quick_of_numbers():
    trees = ExtraTreesRegressor(12, min_samples_leaf=3, random_state=0)
    return RobustRegressor(learner=trees, t=1.0, random_state=0)


@pytest.fixture(scope="module")
def data():
    return simulated()


@pytest.fixture(scope="module")
def fitted(data):
    x, _, table = data
    linear = RobustClassifier(learner="linear", t=1.0, epochs=20, random_state=0)
    return linear.fit(x, Annotations.wide(table, names=list("abcde")))


def majority(table):
    def most(row):
        labels, counts = np.unique([v for v in row if v is not None], return_counts=True)
        return labels[counts.argmax()]

    return np.array([most(row) for row in table])


def test_consensus_is_better_than_the_majority(data, fitted):
    _, y, table = data
    assert (fitted.consensus_ == y).mean() > (majority(table) == y).mean() + 0.1


def test_doubtful_rows_are_those_that_are_wrong(data, fitted):
    wrong = fitted.consensus_ != data[1]
    sure = fitted.consensus_probability_
    assert sure[wrong].mean() < sure[~wrong].mean() - 0.1
    assert 0 < fitted.contamination_.low <= wrong.mean() <= fitted.contamination_.high + 0.05


def test_what_is_said_of_rows_is_said_of_the_consensus(fitted):
    wrong = fitted.outlier_probability_
    assert np.allclose(wrong, 1 - fitted.consensus_probability_)
    assert np.allclose(fitted.fitted_.training.at(fitted.law_.epsilon), wrong, atol=1e-9)


def test_people_are_known(data, fitted):
    x, y, table = data
    people = fitted.annotators_
    assert [p.name for p in people] == list("abcde")
    assert sum(p.labels for p in people) == 3 * len(x)
    found = np.array([p.right for p in people])
    given = [(table[:, j] != None, j) for j in range(5)]  # noqa: E711
    true = np.array([(table[have, j] == y[have]).mean() for have, j in given])
    assert np.sqrt(np.mean((found - true) ** 2)) < 0.03
    assert people[0].verdict == "better than chance"
    assert people[-1].verdict == "against"
    assert all(p.low < p.quality < p.high for p in people)
    assert all(c.true != c.given and 0 < c.share < 1 for p in people for c in p.confuses)


def test_next_labels_ask_the_best_about_doubtful_rows(data, fitted):
    x, _, table = data
    asked = fitted.next_labels(10)
    rows = [q.row for q in asked]
    assert len(set(rows)) == 10
    assert fitted.consensus_probability_[rows].mean() < fitted.consensus_probability_.mean() - 0.1
    assert all(table[q.row, "abcde".index(q.annotator)] is None for q in asked)
    assert all(a.information >= b.information > 0 for a, b in pairwise(asked))
    new = fitted.next_labels(3, x[:8] + 0.1)
    assert {q.annotator for q in new} == {"a"}


def test_it_predicts_and_is_saved(tmp_path, data, fitted):
    x, y, _ = data
    assert (fitted.predict(x) == y).mean() > 0.75
    fitted.save(tmp_path / "crowd.mtb")
    again = load(tmp_path / "crowd.mtb")
    assert (again.consensus_ == fitted.consensus_).all()
    assert again.annotators_ == fitted.annotators_
    assert again.next_labels(4) == fitted.next_labels(4)


def test_one_annotator_is_todays_law_to_the_last_digit(data):
    x, _, table = data
    labels = majority(table)
    alone = quick().fit(x, labels)
    crowd = quick().fit(x, Annotations.wide({"ann": labels}))
    assert (alone.predict_proba(x) == crowd.predict_proba(x)).all()
    assert (alone.outlier_probability_ == crowd.outlier_probability_).all()
    assert alone.contamination_ == crowd.contamination_
    given = crowd.consensus_ == labels
    sure = crowd.consensus_probability_
    assert np.allclose(sure[given], 1 - alone.outlier_probability_[given], atol=1e-12)
    assert (alone.outlier_probability_[~given] > 0.5).all()
    assert crowd.annotators_[0].right == pytest.approx(1 - alone.outlier_probability_.mean())


def test_rows_with_one_label_each_by_many_people():
    x, y, table = simulated(per_row=1)
    model = quick().fit(x, Annotations.wide(table))
    assert (model.consensus_ == y).mean() > (majority(table) == y).mean() + 0.1


def test_label_that_no_consensus_has_is_still_a_class(data):
    x, _, table = data
    model = quick().fit(x, Annotations.wide(table, classes=["c0", "c1", "c2", "never"]))
    assert model.predict_proba(x).shape == (len(x), 4)
    assert "never" not in model.consensus_


def test_fit_to_plain_labels_forgets_the_people(data):
    x, y, table = data
    model = quick().fit(x, Annotations.wide(table)).fit(x, y)
    with pytest.raises(InvalidInput, match="y must be Annotations for a consensus"):
        model.next_labels(3)
    assert not hasattr(model, "crowd_")


def test_numbers_of_people_with_a_bias_a_scale_and_a_spread():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 3))
    y = 10 + 3 * x[:, 0] + np.sin(2 * x[:, 1])
    bias, spread = np.array([-2.0, 0.0, 2.0]), np.array([0.3, 1.0, 3.0])
    table = y[:, None] + bias + spread * rng.normal(size=(200, 3))
    table[::4, 2] = np.nan
    model = quick_of_numbers()
    model.fit(x, Annotations.wide(table, names=["deep", "fair", "high"]))

    def error(found):
        return np.sqrt(np.mean((found - y - np.mean(found - y)) ** 2))

    assert error(model.consensus_) < 0.6 * error(np.nanmean(table, axis=1))
    people = model.annotators_
    assert people[0].bias < people[1].bias < people[2].bias
    assert people[0].spread < people[1].spread < people[2].spread
    assert people[0].quality > people[2].quality
    assert ((model.consensus_probability_ > 0) & (model.consensus_probability_ <= 1)).all()
    assert model.next_labels(1, x[:3])[0].annotator == "deep"
    assert {q.annotator for q in model.next_labels(5)} == {"high"}


def rated(cell=None):
    """Columns, truths about 13 and ratings by three people, of which the last is poor."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(176, 4))
    y = 13 + 0.6 * x[:, 0] + 0.4 * x[:, 1] + 0.4 * rng.normal(size=176)
    table = y[:, None] + rng.normal(size=(176, 3)) * [0.1, 0.1, 2.0]
    if cell is not None:
        table[0, 0] = cell
    return x, y, Annotations.wide(table, names=["r0", "r1", "r2"])


@pytest.mark.parametrize("cell", [1400.0, 1e30])
def test_slip_of_the_pen_in_one_rating_leaves_the_consensus_alone(cell):
    x, y, calm = rated()
    before, after = (quick_of_numbers().fit(x, said) for said in (calm, rated(cell)[2]))
    for one, other in zip(before.annotators_, after.annotators_, strict=True):
        assert other.quality == pytest.approx(one.quality, abs=0.02)
        assert other.spread == pytest.approx(one.spread, rel=0.1)
    error = [np.sqrt(np.mean((m.consensus_ - y)[1:] ** 2)) for m in (before, after)]
    assert error[1] < 1.05 * error[0]
    assert after.consensus_[0] == pytest.approx(y[0], abs=0.5)  # what is left: r1, with .1
    sure = [m.consensus_probability_[0] for m in (before, after)]
    assert 0.5 < sure[1] < sure[0]
    assert after.crowd_.spoken(0)[0] == ("r0", cell)


def test_features_are_not_held_for_surer_than_they_are_where_a_row_has_few_ratings():
    """Trees that learn a consensus near to what they said would call themselves next to exact."""
    rng = np.random.default_rng(0)
    x, y, _ = rated()
    said = Annotations.long(range(176), rng.integers(0, 3, 176), y + 0.3 * rng.normal(size=176))
    model = quick_of_numbers().fit(x, said)
    mean, variance = model.crowd_.prior.T
    off = np.sqrt(np.mean((mean - y) ** 2))
    assert np.sqrt(np.median(variance)) > 0.5 * off
    assert np.sqrt(np.mean((model.consensus_ - y) ** 2)) < 0.9 * off


def test_wild_number_of_an_only_rater_does_not_set_the_quality():
    x, y, _ = rated()
    noisy = y + np.random.default_rng(1).normal(size=len(y))
    wild = np.where(np.arange(len(y)) == 0, 1e30, noisy)
    one, other = (
        quick_of_numbers().fit(x, Annotations.wide(v[:, None])).annotators_[0]
        for v in (noisy, wild)
    )
    assert other.quality == pytest.approx(one.quality, abs=0.05)


def test_one_rater_is_todays_law_to_the_last_digit():
    x = np.random.default_rng(0).normal(size=(60, 2))
    y = x[:, 0] + 0.1 * x[:, 1]
    one, other = (quick_of_numbers().fit(x, given) for given in (y, Annotations.wide(y[:, None])))
    assert (one.predict(x) == other.predict(x)).all()
    assert (other.consensus_ == y).all()


@pytest.mark.parametrize(
    ("settings", "options", "words"),
    [
        ({}, {"trusted": np.ones(240)}, "y must be one target for each row where rows are"),
        (
            {"learner": "network", "warm_start": True},
            {},
            "y must be one target for each row where rows are",
        ),
    ],
)
def test_what_does_not_go_together_is_told(data, settings, options, words):
    x, _, table = data
    with pytest.raises(InvalidInput, match=words):
        quick().set_params(**settings).fit(x, Annotations.wide(table), **options)


@pytest.mark.parametrize(
    "use",
    [
        lambda model, x, said: model.certify(x, said),
        lambda model, x, said: RobustClassifier(learner="network").partial_fit(x, said),
        lambda model, x, said: RobustRegressor().partial_fit(x, said),
        lambda model, x, said: model.partial_fit(x, said),
        lambda model, x, said: model.score(x, said),
        lambda model, x, said: model.find_outliers(x, said),
        lambda model, x, said: model.influence(x, said),
    ],
)
def test_what_takes_one_target_a_row_says_so_of_annotations(data, fitted, use):
    x, _, table = data
    words = r"y must hold one target for each row here, got <Annotations: .*consensus_ of that fit"
    with pytest.raises(InvalidInput, match=words):
        use(fitted, x, Annotations.wide(table))


def test_rows_must_be_as_many_as_were_labelled(data):
    x, _, table = data
    with pytest.raises(InvalidInput, match="X must have a row for each that was labelled, got 239"):
        quick().fit(x[1:], Annotations.wide(table))


def test_rows_in_another_order_than_those_labelled_are_told(data):
    x, _, table = data
    shuffled = pd.DataFrame(x).sample(frac=1, random_state=0)
    with pytest.raises(InvalidInput, match="y must have its rows in the order of X, got labels of"):
        quick().fit(shuffled, Annotations.wide(pd.DataFrame(table)))


def test_a_row_beyond_the_table_is_named(data):
    x, y, _ = data
    said = Annotations.long([*range(240), 999], ["ann"] * 241, [*y, "c0"])
    with pytest.raises(InvalidInput, match="row must name rows of the table, got 999 by 'ann'"):
        quick().fit(x, said)


def test_label_of_one_person_is_told(data):
    x, _, table = data
    typo = table.copy()
    typo[0, 0] = "c00"
    with pytest.raises(InvalidInput, match="got 'c00', which 0 alone uses"):
        quick().fit(x, Annotations.wide(typo))


def test_rows_of_numbers_are_wrong_by_what_people_said_and_features():
    x, _, said = rated()
    x[7] = 9.0  # an unusual row, of which three people say the same
    found = quick_of_numbers().fit(x, said)
    wrong = found.outlier_probability_
    assert wrong.max() < 0.05
    assert np.all(wrong + found.consensus_probability_ <= 1 + 1e-9)
    assert found.contamination_.value == pytest.approx(wrong.mean(), abs=1e-9)


def test_ratings_for_a_classifier_are_told_where_they_belong():
    x, _, said = rated()
    with pytest.raises(InvalidInput, match="Ratings are for RobustRegressor"):
        quick().fit(x, said)


def test_numbers_are_asked_of_a_regressor(data):
    x, _, table = data
    with pytest.raises(InvalidInput, match="y must hold numbers, got 'c"):
        RobustRegressor().fit(x, Annotations.wide(table))


def test_budget_is_a_number_of_labels(fitted):
    with pytest.raises(InvalidInput, match="budget must be a whole number of at least 1, got 0"):
        fitted.next_labels(0)
