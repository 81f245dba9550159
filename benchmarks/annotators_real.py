"""Real labels, of which one is hidden from each row and told from the others."""

from __future__ import annotations

import tarfile
import time

import numpy as np
import pandas as pd
from annotators_crowds import counted, write


def real(path, archive):
    """Labels of 8 curators, three for each sentence: hide one, and tell it from the other two.

    archive: pyanno's source archive, which holds them (data/e-2.txt; Rzhetsky et al. 2009)
    """
    from crowdkit.aggregation import DawidSkene

    from mtbayes.laws.annotators import Annotators, Votes

    with tarfile.open(archive) as file:
        name = next(n for n in file.getnames() if n.endswith("/data/e-2.txt"))
        text = file.extractfile(name).read().decode()
    table = np.array([[int(v) for v in line.strip(" ,").split(",")] for line in text.splitlines()])
    rng = np.random.default_rng(0)
    row, who = np.nonzero(table >= 0)
    label = np.searchsorted(np.unique(table[table >= 0]), table[row, who])
    classes, n = int(label.max()) + 1, len(table)
    order = rng.permutation(len(row))
    hidden = np.zeros(len(row), bool)
    hidden[order[np.unique(row[order], return_index=True)[1]]] = True
    said = np.column_stack([row, who, label])
    seen, asked = said[~hidden], said[hidden]
    votes = Votes(*seen.T, n, table.shape[1], classes)
    begin = time.perf_counter()
    law, truth = Annotators.alone(votes)
    seconds = time.perf_counter() - begin
    found = {"ours": np.einsum("kc,kcd->kd", truth.probs[asked[:, 0]], law.skill.mean[asked[:, 1]])}
    frame = pd.DataFrame(seen, columns=["task", "worker", "label"])
    for way, rule in (("Dawid-Skene", {}), ("Dawid-Skene, until it settles", {"tol": -np.inf})):
        skene = DawidSkene(100, **rule).fit(frame)
        found[way] = told_by(skene, asked, n, table.shape[1], classes)
    counts = counted(seen, n, classes)[asked[:, 0]] + votes.shares
    found["majority"] = counts / counts.sum(axis=1, keepdims=True)
    for way, p in found.items():
        p = p / p.sum(axis=1, keepdims=True)
        own = np.clip(p[np.arange(len(asked)), asked[:, 2]], 1e-6, None)
        record = {
            "what": "real",
            "way": way,
            "rows": n,
            "people": table.shape[1],
            "labels": len(said),
            "classes": classes,
            "log probability": float(np.log(own).mean()),
            "right": float((p.argmax(axis=1) == asked[:, 2]).mean()),
            "seconds": seconds,
        }
        write(path, record)
        print(record)


def told_by(skene, asked, n, people, classes):
    """Probabilities of labels, [K, C], by what Dawid-Skene found of rows and people."""
    probs = skene.probas_.reindex(index=range(n), columns=range(classes)).fillna(0).to_numpy(float)
    errors = np.full((people, classes, classes), 1 / classes)
    for (j, given), line in skene.errors_.iterrows():
        errors[j, :, given] = line.reindex(range(classes)).fillna(0).to_numpy(float)
    return np.einsum("kc,kcd->kd", probs[asked[:, 0]], errors[asked[:, 1]])
