"""Several people labelled each row: our consensus beside majority, Dawid-Skene, GLAD and CROWDLAB.

    python benchmarks/annotators.py cells OUT.jsonl [SEED]   # goes on where it stopped
    python benchmarks/annotators.py asking OUT.jsonl
    python benchmarks/annotators.py scale OUT.jsonl
    python benchmarks/annotators.py real OUT.jsonl pyanno-2.0.2.tar.gz   # pip download --no-deps
    python benchmarks/annotators.py page OUT.jsonl docs/annotators.md

Needs cleanlab and crowd-kit, and the tables in the folder MTBAYES_DATA.
"""

from __future__ import annotations

import json
import os
import sys
import tarfile
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.datasets import load_digits, make_classification
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import KFold

from mtbayes import Annotations, RobustClassifier

ROWS = 500
DATA = ("digits", "segment", "mammographic")
KINDS = ("good", "mixed", "adversarial", "expert", "confusion", "hard")
CROWDS = ((3, (3, 3)), (10, (1, 5)), (50, (2, 2)), (50, (1, 1)))
WAYS = ("majority", "Dawid-Skene", "GLAD", "CROWDLAB", "CROWDLAB, our predictive", "ours")


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


def write(path, record):
    with Path(path).open("a", encoding="utf-8") as file:
        file.write(json.dumps(record) + "\n")


def read(path):
    text = Path(path).read_text(encoding="utf-8") if Path(path).exists() else ""
    return [json.loads(line) for line in text.splitlines()]


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


def quick():
    """A learner for the many fits of an asking; the default takes ten times as long."""
    trees = ExtraTreesClassifier(100, min_samples_leaf=2, random_state=0)
    return RobustClassifier(learner=trees, t=1.0, random_state=0)


def asking(path, step=80, steps=5):
    """From one label a row on: whom to ask about what, 80 labels at a time."""
    from cleanlab.multiannotator import get_active_learning_scores

    people = 10
    for name in ("digits", "segment"):
        for seed in (100,):
            x, y = table(name, 400)
            n, classes = len(y), int(y.max()) + 1
            rng = np.random.default_rng(seed)
            given = matrices("mixed", people, classes, rng)
            every = np.array(
                [[rng.choice(classes, p=given[j, v]) for j in range(people)] for v in y]
            )
            first = rng.integers(people, size=n)
            for how in ("random", "next_labels", "CROWDLAB's rows"):
                asked = {(i, int(first[i])) for i in range(n)}
                line = []
                for _ in range(steps + 1):
                    pairs = np.array(sorted(asked))
                    said = np.column_stack([pairs, every[pairs[:, 0], pairs[:, 1]]])
                    model = quick().fit(
                        x, Annotations.long(*said.T, index=range(n), classes=range(classes))
                    )
                    line.append(float((model.consensus_ == y).mean()))
                    free = [(i, j) for i in range(n) for j in range(people) if (i, j) not in asked]
                    if how == "next_labels":
                        new = [(q.row, q.annotator) for q in model.next_labels(step)]
                    elif how == "random" or (said[:, 0].size == n):
                        new = [free[v] for v in rng.permutation(len(free))[:step]]
                    else:
                        wide = np.full((n, people), np.nan)
                        wide[said[:, 0], said[:, 1]] = said[:, 2]
                        scores, _ = get_active_learning_scores(
                            pd.DataFrame(wide).astype("Int64"), model.unseen_prediction_
                        )
                        rows = np.argsort(scores)[:step]
                        new = []
                        for i in rows:
                            left = [j for j in range(people) if (int(i), j) not in asked]
                            new += [(int(i), int(rng.choice(left)))] if left else []
                    asked |= set(new)
                write(
                    path,
                    {
                        "what": "asking",
                        "data": name,
                        "seed": seed,
                        "how": how,
                        "step": step,
                        "accuracy": line,
                    },
                )
                print(name, seed, how, np.round(line, 3), flush=True)


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
    skene = DawidSkene(100).fit(frame)
    probs = skene.probas_.reindex(index=range(n), columns=range(classes)).fillna(0).to_numpy(float)
    errors = np.full((table.shape[1], classes, classes), 1 / classes)
    for (j, given), line in skene.errors_.iterrows():
        errors[j, :, given] = line.reindex(range(classes)).fillna(0).to_numpy(float)
    found["Dawid-Skene"] = np.einsum("kc,kcd->kd", probs[asked[:, 0]], errors[asked[:, 1]])
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


BEGIN, END = "<!-- begin: measured -->", "<!-- end: measured -->"


def page(path, doc):
    """Put the tables between the marks of a page."""
    found = {}
    for record in read(path):
        found.setdefault(record["what"], []).append(record)
    parts = [told(found[what]) for what, told in PARTS.items() if what in found]
    text = Path(doc).read_text(encoding="utf-8")
    head, _, rest = text.partition(BEGIN)
    tail = rest.partition(END)[2]
    Path(doc).write_text(head + BEGIN + "\n" + "\n\n".join(parts) + "\n" + END + tail, "utf-8")


def _number(value, digits, missing="–"):
    return missing if value is None else f"{value:.{digits}f}"


