"""Write wine.csv, the file of docs/tutorials/audit.md: a tenth of its cultivars swapped."""

import csv
from pathlib import Path

from sklearn.datasets import load_wine

from mtbayes.data.contamination import flip_labels

CULTIVARS = ["Barolo", "Grignolino", "Barbera"]


def write(path: Path) -> None:
    """178 wines of Piedmont, what was measured of each, and the cultivar that is claimed."""
    wine = load_wine()
    claimed = flip_labels(wine.target, 0.1, seed=1).data
    with path.open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file)
        table.writerow([*wine.feature_names, "cultivar"])
        for row, label in zip(wine.data, claimed, strict=True):
            table.writerow([*row, CULTIVARS[label]])


if __name__ == "__main__":
    write(Path("wine.csv"))
