"""Verdicts, tables and pages, from numbers made by hand: nothing is trained here."""

import re
from pathlib import Path

import numpy as np
import pytest

from mtbayes.errors import InvalidInput
from mtbayes.experiments.housing import EPSILONS
from mtbayes.experiments.images import BINS, EDGES, SPLIT, T_GRID
from mtbayes.experiments.methods import DEEP, GIBBS, MODES, ROBUST
from mtbayes.experiments.results import Row, write_columns, write_rows
from mtbayes.report import REPORTS, claims, page
from mtbayes.report.curves import curve
from mtbayes.report.tables import rivals

DOCS = Path(__file__).parents[2] / "docs"


def row(method, t, metric, value, epsilon=0.3, seed=0):
    return Row("x", method, "d", 1, t, 1.0, 1.0, epsilon, seed, metric, value)


def curves(metric, functions, epsilon=0.3, seeds=2):
    """Rows of each method from a function of t; seeds differ by ±0.001."""
    return [
        row(method, t, metric, f(t) + 0.001 * (2 * seed - 1), epsilon, seed)
        for method, f in functions.items()
        for t in ((1.0,) if method == DEEP else T_GRID)
        for seed in range(seeds)
    ]


def save(out, name, rows=None, **tables):
    folder = out / name
    folder.mkdir()
    (folder / "run.json").write_text('{"mode": "quick", "spec": {"seeds": 2}, "seconds": 3.0}')
    if rows:
        write_rows(folder / "results.csv", rows)
    for table, columns in tables.items():
        write_columns(folder / f"{table}.csv", columns)


@pytest.fixture
def out(tmp_path):
    def peak(at, top):
        return lambda t: top - 0.2 * (t - at) ** 2

    images = [
        *curves(
            "accuracy",
            {
                ROBUST: peak(0.5, 0.95),
                GIBBS: peak(0.5, 0.9),
                DEEP: peak(1, 0.93),
                MODES: peak(0.5, 0.97),
            },
        ),
        *curves(
            "ece",
            {
                ROBUST: lambda t: 0.3 * t,
                GIBBS: lambda t: 0.2,
                DEEP: lambda t: 0.3,
                MODES: lambda t: 0.3 * t,
            },
        ),
        *curves(
            "nll",
            {
                ROBUST: lambda t: 0.5,
                GIBBS: lambda t: 0.6,
                DEEP: lambda t: 0.7,
                MODES: lambda t: 0.4,
            },
        ),
        *curves("overconfidence", dict.fromkeys((ROBUST, GIBBS, DEEP), lambda t: 0.1 - t)),
    ]
    save(tmp_path, "mnist", images)
    diagram = {"method": [], "t": [], "seed": [], "bin": [], "confidence": [], "accuracy": [],
               "counts": []}  # fmt: skip
    for method, t in [(DEEP, 1.0)] + [(m, t) for m in (ROBUST, GIBBS) for t in T_GRID]:
        for k in range(BINS):
            values = (method, t, 0, k, (k + 0.5) / BINS, 0.5, 20)
            for name, value in zip(diagram, values, strict=True):
                diagram[name].append(value)
    save(tmp_path, "reliability", images, reliability=diagram)
    save(tmp_path, "housing", [
        each
        for epsilon in EPSILONS
        for each in curves("nll", {ROBUST: lambda t, e=epsilon: (t - 1 + e) ** 2 - 0.7,
                                   GIBBS: lambda t, e=epsilon: (t - 1 + e) ** 2 - 0.6,
                                   DEEP: lambda t, e=epsilon: e - 0.6}, epsilon)
    ])  # fmt: skip
    left = np.tile(EDGES[:-1], 2)
    save(
        tmp_path,
        "nll-split",
        [row(ROBUST, t, "auroc", v) for t, v in zip(SPLIT, (0.55, 0.8), strict=True)],
        nll={"t": np.repeat(SPLIT, len(EDGES) - 1), "left": left, "clean": 1 + left,
             "corrupted": 9 - left},
    )  # fmt: skip
    grid = [(m, t_p, 1.0, mu, 0, mu * t_p * m / 10, 0.1)
            for m in (1, 10) for t_p in (0.5, 1.0) for mu in (0.0, 1.0)]  # fmt: skip
    names = ("m", "t_p", "beta", "prior_mean", "seed", "nll", "rmse")
    save(tmp_path, "prior", nll=dict(zip(names, zip(*grid, strict=True), strict=True)))
    return tmp_path


def verdicts(out):
    return {j.text: j.verdict for j in claims.judge(out)}


def test_every_claim_is_judged_by_its_numbers(out):
    found = {text.split(" ")[0] + text[-8:]: v for text, v in verdicts(out).items()}
    assert set(verdicts(out).values()) == {"holds", "does not hold here", "not measured"}
    assert [text for text, v in verdicts(out).items() if v == "not measured"] == [
        claims.CLAIMS[0].text  # there are no numbers of the multimodal task here
    ]
    lost = [text for text, v in verdicts(out).items() if v == "does not hold here"]
    assert lost == ["The best t increases with the share of outliers"]
    assert len(found) == len(claims.CLAIMS)


