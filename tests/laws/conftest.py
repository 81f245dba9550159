"""Rows simulated from the laws of wrong rows."""

import numpy as np
from scipy.special import log_softmax

from mtbayes.predictives import ClassPredictive, GaussianPredictive


def predictive_of(probs):
    """Class probabilities as a predictive without dispute among its members."""
    found = ClassPredictive(np.log(np.asarray(probs, float)), np.zeros(len(probs)))
    return found._replace(aleatoric=found.entropy)


def labels(rng, n, classes, epsilon, *, scale=3.0, sharper=1.0, pair=False):
    """A predictive, sharpened by a power, of labels of which some are flipped; and which."""
    log_probs = log_softmax(scale * rng.normal(size=(n, classes)), axis=1)
    true = (np.exp(log_probs).cumsum(axis=1) > rng.random(n)[:, None]).argmax(axis=1)
    wrong = rng.random(n) < epsilon
    step = 1 if pair else rng.integers(1, classes, n)
    given = np.where(wrong, (true + step) % classes, true)
    sharp = log_softmax(sharper * log_probs, axis=1)
    return ClassPredictive(sharp, np.zeros(n)), given, wrong


def targets(rng, n, epsilon, kind="marginal", *, members=2, claimed=0.25):
    """A predictive of standard deviation 0.25 of targets of 0.5, some of them wrong; and which."""
    mean = 2 * rng.normal(size=n)
    y = mean + 0.5 * rng.normal(size=n)
    wrong = rng.random(n) < epsilon
    elsewhere = {
        "uniform": lambda: rng.uniform(y.min(), y.max(), n),
        "marginal": lambda: rng.permutation(y),
        "far": lambda: rng.normal(0, 300, n),
    }[kind]()
    stds = np.full((members, n), claimed)
    given = np.where(wrong, elsewhere, y)
    return GaussianPredictive(np.tile(mean, (members, 1)), stds), given, wrong
