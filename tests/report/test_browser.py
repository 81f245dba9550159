"""The page in a real browser: no errors, tables that sort, plots with a size, both schemes."""

import json
import re
import shutil
import subprocess
from html import escape, unescape

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium")

WATCH = """<script>
const bad = []; console.error = (...said) => bad.push(said.join(" "));
addEventListener("error", event => bad.push(event.message || "not loaded"), true);
</script>"""
PRESS = """<script>
const seen = { bad, sorted: [] };
const tables = [...document.querySelectorAll("table")];
const table = tables.find(t => t.textContent.includes("suggested"));
const column = i => [...table.tBodies[0].rows].map(row => row.cells[i].textContent);
for (const name of ["row", "row", "weight", "given"]) {
  const th = [...table.tHead.rows[0].cells].find(c => c.textContent === name);
  const button = th.querySelector("button");
  button.focus();
  const focused = document.activeElement === button;
  button.click();
  seen.sorted.push({ name, focused, order: th.getAttribute("aria-sort"),
    cells: column(th.cellIndex), rows: column(0),
    others: table.querySelectorAll("th[aria-sort]:not([aria-sort=none])").length });
}
seen.sizes = [...document.querySelectorAll("svg, img")].map(one => {
  const box = one.getBoundingClientRect(); return [box.width, box.height]; });
seen.text = [...document.querySelectorAll("svg text")].map(one =>
  parseFloat(getComputedStyle(one).fontSize) * Math.hypot(one.getCTM().a, one.getCTM().b));
seen.wide = [document.documentElement.scrollWidth, innerWidth];
seen.ground = getComputedStyle(document.body).backgroundColor;
seen.ink = getComputedStyle(document.querySelector("svg text")).fill;
const out = parent.document.createElement("pre"); out.id = "seen";
out.textContent = JSON.stringify(seen); parent.document.body.append(out);
</script>"""


@pytest.fixture(scope="module")
def look(tmp_path_factory, classes_page):
    def inner(width, scheme):
        folder = tmp_path_factory.mktemp("browser")
        path = folder / "page.html"
        text = classes_page.replace("<head>", f"<head>{WATCH}").replace(
            "</body>", f"{PRESS}</body>"
        )
        # In a frame: no window is as narrow as a phone.
        frame = f'<iframe width={width} height=900 srcdoc="{escape(text)}"></iframe>'
        path.write_text(f"<!doctype html><meta charset=utf-8><body>{frame}", encoding="utf-8")
        done = subprocess.run(
            [CHROMIUM, "--no-sandbox", "--headless", "--disable-gpu", "--enable-logging=stderr",
             f"--user-data-dir={folder / 'user'}", "--window-size=1400,1000",
             f"--blink-settings=preferredColorScheme={scheme}", "--dump-dom", path.as_uri()],
            capture_output=True, text=True, timeout=120, check=True,
        )  # fmt: skip
        assert ":CONSOLE" not in done.stderr
        found = re.search(r'<pre id="seen">(.*?)</pre>', done.stdout, re.DOTALL)
        return json.loads(unescape(found[1]))

    return inner


@pytest.fixture(scope="module")
def desktop(look):
    return look(1280, 1)


@pytest.fixture(scope="module")
def phone(look):
    return look(390, 0)


def test_no_error(desktop, phone):
    assert desktop["bad"] == phone["bad"] == []


def test_tables_sort_when_a_heading_is_pressed(desktop):
    first, second, third, last = desktop["sorted"]
    assert all(one["focused"] and one["others"] == 1 for one in desktop["sorted"])
    assert (first["order"], first["cells"]) == ("ascending", ["2", "4", "30", "100"])
    assert (second["order"], second["cells"]) == ("descending", ["100", "30", "4", "2"])
    # As numbers and not as text; what is empty comes last, and rows stay whole.
    assert third["cells"] == ["-1", "0.25", "0.3", ""]
    assert third["rows"] == ["2", "4", "30", "100"]
    assert last["rows"] == third["rows"]  # equal cells keep their order


def test_plots_are_there_and_have_a_size(desktop, phone):
    for found, width in ((desktop, 1280), (phone, 390)):
        assert len(found["sizes"]) > 10
        assert all(20 < w <= width and h > 20 for w, h in found["sizes"])


def test_a_phone_does_not_scroll_sideways_and_can_read_figures(phone):
    wide, screen = phone["wide"]
    assert screen == 390
    assert wide <= screen
    assert min(phone["text"]) > 7.5  # CSS pixels


def test_the_scheme_is_the_readers(desktop, phone):
    assert desktop["ground"] == "rgb(255, 255, 255)"
    assert phone["ground"] == "rgb(21, 24, 28)"
    assert desktop["ink"] == "rgb(31, 35, 40)"
    assert phone["ink"] == "rgb(230, 232, 234)"
