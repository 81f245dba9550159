"""Whom to ask about which row next: our questions beside random ones and CROWDLAB's rows."""

from __future__ import annotations

import numpy as np
import pandas as pd
from annotators_crowds import matrices, read, table, write
from sklearn.ensemble import ExtraTreesClassifier

from mtbayes import Annotations, RobustClassifier

DATA = ("mammographic", "segment", "contraceptive", "german", "led7digit")
HOW = ("random", "next_labels", "CROWDLAB's rows")
ROWS, PEOPLE, STEP, STEPS = 300, 10, 60, 5


def asking(path, seeds="200,201,202"):
    """From one label a row on: accuracy of the consensus after each batch of new labels."""
    seeds = [int(seed) for seed in seeds.split(",")]
    done = {(r["data"], r["seed"], r["how"]) for r in read(path) if r["what"] == "asking"}
    for seed in seeds:
        for name in DATA:
            for how in HOW:
                if (name, seed, how) not in done:
                    line = asked(name, seed, how)
                    head = {"what": "asking", "data": name, "seed": seed, "how": how}
                    write(path, head | {"step": STEP, "accuracy": line})
                    print(name, seed, how, np.round(line, 3), flush=True)


def asked(name, seed, how):
    """Accuracy before and after each batch; all ways begin alike, and get the same answers."""
    x, y = table(name, ROWS)
    n, classes = len(y), int(y.max()) + 1
    rng = np.random.default_rng(seed)
    given = matrices("mixed", PEOPLE, classes, rng)
    every = np.array([[rng.choice(classes, p=given[j, v]) for j in range(PEOPLE)] for v in y])
    have = np.zeros((n, PEOPLE), bool)
    have[np.arange(n), rng.integers(PEOPLE, size=n)] = True
    line = []
    for _ in range(STEPS + 1):
        row, who = np.nonzero(have)
        said = Annotations.long(row, who, every[have], index=range(n), classes=range(classes))
        model = quick().fit(x, said)
        line.append(float((model.consensus_ == y).mean()))
        for i, j in CHOICES[how](model, np.where(have, every, -1), rng):
            have[i, j] = True
    return line


def quick():
    """A learner for the many fits; the default takes ten times as long."""
    trees = ExtraTreesClassifier(100, min_samples_leaf=2, random_state=0)
    return RobustClassifier(learner=trees, t=1.0, random_state=0)


def by_random(model, labels, rng):
    free = np.argwhere(labels < 0)
    return free[rng.permutation(len(free))[:STEP]]


def by_next_labels(model, labels, rng):
    return [(q.row, q.annotator) for q in model.next_labels(STEP)]


def by_crowdlab(model, labels, rng):
    """The rows of the lowest scores, each by anybody who has not labelled it."""
    from cleanlab.multiannotator import get_active_learning_scores

    wide = pd.DataFrame(labels).astype("Int64").where(labels >= 0, pd.NA)
    scores, _ = get_active_learning_scores(wide, np.asarray(model.unseen_prediction_, float))
    open_ = (labels < 0).any(axis=1)
    rows = [i for i in np.argsort(scores) if open_[i]][:STEP]
    return [(i, rng.choice(np.flatnonzero(labels[i] < 0))) for i in rows]


CHOICES = dict(zip(HOW, (by_random, by_next_labels, by_crowdlab), strict=True))
