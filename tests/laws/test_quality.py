from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import beta

from mtbayes.laws.annotators import Annotators
from mtbayes.laws.quality import SHARES, Heard, Quality

from .test_annotators import crowd


def known(hits, labels):
    """Log likelihoods of shares where it is known how many labels of each person are right."""
    hits, labels = (np.asarray(v, float)[:, None] for v in (hits, labels))
    return hits * np.log(SHARES) + (labels - hits) * np.log1p(-SHARES)


def test_posterior_is_bayes_rule_over_all_that_people_may_share():
    hits, labels = np.array([18, 15, 4]), np.array([20, 18, 20])
    theta = (np.arange(4000) + 0.5) / 4000
    likely = theta ** hits[:, None] * (1 - theta) ** (labels - hits)[:, None]
    total, mean = 0.0, 0.0
    for centre in 0.25 + 0.75 * (np.arange(16) + 0.5) / 16:
        for alike in 2.0 ** np.arange(9):
            for few in (0.02, 0.1, 0.25):
                usual = beta.pdf(theta, centre * alike, (1 - centre) * alike)
                prior = (1 - few) * usual / usual.sum() + few / len(theta)
                each = likely @ prior
                total += each.prod()
                mean += each.prod() * (likely @ (prior * theta)) / each
    assert Quality.of(known(hits, labels), 0.25).mean == pytest.approx(mean / total, abs=2e-3)


def test_labels_of_rows_of_which_nothing_is_known_tell_nothing():
    even = np.full(30, 0.5)
    who = np.repeat([0, 1], 15)
    log_lik = Heard(even, even, 0.0).log_lik(who, 2)
    assert np.ptp(log_lik, axis=1) == pytest.approx([0, 0], abs=1e-12)
    few = np.mean([0.02, 0.1, 0.25])  # anywhere from 0 to 1; the others from chance to 1
    expected = (1 - few) * 0.75 + few * 0.5
    assert Quality.of(log_lik, 0.5).mean == pytest.approx([expected] * 2, abs=2e-3)


def test_labels_of_rows_that_are_known_are_counted():
    right = np.array([1.0, 1.0, 0.0, 1.0])
    found = Heard(right, 1 - right, 0.0).log_lik(np.zeros(4, int), 1)
    assert found == pytest.approx(known([3], [4]), abs=1e-9)


@pytest.mark.parametrize("hard", [{}, {"lured": 0.6, "level": -1.0, "slope": 2.0}])
def test_a_label_is_judged_by_what_is_known_without_it(hard):
    votes, _, log_probs = crowd([0.9, 0.8, 0.7, 0.5], 3, n=300)
    law = replace(Annotators.fit(log_probs, votes), **hard)
    heard = law.heard(log_probs, votes)
    for k in (0, 50, 299):
        row, who, label = votes.row[k], votes.who[k], votes.label[k]
        rest = np.arange(len(votes.row)) != k
        other = votes._replace(row=votes.row[rest], who=votes.who[rest], label=votes.label[rest])
        truth = law.truth(log_probs, other)
        own = truth.probs[row] - law.lured * truth.hard[row]
        skill = law.skill.mean[who]
        wrong = sum(own[z] * skill[z, label] / (1 - skill[z, z]) for z in range(4) if z != label)
        suggested = law.suggestion(log_probs)[row]
        mistaken = np.where(np.arange(4) == label, 0, suggested[label] / (1 - suggested))
        anyhow = law.lured * truth.hard[row] @ mistaken
        found = np.array([heard.right[k], heard.wrong[k], np.broadcast_to(heard.anyhow, 900)[k]])
        expected = np.array([own[label], wrong, anyhow])
        assert found / found.sum() == pytest.approx(expected / expected.sum(), abs=1e-9)


@pytest.mark.parametrize(
    ("low", "high", "few"), [(0.75, 0.95, 0.0), (0.3, 0.95, 0.0), (0.7, 0.95, 0.2)]
)
def test_near_the_best_that_knows_how_people_were_drawn(low, high, few):
    """50 people of 20 labels, 20 times; a share `few` of them is right in 10 %."""
    rng = np.random.default_rng(0)
    grid = np.linspace(low, high, 400)
    prior = np.append(np.full(400, (1 - few) / 400), few)
    points = np.append(grid, 0.1)
    ours, best, spread = [], [], []
    for _ in range(20):
        true = np.where(rng.random(50) < few, 0.1, rng.uniform(low, high, 50))
        hits = rng.binomial(20, true)
        found = Quality.of(known(hits, np.full(50, 20)), 0.1)
        likely = prior * points ** hits[:, None] * (1 - points) ** (20 - hits)[:, None]
        usual = true > 0.1  # the place of the others is known to the best alone
        best.extend((likely @ points / likely.sum(axis=1) - true)[usual] ** 2)
        ours.extend((found.mean - true)[usual] ** 2)
        spread.append(np.abs(found.mean - true) < 1.96 * np.sqrt(found.variance))
    assert np.sqrt(np.mean(ours)) < 1.2 * np.sqrt(np.mean(best))
    assert np.mean(spread) > 0.9
