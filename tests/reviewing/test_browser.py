"""The page in a real browser, with real keys."""

import csv
import os
import signal
import subprocess
import sys

import numpy as np
import pytest

import mtbayes
from mtbayes.reviewing import Review
from mtbayes.reviewing.decisions import read_decisions
from mtbayes.reviewing.pictures import png

from .conftest import LABELS, Running, table, until

ENTER, ESCAPE, LEFT, RIGHT = "\ue007", "\ue00c", "\ue012", "\ue014"


class Command:
    """`mtbayes review` in a process of its own."""

    def __init__(self, path, audit, out):
        self.process = subprocess.Popen(
            [sys.executable, "-c", "from mtbayes.cli import run; run()", "review", str(path),
             "--target", "label", "--model", str(audit), "--no-browser", "--quiet",
             "--learner", "trees", "-o", str(out)],
            stdout=subprocess.PIPE, text=True,
            env=os.environ | {"PYTHONPATH": os.path.dirname(os.path.dirname(mtbayes.__file__))},
        )  # fmt: skip
        self.address = self.process.stdout.readline().strip()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end(signal.SIGKILL)
        self.process.stdout.close()

    def end(self, how):
        self.process.send_signal(how)
        self.process.wait(60)


def next_label(label):
    return LABELS[(LABELS.index(label) + 1) % len(LABELS)]


def test_thirty_rows_an_undo_a_kill_and_a_clean_file(browser, tmp_path):
    path, out = tmp_path / "data.csv", tmp_path / "clean.csv"
    audit = table(path, 60)
    given = [row["label"] for row in csv.DictReader(path.read_text().splitlines())]
    expected = {}  # by row of the file, from 1: its label, or None where it is dropped

    def decide(key):
        """Press a key, and know by the rules of the page what comes of it."""
        row = browser.row()
        own = given[row - 1]
        if key == ENTER:
            browser.press(ENTER)
            shown = next_label(own) if row <= 6 else own  # what is not suspicious is to be kept
        elif key == "1":
            browser.press("1")
            shown = next_label(own)
        elif key == "type":
            browser.press("/", *"hig", ENTER)
            shown = "high"
        elif key == "new":
            browser.press("/", *"quite new", ENTER)
            shown = "quite new"
        else:
            browser.press(key)
            shown = {"k": own, "d": None}[key]
        expected[row] = shown
        return row

    with Command(path, audit, out) as command:
        browser.open(command.address)
        assert browser.row() == 1
        order = [decide(key) for key in [ENTER, "k", "d", "type", "1", ENTER] * 2]
        assert len(set(order)) == 12
        command.end(signal.SIGKILL)
    with Command(path, audit, out) as command:  # goes on where it was
        browser.open(command.address)
        assert all("ERR_CONNECTION" in said for said in browser.errors())  # of the one that ended
        assert browser.row() not in order
        order += [decide(key) for key in ["k", "d", ENTER, "type", "new", "k"] * 3]
        assert len(set(order)) == 30
        for back in range(5):
            browser.press("z")
            assert browser.row() == order[-1 - back]
            del expected[order[-1 - back]]
        # Decided rows come first: the one before is the last that still holds.
        browser.press(LEFT)
        assert browser.row() in expected
        browser.press(RIGHT)
        decide("d")
        browser.press("e")
        until(lambda: browser.run("return document.getElementById('written').open"))
        assert str(out) in browser.text("#files")
        browser.press(ESCAPE)
        assert browser.errors() == []
        command.end(signal.SIGINT)

    held = {d.row: d for d in read_decisions(tmp_path / "data.csv.review.jsonl")[1].values()}
    assert set(held) == set(expected)
    lines = path.read_bytes().splitlines(keepends=True)
    wanted = [lines[0]]
    for number, (line, own) in enumerate(zip(lines[1:], given, strict=True), 1):
        new = expected.get(number, own)
        if new is not None:
            wanted.append(line.replace(f"{own}\r\n".encode(), f"{new}\r\n".encode()))
    assert out.read_bytes() == b"".join(wanted)
    decided = list(csv.DictReader((tmp_path / "clean-decisions.csv").read_text().splitlines()))
    assert {int(d["row"]) for d in decided} == set(expected)
    assert "26 rows" in (tmp_path / "clean-summary.md").read_text()


