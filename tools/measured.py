"""Tables of the documents, from the files that benchmarks wrote into `docs/measured`.

`make evidence` puts them between marks such as `<!-- begin: measured/certificates/log_t -->` and
`<!-- end -->`. A test fails where a page says anything else.
"""

from __future__ import annotations

import ast
import csv
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
SAVED = DOCS / "measured"
PAGES = (ROOT / "README.md", *sorted(DOCS.glob("*.md")))
MARKED = re.compile(r"(<!-- begin: measured/([\w/-]+) -->).*?(<!-- end -->)", re.DOTALL)
Lines = list[dict[str, str]]
OURS, OUR_ENSEMBLE = "mtbayes", "mtbayes, ensemble"
EAGER = ("torch, weights drawn", "torch, rows drawn", "torch, pool", "torch, ensemble")
COMPILED = ("torch.compile", "torch.compile, pool", "torch.compile, ensemble")
NAMED = {
    "mnist": "MNIST 784-25-10",
    "emnist": "EMNIST 784-25-25-47",
    "housing": "Housing 8-10-10-1",
    "multimodal": "Two branches 1-50-50-1",
    "cifar": "CIFAR CNN",
}


def filled(text: str) -> str:
    """A page with what its marks ask for put between them."""
    return MARKED.sub(lambda found: f"{found[1]}\n\n{BLOCKS[found[2]]()}\n\n{found[3]}", text)


def write() -> list[str]:
    """Fill all pages; the names of those that changed."""
    changed = []
    for path in PAGES:
        text = path.read_text("utf-8")
        new = filled(text)
        if new != text:
            path.write_text(new, "utf-8")
            changed.append(path.name)
    return changed


