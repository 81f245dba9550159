"""The tables of docs/annotators.md."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
from annotators_crowds import ROWS, read

WAYS = ("majority", "Dawid-Skene", "GLAD", "CROWDLAB", "CROWDLAB, our predictive", "ours")
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
        "labels to come | covered | our rule, knowing the truth | Bayes' best, knowing the truth "
        "and how people were drawn | share of right labels, knowing the truth | CROWDLAB's "
        "quality |",
        "|" + "---|" * 10,
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
                        "knowing off",
                        "oracle off",
                        "share off",
                    )
                )
                + f" | {_number(np.mean(lab) if lab else None, 3)} |"
            )
    return "\n".join(lines)


def told_asking(records):
    """Mean accuracy after each batch of labels, and the labels to where random asking ends.

    Runs that were stopped before all ways had asked are left out.
    """
    ways = {r["how"] for r in records}
    done = Counter((r["data"], r["seed"]) for r in records)
    records = [r for r in records if done[r["data"], r["seed"]] == len(ways)]
    labels = records[0]["step"] * np.arange(len(records[0]["accuracy"]))
    lines = [
        "Accuracy of the consensus in % after more labels, from one label a row on (300 rows, 10 "
        "mixed annotators; the learner is extra trees here, for the many fits). The last column "
        "has the labels with which each way is where random asking ends.\n",
        "| data | asking | " + " | ".join(f"+{v}" for v in labels) + " | labels to random's last |",
        "|---|---|" + "---|" * (len(labels) + 1),
    ]
    names = list(dict.fromkeys(r["data"] for r in records))
    for name in [*names, None]:
        some = [r for r in records if name in (None, r["data"])]
        curves = _curves(some)
        for how, curve in curves.items():
            enough = _enough(labels, curve, curves["random"][-1])
            runs = len(some) // len(curves)
            head = f"{name or 'mean'} ({runs} run{'s' * (runs > 1)})"
            cells_ = [f"{100 * a:.1f}" for a in curve] + [_number(enough, 0)]
            lines.append("| " + " | ".join([head, how, *cells_]) + " |")
    return "\n".join(lines)


def _curves(records):
    """Mean accuracy by way of asking."""
    ways = dict.fromkeys(r["how"] for r in records)
    return {w: np.mean([r["accuracy"] for r in records if r["how"] == w], axis=0) for w in ways}


def _enough(labels, curve, aim):
    """Labels at which a curve first is as high as `aim`, straight between batches; None: never."""
    if (curve < aim).all():
        return None
    k = int(np.argmax(curve >= aim))
    if k == 0:
        return 0.0
    step = (aim - curve[k - 1]) / (curve[k] - curve[k - 1])
    return float(labels[k - 1] + step * (labels[k] - labels[k - 1]))


def told_scale(records):
    r = records[-1]
    ratio = r["processor seconds"] / r["processor seconds, fit alone"]
    return (
        f"{r['labels']:,} labels of {r['rows']:,} rows by {r['people']} annotators: "
        f"{r['processor seconds']:.0f} s of processors with the fit, "
        f"{r['processor seconds, fit alone']:.0f} s for the fit to the consensus alone "
        f"({ratio:.2f} times as long; {r['seconds']:.0f} and {r['fit alone']:.0f} s by the clock, "
        f"while others used the machine); accuracy {100 * r['accuracy']:.1f} %."
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
