"""Several people labelled each row: our consensus beside majority, Dawid-Skene, GLAD and CROWDLAB.

    python benchmarks/annotators.py cells OUT.jsonl [SEED]   # goes on where it stopped
    python benchmarks/annotators.py asking OUT.jsonl [SEED,SEED]   # as well
    python benchmarks/annotators.py scale OUT.jsonl
    python benchmarks/annotators.py real OUT.jsonl pyanno-2.0.2.tar.gz   # pip download --no-deps
    python benchmarks/annotators.py page OUT.jsonl docs/annotators.md

Needs cleanlab and crowd-kit, and the tables in the folder MTBAYES_DATA.
"""

from __future__ import annotations

import sys
import time
import warnings

import numpy as np
from annotators_asking import asking
from annotators_crowds import (
    KINDS,
    by_crowdkit,
    by_crowdlab,
    majority,
    matrices,
    out_of_fold,
    read,
    simulated,
    table,
    write,
)
from annotators_page import page
from annotators_real import real
from sklearn.datasets import make_classification
from sklearn.metrics import roc_auc_score

from mtbayes import Annotations, RobustClassifier
from mtbayes.laws.quality import SHARES, Quality

DATA = ("digits", "segment", "mammographic")
CROWDS = ((3, (3, 3)), (10, (1, 5)), (50, (2, 2)), (50, (1, 1)))


def scored(consensus, sure, y):
    wrong = consensus != y
    some = 0 < wrong.sum() < len(wrong)
    return {
        "accuracy": float(1 - wrong.mean()),
        "auroc": float(roc_auc_score(wrong, -sure)) if some else None,
        "wrong": int(wrong.sum()),
    }