@pytest.fixture
def page(browser, review, tmp_path):
    running = Running(review, tmp_path / "clean.csv")
    browser.open(running.address)
    yield running
    running.stop()


def test_text_is_never_made_into_html(browser, page):
    browser.run("window.hit = () => { window.struck = true; }; return 0")
    browser.press("k", "k")
    assert browser.text("#given") == LABELS[2]
    browser.press("/", "<")
    assert LABELS[2] in browser.text("#options")
    browser.press(ESCAPE, "?")
    assert browser.run("return document.getElementById('help').open")
    browser.press("?")
    assert not browser.run("return document.getElementById('help').open || !!window.struck")
    images = "return [...document.images].filter(one => !one.hidden).length"
    assert browser.run(images) == 0


def test_skipped_rows_come_back_at_the_end(browser, page, review):
    browser.press("s")
    assert browser.row() == 2
    assert review.state(0) == "skip"
    for _ in range(19):
        browser.press("k")
    assert browser.row() == 1
    browser.press("d")
    assert "Every row is decided" in browser.text("#donehead")
    assert browser.run("return document.getElementById('work').hidden")
    browser.press("z")
    assert browser.row() == 1
    for _ in range(21):
        browser.press("z")
    assert review.decided == {}
    assert "Nothing is left to undo" in browser.text("#live")


def test_who_goes_ahead_goes_on_from_there(browser, page):
    browser.press(RIGHT, RIGHT, RIGHT)
    assert browser.row() == 4
    browser.press("k")
    assert browser.row() == 5
    browser.press("z", LEFT)  # the open rows are in their places again
    browser.press("k")
    assert browser.row() == 4
    browser.run("document.querySelector('.line[data-row=\"0\"]').click()")
    until(lambda: browser.row() == 1)
    browser.press("k")
    assert browser.row() == 2


def test_two_tabs_agree(browser, page, review):
    first = browser.call("/window")
    second = browser.call("/window/new", {"type": "tab"})["handle"]
    try:
        browser.call("/window", {"handle": second})
        browser.open(page.address)
        browser.press(ENTER)
        assert browser.row() == 2
        browser.call("/window", {"handle": first})
        until(lambda: "Corrected to high" in browser.text("#heading"))
        assert "1 of 20 rows looked at: 1 corrected" in browser.text("#numbers")
        # A decision about the same row in this tab is the one that holds.
        browser.press("k")
        assert review.state(0) == "keep"
        browser.call("/window", {"handle": second})
        until(lambda: "1 kept" in browser.text("#numbers"))
    finally:
        browser.call("/window", {"handle": second})
        browser.call("/window", method="DELETE")
        browser.call("/window", {"handle": first})


def test_a_refit_leaves_the_page_usable(browser, page, review, monkeypatch):
    import threading

    may_end, old = threading.Event(), review.opinion

    def slow(*_, **__):
        may_end.wait(30)
        return old._replace(order=old.order[::-1])

    monkeypatch.setattr("mtbayes.reviewing.session.learn", slow)
    browser.press("r")
    until(lambda: not browser.run("return document.getElementById('fitting').hidden"))
    browser.press("k", "k")  # meanwhile
    assert len(review.decided) == 2
    may_end.set()
    until(lambda: browser.run("return document.getElementById('fitting').hidden"))
    assert len(review.decided) == 2
    assert review.open[0] == 19
    # The row on the screen stays until it is decided.
    assert browser.row() == 3
    browser.press("k")
    assert len(review.decided) == 3


