"""How soon a person who answers truthfully finds the wrong labels of a file.

    python benchmarks/review.py [--quick] [--share 0.1] [--seed 0] [--seeds 1] [--data NAME]

A tenth of the labels is swapped. The person goes down the list that `mtbayes.Review` shows, keeps
what is right and corrects what is wrong, until 95 % of the swapped labels are found: once by the
first ranking alone, once with a refit after every 20 decisions. With several seeds the means come
last.
"""

from __future__ import annotations

import argparse
import csv
import math
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits

from mtbayes import Review
from mtbayes.data.contamination import flip_labels

DATA = {"breast cancer": load_breast_cancer, "digits": load_digits}
FOUND = 0.95
QUICK = {"learner": "trees", "t": 0.7}


def write(path: Path, x: np.ndarray, names: list[str], labels: np.ndarray) -> None:
    """Rows and labels as CSV."""
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([*names, "label"])
        writer.writerows([*row, label] for row, label in zip(x.tolist(), labels, strict=True))


def looked(review: Review, true: list[str], swapped: set[int], *, refits: bool) -> tuple[int, int]:
    """Rows looked at, and swapped ones found, until 95 % of these are."""
    row: int | None = int(review.open[0])
    found = count = 0
    while row is not None:
        count += 1
        found += row in swapped
        review.decide(row, *(("correct", true[row]) if row in swapped else ("keep",)))
        if found >= math.ceil(FOUND * len(swapped)):
            break
        if refits and count % 20 == 0:
            review.refit()
        row = review.following(row)
    return count, found


def measured(name: str, share: float, seed: int, settings: dict[str, Any]) -> list[float]:
    """Both ways for one data set; rows looked at for each swapped label."""
    data = DATA[name]()
    names = [str(n).replace(" ", "_") for n in data.feature_names]
    true = data.target_names[data.target].astype(str).tolist()
    dirty = flip_labels(data.target, share, seed=seed)
    given = data.target_names[dirty.data].astype(str)
    swapped = set(np.flatnonzero(dirty.touched).tolist())
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "data.csv"
        write(path, data.data, names, given)
        ratios = []
        for refits in (False, True):
            log = Path(folder) / f"{refits}.jsonl"
            begin = time.monotonic()
            review = Review(path, "label", log=log, every=0, task="classes", **settings)
            first = review.outlook
            count, found = looked(review, true, swapped, refits=refits)
            line = {
                "data": name,
                "seed": seed,
                "ranking": "with refits" if refits else "first alone",
                "swapped": len(swapped),
                "found": found,
                "looked at": count,
                "ratio": round(count / len(swapped), 3),
                "estimated first": round(first.remaining, 1),
                "estimated last": round(review.outlook.found + review.outlook.remaining, 1),
                "seconds": round(time.monotonic() - begin),
            }
            print(line, flush=True)
            review.close()
            ratios.append(count / len(swapped))
    return ratios


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", choices=DATA, action="append")
    parser.add_argument("--share", type=float, default=0.1)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seeds", type=int, default=1, help="so many from --seed on")
    parser.add_argument("--quick", action="store_true", help="trees alone")
    asked = parser.parse_args()
    settings = QUICK if asked.quick else {}
    for name in asked.data or DATA:
        seeds = range(asked.seed, asked.seed + asked.seeds)
        found = [measured(name, asked.share, seed, settings) for seed in seeds]
        first, refits = np.mean(found, axis=0)
        print(f"{name}: {first:.3f} by the first ranking, {refits:.3f} with refits", flush=True)


if __name__ == "__main__":
    main()