def read(name: str) -> Lines:
    """The lines of a CSV file."""
    with (DOCS / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def verbatim(name: str) -> str:
    """What a command printed, as text."""
    return f"```text\n{(SAVED / name).read_text('utf-8').rstrip()}\n```"


def grid(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = [heads, ["---"] * len(heads), *rows]
    text = "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
    return re.sub(r"\|  (?=\|)", "| ", text)


def percent(value: str) -> str:
    """A share as 4.62 %."""
    return f"{100 * float(value):.2f} %"


def short(value: float) -> str:
    """Three digits, without powers of ten."""
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


# Certificates.


def log_t() -> str:
    """Lemma 1 in numbers: the mean log_t loss of m members."""
    heads = {
        "m": "m", "t": "t", "bound": "bound", "emp": "empirical", "mc": "Monte Carlo",
        "conf": "confidence", "cplx": "complexity", "kl": "KL (nats)", "test": "test",
        "ratio": "bound/test", "uniform": "uniform",
    }  # fmt: skip
    digits = {"m": "", "t": "g", "kl": ".2g", "ratio": ".3f", "uniform": ".3f"}

    def cells(line: dict[str, str]) -> list[str]:
        formats = {key: digits.get(key, ".4f") for key in heads}
        return [format(float(line[k]), f) if f else line[k] for k, f in formats.items()]

    return grid(list(heads.values()), map(cells, read("measured/certificates/log_t.csv")))


def errors() -> str:
    """Certified error rates."""
    heads = {
        "bound": "bound", "emp": "empirical", "mc": "Monte Carlo", "conf": "confidence",
        "union": "tried", "cplx": "complexity", "undrawn": "not drawn", "kl": "KL (nats)",
        "test": "test", "clean": "clean bound", "clean_test": "clean test",
    }  # fmt: skip

    def cells(line: dict[str, str]) -> list[str]:
        told = [f"{float(line[k]):.2g}" if k == "kl" else percent(line[k]) for k in heads]
        return [f"{float(line['eps']):g}", line["of"], *told]

    lines = read("measured/certificates/error.csv")
    return grid(["ε", "of", *heads.values()], map(cells, lines))


# Modes.


def families(file: str) -> str:
    """Families of modes on images."""
    lines = read(f"measured/modes/{file}.csv")
    names = {"mnist": "MNIST", "emnist47": "EMNIST, 47 classes", "cifar10_10k": "CIFAR-10"}
    found: dict[str, dict[str, dict[str, str]]] = defaultdict(dict)
    for line in lines:
        found[line["method"]][line["data"]] = line
    present = [data for data in names if any(line["data"] == data for line in lines)]
    heads = [f"{names[d]}: {what}" for d in present for what in ("accuracy", "NLL", "ms a step")]
    rows = []
    for method, by in found.items():
        cells = [method]
        for data in present:
            one = by[data]
            accuracy = f"{100 * float(one['accuracy']):.1f} %"
            cells += [accuracy, f"{float(one['nll']):.3f}", short(float(one["ms"]))]
        rows.append(cells)
    return grid(["", *heads], rows)


def families_of_tables() -> str:
    """Families of modes on tables, the lowest NLL in bold."""
    lines = read("measured/modes/tables.csv")
    present = list(dict.fromkeys(line["data"] for line in lines))
    best = {d: min(float(one["nll"]) for one in lines if one["data"] == d) for d in present}
    found: dict[str, list[str]] = defaultdict(list)
    for data in present:
        for one in (line for line in lines if line["data"] == data):
            nll = f"{float(one['nll']):.3f}"
            bold = f"**{nll}**" if float(one["nll"]) == best[data] else nll
            found[one["method"]].append(f"{100 * float(one['accuracy']):.1f} %, {bold}")
    return grid(["", *present], ([method, *cells] for method, cells in found.items()))


def spread(values: list[float], digits: int, factor: float = 1.0, unit: str = "") -> str:
    """Mean and standard deviation over seeds."""
    mean = sum(values) / len(values)
    sd = (sum((v - mean) ** 2 for v in values) / max(1, len(values) - 1)) ** 0.5
    return f"{factor * mean:.{digits}f}{unit} ± {factor * sd:.{digits}f}{unit}"


def default_lines() -> dict[tuple[str, float, str], Lines]:
    """Runs of the defaults by data, share of wrong rows and method."""
    found: dict[tuple[str, float, str], Lines] = defaultdict(list)
    for line in read("modes/defaults.csv"):
        found[line["data"], float(line["eps"]), line["method"]].append(line)
    return found


def defaults() -> str:
    """The defaults beside deep ensembles, over seeds."""
    rows = []
    for (data, eps, method), lines in default_lines().items():
        cells = [data, f"{eps:g}", method]
        for key, digits, factor, unit in (
            ("accuracy", 2, 100, "%"), ("nll", 3, 1, ""), ("ece", 2, 100, "%"),
            ("eps_hat", 3, 1, ""), ("seconds", 0, 1, ""),
        ):  # fmt: skip
            values = [float(line[key]) for line in lines if line[key]]
            cells.append(spread(values, digits, factor, unit) if values else "")
        rows.append([*cells, str(len(lines))])
    return grid(["data", "ε", "method", "accuracy", "NLL", "ECE", "ε̂", "seconds", "seeds"], rows)


# Speed.


def steps(modes: bool) -> dict[str, dict[str, dict[str, str]]]:
    """Lines of the five networks by workload and rival, or of ten of each."""
    found: dict[str, dict[str, dict[str, str]]] = defaultdict(dict)
    for line in read("measured/performance/steps.csv"):
        name, _, many = line["case"].partition(", ")
        if name in NAMED and bool(many) == modes and line["ms"]:
            found[name][line["rival"]] = line
    return found


def beside(by: dict[str, dict[str, str]], rivals: Sequence[str]) -> str:
    """Milliseconds of the fastest of some rivals, and how many times ours that is."""
    there = [by[rival] for rival in rivals if rival in by]
    if not there:
        return "–"
    best = min(there, key=lambda line: float(line["ms"]))
    return f"{short(float(best['ms']))} ({float(best['ratio']):.1f}×)"


def speed() -> str:
    """One network each, ours beside all rivals."""
    columns = (EAGER, COMPILED, ("bayesian-torch",), ("numpyro",), ("scikit-learn, 1 network",))
    heads = ["workload", "ours", "best torch, eager", "torch.compile", "bayesian-torch"]
    heads += ["NumPyro SVI", "scikit-learn, one network"]
    rows = []
    for name, by in steps(modes=False).items():
        one = by[OURS]
        title = f"{NAMED[name]}, m = {one['m']}, {one['batch']} rows"
        told = [beside(by, rivals) for rivals in columns]
        rows.append([title, f"**{short(float(one['ms']))}**", *told])
    return grid(heads, rows)


def speed_of_modes() -> str:
    """Ten networks each."""
    rows = []
    for name, by in steps(modes=True).items():
        one = by[OUR_ENSEMBLE]
        title = f"{NAMED[name]}, {one['batch']} rows"
        told = [beside(by, EAGER), beside(by, COMPILED)]
        rows.append([title, f"**{short(float(one['ms']))}**", *told])
    return grid(["ten networks", "ours", "torch, eager", "torch.compile"], rows)


def growth() -> str:
    """The MNIST network with one size changed at a time."""
    lines = read("measured/performance/growth.csv")
    sizes = {"m": "m", "batch": "batch", "width": "width", "modes": "networks"}
    rows = []
    for sweep, title in sizes.items():
        key = "m" if sweep == "modes" else sweep
        found: dict[int, dict[str, dict[str, str]]] = defaultdict(dict)
        for line in lines:
            if line["sweep"] == sweep and line["ms"]:
                found[int(line[key])][line["rival"]] = line
        for size, by in sorted(found.items()):
            ours = by.get(OURS) or by[OUR_ENSEMBLE]
            told = [beside(by, EAGER), beside(by, COMPILED)]
            rows.append([f"{title} = {size}", short(float(ours["ms"])), *told])
    return grid(["changed", "ours", "best torch, eager", "torch.compile"], rows)


def fresh() -> str:
    """What a fresh process pays."""
    found: dict[str, dict[str, float]] = defaultdict(dict)
    for line in read("measured/performance/fresh.csv"):
        found[line["what"]][line["name"]] = float(line["value"])
    rows = []
    for what, numbers in found.items():
        if what.startswith("memory"):
            told = f"{numbers['added_mb']:.0f} MB beside {numbers['rows_mb']:.0f} MB of rows"
        elif "fit_s" in numbers:
            told = f"{numbers['process_s']:.1f} s, of which {numbers['fit_s']:.1f} s are the fit"
        else:
            told = f"{1000 * numbers['import_s']:.1g} ms; all names {numbers['all_names_s']:.1f} s"
        rows.append([what, told])
    return grid(["what", "measured"], rows)


# More rows than memory.


def scale(name: str, heads: dict[str, str]) -> Callable[[], str]:
    """A table of some columns of a file of benchmarks/scale.py."""

    def number(text: str) -> str:
        return f"{int(text):,}" if text.isdigit() else text

    def told() -> str:
        lines = read(f"measured/scale/{name}.csv")
        return grid(list(heads.values()), ([number(one[key]) for key in heads] for one in lines))

    return told


def prediction() -> str:
    """What many devices may reach."""
    found: dict[tuple[str, str], dict[str, str]] = defaultdict(dict)
    for line in read("measured/scale/prediction.csv"):
        key = f"{int(line['rows a device']):,}", line["Gb/s"]
        found[key][line["devices"]] = f"{float(line['efficiency']):.2f}"
    counts = list(next(iter(found.values())))
    heads = ["rows a device", "link, Gb/s", f"{counts[0]} devices", *counts[1:]]
    return grid(heads, ([*key, *by.values()] for key, by in found.items()))


# Influence, review, text.


def harm() -> str:
    """Influence on MNIST, means over seeds."""
    found: dict[str, Lines] = defaultdict(list)
    for line in read("measured/influence/gauss_newton.csv"):
        found[line["t"]].append(line)
    heads = ["t", "AUROC of harm", "AUROC of `outlier_probability_`"]
    heads += ["wrong among the most harmful tenth", "harmful: of wrong rows", "of right ones"]
    heads += ["seconds"]
    keys = {
        "auroc_harm": ".3f", "auroc_probability": ".3f", "wrong_in_worst_tenth": ".0%",
        "harmful_of_wrong": ".0%", "harmful_of_clean": ".0%", "seconds": ".0f",
    }  # fmt: skip

    def cells(t: str, lines: Lines) -> list[str]:
        means = {key: sum(float(line[key]) for line in lines) / len(lines) for key in keys}
        told = [format(means[key], form).replace("%", " %") for key, form in keys.items()]
        return [f"{float(t):g}", *told]

    return grid(heads, (cells(t, lines) for t, lines in found.items()))


def review() -> str:
    """Rows looked at until most wrong ones are found, and means."""
    found: dict[tuple[str, int], dict[str, dict[str, float]]] = defaultdict(dict)
    for text in (SAVED / "review" / "review.txt").read_text("utf-8").splitlines():
        if text.startswith("{"):
            line = ast.literal_eval(text)
            found[line["data"], line["seed"]][line["ranking"]] = line
    heads = ["data", "seed", "swapped", "found", "looked at, first ranking alone"]
    heads += ["looked at, with refits"]
    rows, means = [], []
    both = ("first alone", "with refits")
    for (data, seed), by in found.items():
        one = by["first alone"]
        told = [f"{by[way]['looked at']} ({by[way]['ratio']:.2f})" for way in both]
        rows.append([data, str(seed), str(one["swapped"]), str(one["found"]), *told])
    for data in dict.fromkeys(key[0] for key in found):
        cells = [f"{data}, mean", "", "", ""]
        for way in both:
            lines = [by[way] for (name, _), by in found.items() if name == data]
            looked, ratio = (
                sum(line[key] for line in lines) / len(lines) for key in ("looked at", "ratio")
            )
            cells.append(f"{looked:.1f} ({ratio:.2f})")
        means.append(cells)
    return grid(heads, rows + means)


def texts() -> str:
    """Wrong labels of texts, without seconds."""
    lines = (SAVED / "text" / "text.txt").read_text("utf-8").splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return grid(rows[0][:-1], (row[:-1] for row in rows[2:]))


# The first page.


def figures() -> str:
    """What a reader of README asks first, from the files of the pages that it links to."""
    found = default_lines()
    titles = {"mnist": "MNIST", "emnist": "EMNIST, 47 classes", "cifar10": "CIFAR-10"}
    rows = []
    for data, title in titles.items():
        for eps in (0.0, 0.3):
            cells = [title, f"{eps:.0%}".replace("%", " %")]
            for method in ("ours", "deep ensemble"):
                lines = found[data, eps, method]
                for key, factor, unit in (("accuracy", 100, " %"), ("nll", 1, "")):
                    mean = factor * sum(float(line[key]) for line in lines) / len(lines)
                    cells.append(f"{mean:.1f}{unit}" if unit else f"{mean:.2f}")
            rows.append(cells)
    heads = ["images, clean test rows", "wrong labels", "accuracy, ours", "NLL"]
    return grid([*heads, "accuracy, deep ensemble of ten", "NLL"], rows)


def wins() -> str:
    """How often the default was ahead on tables, from the page that has all."""
    titles = {
        "classes, ε > 0: lowest NLL": "classes, wrong labels: lowest NLL of all",
        "... AUROC at least cleanlab's less .005": "... wrong rows ranked as well as by cleanlab",
        "classes, ε = 0: lowest NLL": "classes, clean rows: lowest NLL of all",
        "numbers, ε > 0: lowest MAE": "numbers, wrong targets: lowest absolute error of all",
        "numbers, ε = 0: lowest MAE": "numbers, clean rows: lowest absolute error of all",
    }
    found = {}
    for line in (DOCS / "tables" / "tables.md").read_text("utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 3:
            found[cells[0]] = cells[2].replace("%", " %")
    return grid(["26 tables", "in"], ([told, found[what]] for what, told in titles.items()))


BLOCKS: dict[str, Callable[[], str]] = {
    "certificates/log_t": log_t,
    "certificates/error": errors,
    "certificates/modes": lambda: verbatim("certificates/modes.txt"),
    "modes/images": lambda: families("images"),
    "modes/cifar": lambda: families("cifar"),
    "modes/tables": families_of_tables,
    "modes/defaults": defaults,
    "performance/steps": speed,
    "performance/modes": speed_of_modes,
    "performance/growth": growth,
    "performance/fresh": fresh,
    "scale/rows": scale(
        "rows",
        {"rows": "rows", "cpu us a row": "processor µs a row", "peak_mb": "peak memory, MB"},
    ),
    "scale/bytes": scale(
        "bytes",
        {
            "network": "network",
            "m": "m",
            "parameters": "parameters",
            "bytes a step": "bytes a step",
        },
    ),
    "scale/stream": scale(
        "stream",
        {
            "workload": "workload",
            "memory rows_s": "rows a second, from memory",
            "stream rows_s": "from Parquet",
            "stream/memory": "ratio",
            "lowest": "lowest",
            "highest": "highest",
        },
    ),
    "scale/devices": scale(
        "devices",
        {
            "rows a device": "rows a device",
            "way": "devices",
            "step_ms": "ms a step",
            "times one device": "times one device",
        },
    ),
    "scale/prediction": prediction,
    "influence/refits": lambda: verbatim("influence/refits.txt"),
    "influence/mnist": harm,
    "review/review": review,
    "text/text": texts,
    "toy/readings": lambda: verbatim("toy/readings.txt"),
    "figures": figures,
    "wins": wins,
}
"""What pages may ask for, by the name in the mark."""


if __name__ == "__main__":
    print(f"filled in: {', '.join(write()) or 'nothing new'}")