def oracle(kind, people, y, hits, labels):
    """Qualities by one who knows the truth of all rows and how the people were drawn: the least
    root mean square error that anybody could have."""
    classes, shares = int(y.max()) + 1, np.bincount(y) / len(y)
    rng = np.random.default_rng(0)
    drawn = [matrices(kind, people, classes, rng) for _ in range(1 + 5000 // people)]
    known = np.diagonal(np.concatenate(drawn), axis1=1, axis2=2) @ shares
    if kind == "hard":
        known = 0.75 * known + 0.25 * 0.45 * known
    log_lik = hits[:, None] * np.log(known) + (labels - hits)[:, None] * np.log1p(-known)
    weight = np.exp(log_lik - log_lik.max(axis=1, keepdims=True))
    return weight @ known / weight.sum(axis=1)


def knowing(hits, labels, classes):
    """Qualities by our rule for one who knows the truth of all rows."""
    log_lik = hits[:, None] * np.log(SHARES) + (labels - hits)[:, None] * np.log1p(-SHARES)
    return Quality.of(log_lik, 1 / classes).mean


def people_scored(model, said, y, expected, kind, drawn):
    found = model.annotators_
    real = np.array(
        [np.mean(said[said[:, 1] == p.name, 2] == y[said[said[:, 1] == p.name, 0]]) for p in found]
    )
    true = expected[[p.name for p in found]]
    labels = np.array([p.labels for p in found])

    def off(values, of):
        return float(np.sqrt(np.mean((np.array(values) - of) ** 2)))

    return {
        "labels each": float(np.mean([p.labels for p in found])),
        "right off": off([p.right for p in found], real),
        "right covered": float(
            np.mean([p.right_low <= v <= p.right_high for p, v in zip(found, real, strict=True)])
        ),
        "quality off": off([p.quality for p in found], true),
        "quality covered": float(
            np.mean([p.low <= v <= p.high for p, v in zip(found, true, strict=True)])
        ),
        "share off": off(real, true),
        "knowing off": off(knowing(real * labels, labels, int(y.max()) + 1), true),
        "oracle off": off(oracle(kind, drawn, y, real * labels, labels), true),
    }


def cell(name, kind, people, per_row, seed):
    """One setting by all ways."""
    from crowdkit.aggregation import GLAD, DawidSkene

    x, y = table(name)
    n, classes = len(y), int(y.max()) + 1
    said, expected = simulated(x, y, kind, people, per_row, seed)
    used = np.unique(said[:, 1])
    expected, said[:, 1] = expected[used], np.searchsorted(used, said[:, 1])
    plain = majority(said, n, classes)
    ways = {"majority": plain, "Dawid-Skene": by_crowdkit(DawidSkene(100), said, n, classes)}
    ways["GLAD"] = by_crowdkit(GLAD(n_iter=50), said, n, classes)
    ways["CROWDLAB"] = by_crowdlab(said, out_of_fold(x, plain[0], classes), n, len(used))
    begin = time.perf_counter()
    given = Annotations.long(*said.T, index=range(n), classes=range(classes))
    model = RobustClassifier(random_state=0).fit(x, given)
    seconds = time.perf_counter() - begin
    ways["CROWDLAB, our predictive"] = by_crowdlab(said, model.unseen_prediction_, n, len(used))
    ways["ours"] = (model.consensus_, model.consensus_probability_)
    found = {way: v and scored(v[0], v[1], y) for way, v in ways.items()}
    found["quality"] = people_scored(model, said, y, expected, kind, people)
    real = np.array(
        [np.mean(said[said[:, 1] == j, 2] == y[said[said[:, 1] == j, 0]]) for j in range(len(used))]
    )
    if ways["CROWDLAB"] is not None:
        quality = ways["CROWDLAB"][2]
        known = np.isfinite(quality)
        found["quality"]["CROWDLAB off"] = float(np.sqrt(np.mean((quality - expected)[known] ** 2)))
        found["quality"]["CROWDLAB off from shares"] = float(
            np.sqrt(np.mean((quality - real)[known] ** 2))
        )
    found["sure"] = float(model.consensus_probability_.mean())
    found["lured"] = float(model.crowd_.law.lured)
    return found | {"seconds": seconds}


def cells(path, seed=100):
    seed = int(seed)
    done = {
        (r["data"], r["kind"], r["people"], tuple(r["per row"]))
        for r in read(path)
        if r["what"] == "cell" and r["seed"] == seed
    }
    for name, kind, people, per_row in settings():
        if (name, kind, people, per_row) in done:
            continue
        found = cell(name, kind, people, per_row, seed)
        head = {"what": "cell", "seed": seed, "data": name, "kind": kind, "people": people}
        write(path, head | {"per row": per_row} | found)
        print(name, kind, people, per_row, found["CROWDLAB"], found["ours"], flush=True)


def settings():
    """All settings, those that all ways take first, each kind and crowd once before twice."""
    for crowds in (CROWDS[:3], CROWDS[3:]):
        for turn in range(len(DATA)):
            for j, (people, per_row) in enumerate(crowds):
                for i, kind in enumerate(KINDS):
                    yield DATA[(i + j + turn) % len(DATA)], kind, people, per_row


def timed(work):
    """What work returns, and its seconds by the clock and of processors."""
    begin = time.perf_counter(), time.process_time()
    found = work()
    return found, (time.perf_counter() - begin[0], time.process_time() - begin[1])


def scale(path, rows=20_000, people=200):
    """100,000 labels of 20,000 rows by 200 people: time beside that of the fit itself."""
    x, y = make_classification(
        rows,
        20,
        n_informative=10,
        n_classes=10,
        n_clusters_per_class=1,
        class_sep=1.5,
        random_state=0,
    )
    said, _ = simulated(x, y, "mixed", people, (5, 5), 1)
    given = Annotations.long(*said.T, index=range(rows))
    RobustClassifier(random_state=0).fit(x, y)  # compiles what both need
    crowd, both = timed(lambda: RobustClassifier(random_state=0).fit(x, given))
    _, alone = timed(lambda: RobustClassifier(random_state=0).fit(x, crowd.consensus_))
    record = {
        "what": "scale",
        "labels": len(said),
        "rows": rows,
        "people": people,
        "seconds": both[0],
        "fit alone": alone[0],
        "processor seconds": both[1],
        "processor seconds, fit alone": alone[1],
        "accuracy": float((crowd.consensus_ == y).mean()),
    }
    write(path, record)
    print(record)


def main():
    warnings.filterwarnings("ignore")
    what, path, *rest = sys.argv[1:]
    {"cells": cells, "asking": asking, "scale": scale, "real": real, "page": page}[what](
        path, *rest
    )


if __name__ == "__main__":
    main()
