"""Simulated annotators over real rows, and the rivals that find a consensus of their labels."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.datasets import load_digits
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.model_selection import KFold

ROWS = 500
KINDS = ("good", "mixed", "adversarial", "expert", "confusion", "hard")


def table(name, rows=ROWS):
    """Rows and codes of classes."""
    if name == "digits":
        x, y = load_digits(return_X_y=True)
        return x[:rows], y[:rows]
    frame = pd.read_parquet(Path(os.environ["MTBAYES_DATA"]) / "tables" / f"{name}.parquet")
    target = frame.columns[-1]
    y = pd.factorize(frame[target])[0]
    x = pd.get_dummies(frame.drop(columns=target)).astype(float).fillna(-1.0).to_numpy()
    some = np.random.default_rng(0).permutation(len(y))[:rows]
    return x[some], y[some]


def coin(share, classes):
    return np.where(np.eye(classes) > 0, share, (1 - share) / (classes - 1))


def matrices(kind, people, classes, rng):
    """p(given | true) of each person, [A, C, C]."""
    bad = 0.3 if classes > 2 else 0.5
    if kind == "good":
        share = rng.uniform(0.75, 0.95, people)
    elif kind == "adversarial":
        share = rng.uniform(0.7, 0.95, people)
        share[: max(1, people // 5)] = 0.1
    elif kind == "expert":
        share = rng.uniform(max(0.15, 1.04 / classes), 0.6, people)
        share[0] = 0.98
    else:
        share = rng.uniform(bad, 0.95, people)
    if kind != "confusion":
        return np.stack([coin(a, classes) for a in share])
    return np.stack([confused(classes, rng) for _ in range(people)])


def confused(classes, rng):
    """A good person who gives one class for another, for a third of the classes."""
    found = coin(rng.uniform(0.8, 0.95), classes)
    pairs = rng.permutation(classes)
    strength = 0.6 if classes > 2 else 0.4
    for k in range(0, max(classes - 1, 1), 3):
        a, b = pairs[k], pairs[(k + 1) % classes]
        found[a] *= 1 - strength
        found[a, b] += strength
    return found


def simulated(x, y, kind, people, per_row, seed):
    """Labels (row, who, label), [K, 3], and p(given | true, row) summed up: shares right, [A]."""
    rng, n, classes = np.random.default_rng(seed), len(y), int(y.max()) + 1
    given = matrices(kind, people, classes, rng)
    hard, lure = np.zeros(n, bool), None
    if kind == "hard":  # a quarter of the rows, where labels follow what looks alike
        p = out_of_fold(x, y, classes, leaf=5)
        doubt = 1 - p[np.arange(n), y]
        hard = doubt > np.quantile(doubt, 0.75)
        lure = p + 1e-3
        lure[np.arange(n), y] = 0
        lure /= lure.sum(axis=1, keepdims=True)
    found, expected = [], np.zeros(people)
    for i in range(n):
        probs = given[:, y[i]]
        if hard[i]:
            probs = 0.45 * probs + 0.55 * lure[i]
        expected += probs[:, y[i]] / n
        for j in rng.permutation(people)[: rng.integers(per_row[0], per_row[1] + 1)]:
            found.append((i, j, rng.choice(classes, p=probs[j])))
    return np.array(found), expected


def out_of_fold(x, y, classes, leaf=2, weight=None):
    found = np.zeros((len(y), classes))
    for seen, unseen in KFold(5, shuffle=True, random_state=0).split(x):
        trees = ExtraTreesClassifier(300, min_samples_leaf=leaf, random_state=0)
        trees.fit(x[seen], y[seen])
        found[np.ix_(unseen, trees.classes_)] = trees.predict_proba(x[unseen])
    return found


def counted(said, n, classes):
    found = np.zeros((n, classes))
    np.add.at(found, (said[:, 0], said[:, 2]), 1.0)
    return found


def majority(said, n, classes):
    counts = counted(said, n, classes)
    ties = 1e-3 * np.random.default_rng(0).random(counts.shape)
    best = (counts + ties).argmax(axis=1)
    return best, counts[np.arange(n), best] / counts.sum(axis=1)


def by_crowdkit(method, said, n, classes):
    frame = pd.DataFrame(said, columns=["task", "worker", "label"])
    probs = method.fit(frame).probas_.reindex(index=range(n), columns=range(classes)).fillna(0)
    probs = probs.to_numpy(float)
    return probs.argmax(axis=1), probs.max(axis=1)


def by_crowdlab(said, probs, n, people):
    """Its consensus, score and people's quality; None where it refuses."""
    from cleanlab.multiannotator import get_label_quality_multiannotator

    wide = np.full((n, people), np.nan)
    wide[said[:, 0], said[:, 1]] = said[:, 2]
    try:
        found = get_label_quality_multiannotator(
            pd.DataFrame(wide).astype("Int64"), probs, verbose=False
        )
    except ValueError:
        return None
    label = found["label_quality"]
    stats = found["annotator_stats"]["annotator_quality"].reindex(range(people)).to_numpy(float)
    return (
        label["consensus_label"].to_numpy(int),
        label["consensus_quality_score"].to_numpy(float),
        stats,
    )


def write(path, record):
    with Path(path).open("a", encoding="utf-8") as file:
        file.write(json.dumps(record) + "\n")


def read(path):
    text = Path(path).read_text(encoding="utf-8") if Path(path).exists() else ""
    return [json.loads(line) for line in text.splitlines()]
