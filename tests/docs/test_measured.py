"""Tables of the pages are those of the files that benchmarks wrote."""

import csv
import importlib.util
import shutil
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
spec = importlib.util.spec_from_file_location("measured", ROOT / "tools" / "measured.py")
measured = importlib.util.module_from_spec(spec)
spec.loader.exec_module(measured)


def asked(path):
    return [found[2] for found in measured.MARKED.finditer(path.read_text("utf-8"))]


@pytest.mark.parametrize("path", measured.PAGES, ids=lambda path: path.stem)
def test_a_page_says_what_the_files_say(path):
    text = path.read_text("utf-8")
    assert measured.filled(text) == text, "Run `make evidence`."


def test_each_table_stands_somewhere_and_each_mark_is_known():
    marks = [name for path in measured.PAGES for name in asked(path)]
    assert sorted(set(marks)) == sorted(measured.BLOCKS)
    opened = sum(path.read_text("utf-8").count("begin: measured/") for path in measured.PAGES)
    assert opened == len(marks), "a mark has no end, or holds another"


KEYS = {"eps", "m", "t", "batch", "width", "seed", "rounds", "rows", "devices", "rows a device"}


def tripled(name, text):
    try:
        return text if name in KEYS else repr(3 * float(text))
    except ValueError:
        return text


@pytest.mark.parametrize("path", sorted(measured.SAVED.rglob("*.csv")), ids=lambda path: path.stem)
def test_another_number_in_a_file_is_another_table(path, tmp_path, monkeypatch):
    shutil.copytree(measured.SAVED, tmp_path / "measured")
    shutil.copytree(measured.DOCS / "modes", tmp_path / "modes")
    shutil.copytree(measured.DOCS / "tables", tmp_path / "tables")
    monkeypatch.setattr(measured, "DOCS", tmp_path)
    monkeypatch.setattr(measured, "SAVED", tmp_path / "measured")
    before = {name: told() for name, told in measured.BLOCKS.items()}
    lines = measured.read(path.relative_to(ROOT / "docs").as_posix())
    with (tmp_path / path.relative_to(ROOT / "docs")).open("w", newline="") as file:
        writer = csv.DictWriter(file, lines[0])
        writer.writeheader()
        writer.writerows({k: tripled(k, v) for k, v in line.items()} for line in lines)
    after = {name for name, told in measured.BLOCKS.items() if told() != before[name]}
    home = path.parent.name
    assert after
    assert all(name.startswith(f"{home}/") for name in after)


def test_the_fastest_form_of_a_rival_is_told_with_its_own_ratio():
    by = {
        "torch, pool": {"ms": "2.5", "ratio": "5.2"},
        "torch, rows drawn": {"ms": "2.25", "ratio": "4.0"},
    }
    assert measured.beside(by, measured.EAGER) == "2.25 (4.0×)"
    assert measured.beside(by, measured.COMPILED) == "–"


def test_means_over_seeds():
    assert measured.spread([0.5, 0.7], 1, 100, "%") == "60.0% ± 14.1%"  # 20/√2