def told_cells(records):
    """A line for each setting, and the means over those that CROWDLAB takes."""
    heads = ["data", "annotators", "labels a row", "kind"]
    lines = [
        "Accuracy of the consensus in %, and AUROC of wrong consensus (bold: ours).\n",
        "| " + " | ".join([*heads, *WAYS]) + " |",
        "|" + "---|" * (len(heads) + len(WAYS)),
    ]

    def cell(score):
        if score is None:
            return "–"
        return f"{100 * score['accuracy']:.1f} / {_number(score['auroc'], 3)}"

    for r in records:
        low, high = r["per row"]
        per_row = f"{low}" if low == high else f"{low} to {high}"
        cells_ = [cell(r[way]) for way in WAYS[:-1]] + [f"**{cell(r['ours'])}**"]
        lines.append(
            "| " + " | ".join([r["data"], str(r["people"]), per_row, r["kind"], *cells_]) + " |"
        )
    both = [r for r in records if r["CROWDLAB"] is not None]
    lines.append(
        "| "
        + " | ".join(
            ["mean", "", "2 and more", f"{len(both)} settings", *(_mean(both, way) for way in WAYS)]
        )
        + " |"
    )
    return "\n".join(lines) + "\n\n" + _beside(both) + "\n\n" + told_people(records)


def _mean(records, way):
    score = np.mean([r[way]["accuracy"] for r in records])
    known = [
        r[way]["auroc"]
        for r in records
        if all(r[w] is not None and r[w]["auroc"] is not None for w in ("CROWDLAB", "ours", way))
    ]
    return f"{100 * score:.2f} / {_number(np.mean(known) if known else None, 3)}"


def _beside(records):
    gain = [100 * (r["ours"]["accuracy"] - r["CROWDLAB"]["accuracy"]) for r in records]
    ranks = [
        r["ours"]["auroc"] - r["CROWDLAB"]["auroc"]
        for r in records
        if r["ours"]["auroc"] is not None and r["CROWDLAB"]["auroc"] is not None
    ]
    return (
        f"Beside CROWDLAB over {len(records)} settings: accuracy {np.mean(gain):+.2f} points on "
        f"average, lower in {sum(g < 0 for g in gain)} (at worst {min(gain):+.1f}); AUROC "
        f"{np.mean(ranks):+.3f} on average, lower in {sum(g < 0 for g in ranks)} (at worst "
        f"{min(ranks):+.3f}). One row is {100 / ROWS:.1f} points."
    )


def told_people(records):
    """How far qualities are off, over settings of 20 labels each and over all."""
    lines = [
        "How good each annotator is: root mean square error and share of 95 % intervals that hold "
        "the truth.\n",
        "| settings | labels each | `right`: share of the labels given | covered | `quality`: of "
        "labels to come | covered | Bayes' best, knowing the truth | share of right labels, "
        "knowing the truth | CROWDLAB's quality |",
        "|" + "---|" * 9,
    ]
    few = [r for r in records if r["people"] == 50 and r["per row"] == [2, 2]]
    for name, some in (("50 annotators, 2 labels a row", few), ("all", records)):
        if some:
            q = [r["quality"] for r in some]
            lab = [v["CROWDLAB off"] for v in q if "CROWDLAB off" in v]
            lines.append(
                f"| {name} ({len(some)}) | {np.mean([v['labels each'] for v in q]):.0f} | "
                + " | ".join(
                    f"{np.mean([v[k] for v in q]):.3f}"
                    for k in (
                        "right off",
                        "right covered",
                        "quality off",
                        "quality covered",
                        "oracle off",
                        "share off",
                    )
                )
                + f" | {_number(np.mean(lab) if lab else None, 3)} |"
            )
    return "\n".join(lines)


def told_asking(records):
    """Accuracy after each batch of labels."""
    step = records[0]["step"]
    labels = [step * k for k in range(len(records[0]["accuracy"]))]
    lines = [
        "Accuracy of the consensus in % after more labels, from one label a row on (400 rows, 10 "
        "mixed annotators; the learner is extra trees here, for the many fits).\n",
        "| data | asking | " + " | ".join(f"+{v}" for v in labels) + " | labels to random's last |",
        "|---|---|" + "---|" * (len(labels) + 1),
    ]
    last = {r["data"]: r["accuracy"][-1] for r in records if r["how"] == "random"}
    for r in records:
        enough = [v for v, a in zip(labels, r["accuracy"], strict=True) if a >= last[r["data"]]]
        lines.append(
            f"| {r['data']} | {r['how']} | "
            + " | ".join(f"{100 * a:.1f}" for a in r["accuracy"])
            + f" | {enough[0] if enough else '–'} |"
        )
    return "\n".join(lines)


def told_scale(records):
    r = records[-1]
    return (
        f"{r['labels']:,} labels of {r['rows']:,} rows by {r['people']} annotators: "
        f"{r['seconds']:.0f} s with the fit, {r['fit alone']:.0f} s for the fit to the consensus "
        f"alone ({r['seconds'] / r['fit alone']:.2f} times as long, on a busy machine); "
        f"{r['processor seconds']:.0f} and {r['processor seconds, fit alone']:.0f} s of processors "
        f"({r['processor seconds'] / r['processor seconds, fit alone']:.2f} times); accuracy "
        f"{100 * r['accuracy']:.1f} %."
    )


def told_real(records):
    r = records[0]
    lines = [
        f"{r['labels']:,} real labels of {r['rows']:,} sentences by {r['people']} curators in "
        f"{r['classes']} classes, three for each sentence (Rzhetsky, Shatkay and Wilbur 2009, in "
        "the source archive of pyanno on PyPI). Neither features nor the truth are with them, so a "
        "third label is told from the other two, by the law without features.\n",
        "| way | mean log probability of the hidden label | right % |",
        "|---|---|---|",
        *(f"| {r['way']} | {r['log probability']:.4f} | {100 * r['right']:.1f} |" for r in records),
    ]
    return "\n".join(lines)


PARTS = {"cell": told_cells, "asking": told_asking, "scale": told_scale, "real": told_real}


def main():
    warnings.filterwarnings("ignore")
    what, path, *rest = sys.argv[1:]
    {"cells": cells, "asking": asking, "scale": scale, "real": real, "page": page}[what](
        path, *rest
    )


if __name__ == "__main__":
    main()
