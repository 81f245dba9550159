"""The site: no page is lost, no link is dead, sessions on pages are what the command prints."""

import csv
import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from sklearn.datasets import load_wine
from typer.testing import CliRunner

from mtbayes.cli import app

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
TEXTS = [*PAGES, *ROOT.glob("*.md")]


def prose(path):
    """A page without its blocks and spans of code."""
    text = re.sub(r"^ *```.*?^ *```$", "", path.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)
    return re.sub(r"`[^`]*`", "code", text)


def anchors(path):
    """What links may end in: headings as Markdown turns them into names."""
    headings = re.findall(r"^#+ (.+)$", path.read_text("utf-8"), flags=re.MULTILINE)
    return {re.sub(r"[\s-]+", "-", re.sub(r"[^\w\s-]", "", h).strip().lower()) for h in headings}


def test_every_page_is_in_the_navigation_once():
    config = (ROOT / "mkdocs.yml").read_text("utf-8")
    navigation = config[config.index("\nnav:") : config.index("\ntheme:")]
    named = re.findall(r"(\S+\.md)$", navigation, flags=re.MULTILINE)
    assert sorted(named) == sorted(p.relative_to(DOCS).as_posix() for p in PAGES)


@pytest.mark.parametrize("path", TEXTS, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_relative_links_lead_somewhere(path):
    for target in re.findall(r"\]\(([^)\s]+)\)", prose(path)):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        there = (path.parent / name).resolve() if name else path
        assert there.exists(), f"{target} leads nowhere"
        if anchor:
            assert anchor in anchors(there), f"{target} leads to no heading"
        if DOCS in path.parents:
            assert there.is_relative_to(DOCS), f"{target} is not a part of the site"


def commands(path):
    """Uses of the command in a page's code: its words from the subcommand on."""
    text = path.read_text("utf-8")
    spans = re.findall(r"`mtbayes ([a-z][^`]*)`", text)
    lines = re.findall(r"^(?:\$ )?mtbayes ([a-z][^#\n]*)", text, flags=re.MULTILINE)
    return [use.split() for use in spans + lines]


@pytest.mark.parametrize("path", TEXTS, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_commands_and_their_options_exist(path):
    known = typer.main.get_command(app).commands
    for name, *words in commands(path):
        assert name in known, f"{path.name}: mtbayes {name}"
        options = {"--help"} | {o for p in known[name].params for o in p.opts + p.secondary_opts}
        unknown = [word for word in words if word.startswith("-") and word not in options]
        assert not unknown, f"{path.name}: mtbayes {name} {unknown}"


def session(path):
    """Commands of a page's consoles, each with what it prints."""
    blocks = re.findall(r"```console\n\$ (.+)\n([^`]*)```", path.read_text("utf-8"))
    return {command: printed.splitlines() for command, printed in blocks}


def shape(line):
    """A line without its numbers."""
    return re.sub(r"\d+(\.\d+)?", "#", " ".join(line.split()))


def test_the_audit_is_what_the_command_prints(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "130")
    spec = importlib.util.spec_from_file_location("wine", DOCS / "wine.py")
    wine = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(wine)
    wine.write(Path("wine.csv"))
    (command, expected), *rest = (
        item for item in session(DOCS / "tutorials/audit.md").items() if item[0].startswith("mt")
    )
    assert not rest
    result = CliRunner().invoke(app, command.split()[1:])
    assert result.exit_code == 0, result.output
    printed = [shape(line) for line in result.output.splitlines()]
    # Where a row's reason goes on below it depends on every digit before.
    words = [line for line in expected if line.strip() and line[0] not in " 0123456789"]
    assert not [line for line in words if shape(line) not in printed]

    true = [wine.CULTIVARS[label] for label in load_wine().target]
    table = [line.split() for line in expected if line[:1].isdigit()]
    assert [row[4] for row in table] == [true[int(row[0]) - 1] for row in table]
    with Path("wine-audit.csv").open() as file:
        ranked = [int(row["row"]) - 1 for row in csv.DictReader(file)]
    with Path("wine.csv").open() as file:
        given = [row["cultivar"] for row in csv.DictReader(file)]
    wrong = {i for i in range(len(true)) if given[i] != true[i]}
    assert len(wrong) == 18
    assert {int(row[0]) - 1 for row in table} <= wrong
    assert len(wrong & set(ranked[:20])) >= 16


CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")


@pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium")
def test_what_is_too_wide_is_reached_by_key_and_nothing_else(tmp_path):
    script = (DOCS / "javascripts/wide.js").read_text("utf-8")
    blocks = [("wide formula", 300), ("wide formula", 50), ("wide", 300), ("wide", 50)]
    body = "".join(
        f'<div class="{kind}" style="width: 100px; overflow-x: auto">'
        f'<p style="width: {width}px">x</div>'
        for kind, width in blocks
    )
    page = tmp_path / "page.html"
    page.write_text(f"<!doctype html>{body}<script>{script}</script>", "utf-8")
    command = [
        CHROMIUM, "--no-sandbox", "--headless", "--disable-gpu", "--dump-dom",
        f"--user-data-dir={tmp_path / 'user'}", page.as_uri(),
    ]  # fmt: skip
    drawn = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout
    marks = re.findall('<div class="[^"]*"[^>]*>', drawn)
    assert ["tabindex" in mark for mark in marks] == [True, False, True, False]
    named = [re.search('aria-label="([^"]*)"', mark)[1] for mark in marks[::2]]
    assert named == ["Formula, scrolls sideways", "Table, scrolls sideways"]


def build(folder, site):
    """Builds a site with the words of `make docs`."""
    pytest.importorskip("mkdocs")
    words = re.search(r"/mkdocs (build.*)", (ROOT / "Makefile").read_text("utf-8"))[1].split()
    command = [sys.executable, "-m", "mkdocs", *words, "--site-dir", site]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, env=os.environ)


@pytest.mark.slow
def test_a_dead_link_is_an_error(tmp_path):
    config = "site_name: x\nstrict: true\nvalidation: {links: {anchors: warn}}\n"
    (tmp_path / "mkdocs.yml").write_text(config)
    (tmp_path / "docs").mkdir()
    page = tmp_path / "docs" / "index.md"
    page.write_text("# Here\n[there](#here)")
    assert build(tmp_path, tmp_path / "site").returncode == 0
    page.write_text("# Here\n[there](#there)")
    assert build(tmp_path, tmp_path / "site").returncode != 0


@pytest.mark.slow
def test_the_site_is_built_strictly_and_needs_no_network(tmp_path):
    pytest.importorskip("mkdocstrings")
    built = build(ROOT, tmp_path)
    assert built.returncode == 0, built.stderr
    pages = list(tmp_path.rglob("*.html"))
    assert len(pages) > len(PAGES)  # and one for what is not found
    loads = r"<(?:script|img|iframe)[^>]*\ssrc=\"?([^\s\">]+)|<link[^>]*\shref=\"?([^\s\">]+)"
    for page in pages:
        for source, link in re.findall(loads, page.read_text("utf-8")):
            assert not re.match(r"(https?:)?//", source + link), f"{page.name} loads {source}{link}"
    for style in tmp_path.rglob("*.css"):
        assert not re.search(r"url\(['\"]?(https?:)?//", style.read_text("utf-8")), style.name
    mathematics = (tmp_path / "mathematics.html").read_text("utf-8")
    assert mathematics.count('<div class="formula wide">') >= 20  # typeset, by the browser itself
    assert "javascripts/wide.js" in mathematics  # by which what is too wide scrolls without a mouse
    choice = (tmp_path / "how-to-choose.html").read_text("utf-8")
    assert 'href="#t_p-a-prior-that-may-be-wrong"' in choice
    assert "result[i][j]</code>" in (tmp_path / "reference/solve.html").read_text("utf-8")
    for page in pages:
        text = page.read_text("utf-8")
        assert not re.search(r'(?:href|id)="[^"]*<', text), page.name
        aside = r'<(code|script|style|h\d)\b.*?</\1>|alttext="[^"]*"'
        text = re.sub(aside, "", text, flags=re.DOTALL)
        half = re.search(r".{30}(?<!<mo>)\^(?![a-z]{3})", text)
        assert not half, f"{page.name}: {half[0]}"
    reference = (tmp_path / "reference/estimators.html").read_text("utf-8")
    assert 'id="mtbayes.estimators.RobustClassifier.find_outliers"' in reference
