"""Write flats.csv, the file of docs/command.md: made-up flats, a twentieth of prices off by ten."""

import csv
from pathlib import Path

import numpy as np

DISTRICTS = {"Old Town": 60, "Köln-Süd": 20, "Harbour, north": 0, "Hill": 35}


def write(path: Path, rows: int = 400) -> None:
    """As a spreadsheet in Germany saves it: semicolons, decimal commas, Latin-1."""
    rng = np.random.default_rng(1)
    with path.open("w", encoding="latin-1", newline="") as file:
        table = csv.writer(file, delimiter=";", lineterminator="\r\n")
        table.writerow(["id", "area", "rooms", "district", "balcony", "built", "remark", "price"])
        for i in range(rows):
            area, district = rng.uniform(25, 140), str(rng.choice(list(DISTRICTS)))
            balcony, year = rng.random() < 0.4, int(rng.integers(1950, 2023))
            worth = 2.1 * area + DISTRICTS[district] + 10 * balcony + 0.2 * (year - 1950)
            price = worth + rng.normal(0, 8)
            if rng.random() < 0.05:
                price *= 10 if rng.random() < 0.5 else 0.1
            measured = "" if rng.random() < 0.05 else _comma(area)
            built = f"{rng.integers(1, 28):02d}.{rng.integers(1, 13):02d}.{year}"
            remark = f"see file {rng.integers(1_000_000)}"
            known = [i + 1, measured, 1 + int(area // 30), district, "yes" if balcony else "no"]
            table.writerow([*known, built, remark, _comma(price)])


def _comma(value: float) -> str:
    return f"{value:.1f}".replace(".", ",")


if __name__ == "__main__":
    write(Path("flats.csv"))
