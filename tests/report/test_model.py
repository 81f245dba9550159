"""The page of a model: what it tells, and that it is sound HTML that loads nothing."""

import re
from html.parser import HTMLParser
from unittest.mock import Mock

import numpy as np
import pytest

from mtbayes.report import html, model
from mtbayes.report.model import page

EMPTY = {"meta", "link", "img", "br"}


class Page(HTMLParser):
    """Elements with their attributes, the cells of tables, and all text."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.tables, self.open, self.text = [], [], [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))
        if tag not in EMPTY:
            self.open.append(tag)
        if tag == "table":
            self.tables.append([])
        if tag == "tr":
            self.tables[-1].append([])
        if tag in ("td", "th"):
            self.tables[-1][-1].append("")

    def handle_startendtag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)
        if {"td", "th"} & set(self.open):
            self.tables[-1][-1][-1] += data.replace("\u00a0", " ")

    def all(self, *tags):
        return [attributes for tag, attributes in self.elements if tag in tags]


@pytest.fixture(params=["classes", "numbers"])
def parsed(request):
    return Page(request.getfixturevalue(f"{request.param}_page"))


def test_pictures_have_words(parsed):
    assert parsed.all("svg")
    for one in parsed.all("img"):
        assert len(one["alt"]) > 5
    for one in parsed.all("svg"):
        assert one["role"] == "img"
        assert len(one["aria-label"]) > 20
        assert float(one["width"].removesuffix("pt")) > 100


def test_nothing_is_loaded(parsed, classes_page):
    for _, attributes in parsed.elements:
        for name in ("src", "href", "xlink:href", "action", "data"):
            assert attributes.get(name, "#").startswith(("#", "data:")), attributes
        assert not re.search(r"url\((?!#)", attributes.get("style", ""))
    assert "@import" not in classes_page
    assert "http" not in classes_page


def test_names_inside_the_page_are_unique_and_lead_somewhere(parsed):
    ids = [a["id"] for _, a in parsed.elements if "id" in a]
    assert len(ids) == len(set(ids))
    for _, attributes in parsed.elements:
        for value in attributes.values():
            for name in re.findall(r"url\(#([^)]*)\)|^#(\w+)$", value or ""):
                assert (name[0] or name[1]) in ids or name[1].isdigit()
    named = {a["aria-labelledby"] for a in parsed.all("section")}
    assert named <= set(ids)


def test_every_heading_of_a_table_can_be_pressed(parsed):
    heads = parsed.all("th")
    assert all(one["scope"] == "col" for one in heads)
    buttons = sum("aria-sort" in one for one in heads)
    assert buttons == len(parsed.all("button")) > 8
    assert sum("image" in table[0] for table in parsed.tables) == len(heads) - buttons
    assert all(one["tabindex"] == "0" for one in parsed.all("div") if one["class"] == "wide")


def test_suspects_are_told_as_they_are(classes_page):
    table = next(t for t in Page(classes_page).tables if "suggested" in t[0])
    assert table[0] == ["row", "image", "wrong %", "given", "suggested", "why", "weight"]
    why = "going by the other rows, cat is 1 % likely"
    assert table[1] == ["30", "", "99.0", "cat", "dog", why, "0.3"]
    assert [line[0] for line in table[1:]] == ["30", "4", "100", "2"]


def test_reliability_counts_rows_as_much_as_they_are_good(classes_case, classes_page):
    table = next(t for t in Page(classes_page).tables if "alike %" in t[0])
    confidence = classes_case.prediction.max(axis=1)
    right = classes_case.prediction.argmax(axis=1) == classes_case.y
    last = next(line for line in table if line[0] == "90–100")
    part = confidence > 0.9
    good = 1 - classes_case.wrong
    assert int(last[1]) == part.sum()
    assert float(last[3]) == pytest.approx(
        100 * np.average(right[part], weights=good[part]), abs=0.06
    )
    assert float(last[4]) == pytest.approx(100 * right[part].mean(), abs=0.06)


def test_coverage_with_and_without_the_wrong_rows(numbers_case, numbers_page):
    table = next(t for t in Page(numbers_page).tables if "alike %" in t[0])
    row = next(line for line in table if line[0] == "90")
    inside = np.abs(numbers_case.y - numbers_case.prediction[:, 0]) <= 1.6449 * 2
    assert float(row[1]) == pytest.approx(100 * inside[20:].mean(), abs=0.06)
    assert float(row[2]) == pytest.approx(100 * inside.mean(), abs=0.06)


def test_the_page_says_which_rows_judge(classes_case, monkeypatch):
    figures = ("reliability", "suspicion", "path", "doubt", "importance", "effect")
    drawn = Mock(**{f"{name}.return_value": "<svg></svg>" for name in figures})
    monkeypatch.setattr(model, "draw", drawn)  # drawing takes seconds

    def said(**changes):
        return " ".join("".join(Page(page(classes_case._replace(**changes))).text).split())

    some = classes_case.seen.copy()
    some[:50] = False
    assert "All 200 rows of the data were fitted. Each of them is judged by a fit" in said()
    assert "None of the 200 rows of the data was fitted" in said(seen=np.zeros(200, bool))
    mixed = said(seen=some)
    assert "Of 200 rows of the data 150 were fitted" in mixed
    assert "The final model judges the other 50" in mixed
    few = said(judged=False, path=[])
    assert "This cannot be told from these rows" in few
    assert "a wrong row may well look right here" in few
    assert "Reliability diagram" not in few
    assert "may well look right" not in said()
    assert "It was given, and not chosen." in said(chosen=False)


def test_hostile_names_are_text(make_classes, classes_page):
    evil = "<script>alert('x')</script>"
    label = '"><img src=x onerror="alert(1)"> & $\\frac{$'
    clean = Page(classes_page)
    found = Page(page(make_classes(evil, (label, "dog", "owl"), evil, label)))
    assert len(found.all("script")) == len(clean.all("script")) == 1
    assert not [a for _, a in found.elements if "onerror" in a]
    assert len(found.all("img")) == len(clean.all("img")) == 4
    shown = "".join(found.text).replace("\u00a0", " ")
    assert f"What was learned about {evil}" in shown
    assert label in shown
    table = next(t for t in found.tables if "suggested" in t[0])
    assert table[0][-1] == evil
    assert table[1][3] == label


def test_images_of_pixels_are_drawn_by_their_importance(classes_case):
    found = Page(page(classes_case._replace(heat=np.eye(8), effects=[])))
    words = [one["aria-label"] for one in found.all("svg")]
    assert any("Cost of shuffling each part of the image" in text for text in words)
    assert not any("when a column is shuffled" in text for text in words)


def luminance(colour):
    colour = colour.lstrip("#")
    if len(colour) == 3:
        colour = "".join(2 * c for c in colour)
    parts = np.array([int(colour[i : i + 2], 16) for i in (0, 2, 4)]) / 255
    linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


@pytest.mark.parametrize("scheme", [0, 1])
def test_colours_have_contrast_in_both_schemes(scheme):
    """WCAG: 4.5 for text, 3 for parts of figures."""
    blocks = re.findall(r":root \{([^}]*)\}", html.document("", ""))
    colours = dict(re.findall(r"--(\w+): (#\w+)", blocks[scheme]))
    page_is = luminance(colours["page"])
    needed = dict.fromkeys(("ink", "quiet", "good", "part", "bad", "blue"), 4.5) | {"pale": 3.0}
    for name, least in needed.items():
        light, dark = sorted([page_is, luminance(colours[name])], reverse=True)
        assert (light + 0.05) / (dark + 0.05) >= least, name


def test_annotators_are_shown_side_by_side(classes_case):
    names = ("annotator", "labels", "quality", "low", "high", "right", "verdict", "confuses")
    person = dict(zip(names, ("<ann>", 9, 0.9, 0.8, 0.95, 0.89, "against", ""), strict=True))
    shown = Page(page(classes_case._replace(people=[person])))
    table = next(t for t in shown.tables if "annotator" in t[0])
    assert table[1][:3] == ["<ann>", "9", "0.9"]
    assert not any("annotator" in t[0] for t in Page(page(classes_case)).tables)