def test_a_phone_in_the_dark(browser, page):
    browser.emulate("setDeviceMetricsOverride", width=390, height=844, deviceScaleFactor=1,
                    mobile=True)  # fmt: skip
    dark = [{"name": "prefers-color-scheme", "value": "dark"}]
    browser.emulate("setEmulatedMedia", features=dark)
    try:
        wide = "return document.documentElement.scrollWidth"
        assert browser.run(wide) <= 390
        ground = browser.run("return getComputedStyle(document.body).backgroundColor")
        assert ground == "rgb(21, 24, 28)"
        assert browser.run("return getComputedStyle(document.getElementById('side')).display") == (
            "none"
        )
        browser.run("document.getElementById('listed').click()")
        until(lambda: browser.run("return document.querySelectorAll('.line').length") > 5)
        assert browser.run(wide) <= 390
        small = """return [...document.querySelectorAll('.actions button')].filter(one => {
            const box = one.getBoundingClientRect(); return box.height < 36 || box.width < 30;
        }).length"""
        assert browser.run(small) == 0
    finally:
        browser.emulate("clearDeviceMetricsOverride")
        browser.emulate("setEmulatedMedia", features=[])


CONTRAST = """
const parse = c => [...c.match(/[\\d.]+/g).map(Number), 1].slice(0, 4);
const over = (a, b) => [0, 1, 2].map(i => a[i] * a[3] + b[i] * (1 - a[3])).concat(1);
const light = c => c.slice(0, 3).map(v => v / 255).map(
  v => v <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4)
  .reduce((sum, v, i) => sum + v * [.2126, .7152, .0722][i], 0);
const above = one => one ? [...above(one.parentElement), one] : [];
const faint = [], texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (texts.nextNode()) {
  const one = texts.currentNode.parentElement, style = getComputedStyle(one);
  const seen = one.getClientRects().length && style.visibility === "visible";
  if (!texts.currentNode.data.trim() || !seen || one.closest("button:disabled")) continue;
  const line = above(one).map(each => getComputedStyle(each));
  const ground = line.reduce((c, each) => over(parse(each.backgroundColor), c), [255, 255, 255, 1]);
  const ink = parse(one instanceof SVGElement ? style.fill : style.color);
  ink[3] *= line.reduce((product, each) => product * each.opacity, 1);
  const [low, high] = [light(over(ink, ground)), light(ground)].sort((a, b) => a - b);
  if ((high + .05) / (low + .05) < 4.5) faint.push(texts.currentNode.data.trim());
}
return faint;"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_all_text_on_the_screen_can_be_read(browser, page, scheme):
    browser.press("d", "k")
    browser.emulate(
        "setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}]
    )
    try:
        assert browser.run(CONTRAST) == []
    finally:
        browser.emulate("setEmulatedMedia", features=[])


def test_the_list_says_which_row_is_shown(browser, page):
    active = "return document.getElementById('list').getAttribute('aria-activedescendant')"
    until(lambda: browser.run(active) == "line0")
    browser.press(RIGHT)
    until(lambda: browser.run(active) == "line1")
    assert browser.run("return document.getElementById('line1').ariaSelected") == "true"


def test_all_that_can_be_pressed_has_a_name_and_shows_its_focus(browser, page):
    nameless = """return [...document.querySelectorAll("button, input, select, [role=listbox]")]
      .filter(one => !one.textContent.trim() && !one.getAttribute("aria-label")
        && !(one.labels && one.labels.length)).map(one => one.id)"""
    assert browser.run(nameless) == []
    browser.press("\ue004")  # Tab
    style = "const it = getComputedStyle(document.activeElement); return it.outlineStyle"
    assert browser.run(style) == "solid"
    assert browser.run("return document.documentElement.lang") == "en"


def test_a_hundred_thousand_rows_scroll(browser, tmp_path):
    path, n = tmp_path / "many.csv", 100_000
    review = Review(path, "label", model=table(path, n), every=0)
    running = Running(review, tmp_path / "clean.csv")
    try:
        browser.open(running.address)
        lines = "return [...document.querySelectorAll('.line')].map(one => +one.ariaPosInSet)"
        until(lambda: browser.run(lines))
        browser.run("const list = document.getElementById('list'); list.scrollTop = 1e9; return 0")
        until(lambda: n in browser.run(lines))
        assert len(browser.run(lines)) < 60  # those in sight alone
        browser.run("document.getElementById('state').value = 'keep'; return 0")
        browser.press("k")
        assert browser.row() == 2
        until(lambda: browser.text("#count") == "1 row")
    finally:
        running.stop()
        review.close()


def test_one_of_four_hundred_classes_is_typed(browser, tmp_path):
    path = tmp_path / "many.csv"
    audit = table(path, 1000, [f"class {i}" for i in range(400)])
    review = Review(path, "label", model=audit, every=0)
    running = Running(review, tmp_path / "clean.csv")
    try:
        browser.open(running.address)
        browser.press("/", *"ss 37")
        assert browser.run("return document.querySelectorAll('#options [role=option]').length") <= 9
        browser.press("\ue015", ENTER)  # the second that fits
        browser.press(*"class 37", ENTER)
    finally:
        running.stop()
    assert [d.value for d in review.decided.values()] == ["class 370", "class 37"]
    review.close()


def test_digits_are_keys_of_their_own_and_are_seen_on_a_phone(browser, tmp_path):
    path = tmp_path / "digits.csv"
    review = Review(path, "label", model=table(path, 100, list("0123456789")), every=0)
    assert review.schema.whole
    review.opinion = review.opinion._replace(prediction=np.full((100, 10), 0.1))
    running = Running(review, tmp_path / "clean.csv")
    browser.emulate("setDeviceMetricsOverride", width=390, height=844, deviceScaleFactor=1,
                    mobile=True)  # fmt: skip
    try:
        browser.open(running.address)
        shown = "return [...document.querySelectorAll('#candidates li')].map(one => one.innerText)"
        assert sorted(text.split()[0] for text in browser.run(shown)) == list("123456789")
        browser.press("7")
        assert browser.row() == 2
    finally:
        browser.emulate("clearDeviceMetricsOverride")
        running.stop()
    assert review.decided[0].value == "7"
    review.close()


def test_images_are_drawn(browser, tmp_path):
    path = tmp_path / "data.csv"
    audit = table(path, 30)
    (tmp_path / "photos").mkdir()
    header, *lines = path.read_text().splitlines()
    for i in range(30):
        grey = np.full((80, 90), 8 * i, np.uint8)
        (tmp_path / "photos" / f"{i}.png").write_bytes(png(grey))
    lines = [f"{i}.png,{line}" for i, line in enumerate(lines)]
    path.write_text("\n".join([f"file,{header}", *lines]) + "\n")
    review = Review(path, "label", model=audit, every=0)
    running = Running(review, tmp_path / "clean.csv", str(tmp_path / "photos"))
    try:
        browser.open(running.address)
        wide = "return document.getElementById('picture').naturalWidth"
        until(lambda: browser.run(wide) == 90)
        assert browser.run("return document.getElementById('picture').alt") == "Row 1"
        drawn = "return [...document.querySelectorAll('#near img')].map(one => one.naturalHeight)"
        until(lambda: browser.run(drawn) == [80] * 6)
    finally:
        running.stop()
        review.close()


def test_numbers_are_typed(browser, tmp_path):
    path = tmp_path / "flats.csv"
    lines = [f"{i},{2 * i}.5" for i in range(40)]
    path.write_text("\n".join(["x,price", *lines]) + "\n")
    audit = tmp_path / "audit.csv"
    audit.write_text(
        "rank,row,probability,given,suggested,why\n"
        + "".join(f"{i + 1},{i + 1},{0.9 if i < 3 else 0.01},1,{2 * i},so\n" for i in range(40))
    )
    review = Review(path, "price", model=audit, every=0)
    said = np.stack([2.0 * np.arange(40), np.full(40, 3.0)], axis=1)  # mean and standard deviation
    review.opinion = review.opinion._replace(prediction=said)
    running = Running(review, tmp_path / "clean.csv")
    try:
        browser.open(running.address)
        assert browser.text("#chance") == "90\u00a0% between -4.9 and 4.9"
        assert "After" in browser.text("#sentence")
        browser.press(*"12.25", ENTER)
        browser.press(*"abc", ENTER)
        assert "must be a number" in browser.text("#live")
        browser.press(ESCAPE, ENTER, ENTER, ENTER)
    finally:
        running.stop()
    assert [(d.action, d.value) for d in review.decided.values()] == [
        ("correct", "12.25"), ("correct", "2.0"), ("correct", "4.0"), ("keep", "6.5"),
    ]  # fmt: skip
    review.close()