def test_a_claim_that_fails_in_one_of_two_cases_holds_partly(out):
    rows = curves("accuracy", {ROBUST: lambda t: 0.9, GIBBS: lambda t: 0.8, DEEP: lambda t: 0.95})
    save(out, "emnist", rows + curves("ece", dict.fromkeys((ROBUST, GIBBS, DEEP), lambda t: 0.2)))
    found = verdicts(out)
    assert found["Robust ensembles beat the Gibbs predictor and deep ensembles in accuracy"] == (
        "holds partly"
    )
    assert found["A well-chosen t < 1 raises accuracy over t = 1"] == "holds partly"
    assert found["ECE falls drastically for t < 1 (to less than half)"] == "holds partly"


def test_what_is_not_there_is_not_judged(tmp_path):
    assert set(verdicts(tmp_path).values()) == {"not measured"}


def test_curve_has_mean_and_extremes_over_seeds():
    rows = [row("a", 0.5, "nll", v, seed=s) for s, v in enumerate((1.0, 2.0, 6.0))]
    rows += [row("a", 0.2, "nll", 9.0), row("b", 0.5, "nll", 7.0), row("a", 0.5, "ece", 7.0)]
    found = curve(rows, "a", "nll")
    assert found.t.tolist() == [0.2, 0.5]
    assert (found.mean[1], found.low[1], found.high[1]) == (3.0, 1.0, 6.0)
    assert found.argmin() == 0.5


def test_rivals_choose_among_the_same_t():
    rows = [row(ROBUST, t, "nll", v) for t, v in ((1.0, 0.5), (0.7, 0.4), (0.4, 0.1))]
    rows += [row("β-divergence", t, "nll", v) for t, v in ((1.0, 0.6), (0.7, 0.3))]
    rows += [row(DEEP, 1.0, "nll", 0.35), row(DEEP, 1.0, "nll", 0.1, epsilon=0.0)]
    lines = rivals(rows, {"nll": 1.0}, "", 0.3).lines
    assert lines == [
        ("β-divergence", "0.7", "0.300"),
        (DEEP, "-", "0.350"),
        (ROBUST, "0.7", "0.400"),
    ]


def test_every_report_draws_from_its_files_alone(out):
    for name in ("mnist", "housing", "nll-split", "prior", "reliability"):
        paths = REPORTS[name].draw(out)
        assert {p.suffix for p in paths} == {".png", ".svg"}
        assert all(p.stat().st_size > 1000 for p in paths)
        assert REPORTS[name].tables(out)


def test_page_stands_alone(out):
    REPORTS["mnist"].draw(out)
    text = page.page(out)
    assert "data:image/png;base64," in text
    assert not re.search(r"(src|href)=\"(?!data:)", text)
    assert "does not hold here" in text
    assert text.count("<table") == text.count("</table>")
    assert text.count("<tr") == text.count("</tr>")


def test_markdown_names_its_command_and_mode(out):
    text = page.markdown(out, "mtbayes report somewhere", out)
    assert "mtbayes report somewhere" in text
    assert "| housing | quick |" in text
    for claim in claims.CLAIMS:
        assert f"| {claim.text} | **" in text


def test_the_page_in_the_docs_is_what_its_command_writes():
    command = "mtbayes report docs/reproduction --markdown docs/reproduction.md"
    assert (DOCS / "reproduction.md").read_text() == page.markdown(
        DOCS / "reproduction", command, DOCS
    )


@pytest.mark.parametrize(
    ("name", "folder"),
    [("../README.md", "reproduction"), ("multimodal.md", "reproduction"), ("index.md", "")],
)
def test_texts_hold_what_their_marks_ask_for(name, folder):
    text = (DOCS / name).read_text()
    assert page.within(text, DOCS / folder) == text


def test_text_without_marks_is_left_alone(tmp_path):
    assert page.within("no marks", tmp_path) is None
    assert page.within("<!-- begin: verdicts -->", tmp_path) is None


def test_marks_get_the_table_of_that_number(out):
    text = (
        "a <!-- begin: housing, table 1 -->stale<!-- end --> b <!-- begin: verdicts --><!-- end -->"
    )
    found = page.within(text, out)
    assert found.startswith("a <!-- begin: housing, table 1 -->\n\n**")
    assert "stale" not in found
    assert found.count("<!-- end -->") == 2
    assert f"| {claims.CLAIMS[0].text} |" in found
    assert page.within(found, out) == found
    with pytest.raises(InvalidInput, match="must name one of the"):
        page.within(text.replace("table 1", "table 99"), out)
    with pytest.raises(InvalidInput, match="'housing'"):
        page.within(text.replace("housing", "hosing"), out)
