"""The demo's table and figure, from numbers made by hand: nothing is trained here."""

import io

import numpy as np
import pytest
from rich.console import Console

from mtbayes.errors import InvalidInput
from mtbayes.experiments.demo import NAMES
from mtbayes.experiments.results import Row, write_columns, write_rows
from mtbayes.report import demo, figures, page

MEASURES = {
    "plain network": (0.6, 0.25, 1.5),
    "deep ensemble": (0.7, 0.05, 0.9),
    "Bayes": (0.9, 0.4, 0.75),
    "ours": (0.95, 0.02, 0.125),
}
FOUND = {
    "contamination": 0.31,
    "contamination_low": 0.28,
    "contamination_high": 0.34,
    "contamination_true": 0.3,
    "t_chosen": 0.4,
    "wrong": 300.0,
    "found": 280.0,
    "false_alarms": 1.0,
    "train_rows": 1000.0,
    "test_rows": 500.0,
    "epochs": 200.0,
}


@pytest.fixture
def out(tmp_path):
    measured = {
        name: dict(zip(("accuracy", "ece", "nll"), values, strict=True))
        for name, values in MEASURES.items()
    }
    measured["ours"] |= FOUND
    measured["plain network"] |= {"accuracy_early": 0.85, "ece_early": 0.3, "nll_early": 0.625}
    rows = [
        Row("demo", name, "digits", 1, 1.0, 1.0, 1.0, 0.3, 0, metric, value)
        for name, values in measured.items()
        for metric, value in values.items()
    ]
    folder = tmp_path / "demo"
    write_rows(folder / "results.csv", rows)
    empty = np.where(np.arange(15) < 5, np.nan, 0.5)
    bins = {"confidence": empty, "accuracy": empty / 2, "counts": np.arange(15)}
    write_columns(
        folder / "reliability.csv",
        {f"{name} {part}": values for name in NAMES for part, values in bins.items()},
    )
    labels = {"given": [1, 2, 3], "suggested": [4, 5, 6], "true": [4, 5, 7]}
    write_columns(
        folder / "suspects.csv",
        {"row": [7, 8, 9], **labels, **{f"pixel{i}": [0.0, 8.0, 16.0] for i in range(64)}},
    )
    return tmp_path


def printed(out):
    console = Console(width=100, record=True, file=io.StringIO())
    for each in demo.tables(out):
        console.print(each)
    return console.export_text()


def test_table_has_a_line_for_each_method(out):
    lines = [line.split() for line in printed(out).splitlines()]
    assert ["plain", "network", "60.0", "%", "25.0", "%", "1.500"] in lines
    assert ["deep", "ensemble", "70.0", "%", "5.0", "%", "0.900"] in lines
    assert ["Bayes", "90.0", "%", "40.0", "%", "0.750"] in lines
    assert ["ours", "95.0", "%", "2.0", "%", "0.125"] in lines


def test_findings_stand_beside_the_truth(out):
    text = printed(out)
    assert "estimated 31.0 % (28.0 % to 34.0 %), in truth 30.0 %" in text
    assert "t of the learner with the largest share: 0.4" in text
    assert "Found 280 of 300 wrong labels, 1 false alarm." in text


def test_networks_stopped_early_are_named(out):
    text = printed(out)
    assert "trained for 200 epochs. Stopped after 20:" in text
    assert "plain network: accuracy 85.0 %, ECE 30.0 %, NLL 0.625" in text


def test_figure_holds_four_diagrams_and_coloured_digits(out, monkeypatch):
    drawn = []
    monkeypatch.setattr(figures, "save", lambda figure, *_: drawn.append(figure) or [])
    demo.draw(out)
    above, below = drawn[0].subfigs
    names = [text.get_text() for axes in above.axes for text in axes.texts]
    assert names == list(NAMES)
    titles = [(axes.get_title(), axes.title.get_color()) for axes in below.axes]
    assert titles[:3] == [
        ("given 1,\nsuggested 4", figures.TRUTH),
        ("given 2,\nsuggested 5", figures.TRUTH),
        ("given 3,\nsuggested 6", figures.OUTLIER),
    ]
    images = [axes.images[0].get_array() for axes in below.axes if axes.images]
    assert [float(image.mean()) for image in images] == [0, 8, 16]
    assert {image.shape for image in images} == {(8, 8)}


def test_figure_is_written(out):
    png, svg = demo.draw(out)
    assert png.read_bytes().startswith(b"\x89PNG")
    assert "<svg" in svg.read_text()
    assert png.parent == out / "demo"


def test_mark_gets_the_demo_in_words(out, tmp_path_factory):
    text = "# Home\n\n<!-- begin: demo -->364 of 377<!-- end -->\n"
    found = page.within(text, out)
    words = " ".join(found.split())
    for said in (
        "Of 1,000 handwritten digits 30 % were given a wrong label.",
        "asked about 500 digits whose labels are right.",
        "ours is right 95.0 % of the time, and its probabilities are off by 2.0 percentage points",
        "the 3 training labels that it trusts least: 3 of them are wrong, and 2 of its suggestions",
        "finds 280 of 300 wrong labels, takes 1 of the right ones for wrong,",
        "estimates the share of wrong ones as 31.0 %.",
        "for 200 epochs, long enough for the plain network to learn",
        "Stopped after 20 epochs, they reach 85.0 % (the plain network).",
    ):
        assert said in words
    assert "364" not in found
    assert max(map(len, found.splitlines())) <= 120
    assert page.within(found, out) == found
    with pytest.raises(InvalidInput, match="'demo'"):
        page.within(text, tmp_path_factory.mktemp("empty"))


def test_page_of_a_folder_tells_of_its_demo(out):
    assert page.there(out) == ["demo"]
    demo.draw(out)
    text = page.page(out)
    assert "Found 280 of 300 wrong labels" in text
    assert "data:image/png;base64," in text
    assert "Found 280 of 300 wrong labels" in page.markdown(out, "mtbayes report results", out)
